// The times of a run task by task, for figures that need no timeline of all activities.
#pragma once

#include <span>

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"

namespace podsim {

class TimesReader {
 public:
  virtual ~TimesReader() = default;
  /// When a task starts and is sent (a work: ends) on each device of its program, by position in it. What stands for devices that do not run the task
  /// means nothing. Each task that some device runs comes once; the tasks on the core of a program come in its order.
  virtual void read(std::uint32_t program, std::size_t task, std::span<const Picoseconds> start, std::span<const Picoseconds> sent) = 0;
};

/// Reads a timeline, which must be recorded and complete. Cost O(task instances).
void read_times(const Model& model, const Timeline& timeline, TimesReader& reader);

}  // namespace podsim
