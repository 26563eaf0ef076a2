#include "tools/command/expect_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "workloads/scenario/fields.hpp"

namespace podsim {

namespace {

/// What can be bounded, and how its value and its bound are written.
struct Bounded {
  std::string_view name, example;
  std::optional<double> (*of)(const Row& row);
  Expected<double> (*read)(const std::string& text, const SourceLocation& where);
  std::string (*text)(double value);
};

Expected<double> read_time(const std::string& text, const SourceLocation& where) {
  const auto time = parse_seconds(text, where);
  if (!time) return time.error();
  return time->count();
}

Expected<double> read_size(const std::string& text, const SourceLocation& where) {
  const auto size = parse_bytes(text, where);
  if (!size) return size.error();
  return static_cast<double>(size->count());
}

/// "40%"
Expected<double> read_share(const std::string& text, const SourceLocation& where) {
  if (!text.ends_with('%')) return Diagnostic{where, "expected a percentage, as 40%, found " + quoted(text)};
  const auto number = parse_number(text.substr(0, text.size() - 1), where);
  if (!number) return number.error();
  return *number / 100;
}

std::string time_of(double seconds) { return to_text(Seconds{seconds}); }
std::string size_of(double bytes) { return to_text(Bytes{static_cast<std::int64_t>(bytes)}); }
std::string share_of(double share) { return fmt::format("{:.2f} %", 100 * share); }

constexpr std::array bounded_values{
    Bounded{"time", "time<=820ms", [](const Row& row) -> std::optional<double> { return row.result.makespan_s; }, read_time, time_of},
    Bounded{"compute", "compute<=700ms", [](const Row& row) -> std::optional<double> { return row.result.compute_s; }, read_time, time_of},
    Bounded{"exposed", "exposed<=50ms", [](const Row& row) -> std::optional<double> { return row.result.exposed_communication_s; }, read_time, time_of},
    Bounded{"memory", "memory<=90GB", [](const Row& row) -> std::optional<double> { return static_cast<double>(row.result.peak_memory_bytes); }, read_size, size_of},
    Bounded{"mfu", "mfu>=40%", [](const Row& row) { return row.result.mfu; }, read_share, share_of},
};

const Bounded* bounded_named(std::string_view name) {
  const auto* const found = std::ranges::find(bounded_values, name, &Bounded::name);
  return found == bounded_values.end() ? nullptr : found;
}

}  // namespace

OptionGroup expect_option() {
  return {{"expect", no_field(words("BOUND[,...]")), "status 1 if the run does not keep these: time, compute, exposed, memory or mfu, as time<=820ms,memory<=90GB,mfu>=40%"}};
}

Expected<std::vector<Expectation>> expectations(const Options& options) {
  std::vector<Expectation> expected;
  const SourceLocation where = option("expect");
  for (const std::string& given : options.has("expect") ? options.texts("expect") : std::vector<std::string>{})
    for (const std::string& text : split(given)) {
      const std::size_t sign = text.find_first_of("<>");
      if (sign == std::string::npos || text.compare(sign + 1, 1, "=") != 0) return Diagnostic{where, "expected a bound, as time<=820ms or mfu>=40%, found " + quoted(text)};
      const std::string name{trimmed(text.substr(0, sign))};
      const Bounded* const quantity = bounded_named(name);
      if (quantity == nullptr) {
        std::vector<std::string> names;
        for (const Bounded& known : bounded_values) names.emplace_back(known.name);
        return Diagnostic{where, fmt::format("expected {}, found {}", alternatives(names), quoted(name))};
      }
      const auto bound = quantity->read(std::string{trimmed(text.substr(sign + 2))}, where);
      if (!bound) return bound.error();
      expected.push_back({text, name, text[sign] == '<', *bound});
    }
  return expected;
}

std::vector<Judged> judge(const std::vector<Expectation>& expected, const Row& row) {
  std::vector<Judged> judged;
  for (const auto& [text, name, is_most, bound] : expected) {
    const Bounded& quantity = *bounded_named(name);
    const std::optional<double> value = quantity.of(row);
    const bool is_kept = value && (is_most ? *value <= bound : *value >= bound);
    judged.push_back({value ? fmt::format("expected {}: {}, {}", text, is_kept ? "kept" : "not kept", quantity.text(*value)) : fmt::format("expected {}: not kept, as {} is not known here", text, name), is_kept});
  }
  return judged;
}

}  // namespace podsim
