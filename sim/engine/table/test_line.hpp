// Small schedules on a line of devices, for tests of engines and of metrics.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/table/testing.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim::testing {

/// A schedule whose tasks use a buffer `a` of 1000 float32 elements on each device of mesh axis 0.
struct Line {
  explicit Line(const SmallSystem& pod) : w{pod.mesh}, x{w.axis(0)}, a{w.scratch("a", {1000})} {}

  /// One device copies the first `elements` elements onto themselves.
  TaskId work(const char* label, std::int64_t elements, int device, std::vector<Edge> edges = {}, Unit unit = Unit::core) {
    return w.add(label, copy(part(a, 0, elements), part(a, 0, elements), unit), std::move(edges), between(x, device, device + 1));
  }
  TaskId work(std::int64_t elements, int device, std::vector<Edge> edges = {}, Unit unit = Unit::core) {
    return work("work", elements, device, std::move(edges), unit);
  }
  /// Device `from` sends the first `elements` elements to the next device, into the same elements.
  TaskId move(const char* label, std::int64_t elements, int from, std::vector<Edge> edges = {}, Combine combine = Combine::replace) {
    return w.add(label, shift(x, 1, part(a, 0, elements), part(a, 0, elements), combine), std::move(edges), between(x, from, from + 1));
  }
  TaskId move(std::int64_t elements, int from, std::vector<Edge> edges = {}, Combine combine = Combine::replace) {
    return move("move", elements, from, std::move(edges), combine);
  }

  Writer w;
  AxisView x;
  BufferId a;
};

}  // namespace podsim::testing
