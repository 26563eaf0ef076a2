// Machine files: textproto, every value with its unit and its source.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "sim/machine/machine.hpp"

namespace podsim {

/// The newest machine file that is understood.
inline constexpr int machine_format_version = 1;

/// Reads a machine. Every value of machine_fields() must be given with a source that is not empty, but for the optional ones (MachineField),
/// which then keep the default of the struct, with the source "not stated"; a value without `of` holds for every entry that no other value
/// names, wherever it stands in the file. `file` is for messages. Errors, all of them at once, with line and
/// column: what does not parse, unknown or repeated fields and entries, a value or source that is missing, a missing or wrong unit, a value
/// out of its range, slices that contradict each other, a newer version.
Expected<Machine> read_machine(std::string_view text, const std::string& file);

/// A text from which read_machine() makes an equal machine, if each value of the machine is in its range and has a source. A value without
/// one is written with the source "not stated".
std::string write_machine(const Machine& machine);

}  // namespace podsim
