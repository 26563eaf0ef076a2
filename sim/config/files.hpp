// Files that podsim reads: compiled into the program, or on disk and how large they may be.
#pragma once

#include <string_view>

#include "sim/base/input_file.hpp"

namespace podsim {

/// A file of the repository compiled into the program. Both views live as long as the program.
struct EmbeddedFile {
  std::string_view name;  // without folder and extension: "tpu_v4"
  std::string_view text;
};

// The most bytes of a file (sim/base/input_file.hpp). Profiles and observations have limits of their own (validation/calibration/importers).
inline constexpr SizeLimit config_limit{Bytes{16'000'000}};                         // machines, workloads, plans, sweeps, studies
inline constexpr SizeLimit list_limit{Bytes{64'000'000}};                           // networks, pairs, orders of devices, results
inline constexpr SizeLimit schedule_limit{Bytes{64'000'000}, Bytes{1'000'000'000}};  // Protobuf's own limit of a message is 2 GiB

}  // namespace podsim
