// Any text as a quantity: every parser either refuses it with a message or gives an admissible value whose exact text parses back to it.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "sim/base/units.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Quantity>
void check(podsim::Expected<Quantity> (*parse)(std::string_view, const podsim::SourceLocation&), std::string_view text) {
  const auto value = parse(text, {"fuzz", 1, 1});
  if (!value) {
    require(!to_text(value.error()).empty());
    return;
  }
  require(value->count() >= 0);
  require(!to_text(*value).empty());
  const auto again = parse(to_exact_text(*value), {});
  require(again && *again == *value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(podsim::parse_seconds, text);
  check(podsim::parse_bytes, text);
  check(podsim::parse_bytes_per_second, text);
  check(podsim::parse_flops_per_second, text);
  if (const auto seconds = podsim::parse_seconds(text, {}); seconds && seconds->count() < 9e6) require(podsim::ceil_to_clock(*seconds).count() >= 0);
  const auto number = podsim::parse_number(text, {});
  require(!number || std::isfinite(*number));
  const auto any = podsim::parse_integer(text, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), {});
  const auto small = podsim::parse_integer(text, -5, 70000, {});
  require(!small || (any && *any == *small && -5 <= *small && *small <= 70000));
  podsim::did_you_mean(text, {"bandwidth", "latency", "chip.peak"});
  require(podsim::quoted(text).size() >= 2);
  return 0;
}
