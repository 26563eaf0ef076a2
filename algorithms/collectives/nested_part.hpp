// A part of the blocks of a collective along several axes, in scratch as [coordinate on each axis..., elements], so that the axes can be gone along
// in any order. Shared by the algorithms that choose the order of their phases.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "algorithms/collectives/builder.hpp"

namespace podsim {

class NestedPart {
 public:
  /// `elements` of each block. All arguments must outlive the part.
  NestedPart(ProgramBuilder& builder, const std::vector<AxisView>& axes, std::int64_t elements, DType dtype, std::string_view name);

  /// The own blocks along the axes marked, everything along the others.
  [[nodiscard]] Region at(const std::vector<bool>& own_only) const;
  [[nodiscard]] const Region& all_blocks() const { return all_; }
  [[nodiscard]] Region own_block() const { return at(std::vector<bool>(axes_.size(), true)); }

  /// Phases of an all-gather or reduce-scatter in this order of axes, and after each the edges to its last tasks. A reduce-scatter leaves the own
  /// block, an all-gather starts from it. The first phase waits for `last`, phase i also for `before[i]` if there are such.
  Expected<std::vector<Edges>> run(CollectiveKind kind, const std::vector<std::size_t>& order, const CollectiveAlgorithm& algorithm, Edges last,
                                   const std::vector<Edges>& before = {}) const;

 private:
  ProgramBuilder& builder_;
  const std::vector<AxisView>& axes_;
  std::string name_;
  Region all_;
};

/// The blocks of both sides of an all-gather, reduce-scatter or all-reduce among `group` devices, and parts of them that correspond.
struct CorrespondingBlocks {
  Blocks in, out;  // of the side that is one block: that block
  std::vector<Part> in_parts, out_parts;
};
/// Cut into at most `count` parts. Errors: regions that cannot be cut into blocks; input and output blocks of different shapes (`algorithm` is for the
/// message).
Expected<CorrespondingBlocks> corresponding_blocks(const Collective& collective, int group, int count, std::string_view algorithm);

}  // namespace podsim
