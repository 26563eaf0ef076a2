// Any bytes as a study: a Diagnostic that can be printed, or cases that have a bound or a reason for none, and something to predict.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "validation/validate/study.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto study = podsim::read_study({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!study) {
    if (to_text(study.error()).empty()) std::abort();
    return 0;
  }
  if (study->cases.empty() || study->hypotheses.empty()) std::abort();
  for (const podsim::StudyCase& one : study->cases)
    if (one.predict.empty() || one.where.line < 1 || one.bound.has_value() == !one.no_bound.empty()) {
      if (one.bound || !one.no_bound.empty()) std::abort();  // an empty reason is one
    }
  return 0;
}
