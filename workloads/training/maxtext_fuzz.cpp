// Any bytes as a configuration of MaxText: a Diagnostic that can be printed, or a step that reads back from the keys written for it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/base/text.hpp"
#include "workloads/training/counts.hpp"
#include "workloads/training/maxtext.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace podsim;
  const auto step = read_maxtext({reinterpret_cast<const char*>(data), size}, "fuzz", {}, {.devices = 64, .slices = 2});
  if (!step) {
    if (to_text(step.error()).empty()) std::abort();
    return 0;
  }
  if (const auto whole = divided(*step)) memory_of(whole->step, {}, 1);
  if (const auto text = to_maxtext(*step)) {
    auto again = read_maxtext("", "", split(*text, ' '));
    if (!again) std::abort();
    again->model.name = step->model.name;  // left out where it is not plain
    if (!(*again == *step)) std::abort();
  }
  return 0;
}
