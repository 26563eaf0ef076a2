// One rank's tasks of a lowered schedule and the waits between them. Waits never cross ranks: an arrival is a task of the receiver.
#pragma once

#include <vector>

#include "sim/schedule/unroll.hpp"

namespace podsim {

/// Work of the rank's device, or the device's half of a transfer.
struct RankTask {
  enum class Part : std::uint8_t { work, send, receive };
  Part part = Part::work;
  bool on_core = false;
  std::uint32_t activity = 0;            // in the graph
  std::uint32_t waits = 0;               // how often it occurs in `followers` of other tasks
  std::vector<std::uint32_t> followers;  // positions in the list of tasks, once per wait
};

/// In the order of the rank's program: work and sends at their task, receives at the Shift or Recv.
std::vector<RankTask> tasks_of_rank(const ActivityGraph& graph, const Schedule& lowered, DeviceId device);

}  // namespace podsim
