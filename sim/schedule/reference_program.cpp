#include "sim/schedule/reference_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/diagnostic.hpp"

namespace podsim {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 58;

std::string shape_text(const Extents& extents) { return fmt::format("[{}]", fmt::join(extents, ",")); }

/// nullopt: more than `most_elements`, or an extent below 1.
std::optional<std::int64_t> count_of(const Extents& extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > most_elements / count) return std::nullopt;
    count *= extent;
  }
  return count;
}

class ReferenceChecker {
 public:
  ReferenceChecker(const ReferenceProgram& program, const Mesh& mesh) : program_{program}, mesh_{mesh} {}

  std::vector<std::string> check() {
    if (program_.nodes.size() > most_reference_nodes) {
      problem("expected at most {} nodes, found {}", most_reference_nodes, program_.nodes.size());
      return std::move(problems_);
    }
    for (node_ = 0; node_ < program_.nodes.size(); ++node_)
      if (problems_.size() < 100) check_node(program_.nodes[node_]);
    check_outputs();
    return std::move(problems_);
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void of_node(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(node_name(program_, node_) + ": " + fmt::format(format, std::forward<Args>(args)...));
  }

  void check_node(const ReferenceNode& node) {
    const ReferenceTraits& traits = traits_of(node.kind);
    if (node.extents.size() + (node.complex ? 1 : 0) > most_reference_dimensions)
      return of_node("{} dimensions; expected at most {}", node.extents.size(), most_reference_dimensions);
    if (!count_of(node.extents)) return of_node("the extents {}; expected each at least 1, and at most 2^58 elements", shape_text(node.extents));
    if (node.operands.size() != static_cast<std::size_t>(traits.operands))
      return of_node("{} operands; expected {}", node.operands.size(), traits.operands);
    for (const int operand : node.operands)
      if (operand < 0 || static_cast<std::size_t>(operand) >= node_) return of_node("the operand {} is not an earlier node", operand);
    if (!std::isfinite(node.number)) return of_node("the number {} is not finite", node.number);
    check_complex(node);
    switch (node.kind) {
      case ReferenceKind::input:
        check_input(node);
        break;
      case ReferenceKind::product: check_product(node); break;
      case ReferenceKind::add:
      case ReferenceKind::subtract:
      case ReferenceKind::multiply:
      case ReferenceKind::divide: check_elementwise(node); break;
      case ReferenceKind::scale:
      case ReferenceKind::add_number:
      case ReferenceKind::reciprocal:
      case ReferenceKind::relu:
      case ReferenceKind::gelu:
      case ReferenceKind::gelu_slope:
      case ReferenceKind::silu:
      case ReferenceKind::silu_slope: expect(node, operand(node, 0).extents); break;
      case ReferenceKind::reshape:
        if (element_count(node.extents) != element_count(operand(node, 0).extents))
          of_node("the result {} has other elements: {}", shape_text(node.extents), operand_text(node, 0));
        break;
      case ReferenceKind::slice: check_slice(node); break;
      case ReferenceKind::concatenate: check_concatenate(node); break;
      case ReferenceKind::norm_sums:
      case ReferenceKind::norm:
      case ReferenceKind::norm_grad: check_norm(node); break;
      case ReferenceKind::attention:
      case ReferenceKind::attention_grad: check_attention(node); break;
      case ReferenceKind::sum: check_sum(node); break;
      case ReferenceKind::transpose: check_transpose(node); break;
      case ReferenceKind::block_collective: check_blocks(node); break;
      case ReferenceKind::fft: check_fft(node); break;
      case ReferenceKind::lu_pivots:
      case ReferenceKind::lu_lower:
      case ReferenceKind::lu_upper: check_lu(node); break;
      case ReferenceKind::solve: check_solve(node); break;
      case ReferenceKind::square_root:
      case ReferenceKind::softmax:
        expect(node, operand(node, 0).extents);
        if (node.kind == ReferenceKind::softmax && node.extents.empty()) of_node("there is no last dimension");
        break;
      case ReferenceKind::log_sum_exp:
        if (const Extents& from = operand(node, 0).extents; from.empty())
          of_node("there is no last dimension");
        else
          expect(node, {from.begin(), from.end() - 1});
        break;
      case ReferenceKind::one_hot:
      case ReferenceKind::take_rows:
      case ReferenceKind::add_rows: check_rows(node); break;
      case ReferenceKind::iota:
        if (node.dim < 0 || static_cast<std::size_t>(node.dim) >= node.extents.size()) of_node("there is no dimension {}: the result is {}", node.dim, shape_text(node.extents));
        break;
    }
  }

  /// Complex numbers are added, multiplied by a number and moved; nothing else takes them.
  void check_complex(const ReferenceNode& node) {
    switch (node.kind) {
      case ReferenceKind::input: return;
      case ReferenceKind::fft:
        if (!node.complex) of_node("the result of a transform is complex");
        return;
      case ReferenceKind::add:
      case ReferenceKind::subtract:
      case ReferenceKind::scale:
      case ReferenceKind::sum:
      case ReferenceKind::transpose:
      case ReferenceKind::block_collective:
      case ReferenceKind::reshape:
      case ReferenceKind::slice:
      case ReferenceKind::concatenate:
        for (std::size_t i = 0; i < node.operands.size(); ++i)
          if (operand(node, i).complex != node.complex)
            return of_node("{} is {}, the result {}", node_name(program_, static_cast<std::size_t>(node.operands[i])),
                           operand(node, i).complex ? "complex" : "real", node.complex ? "complex" : "real");
        return;
      default:
        if (node.complex || std::any_of(node.operands.begin(), node.operands.end(), [&](int o) { return program_.nodes[static_cast<std::size_t>(o)].complex; }))
          of_node("complex numbers; expected real ones");
    }
  }

  [[nodiscard]] const ReferenceNode& operand(const ReferenceNode& node, std::size_t i) const {
    return program_.nodes[static_cast<std::size_t>(node.operands[i])];
  }
  /// "node 0 (input "A") is [4,6]"
  [[nodiscard]] std::string operand_text(const ReferenceNode& node, std::size_t i) const {
    return fmt::format("{} is {}", node_name(program_, static_cast<std::size_t>(node.operands[i])), shape_text(operand(node, i).extents));
  }

  void expect(const ReferenceNode& node, const Extents& expected) {
    if (node.extents != expected) of_node("the result is {}; expected {}", shape_text(node.extents), shape_text(expected));
  }

  void check_input(const ReferenceNode& node) {
    if (node.tensor.empty()) return of_node("an input needs a tensor");
    constexpr std::int64_t most = std::int64_t{1} << 31;
    if (node.below < 0 || node.below > most) return of_node("whole numbers below {}; expected at most 2^31", node.below);
    if (const auto [held, is_new] = below_.try_emplace(node.tensor, node.below); held->second != node.below)
      of_node("whole numbers below {} here, below {} in an earlier node", node.below, held->second);
  }

  /// one_hot [i.., n], take_rows [i.., row..] of [rows, row..], add_rows [rows, row..] of [i.., row..].
  void check_rows(const ReferenceNode& node) {
    const Extents& index = operand(node, node.kind == ReferenceKind::one_hot ? 0 : 1).extents;
    const auto begins_with_index = [&](const Extents& extents) {
      return extents.size() >= index.size() && std::equal(index.begin(), index.end(), extents.begin());
    };
    const auto after = [](const Extents& extents, std::size_t dims) { return Extents(extents.begin() + static_cast<std::ptrdiff_t>(dims), extents.end()); };
    const bool adds = node.kind == ReferenceKind::add_rows;
    const Extents& picked = adds ? operand(node, 0).extents : node.extents;
    const Extents& rows = adds ? node.extents : operand(node, 0).extents;
    const bool fits = node.kind == ReferenceKind::one_hot ? begins_with_index(picked) && picked.size() == index.size() + 1
                                                          : begins_with_index(picked) && !rows.empty() && after(picked, index.size()) == after(rows, 1);
    if (!fits) of_node("the result is {}, which does not follow from {}{}", shape_text(node.extents), operand_text(node, 0), node.operands.size() == 1 ? "" : " and " + operand_text(node, 1));
  }

  void check_product(const ReferenceNode& node) {
    const Extents &a = operand(node, 0).extents, &b = operand(node, 1).extents;
    const std::size_t rank = a.size();
    const auto meets = [&] {
      if (rank < 2 || b.size() != rank || !std::equal(a.begin(), a.end() - 2, b.begin())) return false;
      return a[node.transpose_left ? rank - 2 : rank - 1] == b[node.transpose_right ? rank - 1 : rank - 2];
    };
    if (!meets())
      return of_node("these do not multiply: {}{}, {}{}", operand_text(node, 0), node.transpose_left ? " transposed" : "", operand_text(node, 1),
                     node.transpose_right ? " transposed" : "");
    Extents expected = a;
    expected[rank - 2] = a[node.transpose_left ? rank - 1 : rank - 2];
    expected[rank - 1] = b[node.transpose_right ? rank - 2 : rank - 1];
    expect(node, expected);
  }

  void check_elementwise(const ReferenceNode& node) {
    const std::optional<Extents> expected = broadcast_extents(operand(node, 0).extents, operand(node, 1).extents);
    if (!expected) return of_node("these do not broadcast to one shape: {}, {}", operand_text(node, 0), operand_text(node, 1));
    expect(node, *expected);
  }

  void check_sum(const ReferenceNode& node) {
    Extents expected = operand(node, 0).extents;
    if (node.dim < 0 || static_cast<std::size_t>(node.dim) >= expected.size())
      return of_node("there is no dimension {}: {}", node.dim, operand_text(node, 0));
    expected.erase(expected.begin() + node.dim);
    expect(node, expected);
  }

  void check_transpose(const ReferenceNode& node) {
    const Extents& from = operand(node, 0).extents;
    const std::vector<int> permutation = permutation_of(node);
    const std::set<int> seen(permutation.begin(), permutation.end());
    if (permutation.size() != from.size() || seen.size() != from.size() ||
        (!seen.empty() && (*seen.begin() != 0 || *seen.rbegin() != static_cast<int>(from.size()) - 1)))
      return of_node("[{}] is no permutation of the dimensions: {}", fmt::join(permutation, ","), operand_text(node, 0));
    Extents expected;
    for (const int dimension : permutation) expected.push_back(from[static_cast<std::size_t>(dimension)]);
    expect(node, expected);
  }

  // ---- Of transformers ----

  void check_slice(const ReferenceNode& node) {
    const Extents& from = operand(node, 0).extents;
    const auto dim = static_cast<std::size_t>(node.dim);
    Extents expected = from;
    if (node.dim >= 0 && dim < from.size() && from.size() == node.extents.size()) expected[dim] = node.extents[dim];
    const bool inside =
        node.dim >= 0 && dim < from.size() && expected == node.extents && node.offset >= 0 && node.offset <= from[dim] - node.extents[dim];
    if (!inside)
      of_node("{} from element {} of dimension {} on is no part: {}", shape_text(node.extents), node.offset, node.dim, operand_text(node, 0));
  }

  void check_concatenate(const ReferenceNode& node) {
    Extents expected = operand(node, 0).extents, other = operand(node, 1).extents;
    const auto dim = static_cast<std::size_t>(node.dim);
    if (node.dim < 0 || dim >= expected.size() || other.size() != expected.size())
      return of_node("there is no dimension {}: {}", node.dim, operand_text(node, 0));
    const std::int64_t behind = other[dim];
    other[dim] = expected[dim];
    if (other != expected)
      return of_node("these do not concatenate along dimension {}: {}, {}", node.dim, operand_text(node, 0), operand_text(node, 1));
    expected[dim] += behind;
    expect(node, expected);
  }

  void check_norm(const ReferenceNode& node) {
    const bool grad = node.kind == ReferenceKind::norm_grad, sums_only = node.kind == ReferenceKind::norm_sums;
    const Extents& x = operand(node, grad ? 1 : 0).extents;
    const Extents& sums = sums_only ? node.extents : operand(node, grad ? 2 : 1).extents;
    if (x.size() != 2 || (sums != Extents{x[0], 1} && sums != Extents{x[0], 2}))
      return of_node("x is {}, the sums {}; expected [tokens,features] and 1 or 2 sums of each token", shape_text(x), shape_text(sums));
    if (grad && operand(node, 0).extents != x) return of_node("dy is no gradient of x: {}, {}", operand_text(node, 0), operand_text(node, 1));
    if (!sums_only) expect(node, x);
  }

  void check_attention(const ReferenceNode& node) {
    const bool grad = node.kind == ReferenceKind::attention_grad;
    const Extents& qkv = operand(node, grad ? 1 : 0).extents;
    if (qkv.size() != 5 || qkv[3] < 3) return of_node("expected [sequences,sequence,groups,q+2,head]: {}", operand_text(node, grad ? 1 : 0));
    Extents o = qkv;
    o[3] -= 2;
    if (grad && operand(node, 0).extents != o) return of_node("do is no gradient of {}: {}", shape_text(o), operand_text(node, 0));
    expect(node, grad ? qkv : o);
  }

  // ---- Transforms and linear algebra ----

  void check_fft(const ReferenceNode& node) {
    const Extents& from = operand(node, 0).extents;
    std::set<int> seen;
    for (const int dim : node.dims)
      if (dim < 0 || static_cast<std::size_t>(dim) >= from.size() || !seen.insert(dim).second)
        return of_node("dimension {} is not one of the operand, or is named twice: {}", dim, operand_text(node, 0));
    if (node.dims.empty()) return of_node("a transform needs a dimension");
    expect(node, from);
  }

  void check_lu(const ReferenceNode& node) {
    const Extents& a = operand(node, 0).extents;
    if (a.size() != 2 || a[0] != a[1]) return of_node("expected a square matrix: {}", operand_text(node, 0));
    expect(node, node.kind == ReferenceKind::lu_pivots ? Extents{a[0]} : a);
  }

  void check_solve(const ReferenceNode& node) {
    const Extents &a = operand(node, 0).extents, &b = operand(node, 1).extents;
    if (a.size() < 2 || a[a.size() - 1] != a[a.size() - 2]) return of_node("expected square matrices: {}", operand_text(node, 0));
    const Extents one{a.begin(), a.end() - 1};
    Extents many = one;
    many.push_back(b.empty() ? 1 : b.back());
    if (b != one && b != many) return of_node("these do not meet: {}, {}", operand_text(node, 0), operand_text(node, 1));
    expect(node, b);
  }

  // ---- Blocks ----

  void check_blocks(const ReferenceNode& node) {
    const BlockCollective& collective = node.collective;
    const Extents& from = operand(node, 0).extents;
    std::int64_t devices = 1;
    std::set<int> seen;
    for (const int axis : collective.axes) {
      if (axis < 0 || static_cast<std::size_t>(axis) >= mesh_.axes().size() || !seen.insert(axis).second)
        return of_node("the axis {} is not one of the mesh, or is named twice", axis);
      devices *= mesh_.axes()[static_cast<std::size_t>(axis)].size;
    }
    if (collective.axes.empty()) return of_node("a collective needs at least one mesh axis");
    if (!check_sharding(collective.from, from, "operand") || !check_sharding(collective.to, node.extents, "result")) return;
    Extents block = block_extents(from, collective.from, mesh_);
    const auto has = [&](int dim) { return dim >= 0 && static_cast<std::size_t>(dim) < block.size(); };
    const auto splits = [&](int dim) { return has(dim) && block[static_cast<std::size_t>(dim)] % devices == 0; };
    switch (collective.kind) {
      case CollectiveKind::all_gather:
        if (!has(collective.dim)) return of_node("there is no dimension {}: {}", collective.dim, operand_text(node, 0));
        join(block, collective.dim, devices);
        break;
      case CollectiveKind::reduce_scatter:
        if (!splits(collective.dim))
          return of_node("dimension {} of the block {} does not divide into {} pieces", collective.dim, shape_text(block), devices);
        block[static_cast<std::size_t>(collective.dim)] /= devices;
        break;
      case CollectiveKind::all_to_all:
        if (!splits(collective.split_dim) || !has(collective.dim))
          return of_node("the block {} does not divide into {} pieces along dimension {} to be joined along {}", shape_text(block), devices,
                         collective.split_dim, collective.dim);
        block[static_cast<std::size_t>(collective.split_dim)] /= devices;
        join(block, collective.dim, devices);
        break;
      case CollectiveKind::all_reduce: break;
      case CollectiveKind::permute: check_pairs(collective, devices); break;
      case CollectiveKind::broadcast:
      case CollectiveKind::reduce: return of_node("{} is no collective of blocks", name_of(collective.kind));
    }
    if (const Extents given = block_extents(node.extents, collective.to, mesh_); given != block)
      of_node("the {} gives blocks {}; the sharding of the result {} has blocks {}", name_of(collective.kind), shape_text(block),
              shape_text(node.extents), shape_text(given));
  }

  void check_pairs(const BlockCollective& collective, std::int64_t devices) {
    std::set<std::int64_t> senders, receivers;
    for (const auto& [from, to] : collective.pairs)
      if (from < 0 || from >= devices || to < 0 || to >= devices || !senders.insert(from).second || !receivers.insert(to).second)
        return of_node("the pair of {} and {} is not of two of {} positions, or one of them is in another pair", from, to, devices);
  }

  /// P pieces one after the other; more than an array can have at most stay as many.
  static void join(Extents& block, int dim, std::int64_t pieces) {
    std::int64_t& extent = block[static_cast<std::size_t>(dim)];
    extent = extent > most_elements / pieces ? 2 * most_elements : extent * pieces;
  }

  bool check_sharding(const Sharding& sharding, const Extents& extents, std::string_view what) {
    std::set<int> seen;
    if (!sharding.unreduced.empty()) return of_node("the {} has a partial sum pending", what), false;
    if (sharding.dims.size() > extents.size())
      return of_node("the sharding of the {} has {} dimensions, the array {}", what, sharding.dims.size(), shape_text(extents)), false;
    for (std::size_t d = 0; d < sharding.dims.size(); ++d) {
      std::int64_t blocks = 1;
      for (const int axis : sharding.dims[d]) {
        if (axis < 0 || static_cast<std::size_t>(axis) >= mesh_.axes().size() || !seen.insert(axis).second)
          return of_node("the sharding of the {}: axis {} is not one of the mesh, or is named twice", what, axis), false;
        blocks *= mesh_.axes()[static_cast<std::size_t>(axis)].size;
      }
      if (extents[d] % blocks != 0)
        return of_node("dimension {} of the {} has {} elements; expected a multiple of {}", d, what, extents[d], blocks), false;
    }
    return true;
  }

  // ---- Outputs ----

  void check_outputs() {
    if (program_.outputs.empty()) problem("a reference needs an output");
    std::set<std::string> seen;
    for (const auto& [tensor, node] : program_.outputs) {
      if (problems_.size() >= 100) return;
      if (node < 0 || static_cast<std::size_t>(node) >= program_.nodes.size()) problem("output {}: there is no node {}", quoted(tensor), node);
      if (!seen.insert(tensor).second) problem("output {} is given twice", quoted(tensor));
    }
  }

  static std::vector<int> permutation_of(const ReferenceNode& node) {
    if (!node.permutation.empty()) return node.permutation;
    std::vector<int> reverse;
    for (std::size_t i = node.extents.size(); i-- > 0;) reverse.push_back(static_cast<int>(i));
    return reverse;
  }

  const ReferenceProgram& program_;
  const Mesh& mesh_;
  std::size_t node_ = 0;
  std::map<std::string, std::int64_t> below_;  // of inputs, by tensor
  std::vector<std::string> problems_;
};

/// An expression, by names of what has one.
std::string expression(const ReferenceProgram& program, int at, bool whole) {
  const ReferenceNode& node = program.nodes[static_cast<std::size_t>(at)];
  if (!whole && !node.name.empty()) return node.name;
  const auto operand = [&](std::size_t i) { return expression(program, node.operands[i], false); };
  const auto infix = [&](std::string_view sign) {
    const std::string text = fmt::format("{} {} {}", operand(0), sign, operand(1));
    return whole ? text : "(" + text + ")";
  };
  switch (node.kind) {
    case ReferenceKind::input: return node.tensor;
    case ReferenceKind::iota: return fmt::format("iota({})", node.dim);
    case ReferenceKind::product:
      return fmt::format("{}{} {}{}", operand(0), node.transpose_left ? "^T" : "", operand(1), node.transpose_right ? "^T" : "");
    case ReferenceKind::add: return infix("+");
    case ReferenceKind::subtract: return infix("-");
    case ReferenceKind::multiply: return infix("*");
    case ReferenceKind::divide: return infix("/");
    case ReferenceKind::scale: return fmt::format("{} * {}", node.number, operand(0));
    case ReferenceKind::add_number: return fmt::format("({} + {})", operand(0), node.number);
    case ReferenceKind::reciprocal: return fmt::format("{} / {}", node.number, operand(0));
    case ReferenceKind::transpose: return operand(0) + "^T";
    case ReferenceKind::sum: return fmt::format("sum({}, {})", operand(0), node.dim);
    case ReferenceKind::block_collective: return fmt::format("{}({})", name_of(node.collective.kind), operand(0));
    default: break;
  }
  std::string operands;
  for (std::size_t i = 0; i < node.operands.size(); ++i) operands += (i == 0 ? "" : ", ") + operand(i);
  return fmt::format("{}({})", traits_of(node.kind).name, operands);
}

}  // namespace

