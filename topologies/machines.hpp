// Machines by name: shipped machines and machine files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/machine/machine.hpp"

namespace podsim {

/// The names of the shipped machines, sorted.
std::vector<std::string> shipped_machines();

/// A shipped machine by its name, or the machine in a file. A text with a '/' or the ending ".textproto" is a file name; so is any other text that
/// names a readable file and no shipped machine. Names as people write them will do: v5p, TPU-v5p, h100, gb200. Behind any of them `:spec`
/// takes the values of data sheets in place of measured ones. Errors: an unknown name (the message names similar ones), an unreadable file, the errors of
/// read_machine().
Expected<Machine> find_machine(std::string_view name_or_file);

/// A machine and its slice, said in one word: "tpu_v4:4x8x8"; "h100:64", chips, of which the first of offered_slices(); "v5p-512", the name of a slice.
struct MachineAndSlice {
  std::string machine, slice;
};
/// nullopt: the text says a machine alone, or is the name of a file.
std::optional<MachineAndSlice> machine_and_slice(const std::string& text);

}  // namespace podsim
