// Where a command line lets the tuner search.
#pragma once

#include <string_view>
#include <vector>

#include "tools/command/options.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// --chips --slices
OptionGroup search_options();

/// Every slice of so many chips (--chips; --slices offered: as the vendor offers them, 2-d: every what-if AxB), or the one of --slice, each with
/// every mesh row x col whose axes take whole dimensions of the slice (with --allow-split-axes: every row x col), or those of --mesh, and the faults.
/// `training`: if any, instead of row x col these axes of training steps, and slice over --pods.
/// Errors: none or both of --chips and --slice; those of slices_of() and make_system().
Expected<std::vector<System>> systems_to_search(const Options& options, std::vector<std::string_view> training = {});

/// A system of a slice with a mesh row x col, an axis of which may take a part of a dimension. Errors: those of make_system().
Expected<System> system_of_shape(const Options& options, const Slice& slice, int rows, int cols);

}  // namespace podsim
