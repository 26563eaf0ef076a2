// Where a tuner searches: the slices and meshes that a command line leaves open.
#pragma once

#include <vector>

#include "tools/command/options.hpp"
#include "tools/command/pod.hpp"

namespace podsim {

/// --chips, --slices and those of pods that are not `mesh`
po::options_description tuning_pod_options();

/// Every slice of so many chips (--chips; --slices offered: as the vendor offers them, 2-d: every what-if AxB), or the one of --slice, each with
/// every mesh row x col whose axes take whole dimensions of the slice (with --allow-split-axes: every row x col), or those of --mesh. A slice whose
/// dimensions have equal links is turned every way; of meshes that are then alike there is one. Errors: none or both of --chips and --slice; nothing
/// is offered of so many chips (names the near numbers); those of make_pod().
Expected<std::vector<Pod>> tuning_pods(const Options& options);

/// A pod of a slice with this mesh, an axis of which may take a part of a dimension. Errors: those of make_pod().
Expected<Pod> tuning_pod_of_shape(const Options& options, const Slice& slice, int rows, int cols);

}  // namespace podsim
