// Which tasks have touched what: a new task waits for exactly those that would race with it.
//
// Guards are the reason for this. A task that is absent on a device does not pass on the edges of others there, so waiting for the last writer is not
// enough: on devices where that is absent the writer before it counts. Here every access knows the devices on which nothing has replaced it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/schedule/program_builder.hpp"

namespace podsim {

/// Devices with positions [first_row, last_row) x [first_column, last_column) of R x C.
struct DeviceBox {
  int first_row = 0, last_row = 0, first_column = 0, last_column = 0;
  [[nodiscard]] bool empty() const { return first_row >= last_row || first_column >= last_column; }
};

/// A rectangle of an array, the same on all devices. `array` is any number.
struct BlockAccess {
  int array = 0;
  std::int64_t first_row = 0, last_row = 1, first_column = 0, last_column = 1;
  bool writes = false;
};

class AccessOrder {
 public:
  AccessOrder(int R, int C) : R_{R}, C_{C} {}

  /// The tasks that a task with these accesses must follow, in increasing order.
  [[nodiscard]] Tasks before(const std::vector<BlockAccess>& accesses, const DeviceBox& devices) const;
  /// Records the accesses of a task that waits for those.
  void add(TaskId task, const std::vector<BlockAccess>& accesses, const DeviceBox& devices);

 private:
  using Presence = std::vector<std::uint64_t>;  // bits: row * C + column
  struct Entry {
    TaskId task;
    BlockAccess access;
    Presence present;  // where no later write covers it
  };
  [[nodiscard]] Presence presence_of(const DeviceBox& devices) const;

  int R_, C_;
  std::map<int, std::vector<Entry>> entries_;  // by array
};

}  // namespace podsim