std::optional<ReferenceKind> reference_kind_named(std::string_view name) {
  for (const ReferenceTraits& traits : reference_table)
    if (traits.name == name) return traits.kind;
  return std::nullopt;
}

std::vector<std::string> check_reference(const ReferenceProgram& program, const Mesh& mesh) { return ReferenceChecker{program, mesh}.check(); }

Extents block_extents(const Extents& extents, const Sharding& sharding, const Mesh& mesh) {
  Extents block = extents;
  for (std::size_t d = 0; d < sharding.dims.size(); ++d)
    for (const int axis : sharding.dims[d]) block[d] /= mesh.axes()[static_cast<std::size_t>(axis)].size;
  return block;
}

std::int64_t element_count(const Extents& extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  return count;
}

std::optional<Extents> broadcast_extents(const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto from_end = [&](const Extents& extents) { return i < extents.size() ? extents[extents.size() - 1 - i] : 1; };
    const std::int64_t x = from_end(a), y = from_end(b);
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - i] = std::max(x, y);
  }
  return result;
}

std::string claim_of(const ReferenceProgram& program) {
  if (!program.claim.empty()) return program.claim;
  constexpr std::size_t readable = 12;  // operations; a node that several read would be written out for each
  const auto inputs = static_cast<std::size_t>(
      std::count_if(program.nodes.begin(), program.nodes.end(), [](const ReferenceNode& node) { return node.kind == ReferenceKind::input; }));
  std::string text;
  if (program.nodes.size() - inputs > readable) {
    for (const auto& [tensor, node] : program.outputs) text += (text.empty() ? "" : ", ") + tensor;
    return fmt::format("{} of {} operations", text, program.nodes.size() - inputs);
  }
  for (const auto& [tensor, node] : program.outputs)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", tensor, expression(program, node, true));
  return text;
}

std::string node_name(const ReferenceProgram& program, std::size_t node) {
  const ReferenceNode& of = program.nodes[node];
  const std::string& name = of.kind == ReferenceKind::input ? of.tensor : of.name;
  return fmt::format("node {} ({}{})", node, traits_of(of.kind).name, name.empty() ? "" : " " + quoted(name));
}

}  // namespace podsim
