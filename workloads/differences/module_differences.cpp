#include "workloads/differences/module_differences.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/units.hpp"
#include "workloads/differences/core_order.hpp"
#include "workloads/differences/find_differences.hpp"
#include "workloads/hlo/sliced_all_reduces.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/read_comparison.hpp"

namespace podsim {

namespace {

/// The names of all-reduces of which only the own block is used.
std::vector<std::string> waiting_reduce_scatters(const HloModule& module) {
  std::vector<std::string> names;
  for (const HloComputation& computation : module.computations)
    for (const auto& [all_reduce, slice] : sliced_all_reduces(module, computation, HloUsers{computation}, false))
      names.push_back(computation.instructions[static_cast<std::size_t>(all_reduce)].name);
  return names;
}

/// Simulates changes of one module. Differences whose time is below `least_gain` of the module's are not simulated: nothing can gain more than it
/// takes.
class Gains {
 public:
  Gains(const FlatModule& flat, const HloSpec& spec, const RunOptions& options) : flat_{flat}, spec_{spec}, options_{options} {}

  [[nodiscard]] bool is_small(Picoseconds time) const {
    return static_cast<double>(time.count()) < least_gain * static_cast<double>(flat_.makespan.count());
  }

  /// Fills in the gain. Errors: as simulate_edited().
  Status add(DifferenceCandidate& candidate) const {
    if (is_small(candidate.difference.time)) return success();
    options_.tell("without " + candidate.difference.instruction);
    const auto without = simulate_edited(flat_, candidate.edit, options_);
    if (!without) return without.error();
    candidate.difference.gain = flat_.makespan - *without;
    return success();
  }

  /// nullopt: the module's order is as good.
  Expected<std::optional<ModuleDifference>> order() const {
    auto other = reordered(flat_);
    if (!other) return std::optional<ModuleDifference>{};
    Problem changed = flat_.problem;
    changed.schedule = std::move(other->schedule);
    const auto time = makespan_of(simulate(flat_.system, changed, options_));
    if (!time) return time.error();
    return std::optional{
        ModuleDifference{DifferenceKind::order, other->waits_at, other->waited, flat_.makespan - *time,
                         fmt::format("the core waits at {} while {}, which is behind it, could run", other->waits_at, other->first)}};
  }

  /// nullopt: no all-reduce is one of which only the own block is used.
  Expected<std::optional<ModuleDifference>> reduce_scatters(const std::vector<std::string>& waiting) const {
    if (waiting.empty() || spec_.options.rewrite_reduce_scatter) return std::optional<ModuleDifference>{};
    HloSpec rewritten = spec_;
    rewritten.options.rewrite_reduce_scatter = true;
    const auto problem = make_problem(flat_.system, rewritten);
    if (!problem) return problem.error();
    const auto time = makespan_of(simulate(flat_.system, *problem, options_));
    if (!time) return time.error();
    Picoseconds moved;
    for (const ModuleTask& task : flat_.tasks)
      if (task.part == ModuleTask::Part::transfer && task.instruction != nullptr &&
          std::find(waiting.begin(), waiting.end(), task.instruction->name) != waiting.end())
        moved += task.end - task.begin;
    return std::optional{ModuleDifference{DifferenceKind::missing, waiting.front(), moved, flat_.makespan - *time,
                                          fmt::format("only the own block of {}{} is used: a reduce-scatter moves half as much", waiting.front(),
                                                      waiting.size() > 1 ? fmt::format(" and {} more all-reduces", waiting.size() - 1) : "")}};
  }

