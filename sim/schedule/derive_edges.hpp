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

/// Adds the edges that the order of the tasks in their program means. Two tasks of a device conflict if they touch overlapping elements and one of them
/// writes; then the later one waits for the earlier one, by an edge or by a path of edges through tasks that are present on that device.
///
///   before   any edges, also none; they stay, and no edge is added that they imply
///   after    no race between two tasks: find_races() finds only tasks that overwrite their own operands. Edges name the halves of Shifts that conflict:
///            a reader of what arrives waits for `received`, the next arrival in its place for the reader
///   a transfer    reads at the sender, when it is sent, and writes at the receiver, when it arrives
///   a Collective  reads its input and writes its output; of a broadcast, reduce and permute only on the devices that do
///   a Call        reads its arguments, and writes those that the function writes. The bodies of functions are left as they are
///   order    edges for what a task reads first, in the order of its operands, then those for what it writes; each by the position of the earlier task
///   cost     O(pairs of touches of a buffer that overlap, for each class of devices that touch the same boxes of it), plus, for each task, the edges back
///            to the earliest task that it conflicts with; sets of devices are bits
///   errors   those of deploy()
///
///   example  0 shift a -> b, 1 matmul reads b, 2 shift a -> b: 1 waits for 0.received, and 2.receive for 1; that 2 comes after 0 follows
Expected<DerivedEdges> derive_edges(Schedule schedule);

}  // namespace podsim
