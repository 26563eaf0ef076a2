// Machines as tables, JSON and CSV.
#pragma once

#include <string>

#include "sim/machine/machine.hpp"
#include "tools/report/table.hpp"

namespace podsim {

/// Every value with its source.
std::string machine_report(const Machine& machine, Format format);
/// The shipped machines.
Expected<std::string> list_machines(Format format);

}  // namespace podsim
