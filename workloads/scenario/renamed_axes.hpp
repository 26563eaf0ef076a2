// Meshes that differ in the names of their axes and in axes of one device: what runs on one takes as long on the other.
#pragma once

#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// Whether both are the same devices, in the same order, along axes of the same sizes and dimensions; axes of one device do not count.
///   example row=128,col=1 and row=1,col=128
bool differ_in_axis_names_only(const System& one, const System& other);

/// Whether these are the same collective by the same policy, on systems that differ in the names of axes only.
bool is_same_collective(const System& one, const ProblemSpec& problem, const System& other, const ProblemSpec& of_other);

/// The row of a problem on `from` as that on `to`, whose axes have other names.
Row with_axes_of(Row row, const System& from, const System& to);

}  // namespace podsim
