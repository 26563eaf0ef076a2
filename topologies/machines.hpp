// Machines by name: the shipped ones and files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/machine/machine.hpp"

namespace podsim {

/// The names of the machines that come with the program, sorted.
std::vector<std::string> shipped_machines();

/// A shipped machine by its name, or the machine in a file. What has a '/' or ends in ".textproto" is a file, and so is any other text that
/// is no shipped name but names a readable file. Errors: an unknown name (names the near ones), a file that cannot be read, what read_machine()
/// finds wrong with it.
Expected<Machine> find_machine(std::string_view name_or_file);

}  // namespace podsim
