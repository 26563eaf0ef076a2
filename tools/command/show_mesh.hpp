// What `show mesh` and `show topology --devices` print.
#pragma once

#include <functional>

#include "tools/command/scenario_options.hpp"
#include "tools/command/options.hpp"
#include "tools/command/scenario_options.hpp"

namespace podsim {

inline constexpr std::string_view mesh_usage =
    R"(usage: podsim show mesh --machine M --slice AxB[xC] --mesh x=16,y=8 [--mesh-order row-major|jax|snake|FILE] [--allow-split-axes] [OPTION...]

Which device sits where, and how far neighbours on each axis are apart. device_ids_row_major has the vendor's ids (JAX's), as mesh.devices prints them;
where the machine has none, chip numbers.

examples:
  podsim show mesh --machine tpu_v4 --slice 4x4x8 --mesh x=16,y=8 --mesh-order jax
  podsim show mesh --machine tpu_v4 --slice 4x4x4 --mesh x=8,y=8 --mesh-order jax --allow-split-axes --format json
  podsim show mesh --machine tpu_v4 --slice 2x2x4 --mesh x=4,y=4 --mesh-order jax -o mesh.dot
)";

/// Errors: those of the system; --format csv.
Expected<std::string> show_mesh(const Options& options, Format format, const RunOptions& how);

}  // namespace podsim
