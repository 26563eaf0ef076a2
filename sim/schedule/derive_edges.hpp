// Edges by use: what a task waits for follows from the regions that it and the tasks before it read and write.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// How two tasks conflict: the later one reads what the earlier one wrote, or writes what the earlier one read or wrote.
enum class Hazard { read_after_write, write_after_read, write_after_write };
std::string_view name_of(Hazard hazard);  // "read after write"

/// An edge, and a conflict that needs it: on `device` these two regions overlap.
struct DerivedEdge {
  std::size_t program = 0;
  TaskId task;
  Edge edge;
  Hazard hazard = Hazard::read_after_write;
  Region earlier, later;
  DeviceId device;
};

struct DerivedEdges {
  Schedule schedule;
  std::vector<DerivedEdge> edges;  // what was added, in the order of the schedule
};

/// Adds the edges that the order of the tasks in their program means. Two tasks of a device conflict if they touch overlapping elements and one of
/// them writes. Then the later one waits for the earlier one: by an edge, or by a path of edges through tasks that are present on that device.
///
///   before   any edges, also none. They stay, and no edge is added that they imply
///   after    no race between two tasks; find_races() may still find tasks that overwrite their own operands
///   a Shift       reads at the sender and writes at the receiver. Edges name the halves that conflict: a reader of what arrives waits for
///                 `received`, the next arrival in its place waits for the reader. Send and Recv likewise
///   a Collective  reads its input and writes its output; of a broadcast, reduce and permute only on the devices that do. A reduce-scatter or
///                 reduce overwrites an input that is scratch or in the output's buffer, with partial sums
///   a Call        reads its arguments, and writes those that the function writes. The bodies of functions stay as they are
///   order    edges for what a task reads first, in the order of its operands, then for what it writes; each by the earlier task's position
///   cost     O(overlapping pairs of touches of a buffer, for each class of devices that touch the same boxes of it); and for each task the edges
///            back to the earliest task that it conflicts with. Sets of devices are bits
///   errors   those of deploy()
///   example  0 shift a -> b, 1 matmul reads b, 2 shift a -> b: 1 waits for 0.received, and 2.receive for 1; that 2 comes after 0 follows
Expected<DerivedEdges> derive_edges(Schedule schedule);

}  // namespace podsim
