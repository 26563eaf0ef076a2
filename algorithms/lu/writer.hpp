// Writes the tasks of a block-cyclic factorisation: devices by position, arrays in blocks, and the edges that follow from what tasks touch.
#pragma once

#include <string>
#include <vector>

#include "algorithms/lu/accesses.hpp"
#include "algorithms/lu/lu.hpp"

namespace podsim {

/// Half-open range of a device's rows or columns of blocks.
struct BlockRange {
  std::int64_t first = 0, last = 0;
  [[nodiscard]] std::int64_t count() const { return last > first ? last - first : 0; }
};

/// Arrays, for AccessOrder. Those from `panel` on are scratch with two slots; a number of the second slot is `count` larger.
struct LuArray {
  enum : int { matrix, right, pivots, panel, gathered, index, lower, mine, fresh, old, upper, above, negated, count };
};
inline BlockAccess read_of(BlockAccess access) {
  access.writes = false;
  return access;
}
inline BlockAccess write_of(BlockAccess access) {
  access.writes = true;
  return access;
}

/// "[8,16]"
std::string extents_text(const Extents& extents);

class BlockCyclicWriter {
 public:
  /// All must outlive the writer.
  BlockCyclicWriter(ProgramBuilder& builder, const LuLayout& layout, Tasks start)
      : builder_{builder}, layout_{layout}, start_{std::move(start)}, accesses_{layout.R, layout.C} {}

  [[nodiscard]] const LuLayout& layout() const { return layout_; }
  ProgramBuilder& builder() { return builder_; }

  [[nodiscard]] DeviceBox everywhere() const { return {0, layout_.R, 0, layout_.C}; }
  [[nodiscard]] DeviceBox row(int r) const { return {r, r + 1, 0, layout_.C}; }
  [[nodiscard]] DeviceBox column(int c) const { return {0, layout_.R, c, c + 1}; }

  /// The position of a device along an axis group.
  [[nodiscard]] static Affine position(const std::vector<AxisView>& views, std::int64_t coefficient = 1, std::int64_t constant = 0);
  /// The numbers of a device's rows (columns) of the matrix from its block `first` on.
  [[nodiscard]] Numbering rows_from(std::int64_t first) const;
  [[nodiscard]] Numbering columns_from(std::int64_t first) const;

  /// Blocks of a block-cyclic matrix, and of b or x.
  [[nodiscard]] Region blocks(const Region& matrix, BlockRange rows, BlockRange columns) const;
  [[nodiscard]] Region rows_of(const Region& right, BlockRange rows) const;

  /// Adds a task on these devices with edges to all that it would race with. Nothing on no device.
  void add(const std::string& label, Op op, const DeviceBox& devices, const std::vector<BlockAccess>& accesses);
  /// A Collective along an axis group of more than one device. A broadcast or a reduce ends in one task, as its last tasks are many.
  void collective(const std::string& label, Collective collective, const DeviceBox& devices, const std::vector<BlockAccess>& accesses);
  /// The data of the device at position `root`; the regions may be the same one.
  void broadcast(const std::string& label, const std::vector<AxisView>& axes, const Region& from, const Region& to, int root,
                 const DeviceBox& devices, const std::vector<BlockAccess>& accesses);
  /// What a consumer of these arrays waits for; few tasks.
  Tasks complete(const std::vector<BlockAccess>& reads);

 private:
  [[nodiscard]] Guard guard_of(const DeviceBox& devices) const;

  ProgramBuilder& builder_;
  const LuLayout& layout_;
  Tasks start_;
  AccessOrder accesses_;
};

/// U x = y, from the last block row up: x in the place of y.
void substitute_back(BlockCyclicWriter& writer, const Region& packed, const Region& x);

}  // namespace podsim
