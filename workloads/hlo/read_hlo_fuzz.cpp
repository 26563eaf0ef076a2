// Any bytes as a module of HLO, strict or tolerant as the first byte says: a Diagnostic that can be printed, or a module that can be counted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "workloads/hlo/collective_axes.hpp"
#include "workloads/hlo/hlo_memory.hpp"
#include "workloads/hlo/hlo_summary.hpp"
#include "workloads/hlo/read_hlo.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool tolerant = (data[0] & 1) != 0;
  if (const auto line = podsim::parse_hlo_line(text); !line && to_text(line.error()).empty()) std::abort();
  const auto module = podsim::parse_hlo(text, "fuzz", {.tolerant = tolerant});
  if (!module) {
    if (to_text(module.error()).empty()) std::abort();
    return 0;
  }
  podsim::HloCountOptions options;
  options.tolerant = tolerant;
  const auto summary = podsim::summary_of(*module, podsim::Machine{}, options);
  if (!summary && to_text(summary.error()).empty()) std::abort();
  if (summary)
    for (const podsim::HloCollectiveCount& count : summary->collectives) {
      const auto& computation = module->computations[static_cast<std::size_t>(count.place.computation)];
      if (!podsim::collective_axes(*module, computation.instructions[static_cast<std::size_t>(count.place.instruction)], nullptr)) std::abort();
    }
  if (const auto memory = podsim::peak_memory_of(*module); memory && memory->hbm.count() < 0) std::abort();
  return 0;
}
