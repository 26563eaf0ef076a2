#include "workloads/scenario/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>

#include "sim/base/thread_pool.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/plan_choice.hpp"

namespace podsim {

namespace {

/// A variant as it is to be simulated.
struct PlannedVariant {
  const Variant* variant = nullptr;
  Expected<PosedProblem> posed;
  std::size_t same_as = 0;  // an earlier one, or itself
  Expected<Row> row;
};

/// Whether an earlier variant of the same collective names what `auto` chose.
bool named_before(const std::vector<PlannedVariant>& planned, const Problem& chosen) {
  return std::any_of(planned.begin(), planned.end(), [&](const PlannedVariant& other) {
    return other.posed && "auto: " + other.posed->problem.summary.algorithm == chosen.summary.algorithm && other.posed->problem.schedule == chosen.schedule;
  });
}

/// An earlier variant whose row would be equal.
const PlannedVariant* equal_before(const std::vector<PlannedVariant>& planned, const Problem& problem) {
  const auto equal = std::find_if(planned.begin(), planned.end(), [&](const PlannedVariant& other) {
    return other.posed && other.posed->problem.summary.algorithm == problem.summary.algorithm && other.posed->problem.schedule == problem.schedule;
  });
  return equal == planned.end() ? nullptr : &*equal;
}

std::vector<PlannedVariant> plan_all(const ComparedSystem& on, const RunOptions& options) {
  std::vector<PlannedVariant> planned;
  for (const Variant& variant : on.variants) {
    if (options.stopped()) break;
    options.tell(on.name + " " + variant.name);
    PlannedVariant plan{&variant, pose(on.system, variant.problem, options), planned.size(), cancelled_work()};
    if (plan.posed) {
      const Problem& problem = plan.posed->problem;
      if (variant.unless_named && named_before(planned, problem)) continue;
      const auto same = std::find_if(planned.begin(), planned.end(), [&](const PlannedVariant& other) {
        return other.posed && other.posed->problem.collectives == problem.collectives && other.posed->problem.schedule == problem.schedule;
      });
      if (same != planned.end()) plan.same_as = same->same_as;
      if (const PlannedVariant* equal = variant.unless_same ? equal_before(planned, problem) : nullptr)
        plan.posed = Diagnostic{{}, fmt::format("the same algorithms as {}: {}", equal->variant->name, problem.summary.algorithm)};
    }
    planned.push_back(std::move(plan));
  }
  return planned;
}

Expected<Row> finished_row(Expected<Run> run) {
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();
  return std::move(run->row);
}

/// With the times of its two passes by themselves. Where these are cancelled the whole is known, and that is all there is time for.
Expected<Row> with_passes(Row row, const System& system, PlannedWorkload planned, const RunOptions& options) {
  for (const auto& [pass, seconds] : {std::pair{Pass::forward, &Row::forward_s}, std::pair{Pass::backward, &Row::backward_s}}) {
    planned.pass = pass;
    const auto apart = finished_row(simulate(system, ProblemSpec{planned}, options));
    if (apart)
      row.*seconds = apart->result.makespan_s;
    else if (apart.error().cause != Cause::cancelled)
      return apart.error();
  }
  return row;
}

/// Alone, as it uses all threads to choose the plan.
Expected<Row> workload_row(const ComparedSystem& on, const Variant& variant, const RunOptions& given) {
  RunOptions options = given;
  options.control.record = false;
  const auto planned = choose_plan(on.system, std::get<WorkloadSpec>(variant.problem), options);
  if (!planned) return planned.error();
  auto row = finished_row(simulate(on.system, ProblemSpec{*planned}, options));
  if (!row || !variant.passes_apart || planned->pass != Pass::both) return row;
  return with_passes(*std::move(row), on.system, *planned, options);
}

/// Notes what does not apply. Work that was cancelled is not noted. Errors: `why` itself, where the computer failed: that is no property of `what`.
Status skip(std::string what, const Diagnostic& why, std::vector<Skipped>& skipped) {
  if (why.cause == Cause::environment) return why;
  if (why.cause == Cause::input) skipped.push_back({std::move(what), why});
  return success();
}

/// With broken cables there are several ways to run a problem (faults.hpp).
bool has_alternatives(const ComparedSystem& on) { return !on.system.faults.broken.empty(); }

/// A system's variants.
struct PlannedSystem {
  const ComparedSystem* on;
  std::vector<PlannedVariant> variants;
};
/// One of them.
struct Planned {
  const ComparedSystem* on;
  PlannedVariant* plan;
};

/// What is to be played: the variants of one name on all systems together, where none of them has alternatives to be tried.
std::vector<std::vector<Planned>> to_play(std::vector<PlannedSystem>& systems) {
  std::vector<std::vector<Planned>> groups;
  for (PlannedSystem& system : systems)
    for (std::size_t p = 0; p < system.variants.size(); ++p) {
      PlannedVariant& plan = system.variants[p];
      if (!plan.posed || plan.same_as != p) continue;
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Planned>& others) {
        return !has_alternatives(*system.on) && others.back().on != system.on && others.front().plan->variant->name == plan.variant->name;
      });
      if (group == groups.end())
        groups.push_back({{system.on, &plan}});
      else
        group->push_back({system.on, &plan});
    }
  return groups;
}

