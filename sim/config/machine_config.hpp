// Machine files: textproto, every value with its unit and its source.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "sim/machine/machine.hpp"

namespace podsim {

/// The newest version of machine files that this program reads.
inline constexpr int machine_format_version = 1;

/// Reads a machine. Every value of machine_fields() needs a non-empty source. Optional values (MachineField) may be missing; they keep the default of
/// the struct, with the source "not stated". A value without `of` applies to every entry that no other value names, wherever it stands in the file.
/// `file` is for messages. Errors, all of them at once, with line and column: text that does not parse, unknown or repeated fields and entries, a
/// missing value or source, a missing or wrong unit, a value out of range, contradictory slices, a newer version.
/// `values`: measured ones where the file has them, or those of data sheets (Value.spec), of a machine that is then called NAME:spec.
enum class MachineValues { measured, spec };
Expected<Machine> read_machine(std::string_view text, const std::string& file, MachineValues values = MachineValues::measured);

/// A text that read_machine() reads back as an equal machine, provided that each value is in range and has a source. A value without a source is
/// written with the source "not stated".
std::string write_machine(const Machine& machine);

}  // namespace podsim
