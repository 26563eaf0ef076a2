// Where the elements of an array lie in the memory of a device: layouts and their tiles. Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/hlo/hlo_shape.hpp"

namespace podsim {

/// Place of each element, row-major by logical dimensions, in units of elements; `size` places in all, those of padding too.
struct MemoryPlaces {
  std::vector<std::int64_t> of{};
  std::int64_t size = 0;
};

/// Each tile cuts the last dimensions of what is there, the most minor last, into tiles that lie one behind the other; the next tile cuts these again.
/// cost    O(elements * dimensions * tiles)
/// source  openxla/xla docs/tiled_layout.md
/// nullopt: the layout is of other dimensions, or has more than `most` places.
std::optional<MemoryPlaces> memory_places(const HloShape& array, std::int64_t most);

}  // namespace podsim
