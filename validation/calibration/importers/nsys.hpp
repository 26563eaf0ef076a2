// Exports of Nsight Systems as SQLite: `nsys export --type sqlite REPORT.nsys-rep`.
#pragma once

#include <string>

#include "validation/calibration/importers/profile_ops.hpp"

namespace podsim {

/// Whether a file is a database with the kernels of Nsight Systems.
bool is_nsys_export(const std::string& file);

/// Tells `sink` the kernels (CUPTI_ACTIVITY_KIND_KERNEL), copies, memsets and graphs that were traced whole, each with the innermost NVTX range around its launch. Steps are the NVTX range that takes
/// most time. Errors: no SQLite; none of the tables; no kernel; times that are negative.
Expected<ReadProfile> read_nsys(const std::string& file, ProfileSink& sink);

}  // namespace podsim
