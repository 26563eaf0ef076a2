// Machines as tables, JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "sim/machine/machine.hpp"
#include "tools/report/table.hpp"

namespace podsim {

/// A value of a machine, exact, and where it is from.
struct SourcedValue {
  std::string path, value, source;  // path: "link[x].bandwidth"
};
/// In the order of their headings.
std::vector<SourcedValue> sourced_values(const Machine& machine);

/// Every value with its source.
std::string machine_report(const Machine& machine, Format format);
/// The shipped machines.
Expected<std::string> list_machines(Format format);

}  // namespace podsim
