// What one rank does of a lowered schedule, and what of it waits for what. Waits never cross ranks: what arrives is a task of the receiver.
#pragma once

#include <vector>

#include "sim/schedule/unroll.hpp"

namespace podsim {

/// A work of the rank's device, or the half of a transfer that is the device's.
struct RankTask {
  enum class Part : std::uint8_t { work, send, receive };
  Part part = Part::work;
  bool on_core = false;
  std::uint32_t activity = 0;            // of the graph
  std::uint32_t waits = 0;               // how many of `followers` name it
  std::vector<std::uint32_t> followers;  // positions in the list, once per wait
};

/// In the order of the rank's program: works and sends at their task, receives at the Shift or Recv.
std::vector<RankTask> tasks_of_rank(const ActivityGraph& graph, const Schedule& lowered, DeviceId device);

}  // namespace podsim
