#include "workloads/sharded/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "workloads/sharded/shard_map_reference.hpp"

namespace podsim {

std::string_view name_of(ArrayOp op) {
  static constexpr std::array names = std::to_array<std::string_view>(
      {"input", "@", "+", "-", "*", "/", "scale", "add-number", "reciprocal", ".T", "relu", "gelu", "sum", "reshard", "process_allgather", "fft", "ifft", "lu", "lu", "lu", "solve",
       "shard_map", "shard_map", "expand-dims", "squeeze", "axis_index", "psum", "all_gather", "psum_scatter", "ppermute", "pmax", "all_to_all"});
  static_assert(names.size() == static_cast<std::size_t>(ArrayOp::all_to_all) + 1);
  return names[static_cast<std::size_t>(op)];
}

bool is_local(ArrayOp op) { return op >= ArrayOp::psum; }

BlockCollective block_collective_of(const Operation& operation) {
  BlockCollective collective;
  switch (operation.op) {
    case ArrayOp::pmax: collective.reduction = Reduction::maximum; [[fallthrough]];
    case ArrayOp::psum: collective.kind = CollectiveKind::all_reduce; break;
    case ArrayOp::all_gather: collective.kind = CollectiveKind::all_gather; break;
    case ArrayOp::psum_scatter: collective.kind = CollectiveKind::reduce_scatter; break;
    case ArrayOp::ppermute: collective.kind = CollectiveKind::permute; break;
    default: collective.kind = CollectiveKind::all_to_all;
  }
  collective.axes = operation.axes;
  collective.dim = operation.dim;
  collective.split_dim = operation.split_dim;
  collective.shift = operation.shift;
  collective.pairs = operation.pairs;
  return collective;
}

namespace {

BlockCollective block_collective(const Operation& operation, const Operation& operand) {
  BlockCollective collective = block_collective_of(operation);
  collective.from = *operand.sharding;
  collective.to = *operation.sharding;
  // The reference works on sums that have been added up: all of these operations are linear.
  collective.from.unreduced.clear();
  collective.to.unreduced.clear();
  return collective;
}

}  // namespace

ReferenceKind reference_kind_of(ArrayOp op) {
  switch (op) {
    case ArrayOp::input: return ReferenceKind::input;
    case ArrayOp::product: return ReferenceKind::product;
    case ArrayOp::add: return ReferenceKind::add;
    case ArrayOp::subtract: return ReferenceKind::subtract;
    case ArrayOp::multiply: return ReferenceKind::multiply;
    case ArrayOp::divide: return ReferenceKind::divide;
    case ArrayOp::add_number: return ReferenceKind::add_number;
    case ArrayOp::reciprocal: return ReferenceKind::reciprocal;
    case ArrayOp::transpose: return ReferenceKind::transpose;
    case ArrayOp::relu: return ReferenceKind::relu;
    case ArrayOp::gelu: return ReferenceKind::gelu;
    case ArrayOp::sum: return ReferenceKind::sum;
    case ArrayOp::scale:
    case ArrayOp::reshard:
    case ArrayOp::process_allgather: return ReferenceKind::scale;  // by 1, where values stay as they are
    case ArrayOp::fft:
    case ArrayOp::ifft: return ReferenceKind::fft;
    case ArrayOp::lu_pivots: return ReferenceKind::lu_pivots;
    case ArrayOp::lu_lower: return ReferenceKind::lu_lower;
    case ArrayOp::lu_upper: return ReferenceKind::lu_upper;
    case ArrayOp::solve: return ReferenceKind::solve;
    case ArrayOp::to_blocks:
    case ArrayOp::from_blocks:
    case ArrayOp::expand_dims:
    case ArrayOp::squeeze: return ReferenceKind::reshape;
    case ArrayOp::axis_index: return ReferenceKind::iota;
    default: return ReferenceKind::block_collective;
  }
}

bool is_in_place(const Operation& operation, const Mesh& mesh) {
  const std::int64_t P = devices_along(mesh, operation.axes);
  return P == 1 || (operation.op == ArrayOp::ppermute && operation.pairs.empty() && operation.shift % P == 0);
}

std::string block_text(const Operation& operation, const Mesh& mesh) {
  std::string text = operation.extents.empty() ? "scalar" : fmt::format("{}", fmt::join(operation.extents, "x"));
  for (std::size_t a = 0; a < operation.varying->size(); ++a) text += (a == 0 ? " over " : ",") + mesh.axes()[static_cast<std::size_t>((*operation.varying)[a])].name;
  return text;
}

ReferenceProgram reference_of(const ShardedProgram& program) {
  ReferenceProgram reference;
  std::vector<int> node_of;  // per operation
  for (const Operation& operation : program.operations) {
    if (operation.varying || operation.op == ArrayOp::from_blocks) {
      node_of.push_back(add_shard_map_node(reference, program, operation, node_of));
      continue;
    }
    ReferenceNode node;
    node.kind = reference_kind_of(operation.op);
    if (is_local(operation.op) && operation.axes.empty()) node.kind = ReferenceKind::scale;  // axes of size 1: each device alone
    for (const int operand : operation.operands) node.operands.push_back(node_of[static_cast<std::size_t>(operand)]);
    node.extents = operation.extents;
    node.name = operation.name;
    node.dim = operation.dim;
    node.complex = operation.dtype == DType::c64;
    if (operation.op == ArrayOp::input) node.tensor = operation.name;
    if (operation.op == ArrayOp::scale || operation.op == ArrayOp::add_number || operation.op == ArrayOp::reciprocal) node.number = operation.number;
    if (node.kind == ReferenceKind::block_collective)
      node.collective = block_collective(operation, program.operations[static_cast<std::size_t>(operation.operands[0])]);
    if (node.kind == ReferenceKind::fft) {
      const Extents& from = program.operations[static_cast<std::size_t>(operation.operands[0])].extents;
      const auto rank = static_cast<int>(from.size());
      node.extents = from;
      node.inverse = operation.op == ArrayOp::ifft;
      for (int d = 0; d < rank; ++d) node.dims.push_back(d);
    }
    if (operation.stored_transposed) {
      const auto rank = static_cast<int>(operation.extents.size());
      reference.nodes.push_back(node);
      node = {};
      node.kind = ReferenceKind::transpose;
      node.operands = {static_cast<int>(reference.nodes.size()) - 1};
      node.extents = operation.extents;
      node.name = operation.name;
      node.complex = true;
      const int first = operation.op == ArrayOp::ifft ? rank - 1 : 1;
      for (int d = 0; d < rank; ++d) node.permutation.push_back((first + d) % rank);
    }
    node_of.push_back(static_cast<int>(reference.nodes.size()));
    reference.nodes.push_back(std::move(node));
  }
  for (const int output : program.outputs)
    reference.outputs.emplace_back(program.operations[static_cast<std::size_t>(output)].name, node_of[static_cast<std::size_t>(output)]);
  reference.claim = fmt::format("{}", fmt::join(program.statements, "; "));
  return reference;
}

std::int64_t default_block(std::int64_t n, std::int64_t devices) {
  constexpr std::int64_t blocks_each = 8;
  const std::int64_t most = std::max<std::int64_t>(1, n / (blocks_each * devices));
  std::int64_t power = 1, divisor = 1;
  while (2 * power <= most && n % (2 * power) == 0) power *= 2;
  for (std::int64_t d = most; d > power && divisor == 1; --d)
    if (n % d == 0) divisor = d;
  // A power of two unless it is much smaller.
  return divisor > 4 * power ? divisor : power;
}

Flops flops_of(const ShardedProgram& program) {
  double flops = 0;
  for (const Operation& operation : program.operations) {
    if (operation.op != ArrayOp::product) continue;
    double product = 2.0 * static_cast<double>(program.operations[static_cast<std::size_t>(operation.operands[0])].extents.back());
    for (const std::int64_t extent : operation.extents) product *= static_cast<double>(extent);
    if (operation.varying) product *= static_cast<double>(devices_along(program.mesh, *operation.varying));
    flops += product;
  }
  return Flops{flops};
}

}  // namespace podsim
