#include "tools/report/hlo_coverage_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/units.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_estimates = 3;
constexpr double worth_telling = 0.1;  // of the time of the core: less hardly moves the result

struct CoveredKind {
  const char *key, *word;
  const HloCovered* covered;
};
std::array<CoveredKind, 4> parts_of(const HloCoverage& coverage) {
  return {{{"known", "known", &coverage.known},
           {"estimated", "estimated", &coverage.estimated},
           {"lower_bound", "a lower bound", &coverage.lower_bound},
           {"unknown", "unknown", &coverage.unknown}}};
}

/// Whole numbers, which sums of executions are, as such.
Json number(double whole) {
  return whole < 0x1p53 ? Json(static_cast<std::int64_t>(whole)) : Json(whole);
}

}  // namespace

Json coverage_json(const HloCoverage& coverage) {
  Json json = Json::object();
  for (const auto& [key, word, part] : parts_of(coverage)) json.set(key, Json{{"instructions", number(part->instructions)}, {"bytes", number(part->bytes)}, {"time_s", part->time.count()}});
  const auto set_names = [&](const char* key, const std::map<std::string, double>& executions) {
    Json names = Json::object();
    for (const auto& [name, count] : executions) names.set(name, number(count));
    json.set(key, std::move(names));
  };
  const HloDoubt& doubt = coverage.in_doubt;
  json.set("in_doubt", Json{{"instructions", number(doubt.instructions)}, {"time_s", doubt.time.count()}, {"compiler_s", doubt.compiler.count()}, {"longer_s", doubt.longer.count()}});
  for (const auto& [key, part] : {std::pair{"compared", &coverage.compared}, std::pair{"not_compared", &coverage.not_compared}})
    json.set(key, Json{{"instructions", number(part->instructions)}, {"time_s", part->time.count()}});
  set_names("lower_bound_names", coverage.lower_bound_names);
  set_names("unknown_names", coverage.unknown_names);
  return json;
}

Json other_estimates_json(const std::vector<std::pair<std::string, HloOtherEstimate>>& others) {
  Json json = Json::array();
  for (const auto& [name, other] : others) json.push_back(Json{{"instruction", name}, {"time_s", other.time.count()}, {"compiler_s", other.compiler.count()}, {"count", other.count}});
  return json;
}

std::string coverage_text(const HloCoverage& coverage) {
  std::string text;
  for (const auto& [key, word, part] : parts_of(coverage)) {
    if (part->instructions == 0) continue;
    text += fmt::format("{}{}: {:.0f} instruction{}, {}, {}", text.empty() ? "" : "; ", word, part->instructions, part->instructions == 1 ? "" : "s", bytes_text(part->bytes), to_text(part->time));
  }
  const HloDoubt& doubt = coverage.in_doubt;
  if (doubt.instructions > 0)
    text += fmt::format("; in doubt: {}, {} by the compiler's own cycles", to_text(doubt.time), to_text(doubt.compiler));
  const HloCompared& rest = coverage.not_compared;
  const double all = (coverage.compared.time + rest.time).count();
  if (coverage.compared.instructions > 0 && rest.instructions > 0)
    text += fmt::format("; without an estimate of the compiler: {:.0f} instruction{}, {} ({:.0f} % of the core's time)", rest.instructions, rest.instructions == 1 ? "" : "s", to_text(rest.time),
                        all > 0 ? 100 * rest.time.count() / all : 0);
  return text;
}

std::string estimated_text(const HloCoverage& coverage) {
  const double all = coverage.time().count(), share = all > 0 ? coverage.estimated.time.count() / all : 0;
  return share < worth_telling ? "" : fmt::format("{:.0f} % of the core's time estimated", 100 * share);
}

std::string doubt_text(const HloCoverage& coverage) {
  const HloDoubt& doubt = coverage.in_doubt;
  const double longer = doubt.longer.count(), others = (coverage.time() - doubt.time).count();
  const double share = longer > 0 ? longer / (others + longer) : 0;
  return share < worth_telling ? "" : fmt::format("{:.0f} % of the core's time in doubt", 100 * share);
}

std::string other_estimates_text(const std::vector<std::pair<std::string, HloOtherEstimate>>& others) {
  std::string text;
  for (std::size_t i = 0; i < others.size() && i < most_estimates; ++i) {
    const auto& [name, other] = others[i];
    text += fmt::format("{}{} {}, the compiler {}", i == 0 ? "" : "; ", name, to_text(other.time), to_text(other.compiler));
  }
  if (others.size() > most_estimates) text += fmt::format("; and {} more", others.size() - most_estimates);
  return text + " (less than 0.3 or more than 4 times)";
}

}  // namespace podsim
