// Any bytes as text of nccl-tests, a table of HLO statistics, a log of MeshSlice, observations, or what other benchmarks and training runs write, which the first
// byte chooses: a Diagnostic that can be printed, or observations that are written and read back.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "validation/calibration/importers/import.hpp"
#include "validation/calibration/importers/profile_operations.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::array<std::string_view, 12> formats = {"nccl-tests", "hlo-stats", "meshslice-log", "csv", "nccl-tests", "nccl-json", "nccl-csv", "osu", "perftest", "training-log", "nccl-inspector", ""};  // of 0 to 9, : and ;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const auto operations = podsim::profile_operations_in("hlo-stats", text, "fuzz", {.steps = data[0] & 1, .devices = data[0] & 3});
      !operations ? to_text(operations.error()).empty() : operations->operations.empty() || operations->steps < 1)
    std::abort();
  const auto imported = podsim::import_observations(formats[data[0] % formats.size()], text, "fuzz", {.devices = data[0] < 128 ? 4 : 0});
  if (!imported) {
    if (to_text(imported.error()).empty()) std::abort();
    return 0;
  }
  const auto again = podsim::read_observations(podsim::write_observations(imported->observations), "written");
  if (!again || again->size() != imported->observations.size()) std::abort();
  return 0;
}
