// Typed indices: a DeviceId cannot be passed as a ChipId.
#pragma once

#include <compare>
#include <cstddef>

namespace podsim {

template <class Tag>
struct Id {
  int value = 0;
  constexpr Id() = default;
  constexpr explicit Id(int v) : value{v} {}
  constexpr explicit Id(std::size_t v) : value{static_cast<int>(v)} {}
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using DeviceId = Id<struct DeviceTag>;  // row-major index in the mesh
using ChipId = Id<struct ChipTag>;      // row-major index in the topology
using LinkId = Id<struct LinkTag>;      // one direction of one cable, or an injection or ejection link
using TaskId = Id<struct TaskTag>;      // position in its program
using BufferId = Id<struct BufferTag>;  // position in its program

}  // namespace podsim
