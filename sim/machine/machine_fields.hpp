// Every value of a machine by its path: "chip.hbm_bandwidth", "link[x].latency", "software.launch[all-gather]". One table for the file reader and
// writer, `--set` and `podsim show machine`.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/machine/machine.hpp"

namespace podsim {

/// efficiency: a number, or a curve over the input bytes of a collective, "0.2 at 1 KiB, 0.85 at 1 MiB".
/// matmul_efficiency: a number, points of a table over m x n x k, "0.3 at 1024x1024x1024, 0.8 at 8192x4096x4096", or a surface (MatmulSurface):
/// "surface m 1 1024; n 64 512 4096; k 64 8192; waves 128x256 0.5; 0.1 0.2; 0.2 0.4; 0.3 0.6; ...", a row over k for every m and n, n varying faster.
/// quarters: a multiple of 0.25. sharing: "shared" (1) or "separate" (0).
enum class FieldUnit { seconds, bytes, bytes_per_second, flops_per_second, number, integer, efficiency, matmul_efficiency, quarters, sharing };
enum class FieldIndex { none, dimension, peak, cost_kind, collective_kind };

struct MachineField {
  std::string_view group;  // "chip", "link", "software", "collective", "dcn"
  std::string_view name;   // "hbm_bandwidth"
  FieldIndex index = FieldIndex::none;
  bool index_on_group = false;  // link[x].bandwidth, not software.launch[all-gather]
  FieldUnit unit = FieldUnit::number;
  double low = 0, high = 0;                                  // admissible range in SI units, both ends included; an infinite high allows "unlimited"
  std::string_view meaning;                                  // one line for people
  double (*get)(const Machine&, int index) = nullptr;        // for a curve its last point; for a table its largest value
  void (*set)(Machine&, int index, double value) = nullptr;  // a curve or table becomes constant
  std::string_view derivable = {};                           // the entry that may be "derived" (stored as zero): chip.peak[f32], from bf16
  bool optional = false;                                     // a file may omit it: the default of the struct
  int optional_from = index_end;                             // or its entries from this one on, which may also be "derived"
  static constexpr int index_end = std::numeric_limits<int>::max();
  [[nodiscard]] bool is_optional(int entry) const { return optional || entry >= optional_from; }
};

std::span<const MachineField> machine_fields();

/// The names of an index's entries: x y z w, dtypes of products and tf32, cost kinds or collective kinds; one empty name for FieldIndex::none.
std::vector<std::string> index_names(FieldIndex index);

/// "link[x].bandwidth", "software.launch[all-gather]", "chip.hbm_bandwidth"; an empty `index` is left out of the path.
std::string path_of(const MachineField& field, std::string_view index);

/// The value as a text that parses back: "45 GB/s", "unlimited", "0.85", "derived".
std::string value_text(const MachineField& field, const Machine& machine, int index);

/// The same rounded for people. It need not parse back.
std::string rounded_text(const MachineField& field, const Machine& machine, int index);

/// Sets one value, or every entry if the path has no index, and records `source` for each, and what is beyond the range of hardware in `machine.doubtful`. Errors at `where`: unknown path (the message names similar
/// ones), a missing or wrong unit, a value outside [low, high] (the message names path, value and range).
Status set_machine_value(Machine& machine, std::string_view path, std::string_view value, std::string_view source, const SourceLocation& where);

}  // namespace podsim
