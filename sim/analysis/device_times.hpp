// What one device of a run does, and when: units at work and operations in flight. The tasks that played Calls stand for are among it.
#pragma once

#include "sim/engine/times_reader.hpp"

namespace podsim {

/// Of the device, or class of devices, that a node stands for. The timeline must be complete, and have what the device does and receives. A Send or Recv that an
/// algorithm wrote moves along a mesh axis if sender and receiver differ on that axis alone. All times are 0 for a device without a program.
///   cost    O(n log n) for the n tasks of the device's program, those of played calls counted by their merged flights
DeviceTimes device_times(const Model& model, const Timeline& timeline, std::uint32_t node);

/// The time in which the core of each node works on its tasks, total(device_times().parts), without what that costs.
class CoreTimes final : public TimesReader {
 public:
  /// The model must outlive it.
  explicit CoreTimes(const Model& model);

  void read(std::uint32_t program, std::size_t task, std::span<const Picoseconds> start, std::span<const Picoseconds> sent) override;
  /// Per node, when all has been read.
  [[nodiscard]] std::vector<Picoseconds> totals();

 private:
  /// As NodeActivity::core_times(): shares that stand together are rounded together.
  struct Core {
    Picoseconds free, since, busy;  // the core works off shares since then, so far for `shares`
    Seconds shares;
  };
  void work_off(std::uint32_t program, std::size_t place);

  const Model& model_;
  std::vector<Core> cores_;              // per node
  std::vector<std::size_t> next_piece_;  // per program, in its CoreShares
};

/// CoreTimes of a timeline.
std::vector<Picoseconds> core_times(const Model& model, const Timeline& timeline);

/// What the core works on in a part of its time; `launch` is a part of `time`.
CoreParts core_parts(const Task& task, Picoseconds time, Picoseconds launch);

}  // namespace podsim
