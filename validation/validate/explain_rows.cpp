#include "validation/validate/explain_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "algorithms/collectives/collectives.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "validation/calibration/fit/predict.hpp"
#include "workloads/scenario/collective_candidates.hpp"

namespace podsim {

namespace {

constexpr double near = 0.1;     // measured and expected agree
constexpr double most_fold = 72;  // of a link that gives a part of its rate

/// A cost of the machine, and its part of the prediction.
struct Part {
  std::string name;
  Seconds time;
  int dimension = -1;  // of a link's bandwidth
};

Expected<std::vector<Part>> parts_of(const Observation& row, const System& system, Seconds expected) {
  std::vector<Part> parts;
  Machine machine = system.machine;
  const auto without = [&](std::string name, int dimension, auto change) -> Status {
    Machine cheaper = machine;
    change(cheaper);
    const auto changed = with_machine(system, std::move(cheaper));
    if (!changed) return changed.error();
    const auto time = predict(row, *changed);
    if (!time) return time.error();
    parts.push_back({std::move(name), Seconds{std::max(expected.count() - time->count(), 0.0)}, dimension});
    return success();
  };
  auto ok = without("software.launch", -1, [](Machine& m) { m.software.launch.fill(Seconds{}); });
  if (ok) ok = without("link.latency", -1, [](Machine& m) {
    for (LinkParameters& link : m.link) link.latency = Seconds{};
  });
  if (ok && system.machine.chip.own_block_bandwidth != unlimited<BytesPerSecond>)
    ok = without("chip.own_block_bandwidth", -1, [](Machine& m) { m.chip.own_block_bandwidth = unlimited<BytesPerSecond>; });
  if (ok && machine.chip.memory_shared) {
    ok = without("chip.hbm_bandwidth", -1, [](Machine& m) { m.chip.memory_shared = false; });
    // Faster links would leave the memory to bound the rest, so theirs is the part of a prediction with separate memory.
    if (ok) {
      machine.chip.memory_shared = false;
      expected = expected - parts.back().time;
    }
  }
  for (std::size_t d = 0; ok && d < system.slice.extents.size() && d < system.machine.link.size(); ++d)
    if (system.slice.extents[d] > 1) {
      const int link = link_dimension(system, d);
      ok = without(fmt::format("link[{}].bandwidth", dimension_name(link)), link,
                   [&](Machine& m) { m.link.at(static_cast<std::size_t>(link)).bandwidth = unlimited<BytesPerSecond>; });
    }
  if (ok && row.m > 0) ok = without("chip.peak", -1, [](Machine& m) { m.chip.peak.fill(unlimited<FlopsPerSecond>); });
  if (ok && (row.m > 0 || row.op == ObservedOp::hbm_copy))
    ok = without("chip.hbm_bandwidth", -1, [](Machine& m) { m.chip.hbm_bandwidth = unlimited<BytesPerSecond>; });
  if (!ok) return ok.error();
  return parts;
}

/// Every algorithm that `auto` would try; of both orders of axes or levels the faster one.
Expected<std::vector<std::pair<std::string, Seconds>>> times_by_algorithm(const Observation& row, const System& whole) {
  std::vector<std::pair<std::string, Seconds>> times;
  const auto kind = collective_kind_named(name_of(row.op));
  if (!kind || is_composite(row)) return times;
  const auto system = system_of(row, whole);
  if (!system) return system.error();
  const auto schedule = schedule_of(row, *system);
  if (!schedule) return schedule.error();
  const auto& collective = std::get<Collective>(schedule->computes);
  const CollectiveAlgorithmEntry* last = nullptr;
  for (const Lowering& lowering : candidates(schedule->mesh, collective)) {
    if (!has_its_switches(lowering, *system, schedule->mesh, collective)) continue;
    PredictOptions options;
    const std::string name = name_of(lowering, schedule->mesh, collective);
    options.algorithm.at(static_cast<std::size_t>(*kind)) = name;
    const auto time = predict(row, whole, options);
    if (!time) continue;  // it does not apply
    if (last != lowering.algorithm)
      times.emplace_back(name, *time);
    else if (*time < times.back().second)
      times.back() = {name, *time};
    last = lowering.algorithm;
  }
  std::stable_sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return times;
}

std::string in_words(int number) {
  constexpr std::array<std::string_view, 13> words{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"};
  return number < static_cast<int>(words.size()) ? std::string{words.at(static_cast<std::size_t>(number))} : std::to_string(number);
}

bool agree(double one, double other) { return std::abs(one / other - 1) <= near; }

std::string sentence_of(const ExplainedRow& row, const std::vector<Part>& parts, const System& system) {
  const double measured = row.observation.time.count(), expected = row.expected.count();
  if (agree(measured, expected)) return "as expected";
  const bool rail = system.machine.interconnect == Interconnect::rail;
  // A link's part, so many times: the others stay.
  std::string slower_link;
  for (const Part& part : parts) {
    if (part.dimension < 0 || part.time.count() < near * expected || measured < expected) continue;
    const double fold = (measured - expected) / part.time.count() + 1, whole = std::round(fold);
    if (whole < 2 || whole > most_fold || !agree(fold, whole)) continue;
    if (rail && part.dimension == 0 && static_cast<int>(whole) == system.slice.extents.back())
      return fmt::format("as if one of {} interfaces worked", in_words(system.slice.extents.back()));
    if (slower_link.empty()) slower_link = fmt::format("as if {} were a {}th of its value", part.name, static_cast<int>(whole));
    if (whole == 2) slower_link = fmt::format("as if {} were half of its value", part.name);
  }
  for (const auto& [name, time] : row.algorithms)
    if (name == row.nearest && agree(measured, time.count())) return fmt::format("as `{}` would take", name);
  if (!slower_link.empty()) return slower_link;
  const auto most = std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.time < b.time; });
  const double rest = expected - most->time.count();
  if (measured > rest && most->time.count() > 0) {
    const double fold = (measured - rest) / most->time.count();
    const std::string_view what = most->dimension >= 0 || most->name == "chip.own_block_bandwidth" ? "rate" : "time";
    return fmt::format("as if {} were {:.2g} times its {}", most->name, what == "rate" ? 1 / fold : fold, what);
  }
  return fmt::format("{:.2g} times the expected time: no one cost explains it", measured / expected);
}

}  // namespace

Expected<std::vector<ExplainedRow>> explain_rows(const std::vector<Observation>& observations, const System& system, const ValidateControl& control) {
  std::vector<ExplainedRow> rows;
  for (const Observation& observation : observations) {
    if (control.stop.requested()) return cancelled_work();
    if (control.done) control.done(rows.size(), observations.size());
    const auto expected = predict(observation, system);
    if (!expected) return expected.error();
    auto algorithms = times_by_algorithm(observation, system);
    if (!algorithms) return algorithms.error();
    ExplainedRow row{observation, *expected, {}, *std::move(algorithms), {}, {}};
    const auto parts = parts_of(observation, system, *expected);
    if (!parts) return parts.error();
    const auto most = std::max_element(parts->begin(), parts->end(), [](const Part& a, const Part& b) { return a.time < b.time; });
    row.bound = fmt::format("{}, {:.0f} %", most->name, 100 * most->time.count() / expected->count());
    const auto distance = [&](const auto& entry) { return std::abs(std::log(entry.second.count() / observation.time.count())); };
    const auto nearest = std::min_element(row.algorithms.begin(), row.algorithms.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
    if (nearest != row.algorithms.end()) row.nearest = nearest->first;
    row.sentence = sentence_of(row, *parts, system);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace podsim
