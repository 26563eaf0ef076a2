#include "tools/command/show_targets.hpp"

#include "sim/config/machine_config.hpp"
#include "tools/report/machine_report.hpp"

namespace podsim {

Expected<std::string> show_machine(const Options& options, Format format, const RunOptions&) {
  const bool to_file = options.has("output") && options.text("output").ends_with(".textproto");
  if (!options.has("machine")) {
    if (to_file) return Diagnostic{option("output"), "a machine file is written of --machine, which is missing"};
    return list_machines(format);
  }
  const auto machine = read_machine(fields_of(options));
  if (!machine) return machine.error();
  return to_file ? write_machine(*machine) : machine_report(*machine, format);
}

}  // namespace podsim
