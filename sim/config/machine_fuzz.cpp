// Any bytes as a machine file: a Diagnostic that can be printed, or a machine that is written and read back equal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/config/machine_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto machine = podsim::read_machine(text, "fuzz");
  if (!machine) {
    if (to_text(machine.error()).empty()) std::abort();
    return 0;
  }
  const auto again = podsim::read_machine(podsim::write_machine(*machine), "written");
  if (!again || *again != *machine) std::abort();
  return 0;
}
