// Changes to lowered schedules of one program that keep the rest of it together.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim::mutation {

/// No task.
inline constexpr std::size_t none = ~std::size_t{0};

/// The regions of an operation, those that are read first.
struct Regions {
  std::vector<Region*> all;
  std::size_t reads = 0;
};
Regions regions_by_use(Op& op);

/// Whether it adds to what is there: a sum that lacks something, or has it twice, where the task is left out or repeated.
bool is_sum(const Task& task);
bool is_launch(const Task& task);

/// What holds on all devices but one, and on one alone.
Condition all_but(const Mesh& mesh, int device);
Guard only(const Mesh& mesh, int device);
/// The devices that run a task.
std::vector<int> devices_of(const Schedule& schedule, std::size_t task);

/// A second task behind a task; whatever waits for the one waits for both.
void insert_twin(Program& program, std::size_t task, Task twin);
/// Makes one device's part of a task a task of its own, the next one.
std::size_t isolate(Schedule& schedule, std::size_t task, int device);
/// Takes a task out; what waited for it waits for what it waited for.
void erase(Program& program, std::size_t task);

/// The Recv of what a Send sends from a device: of the same channel, by the k-th use. No task: there is none.
struct Partner {
  std::size_t task = none;
  int device = -1;
};
Partner partner_of(const Schedule& schedule, std::size_t send, int device);

/// Whether a region of a task is inside its buffer wherever the task may touch it.
bool fits(const Schedule& schedule, std::size_t task, const Region& region);

}  // namespace podsim::mutation
