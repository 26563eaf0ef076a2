// Every value of a machine by path: "chip.hbm_bandwidth", "link[x].latency", "software.launch[all-gather]". One table serves the file
// reader and writer, `--set`, and `podsim show machine`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/machine.hpp"

namespace podsim {

enum class FieldUnit { seconds, bytes, bytes_per_second, flops_per_second, number, integer };
enum class FieldIndex { none, dimension, dtype, cost_kind };

struct MachineField {
  std::string_view group;  // "chip", "link", "software", "collective"
  std::string_view name;   // "hbm_bandwidth"
  FieldIndex index = FieldIndex::none;
  bool index_on_group = false;  // link[x].bandwidth rather than software.launch[all-gather]
  FieldUnit unit = FieldUnit::number;
  double low = 0, high = 0;     // admissible values, in SI; high may be infinite ("unlimited") for rates
  std::string_view meaning;     // one line for people
  double (*get)(const Machine&, int index) = nullptr;
  void (*set)(Machine&, int index, double value) = nullptr;
};

std::span<const MachineField> machine_fields();

/// The entries of an index: x y z w, dtype names, cost kind names; one empty name for FieldIndex::none.
std::vector<std::string> index_names(FieldIndex index);

/// "link[x].bandwidth", "software.launch[all-gather]", "chip.hbm_bandwidth"; with an empty index the entry is left out.
std::string path_of(const MachineField& field, std::string_view index);

/// The value as a text that parses back: "45 GB/s", "unlimited", "0.85".
std::string value_text(const MachineField& field, const Machine& machine, int index);

/// Sets one value, or every entry where the index is left out; notes `source` for each. Errors at `where`: unknown path (names the near
/// ones), a missing or wrong unit, a value outside [low, high] (names the path, the value and the range).
Done set_machine_value(Machine& machine, std::string_view path, std::string_view value, std::string_view source, const SourceLocation& where);

}  // namespace podsim
