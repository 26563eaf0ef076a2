// Which results are exact on which inputs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/reference_evaluator.hpp"

namespace podsim {
namespace {

constexpr double largest_exact = 0x1p24;  // float32 holds all integers up to here

using InputBounds = std::vector<double>;  // per node; of inputs

/// The bound on the magnitudes of every exact node, given those of the inputs; 0 where a node is not exact.
std::vector<double> bounds(const ReferenceProgram& program, const Mesh& mesh, const InputBounds& inputs, const std::vector<bool>& exact) {
  std::vector<double> bound(program.nodes.size(), 0);
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    if (!exact[n]) continue;
    const ReferenceNode& node = program.nodes[n];
    const auto of = [&](std::size_t i) { return bound[static_cast<std::size_t>(node.operands[i])]; };
    const auto terms = static_cast<double>(terms_of(program, node, mesh));
    switch (node.kind) {
      case ReferenceKind::input: bound[n] = inputs[n]; break;
      case ReferenceKind::product:
      case ReferenceKind::multiply: bound[n] = terms * of(0) * of(1); break;
      case ReferenceKind::add:
      case ReferenceKind::subtract: bound[n] = of(0) + of(1); break;
      case ReferenceKind::one_hot: bound[n] = 1; break;
      case ReferenceKind::iota: bound[n] = static_cast<double>(node.extents[static_cast<std::size_t>(node.dim)] - 1); break;
      case ReferenceKind::concatenate: bound[n] = std::max(of(0), of(1)); break;
      case ReferenceKind::scale: bound[n] = std::abs(node.number) * of(0); break;
      case ReferenceKind::add_number: bound[n] = std::abs(node.number) + of(0); break;
      default: bound[n] = terms * of(0); break;
    }
  }
  return bound;
}

bool has_whole_number(const ReferenceNode& node) {
  return (node.kind != ReferenceKind::scale && node.kind != ReferenceKind::add_number) || node.number == std::floor(node.number);
}

/// Inputs of at most this magnitude, of whole numbers below a bound if that is less.
InputBounds bounds_of_inputs(const ReferenceProgram& program, const std::function<std::int64_t(const ReferenceNode&)>& most) {
  InputBounds bounds;
  for (const ReferenceNode& node : program.nodes)
    bounds.push_back(static_cast<double>(node.kind == ReferenceKind::input && node.below > 0 ? node.below - 1 : most(node)));
  return bounds;
}

class ExactNodes {
 public:
  ExactNodes(const ReferenceProgram& program, const Mesh& mesh) : program_{program}, mesh_{mesh} {
    result_.exact.assign(program.nodes.size(), true);
    for_each_exact([&](std::size_t n) {
      const ReferenceNode& node = program.nodes[n];
      return traits_of(node.kind).exact && has_whole_number(node) ? "" : std::string{"rounds"};
    });
  }

  /// Drops what may exceed 2^24 with these inputs.
  void limit(const InputBounds& inputs) {
    const std::vector<double> bound = bounds(program_, mesh_, inputs, result_.exact);
    for_each_exact([&](std::size_t n) { return bound[n] > largest_exact ? fmt::format("may reach {:.3g}, more than 2^24", bound[n]) : ""; });
  }
  [[nodiscard]] bool fits(const InputBounds& inputs) const {
    const std::vector<double> bound = bounds(program_, mesh_, inputs, result_.exact);
    return std::all_of(bound.begin(), bound.end(), [](double b) { return b <= largest_exact; });
  }
  [[nodiscard]] ExactRange& result() { return result_; }

 private:
  /// why(n): empty if node n stays exact, given that its operands are.
  template <class Why>
  void for_each_exact(Why why) {
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      const std::vector<int>& operands = program_.nodes[n].operands;
      if (!std::all_of(operands.begin(), operands.end(), [&](int o) { return result_.exact[static_cast<std::size_t>(o)]; })) result_.exact[n] = false;
      if (!result_.exact[n]) continue;
      const std::string reason = why(n);
      if (reason.empty()) continue;
      result_.exact[n] = false;
      if (result_.why_not.empty()) result_.why_not = node_name(program_, n) + " " + reason;
    }
  }

  const ReferenceProgram& program_;
  const Mesh& mesh_;
  ExactRange result_;
};

}  // namespace

ExactRange exact_range(const ReferenceProgram& program, const Mesh& mesh) {
  const auto all_inputs = [&](std::int64_t range) { return bounds_of_inputs(program, [&](const ReferenceNode&) { return range; }); };
  ExactNodes nodes{program, mesh};
  nodes.limit(all_inputs(1));
  const bool levels_off =
      std::any_of(program.nodes.begin(), program.nodes.end(), [](const ReferenceNode& node) { return traits_of(node.kind).levels_off; });
  std::int64_t low = 1, high = std::int64_t{1} << 24;
  while (low < high && !levels_off) {
    const std::int64_t middle = (low + high + 1) / 2;
    nodes.fits(all_inputs(middle)) ? low = middle : high = middle - 1;
  }
  nodes.result().range = low;
  return std::move(nodes.result());
}

ExactRange exactness(const ReferenceProgram& program, const Mesh& mesh, Filling filling) {
  if (filling == Filling::integers) return exact_range(program, mesh);
  ExactNodes nodes{program, mesh};
  nodes.limit(bounds_of_inputs(program, [&](const ReferenceNode& node) {
    return filling == Filling::arange ? element_count(node.extents) - 1 : std::int64_t{1};
  }));
  if (filling == Filling::uniform || filling == Filling::fractions || filling == Filling::positive) nodes.result().exact.assign(program.nodes.size(), false);
  return std::move(nodes.result());
}

std::string why_inexact(const Schedule& schedule, Filling filling) {
  if (const auto* program = std::get_if<ReferenceProgram>(&schedule.computes)) return exactness(*program, schedule.mesh, filling).why_not;
  const auto* products = std::get_if<Products>(&schedule.computes);
  if (products == nullptr || filling == Filling::integers) return {};
  return exactness(program_of(*products), schedule.mesh, filling).why_not;
}

}  // namespace podsim