void play_all(std::vector<PlannedSystem>& systems, const RunOptions& options) {
  const std::vector<std::vector<Planned>> groups = to_play(systems);
  RunOptions each = options;
  each.control.record = false;
  each.threads = 1;
  // SimGrid's child must not be forked from among threads.
  ThreadPool pool{options.engine->folds ? options.threads : 1};
  pool.for_each(groups.size(), [&](std::size_t i, std::size_t) {
    const auto& [on, plan] = groups[i].front();
    if (options.stopped()) return;
    options.tell(fmt::format("{} of {}: {} {}", i + 1, groups.size(), on->name, plan->variant->name));
    if (groups[i].size() == 1) {
      plan->row = finished_row(has_alternatives(*on) ? simulate(on->system, plan->variant->problem, each) : simulate(plan->posed->system, plan->posed->problem, each));
      return;
    }
    std::vector<const PosedProblem*> problems;
    for (const Planned& planned : groups[i]) problems.push_back(&*planned.plan->posed);
    auto rows = simulate_together(problems, each);
    for (std::size_t r = 0; r < rows.size(); ++r) groups[i][r].plan->row = std::move(rows[r]);
  });
}

Expected<ComparedRows> rows_of(const PlannedSystem& system) {
  ComparedRows result;
  for (const PlannedVariant& plan : system.variants) {
    const auto& row = system.variants[plan.same_as].row;
    if (!plan.posed || !row) {
      if (auto ok = skip(system.on->name + ", " + plan.variant->name, !plan.posed ? plan.posed.error() : row.error(), result.skipped); !ok) return ok.error();
      continue;
    }
    result.rows.push_back(*row);
    result.rows.back().problem = plan.posed->problem.summary;
    result.rows.back().group = plan.variant->group;
  }
  return result;
}

bool has_workloads(const ComparedSystem& on) { return !on.variants.empty() && std::holds_alternative<WorkloadSpec>(on.variants.front().problem); }

/// Each alone, as it uses all threads to choose its plan.
Expected<ComparedRows> simulate_workloads(const ComparedSystem& on, const RunOptions& options) {
  ComparedRows result;
  for (const Variant& variant : on.variants) {
    if (options.stopped()) break;
    const std::string what = on.name + ", " + variant.name;
    options.tell(what);
    auto row = workload_row(on, variant, options);
    if (row)
      result.rows.push_back(*std::move(row));
    else if (auto ok = skip(what, row.error(), result.skipped); !ok)
      return ok.error();
  }
  return result;
}

/// Where those begin that differ from this one by more than values of the machine.
std::size_t end_of_alike(const std::vector<ComparedSystem>& systems, std::size_t first) {
  std::size_t end = first + 1;
  while (end < systems.size() && differ_in_machine_only(systems[first].system, systems[end].system)) ++end;
  return end;
}

}  // namespace

std::vector<Expected<ComparedRows>> simulate_variants_on(const std::vector<const ComparedSystem*>& systems, const RunOptions& options) {
  std::vector<Expected<ComparedRows>> results;
  std::vector<PlannedSystem> planned;
  for (const ComparedSystem* on : systems) planned.push_back({on, has_workloads(*on) ? std::vector<PlannedVariant>{} : plan_all(*on, options)});
  play_all(planned, options);
  for (const PlannedSystem& system : planned) results.push_back(has_workloads(*system.on) ? simulate_workloads(*system.on, options) : rows_of(system));
  return results;
}

Expected<ComparedRows> simulate_variants(const ComparedSystem& on, const RunOptions& options) { return std::move(simulate_variants_on({&on}, options).front()); }

Expected<ComparedResults> compare(const std::vector<ComparedSystem>& systems, const RunOptions& options) {
  const auto better = [](const Row& a, const Row& b) { return std::tie(a.group, a.result.makespan_s) < std::tie(b.group, b.result.makespan_s); };
  ComparedResults comparison;
  std::vector<Expected<ComparedRows>> simulated;
  for (std::size_t s = 0; s < systems.size(); ++s) {
    if (s == simulated.size()) {
      std::vector<const ComparedSystem*> alike;
      for (std::size_t other = s, end = end_of_alike(systems, s); other < end; ++other) alike.push_back(&systems[other]);
      auto rows = simulate_variants_on(alike, options);
      std::move(rows.begin(), rows.end(), std::back_inserter(simulated));
    }
    auto& found = simulated[s];
    if (!found) return found.error();
    for (Row& row : found->rows) row.varied = systems[s].varied;
    comparison.rows.insert(comparison.rows.end(), found->rows.begin(), found->rows.end());
    comparison.skipped.insert(comparison.skipped.end(), found->skipped.begin(), found->skipped.end());
    std::stable_sort(found->rows.begin(), found->rows.end(), better);
    for (const Row& row : found->rows) {
      const bool same = !comparison.by_system.empty() && comparison.by_system.back().system == s && comparison.by_system.back().rows.front().group == row.group;
      if (!same) comparison.by_system.push_back({s, {}});
      comparison.by_system.back().rows.push_back(row);
    }
  }
  std::stable_sort(comparison.rows.begin(), comparison.rows.end(), better);
  return comparison;
}

}  // namespace podsim
