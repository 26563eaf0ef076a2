// Files that podsim reads: files compiled into the program, and size limits of files on disk.
#pragma once

#include <string_view>

#include "sim/base/input_file.hpp"

namespace podsim {

/// A file of the repository compiled into the program. Both views live as long as the program.
struct EmbeddedFile {
  std::string_view name;  // without directory and extension: "tpu_v4"
  std::string_view text;
};

// Size limits by kind of file (sim/base/input_file.hpp). Profiles and observations have their own (validation/calibration/importers).
inline constexpr SizeLimit config_limit{Bytes{16'000'000}};                         // machines, workloads, plans, sweeps, studies
inline constexpr SizeLimit list_limit{Bytes{64'000'000}};                           // networks, pairs, orders of devices, results
inline constexpr SizeLimit schedule_limit{Bytes{64'000'000}, Bytes{1'000'000'000}};  // Protobuf limits a message to 2 GiB

}  // namespace podsim