 private:
  const FlatModule& flat_;
  const HloSpec& spec_;
  const RunOptions& options_;
};

/// Whether some of its communication runs beside the core's work.
bool overlaps(const Row& row) {
  return std::any_of(row.axes.begin(), row.axes.end(), [](const AxisMetrics& axis) { return axis.exposed < axis.in_flight; });
}

std::string summary_sentence(const FlatModule& flat, const ComparedSchedule& schedule, const std::string& module) {
  const Seconds theirs = to_seconds(flat.makespan), ours{schedule.row.result.makespan_s};
  std::string text = fmt::format("{} takes {}, {} {}", module, to_text(theirs), schedule.name, to_text(ours));
  const Seconds less = theirs - ours;
  if (std::abs(less.count()) < least_gain * theirs.count())
    text += ", as long";
  else
    text += fmt::format(", {} {}", to_text(Seconds{std::abs(less.count())}), less > Seconds{} ? "less" : "more");
  if (schedule.differences.empty()) return text + fmt::format("; no difference of the module costs {:.1f} % of it.", 100 * least_gain);
  const ModuleDifference& most = schedule.differences.front();
  text += fmt::format(": most costs {} ({}), {}", most.instruction, name_of(most.kind), to_text(to_seconds(most.gain)));
  const auto edits =
      static_cast<std::size_t>(std::count_if(schedule.differences.begin(), schedule.differences.end(), [](const ModuleDifference& one) {
        return one.kind != DifferenceKind::order && one.kind != DifferenceKind::missing;
      }));
  if (schedule.without && edits == 1 && most.kind != DifferenceKind::order && most.kind != DifferenceKind::missing)
    text += fmt::format("; without it the module takes {}", to_text(to_seconds(*schedule.without)));
  else if (schedule.without)
    text += fmt::format("; without the {} that can be left out together it takes {}", edits, to_text(to_seconds(*schedule.without)));
  return text + ".";
}

/// "tp-ag-overlapped os", "meshslice os S=4"
std::string name_of_row(const Row& row) {
  const ProblemSummary& summary = row.problem;
  return fmt::format("{} {}{}", summary.algorithm, summary.dataflow, summary.slice_count ? fmt::format(" S={}", *summary.slice_count) : "");
}

}  // namespace

std::string_view name_of(DifferenceKind kind) {
  constexpr std::array<std::string_view, 6> names{"not-overlapped", "superfluous", "copy", "layout", "order", "missing"};
  return names[static_cast<std::size_t>(kind)];
}

Expected<ModuleComparison> compare_module(const FlatModule& flat, const HloSpec& spec, ModuleProduct product, const std::vector<Variant>& variants,
                                          const RunOptions& options) {
  const HloModule& module = *spec.module;
  ModuleComparison comparison;
  comparison.module = module.name;
  comparison.result = flat.result;
  if (flat.problem.summary.hlo != nullptr) comparison.trust = flat.problem.summary.hlo->trust;
  comparison.notes = flat.problem.summary.hlo->notes;
  const Gains gains{flat, spec, options};
  std::vector<DifferenceCandidate> candidates = candidates_of(module, flat);
  for (DifferenceCandidate& candidate : candidates)
    if (auto ok = gains.add(candidate); !ok) return ok.error();
  const auto order = gains.order();
  if (!order) return order.error();
  const std::vector<std::string> waiting = waiting_reduce_scatters(module);
  const auto missing = gains.reduce_scatters(waiting);
  if (!missing) return missing.error();
  const std::vector<Carried> carried = carried_by_module(flat, data_flow(flat.program()), product);

  for (const Variant& variant : variants) {
    options.tell(variant.name);
    auto posed = pose(flat.system, variant.problem, options);
    auto ours = posed ? simulate(posed->system, posed->problem, options) : Expected<Run>{posed.error()};
    if (!ours) {
      if (!is_of_input(ours.error().cause)) return ours.error();
      comparison.skipped.push_back({variant.name, ours.error()});
      continue;
    }
    if (ours->timeline.interrupted) return cancelled_work();
    ComparedSchedule schedule;
    std::vector<DifferenceCandidate> found;
    for (const DifferenceCandidate& candidate : candidates)
      if (!candidate.if_ours_overlaps || overlaps(ours->row)) found.push_back(candidate);
    if (!product.left.empty())
      for (DifferenceCandidate& candidate : excess_transfers(flat, carried, carried_bytes(*ours))) {
        if (std::find(waiting.begin(), waiting.end(), candidate.difference.instruction) != waiting.end()) continue;
        if (auto ok = gains.add(candidate); !ok) return ok.error();
        found.push_back(std::move(candidate));
      }
    ModuleEdit all;
    for (DifferenceCandidate& candidate : found) {
      if (gains.is_small(candidate.difference.gain)) {
        ++schedule.left_out;
        continue;
      }
      all.add(candidate.edit);
      schedule.differences.push_back(std::move(candidate.difference));
    }
    for (const auto* further : {&*order, &*missing}) {
      if (!*further) continue;
      if (gains.is_small((*further)->gain))
        ++schedule.left_out;
      else
        schedule.differences.push_back(**further);
    }
    if (!all.empty()) {
      const auto without = simulate_edited(flat, all, options);
      if (!without) return without.error();
      schedule.without = *without;
    }
    std::stable_sort(schedule.differences.begin(), schedule.differences.end(),
                     [](const ModuleDifference& a, const ModuleDifference& b) { return a.gain > b.gain; });
    ours->row.problem = posed->problem.summary;
    schedule.name = name_of_row(ours->row);
    schedule.row = std::move(ours->row);
    schedule.sentence = summary_sentence(flat, schedule, module.name);
    comparison.schedules.push_back(std::move(schedule));
  }
  comparison.product = std::move(product);
  return comparison;
}

}  // namespace podsim
