// The logical mesh: named axes, row-major, first axis most significant (as jax.sharding.Mesh).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/ids.hpp"

namespace podsim {

/// One of the physical dimensions that a folded axis consists of.
struct MeshFactor {
  int size = 1;
  bool wraps = false;
  friend bool operator==(const MeshFactor&, const MeshFactor&) = default;
};

struct MeshAxis {
  std::string name;
  int size = 1;
  bool wraps = false;  // coordinate size-1 is a neighbour of 0. An axis of size 2 or less counts as wrapped whatever this says
  std::vector<MeshFactor> factors{};  // of a folded axis: its physical dimensions, row-major; their sizes multiply to the axis's size
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// A mesh axis, or one factor of it. An axis of 8 may be viewed as 2x2x2, row-major, so that recursive halving and doubling are shifts by 1 on a
/// factor of size 2. The coordinate on a view is (coordinate on the axis / stride) mod size. The whole axis has stride 1 and the axis's size.
struct AxisView {
  int axis = 0;  // position in Mesh::axes()
  int stride = 1;
  int size = 1;
  friend auto operator<=>(const AxisView&, const AxisView&) = default;
};

/// One device's coordinates, one per mesh axis.
using Coordinates = std::vector<int>;

inline int coordinate_on(const Coordinates& coordinates, const AxisView& view) {
  return coordinates[static_cast<std::size_t>(view.axis)] / view.stride % view.size;
}

class Mesh {
 public:
  /// One device, no axes.
  Mesh() = default;
  /// Errors: an empty or repeated name, a size below 1, factors whose product is not the axis's size, more than 2^24 devices.
  static Expected<Mesh> make(std::vector<MeshAxis> axes);

  [[nodiscard]] const std::vector<MeshAxis>& axes() const { return axes_; }
  [[nodiscard]] int devices() const { return devices_; }

  /// The whole axis of that name. Errors: no such axis (the message names similar ones).
  [[nodiscard]] Expected<AxisView> axis(std::string_view name) const;
  [[nodiscard]] AxisView whole(int axis) const;
  /// Factor number `position` of an axis viewed as `factors` (row-major; their product must be the axis's size: an assert).
  [[nodiscard]] AxisView factor(int axis, const std::vector<int>& factors, int position) const;
  /// The axis's physical dimensions as views; for an unfolded axis the whole axis.
  [[nodiscard]] std::vector<AxisView> factors(int axis) const;
  /// Whether a shift around the whole view is a neighbour shift at the ends too: size <= 2, the whole of a wrapped axis, or a wrapped factor.
  [[nodiscard]] bool wraps(const AxisView& view) const;
  /// "row", or "row/2:4" for the factor of stride 2 and size 4.
  [[nodiscard]] std::string name(const AxisView& view) const;

  [[nodiscard]] Coordinates coordinates(DeviceId device) const;
  [[nodiscard]] int coordinate(DeviceId device, const AxisView& view) const;
  [[nodiscard]] DeviceId device(const Coordinates& coordinates) const;
  /// The device whose coordinate on `view` is larger by `by`, modulo the view's size. All other coordinates are equal.
  [[nodiscard]] DeviceId shifted(DeviceId device, const AxisView& view, std::int64_t by) const;
  /// The device reached when each dimension of a folded axis goes round by its own digit of `by`, |by| < the axis's size, nothing carried into the next one; a
  /// negative `by` goes back. On an axis of 4x4, 6 (1,2) leads from 3 (0,3) to 5 (1,1).
  [[nodiscard]] DeviceId shifted_by_dimension(DeviceId device, int axis, std::int64_t by) const;
  /// "row=3,col=0"
  [[nodiscard]] std::string name(DeviceId device) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<MeshAxis> axes_;
  std::vector<int> strides_;  // of each axis in the device index
  int devices_ = 1;
};

/// "row=32,col=8"
std::string to_text(const Mesh& mesh);

}  // namespace podsim
