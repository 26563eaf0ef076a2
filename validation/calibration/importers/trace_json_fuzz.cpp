// Any bytes as a trace of jax.profiler: a Diagnostic that can be printed, or observations that are written and read back; and as the operations of a
// step, and as one step in time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "validation/calibration/importers/import.hpp"
#include "validation/calibration/importers/profile_operations.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto operations = podsim::profile_operations_in("trace-json", {reinterpret_cast<const char*>(data), size}, "fuzz", {.cores = 2});
  if (!operations ? to_text(operations.error()).empty() : operations->operations.empty() || operations->steps < 1) std::abort();
  const auto step = podsim::profile_step_in("trace-json", {reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!step ? to_text(step.error()).empty() : step->devices.empty() || step->number > step->steps) std::abort();
  if (step)
    for (const podsim::ProfiledDeviceStep& device : step->devices)
      for (const podsim::ProfiledDeviceStep::Event& event : device.events)
        if (event.begin_ps < 0 || event.end_ps < event.begin_ps || event.name >= step->names.size() || event.operation >= device.step.operations.size()) std::abort();
  const auto imported = podsim::import_observations("trace-json", {reinterpret_cast<const char*>(data), size}, "fuzz", {.devices = 4, .cores = 2});
  if (!imported) {
    if (to_text(imported.error()).empty()) std::abort();
    return 0;
  }
  const auto again = podsim::read_observations(podsim::write_observations(imported->observations), "written");
  if (!again || again->size() != imported->observations.size()) std::abort();
  return 0;
}
