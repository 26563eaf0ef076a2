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
      all.push_back({true, {o}, {program.outputs[o].second}, node.operands, a.back(), node.extents.size() < a.size() ? 1 : node.extents.back()});
    }
  }
  for (const auto& [node, where] : factors)
    if (where[0] && where[1] && where[2])
      all.push_back({false,
                     {*where[0], *where[1], *where[2]},
                     {program.outputs[*where[0]].second, program.outputs[*where[1]].second, program.outputs[*where[2]].second},
                     {node},
                     program.nodes[static_cast<std::size_t>(node)].extents[0]});
  return all;
}

RelativeResidual residual_of(const JudgedOutputs& judged, const std::vector<std::span<const double>>& operands, const std::vector<std::span<const double>>& found) {
  const std::vector<double> a(operands[0].begin(), operands[0].end());
  if (!judged.solution) return residual_of_lu(a, judged.n, found[0], found[1], found[2]);
  return residual_of_solve(a, {operands[1].begin(), operands[1].end()}, judged.n, judged.columns, found[0]);
}

std::string describe(const JudgedOutputs& judged, const RelativeResidual& residual) {
  if (!residual.why.empty()) return residual.why;
  return fmt::format("{} is {:.3g}; expected at most {:.3g}", judged.solution ? "|b - A x| / (|A| |x|)" : "|P A - L U| / |A|", residual.found,
                     residual.allowed);
}

}  // namespace podsim
