#include "workloads/sharded/shard_map_reference.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace podsim {

namespace {

class BlocksOfAllDevices {
 public:
  BlocksOfAllDevices(ReferenceProgram& reference, const ShardedProgram& program, const Operation& operation, const std::vector<int>& node_of)
      : reference_{reference}, program_{program}, operation_{operation}, node_of_{node_of}, axes_{static_cast<int>(program.mesh.axes().size())} {}

  int add() {
    switch (operation_.op) {
      case ArrayOp::to_blocks: return enter();
      case ArrayOp::from_blocks: return leave();
      case ArrayOp::axis_index: return position();
      case ArrayOp::product: return product();
      case ArrayOp::add:
      case ArrayOp::subtract:
      case ArrayOp::multiply:
      case ArrayOp::divide: return append(node({with_rank(0), with_rank(1)}));
      case ArrayOp::transpose: return transposed();
      default: return other();
    }
  }

 private:
  [[nodiscard]] const Operation& operand(std::size_t i) const { return program_.operations[static_cast<std::size_t>(operation_.operands[i])]; }
  [[nodiscard]] int operand_node(std::size_t i) const { return node_of_[static_cast<std::size_t>(operation_.operands[i])]; }
  [[nodiscard]] int size_of_axis(int axis) const { return program_.mesh.axes()[static_cast<std::size_t>(axis)].size; }
  static bool has(const std::vector<int>& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

  /// The extents of the array that has the blocks of all devices.
  [[nodiscard]] Extents stacked(const std::vector<int>& varying, const Extents& block) const {
    Extents extents;
    for (int axis = 0; axis < axes_; ++axis) extents.push_back(has(varying, axis) ? size_of_axis(axis) : 1);
    extents.insert(extents.end(), block.begin(), block.end());
    return extents;
  }
  [[nodiscard]] Sharding sharded(const std::vector<int>& varying) const {
    Sharding sharding;
    for (int axis = 0; axis < axes_; ++axis) sharding.dims.push_back(has(varying, axis) ? std::vector{axis} : std::vector<int>{});
    return sharding.canonical();
  }

  int append(ReferenceNode node) {
    node.complex = operation_.dtype == DType::c64;
    reference_.nodes.push_back(std::move(node));
    return static_cast<int>(reference_.nodes.size()) - 1;
  }
  int append(ReferenceKind kind, std::vector<int> operands, Extents extents) { return append(ReferenceNode{.kind = kind, .operands = std::move(operands), .extents = std::move(extents), .name = operation_.name}); }
  int reshaped(int node, Extents extents) { return append(ReferenceKind::reshape, {node}, std::move(extents)); }

  /// The operation's own node.
  [[nodiscard]] ReferenceNode node(std::vector<int> operands) const {
    return {.kind = reference_kind_of(operation_.op), .operands = std::move(operands), .extents = stacked(*operation_.varying, operation_.extents), .name = operation_.name};
  }

  /// An operand with dimensions of extent 1 before its own, as many as the result has.
  int with_rank(std::size_t i) {
    if (operand(i).extents.size() == operation_.extents.size()) return operand_node(i);
    Extents extents(operation_.extents.size() - operand(i).extents.size(), 1);
    extents.insert(extents.end(), operand(i).extents.begin(), operand(i).extents.end());
    return reshaped(operand_node(i), stacked(*operand(i).varying, extents));
  }

  /// Blocks that do not differ along some axes, once for each device there.
  int spread(int node, const std::vector<int>& varying, const std::vector<int>& to, const Extents& block) {
    BlockCollective copies;
    copies.kind = CollectiveKind::permute;
    std::set_difference(to.begin(), to.end(), varying.begin(), varying.end(), std::back_inserter(copies.axes));
    if (copies.axes.empty()) return node;
    copies.from = sharded(varying);
    copies.to = sharded(to);
    ReferenceNode spread{.kind = ReferenceKind::block_collective, .operands = {node}, .extents = stacked(to, block), .name = operation_.name};
    spread.collective = std::move(copies);
    return append(std::move(spread));
  }

  /// Per dimension of a whole array: its axes, then its block. The order of the mesh, with the blocks behind it, is `to_blocks` of them.
  struct Split {
    Extents extents;
    std::vector<int> to_blocks, from_blocks;  // permutations
    std::vector<int> axes;                    // increasing
  };
  [[nodiscard]] Split split(const Extents& whole, const Sharding& sharding) const {
    Split split;
    std::vector<int> places, blocks;  // of axes; of the block's dimensions
    for (std::size_t d = 0; d < whole.size(); ++d) {
      for (const int axis : sharding.axes_of(d)) {
        split.axes.push_back(axis);
        places.push_back(static_cast<int>(split.extents.size()));
        split.extents.push_back(size_of_axis(axis));
      }
      blocks.push_back(static_cast<int>(split.extents.size()));
      split.extents.push_back(whole[d] / devices_along(program_.mesh, sharding.axes_of(d)));
    }
    std::vector<std::size_t> order(split.axes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return split.axes[a] < split.axes[b]; });
    for (const std::size_t a : order) split.to_blocks.push_back(places[a]);
    split.to_blocks.insert(split.to_blocks.end(), blocks.begin(), blocks.end());
    split.from_blocks.resize(split.to_blocks.size());
    for (std::size_t i = 0; i < split.to_blocks.size(); ++i) split.from_blocks[static_cast<std::size_t>(split.to_blocks[i])] = static_cast<int>(i);
    std::sort(split.axes.begin(), split.axes.end());
    return split;
  }
  int permuted(int node, const Extents& extents, std::vector<int> permutation) {
    ReferenceNode turned{.kind = ReferenceKind::transpose, .operands = {node}, .name = operation_.name, .permutation = std::move(permutation)};
    for (const int d : turned.permutation) turned.extents.push_back(extents[static_cast<std::size_t>(d)]);
    return append(std::move(turned));
  }

