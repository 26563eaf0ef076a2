// Any bytes as a sweep: a Diagnostic that can be printed, or blocks whose every value stands inside the text and whose every point parses as
// options of run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tools/sweep/point_run.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto blocks = podsim::read_sweep(text, "fuzz");
  if (!blocks) {
    if (to_text(blocks.error()).empty()) std::abort();
    return 0;
  }
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  std::size_t points = 0;
  for (const podsim::SweepBlock& block : *blocks) {
    std::size_t product = 1;
    for (const podsim::SweepAxis& axis : block.axes) {
      if (axis.values.empty()) std::abort();
      for (const podsim::SweepValue& value : axis.values)
        if (value.where.line < 1 || value.where.line > lines || value.where.column < 1) std::abort();
      product = std::min<std::size_t>(product * axis.values.size(), 1000);
    }
    points += product;
  }
  if (points > 1000) return 0;
  const auto expanded = podsim::expand(*blocks, [](const podsim::PointInputs&) { return 4; });
  if (!expanded) std::abort();
  static const auto described = podsim::point_options();
  for (std::size_t p = 0; p < expanded->size(); ++p) options_of(expanded->inputs(p), described);  // an assert
  return 0;
}
