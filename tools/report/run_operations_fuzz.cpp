// Any bytes as the JSON of a run: a Diagnostic that can be printed, or a step that is no different from itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tools/report/run_operations.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto step = podsim::read_run_step({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!step) {
    if (to_text(step.error()).empty()) std::abort();
    return 0;
  }
  if (step->block.operations.size() > 200) return 0;
  const podsim::StepDiff diff = podsim::diff_steps(step->block, step->block);
  if (diff.sentence.empty() || !diff.unmatched.empty()) std::abort();
  for (const podsim::DiffRow& row : diff.categories)
    if (row.gap() != podsim::Seconds{}) std::abort();
  return 0;
}