  int enter() {
    const Split parts = split(operand(0).extents, *operand(0).sharding);
    int blocks = reshaped(operand_node(0), parts.extents);
    if (!parts.axes.empty()) blocks = permuted(blocks, parts.extents, parts.to_blocks);
    return reshaped(blocks, stacked(*operation_.varying, operation_.extents));
  }

  int leave() {
    const Operation& block = operand(0);
    const Split parts = split(operation_.extents, *operation_.sharding);
    const int blocks = spread(operand_node(0), *block.varying, parts.axes, block.extents);
    Extents apart;  // without the axes that the out spec does not have
    for (const int d : parts.to_blocks) apart.push_back(parts.extents[static_cast<std::size_t>(d)]);
    int whole = reshaped(blocks, apart);
    if (!parts.axes.empty()) whole = permuted(whole, apart, parts.from_blocks);
    return reshaped(whole, operation_.extents);
  }

  /// The position along several axes, first most significant.
  int position() {
    const std::vector<int> axes = operation_.axes.empty() ? std::vector{0} : operation_.axes;
    int sum = -1;
    std::int64_t stride = 1;
    std::vector<int> varying;
    for (std::size_t a = axes.size(); a-- > 0;) {
      const bool one_device = operation_.axes.empty();
      ReferenceNode along = node({});
      along.dim = axes[a];
      along.extents = stacked(one_device ? std::vector<int>{} : std::vector{axes[a]}, {});
      int term = append(along);
      if (stride > 1) {
        ReferenceNode scaled{.kind = ReferenceKind::scale, .operands = {term}, .extents = along.extents, .name = operation_.name, .number = static_cast<double>(stride)};
        term = append(std::move(scaled));
      }
      varying.push_back(axes[a]);
      sum = sum < 0 ? term : append(ReferenceKind::add, {sum, term}, stacked(varying, {}));
      stride *= size_of_axis(axes[a]);
    }
    return sum;
  }

  /// Leading dimensions of products are equal.
  int product() {
    const int left = spread(operand_node(0), *operand(0).varying, *operation_.varying, operand(0).extents);
    const int right = spread(operand_node(1), *operand(1).varying, *operation_.varying, operand(1).extents);
    return append(node({left, right}));
  }

  int transposed() {
    std::vector<int> permutation(static_cast<std::size_t>(axes_) + operation_.extents.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    std::reverse(permutation.begin() + axes_, permutation.end());
    return permuted(operand_node(0), stacked(*operand(0).varying, operand(0).extents), std::move(permutation));
  }

  int other() {
    ReferenceNode own = node({operand_node(0)});
    if (operation_.op == ArrayOp::scale || operation_.op == ArrayOp::add_number || operation_.op == ArrayOp::reciprocal) own.number = operation_.number;
    if (operation_.op == ArrayOp::sum) own.dim = axes_ + operation_.dim;
    if (own.kind == ReferenceKind::block_collective && operation_.axes.empty()) own.kind = ReferenceKind::scale;  // axes of size 1: each device alone
    if (own.kind != ReferenceKind::block_collective) return append(std::move(own));
    own.collective = block_collective_of(operation_);
    own.collective.dim += axes_;
    own.collective.split_dim += axes_;
    own.collective.from = sharded(*operand(0).varying);
    own.collective.to = sharded(*operation_.varying);
    return append(std::move(own));
  }

  ReferenceProgram& reference_;
  const ShardedProgram& program_;
  const Operation& operation_;
  const std::vector<int>& node_of_;
  int axes_;
};

}  // namespace

int add_shard_map_node(ReferenceProgram& reference, const ShardedProgram& program, const Operation& operation, const std::vector<int>& node_of) {
  return BlocksOfAllDevices{reference, program, operation, node_of}.add();
}

}  // namespace podsim
