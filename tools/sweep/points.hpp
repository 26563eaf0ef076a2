// The points of a sweep: every combination of every block, in order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/sweep/sweep_file.hpp"
#include "workloads/scenario/fields.hpp"

namespace podsim {

/// What one run is asked.
struct PointInputs {
  std::vector<std::string> texts = std::vector<std::string>(scenario_fields().size());  // by field; empty: left out; that of `set` stays empty
  std::vector<std::pair<std::string, std::string>> sets;                             // path, value
  [[nodiscard]] const std::string& text(std::string_view field) const { return texts[sweep_field(field)]; }
  friend bool operator==(const PointInputs&, const PointInputs&) = default;
};

/// The same as a scenario's fields.
Fields fields_of(const PointInputs& inputs);

/// The option of `podsim run` that a field is: "slice-count".
std::string option_of(std::string_view field);

/// The arguments of `podsim run` that ask the same: "--machine=tpu_v4", "--set=link.bandwidth=45 GB/s", ...
std::vector<std::string> arguments_of(const PointInputs& inputs);
/// The command line for a shell.
std::string command_of(const PointInputs& inputs);

class Points {
 public:
  [[nodiscard]] std::size_t size() const { return begins_.empty() ? 0 : begins_.back(); }
  [[nodiscard]] PointInputs inputs(std::size_t position) const;

 private:
  friend class SweepExpansion;
  std::vector<SweepBlock> blocks_;
  std::vector<std::size_t> begins_;                  // per block the position behind its last point
  std::vector<std::vector<std::uint32_t>> choices_;  // per block: per point the value of each axis
};

inline constexpr std::size_t most_points = 1'000'000;

/// How many devices the system of these inputs has; nullopt: there is no such system.
using DevicesOf = std::function<std::optional<int>(const PointInputs&)>;

/// Expands the blocks. The mesh "all" becomes every row x col of the system's devices, rows falling; it stays where there is no system, for the run to say
/// why. Slice counts are left out, and so vary nothing, where the algorithm of a GEMM or workload takes none. Errors: more than most_points.
Expected<Points> expand(std::vector<SweepBlock> blocks, const DevicesOf& devices_of);

}  // namespace podsim
