// HLO values as buffers of a program: their extents as devices store them, and when they are used last.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/program_builder.hpp"
#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// A buffer that holds an array. Its extents are the dimensions rounded up to the first tile, so that it has as many bytes as on the device. `lengths`
/// is the data. f16 is kept as bf16, 32-bit integers as s32, 8-bit ones as s8, 8-bit
/// floats as f8e5m2 or f8e4m3fn, all of 8 bytes as c64; others, as whole bytes, as bf16 in one dimension.
struct HloArrayForm {
  std::vector<std::int64_t> extents, lengths;
  DType dtype = DType::f32;
  bool as_written = false;  // the dimensions are those of the shape
  friend bool operator==(const HloArrayForm&, const HloArrayForm&) = default;
};
HloArrayForm form_of(const HloShape& array);
/// The same for values: as many elements as the array has, bf16 for 16-bit floats, f32 for others, s32 for integers and pred; complex numbers as pairs, a last dimension of 2.
HloArrayForm form_of_values(const HloShape& array);
Region region_of(BufferId buffer, const std::vector<std::int64_t>& lengths);

/// When each leaf of each instruction is used last: a position in `order`, which lists the instructions of the computation. A get-tuple-element uses only
/// its own leaves, an asynchronous operation uses its operands until it is done, and the computation's end uses the root. -1: nothing does.
class LastUses {
 public:
  LastUses(const HloComputation& computation, const std::vector<int>& order);
  [[nodiscard]] int of(int instruction, std::size_t leaf) const { return uses_[static_cast<std::size_t>(instruction)][leaf]; }

 private:
  std::vector<std::vector<int>> uses_;
};

/// The -done of a -start, through its updates; `missing` if there is none.
int done_of(const HloComputation& computation, const std::vector<std::vector<int>>& users, int start);

}  // namespace podsim
