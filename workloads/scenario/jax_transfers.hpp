// The collectives of a part: those that JAX would insert for its arrays, and those of its schedule.
#pragma once

#include <functional>
#include <vector>

#include "workloads/scenario/jax_plan.hpp"

namespace podsim {

/// The axes of JAX's mesh that a view of the plan's mesh is.
using AxesOfView = std::function<std::vector<int>(const AxisView&)>;

/// One comparison per product of the schedule, one for a norm whose features are divided and for a re-layout, none for all other parts. `arrays` are
/// those of the schedule, `mesh` is JAX's. Errors: those of read_program().
Expected<std::vector<JaxComparison>> compare_with_jax(const WorkloadPart& part, const Schedule& schedule, const std::vector<JaxArray>& arrays,
                                                      const Mesh& mesh, const AxesOfView& axes_of);

}  // namespace podsim
