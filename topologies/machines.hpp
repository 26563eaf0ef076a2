// Machines by name: shipped machines and machine files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/machine/machine.hpp"

namespace podsim {

/// The names of the shipped machines, sorted.
std::vector<std::string> shipped_machines();

/// A shipped machine by its name, or the machine in a file. A text with a '/' or the ending ".textproto" is a file name; so is any other text that
/// names a readable file and no shipped machine. Names as people write them will do: v5p, TPU-v5p, h100, gb200. Errors: an unknown name (the message names similar ones), an unreadable file, the errors of
/// read_machine().
Expected<Machine> find_machine(std::string_view name_or_file);

}  // namespace podsim
