// Edits of lowered schedules of one program that keep edges and numbers consistent.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim::mutation {

/// No task.
inline constexpr std::size_t none = ~std::size_t{0};

/// The regions of an operation, reads first.
struct Regions {
  std::vector<Region*> all;
  std::size_t reads = 0;
};
Regions regions_by_use(Op& op);

/// Whether the task adds to its target, so that leaving it out or repeating it makes a sum incomplete or doubled.
bool is_sum(const Task& task);
bool is_launch(const Task& task);

/// The condition that holds on all devices but one; the condition that holds on that one only.
Condition all_but(const Mesh& mesh, int device);
Guard only(const Mesh& mesh, int device);
/// The devices that run a task.
std::vector<int> devices_of(const Schedule& schedule, std::size_t task);

/// Inserts a second task behind a task. Tasks that wait for the first wait for both.
void insert_twin(Program& program, std::size_t task, Task twin);
/// Splits off one device's part of a task as a separate task, the next one.
std::size_t isolate(Schedule& schedule, std::size_t task, int device);
/// Removes a task. Tasks that waited for it now wait for its predecessors.
void erase(Program& program, std::size_t task);

/// The Recv that matches a Send from a device: same channel, k-th use. `none` if there is no such task.
struct Partner {
  std::size_t task = none;
  int device = -1;
};
Partner partner_of(const Schedule& schedule, std::size_t send, int device);

/// Whether a region of a task lies inside its buffer on every device that may run the task.
bool fits(const Schedule& schedule, std::size_t task, const Region& region);

}  // namespace podsim::mutation
