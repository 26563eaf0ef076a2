#include "workloads/scenario/crossover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/base/blame.hpp"
#include "sim/machine/machine_fields.hpp"

namespace podsim {

namespace {

struct Number {
  double value = 0;
  std::string unit;
};

Expected<Number> parse_number_with_unit(const std::string& text, const SourceLocation& where) {
  Number number;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (status != std::errc{} || !std::isfinite(number.value))
    return Diagnostic{where, "expected a number with its unit, found " + quoted(text)};
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

std::string text_of(double value, const CrossoverRange& range) { return fmt::format("{:.6g}{}", value, range.unit); }

/// Rows at one value, best first.
struct Ranking {
  double value = 0;
  std::vector<Row> rows;
  [[nodiscard]] std::string winner() const { return rows.front().problem.algorithm + " " + rows.front().problem.dataflow; }
};

}  // namespace

Expected<CrossoverRange> parse_crossover(const std::string& text, const SourceLocation& where) {
  const std::size_t equals = text.find('='), dots = text.find("..", equals == std::string::npos ? 0 : equals);
  if (equals == std::string::npos || dots == std::string::npos)
    return Diagnostic{where, "expected PATH=lo..hi, as link.bandwidth=10GB/s..400GB/s, found " + quoted(text)};
  const auto low = parse_number_with_unit(text.substr(equals + 1, dots - equals - 1), where),
             high = parse_number_with_unit(text.substr(dots + 2), where);
  if (!low) return low.error();
  if (!high) return high.error();
  if (low->unit != high->unit)
    return Diagnostic{where, fmt::format("expected one unit at both ends, found {} and {}", quoted(low->unit), quoted(high->unit))};
  if (!(low->value < high->value)) return Diagnostic{where, "expected lo below hi, found " + quoted(text)};
  return CrossoverRange{text.substr(0, equals), low->unit, low->value, high->value};
}

Expected<Crossovers> find_crossovers(const ComparedSystem& on, const CrossoverRange& range, const RunOptions& options) {
  const auto at = [&](double value) -> Expected<ComparedSystem> {
    Machine machine = on.system.machine;
    if (auto ok = set_machine_value(machine, range.path, text_of(value, range), "crossover", of_field("crossover")); !ok) return ok.error();
    auto system = with_machine(on.system, std::move(machine));
    if (!system) return system.error();
    return ComparedSystem{*std::move(system), on.name, {}, on.variants};
  };
  const auto ranked = [&](double value, Expected<ComparedRows> found) -> Expected<Ranking> {
    if (!found) return found.error();
    if (options.stopped()) return cancelled_work();
    Ranking ranking{value, std::move(found->rows)};
    if (ranking.rows.empty()) return found->skipped.empty() ? Diagnostic{{}, "nothing to compare"} : in_context(found->skipped.front().what, found->skipped.front().why);
    std::stable_sort(ranking.rows.begin(), ranking.rows.end(), [](const Row& a, const Row& b) { return a.result.makespan_s < b.result.makespan_s; });
    return ranking;
  };
  const auto rank = [&](double value) -> Expected<Ranking> {
    const auto system = at(value);
    if (!system) return system.error();
    RunOptions here = options;
    here.doing = [&](const std::string& what) { options.tell(range.path + "=" + text_of(value, range) + " " + what); };
    return ranked(value, simulate_variants(*system, here));
  };
  const bool by_ratio = range.low > 0, whole = is_whole(range.path);
  const auto between = [&](double a, double b, double part) {
    const double value = by_ratio ? a * std::pow(b / a, part) : a + part * (b - a);
    return whole ? std::round(value) : value;
  };

  constexpr int points = 7;
  std::vector<double> values;
  for (int i = 0; i < points; ++i) {
    const double value = i == 0 ? range.low : i == points - 1 ? range.high : between(range.low, range.high, i / (points - 1.0));
    if (whole && i > 0 && values.back() >= between(range.low, range.high, i / (points - 1.0))) continue;
    values.push_back(value);
  }
  std::vector<ComparedSystem> systems;
  for (const double value : values) {
    auto system = at(value);
    if (!system) return system.error();
    systems.push_back(*std::move(system));
  }
  std::vector<const ComparedSystem*> together;
  for (const ComparedSystem& system : systems) together.push_back(&system);
  auto found = simulate_variants_on(together, options);

  std::vector<Ranking> rankings;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto ranking = ranked(values[i], std::move(found[i]));
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

  Crossovers result{range, on.name, {}};
  for (Ranking& ranking : rankings) {
    const auto other = std::find_if(ranking.rows.begin(), ranking.rows.end(),
                                    [&](const Row& row) { return row.problem.algorithm + " " + row.problem.dataflow != ranking.winner(); });
    const std::string runner_up = other == ranking.rows.end() ? "" : other->problem.algorithm + " " + other->problem.dataflow;
    const double margin = other == ranking.rows.end() ? 0 : other->result.makespan_s / ranking.rows.front().result.makespan_s - 1;
    const Row& best = ranking.rows.front();
    if (result.intervals.empty() || result.intervals.back().last.problem.algorithm != best.problem.algorithm || result.intervals.back().last.problem.dataflow != best.problem.dataflow)
      result.intervals.push_back({ranking.value, ranking.value, best, best, runner_up, margin});
    WinningInterval& interval = result.intervals.back();
    interval.to = ranking.value;
    interval.last = best;
    interval.runner_up = runner_up;
    interval.margin = margin;
  }
  return result;
}

}  // namespace podsim
