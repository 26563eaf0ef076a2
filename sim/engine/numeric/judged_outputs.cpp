#include "sim/engine/numeric/judged_outputs.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>

namespace podsim {

std::vector<JudgedOutputs> judged_outputs(const ReferenceProgram& program) {
  std::vector<JudgedOutputs> all;
  std::map<int, std::array<std::optional<std::size_t>, 3>> factors;  // of a node: where P, L and U are
  for (std::size_t o = 0; o < program.outputs.size(); ++o) {
    const ReferenceNode& node = program.nodes[static_cast<std::size_t>(program.outputs[o].second)];
    if (node.kind == ReferenceKind::lu_pivots || node.kind == ReferenceKind::lu_lower || node.kind == ReferenceKind::lu_upper) {
      factors[node.operands[0]][static_cast<std::size_t>(node.kind) - static_cast<std::size_t>(ReferenceKind::lu_pivots)] = o;
    } else if (node.kind == ReferenceKind::solve) {
      const Extents& a = program.nodes[static_cast<std::size_t>(node.operands[0])].extents;
      all.push_back({true, {o}, node.operands, a.back(), node.extents.size() < a.size() ? 1 : node.extents.back()});
    }
  }
  for (const auto& [node, where] : factors)
    if (where[0] && where[1] && where[2])
      all.push_back({false, {*where[0], *where[1], *where[2]}, {node}, program.nodes[static_cast<std::size_t>(node)].extents[0]});
  return all;
}

Residual residual_of(const JudgedOutputs& judged, const std::vector<std::vector<double>>& found) {
  if (judged.solution) return residual_of_solve(judged.arrays[0], judged.arrays[1], judged.n, judged.columns, found[0]);
  return residual_of_lu(judged.arrays[0], judged.n, found[0], found[1], found[2]);
}

std::string describe(const JudgedOutputs& judged, const Residual& residual) {
  if (!residual.why.empty()) return residual.why;
  return fmt::format("{} is {:.3g}; expected at most {:.3g}", judged.solution ? "|b - A x| / (|A| |x|)" : "|P A - L U| / |A|", residual.found,
                     residual.allowed);
}

}  // namespace podsim
