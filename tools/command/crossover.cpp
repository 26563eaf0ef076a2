#include "tools/command/crossover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/machine/machine_fields.hpp"

namespace podsim {

namespace {

struct Number {
  double value = 0;
  std::string unit;
};

Expected<Number> parse_number_with_unit(const std::string& text) {
  Number number;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (status != std::errc{} || !std::isfinite(number.value))
    return Diagnostic{option("crossover"), "expected a number with its unit, found " + quoted(text)};
  number.unit = text.substr(static_cast<std::size_t>(rest - text.data()));
  if (number.unit.starts_with(' ')) number.unit.erase(0, 1);
  return number;
}

/// Whether a path names a whole number: "chip.layout_lanes".
bool is_whole(std::string path) {
  for (std::size_t open; (open = path.find('[')) != std::string::npos;) path.erase(open, path.find(']', open) - open + 1);
  return std::any_of(machine_fields().begin(), machine_fields().end(), [&](const MachineField& field) {
    return field.unit == FieldUnit::integer && path == fmt::format("{}.{}", field.group, field.name);
  });
}

/// Rows at one value, best first.
struct Ranking {
  double value = 0;
  std::vector<Row> rows;
  [[nodiscard]] std::string winner() const { return rows.front().algorithm + " " + rows.front().dataflow; }
};

}  // namespace

Expected<CrossoverRange> parse_crossover(const std::string& text) {
  const std::size_t equals = text.find('='), dots = text.find("..", equals == std::string::npos ? 0 : equals);
  if (equals == std::string::npos || dots == std::string::npos)
    return Diagnostic{option("crossover"), "expected PATH=lo..hi, as link.bandwidth=10GB/s..400GB/s, found " + quoted(text)};
  const auto low = parse_number_with_unit(text.substr(equals + 1, dots - equals - 1)), high = parse_number_with_unit(text.substr(dots + 2));
  if (!low) return low.error();
  if (!high) return high.error();
  if (low->unit != high->unit)
    return Diagnostic{option("crossover"), fmt::format("expected one unit at both ends, found {} and {}", quoted(low->unit), quoted(high->unit))};
  if (!(low->value < high->value)) return Diagnostic{option("crossover"), "expected lo below hi, found " + quoted(text)};
  return CrossoverRange{text.substr(0, equals), low->unit, low->value, high->value};
}

Expected<Crossovers> find_crossovers(const Pod& pod, const std::string& place, const std::vector<Variant>& variants, const Manner& manner,
                                     const CrossoverRange& range) {
  const auto rank = [&](double value) -> Expected<Ranking> {
    Pod changed = pod;
    const std::string text = fmt::format("{:.6g}{}", value, range.unit);
    if (auto ok = set_machine_value(changed.machine, range.path, text, "--crossover", option("crossover")); !ok) return ok.error();
    if (auto ok = rebuild(changed); !ok) return ok.error();
    std::vector<Skipped> skipped;
    Manner here = manner;
    here.doing = [&](const std::string& what) { manner.tell(range.path + "=" + text + " " + what); };
    auto rows = simulate_all(changed, place, variants, here, skipped);
    if (!rows) return rows.error();
    if (manner.stopped()) return cancelled_work();
    Ranking ranking{value, *std::move(rows)};
    if (ranking.rows.empty()) return Diagnostic{{}, skipped.empty() ? "nothing to compare" : skipped.front().what + ": " + skipped.front().reason};
    std::stable_sort(ranking.rows.begin(), ranking.rows.end(), [](const Row& a, const Row& b) { return a.result.makespan_s < b.result.makespan_s; });
    return ranking;
  };
  const bool by_ratio = range.low > 0, whole = is_whole(range.path);
  const auto between = [&](double a, double b, double part) {
    const double value = by_ratio ? a * std::pow(b / a, part) : a + part * (b - a);
    return whole ? std::round(value) : value;
  };

  constexpr int points = 7;
  std::vector<Ranking> rankings;
  for (int i = 0; i < points; ++i) {
    if (whole && i > 0 && rankings.back().value >= between(range.low, range.high, i / (points - 1.0))) continue;
    auto ranking = rank(i == 0 ? range.low : i == points - 1 ? range.high : between(range.low, range.high, i / (points - 1.0)));
    if (!ranking) return ranking.error();
    // Halve the interval behind the last point until the change of winner is pinned down.
    Ranking right = *ranking;
    while (!rankings.empty() && rankings.back().winner() != right.winner()) {
      const double a = rankings.back().value, b = right.value;
      if (b - a <= std::max(whole ? 1.0 : 0.0, 0.02 * std::max(std::abs(a), std::abs(b)))) break;
      auto middle = rank(between(a, b, 0.5));
      if (!middle) return middle.error();
      if (middle->winner() == right.winner())
        right = std::move(*middle);
      else
        rankings.push_back(std::move(*middle));
    }
    if (right.value < ranking->value) rankings.push_back(std::move(right));
    rankings.push_back(std::move(*ranking));
  }

  Crossovers result{range, place, {}};
  for (Ranking& ranking : rankings) {
    const auto other = std::find_if(ranking.rows.begin(), ranking.rows.end(),
                                    [&](const Row& row) { return row.algorithm + " " + row.dataflow != ranking.winner(); });
    const std::string runner_up = other == ranking.rows.end() ? "" : other->algorithm + " " + other->dataflow;
    const double margin = other == ranking.rows.end() ? 0 : other->result.makespan_s / ranking.rows.front().result.makespan_s - 1;
    const Row& best = ranking.rows.front();
    if (result.reigns.empty() || result.reigns.back().last.algorithm != best.algorithm || result.reigns.back().last.dataflow != best.dataflow)
      result.reigns.push_back({ranking.value, ranking.value, best, best, runner_up, margin});
    Reign& reign = result.reigns.back();
    reign.to = ranking.value;
    reign.last = best;
    reign.runner_up = runner_up;
    reign.margin = margin;
  }
  return result;
}

}  // namespace podsim
