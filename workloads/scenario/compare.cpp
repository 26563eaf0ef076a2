#include "workloads/scenario/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "sim/base/thread_pool.hpp"
#include "sim/base/units.hpp"
#include "sim/model/task_cost.hpp"
#include "workloads/scenario/best_times.hpp"
#include "workloads/scenario/collective_candidates.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/planned_variants.hpp"
#include "workloads/scenario/port_bound.hpp"

namespace podsim {

namespace {

constexpr double most_of_collective = 2e6;  // task instances where not every row is wanted, as of a candidate that `auto` plays: some seconds

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

std::string what_of(const ComparedSystem& on, const Variant& variant) { return on.name + ", " + variant.name; }

/// Notes what does not apply. Work that was cancelled is not noted. Errors: `why` itself, where the computer failed: that is no property of `what`.
Status skip(std::string what, const Diagnostic& why, std::vector<Skipped>& skipped) {
  if (why.cause == Cause::environment) return why;
  if (is_of_input(why.cause)) skipped.push_back({std::move(what), why});
  return success();
}

/// One that is to be played.
struct Planned {
  const ComparedSystem* on;
  PlannedVariant* plan;
  std::vector<const Variant*> variants;  // that have its row
};

/// Those that are played together.
using Together = std::vector<Planned>;

/// What is to be played on systems that differ in the values of their machines only: the variants of one name on all of them together, where none has
/// alternatives to be tried.
std::vector<Together> to_play(std::span<PlannedSystem> systems) {
  std::vector<Together> groups;
  for (PlannedSystem& system : systems)
    for (std::size_t p = 0; p < system.variants.size(); ++p) {
      PlannedVariant& plan = system.variants[p];
      if (!plan.posed || plan.slower || plan.is_named || plan.same_as != p || !plan.is_to_play) continue;
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const Together& others) {
        return !has_alternatives(*system.on) && others.back().on != system.on && others.front().plan->variant->name == plan.variant->name;
      });
      Planned planned{system.on, &plan, {}};
      for (const PlannedVariant& other : system.variants)
        if (other.same_as == p && other.posed && !other.is_named) planned.variants.push_back(other.variant);
      if (group == groups.end())
        groups.push_back({std::move(planned)});
      else
        group->push_back(std::move(planned));
    }
  return groups;
}

/// What is known of a collective's size before it is lowered: no more task instances than it has.
double least_instances(const PosedProblem& posed) {
  const auto lowering = lowering_named(posed.problem.collectives.algorithm);
  if (!lowering || !posed.problem.summary.collective) return 0;
  const Program& program = posed.problem.schedule.programs.front();
  return least_transfers(*lowering, posed.problem.schedule.mesh, std::get<Collective>(program.tasks.front().op)) * size_of(program.devices);
}

/// What the fastest collective takes that `auto` chose: whoever asks for all algorithms need not wait for the slowest ones.
struct AutoTime {
  Picoseconds time = end_of_clock;
  std::int64_t most_work = RunControl{}.most_work;  // of others, on each mesh of the topology
};
/// By group and system; by group and topology where meshes are searched.
using AutoKey = std::tuple<std::size_t, std::size_t, const ComparedSystem*>;
using AutoTimes = std::map<AutoKey, AutoTime>;

AutoKey auto_key(const ComparedSystem& on, std::size_t group) { return {group, on.topology, on.is_mesh_searched ? nullptr : &on}; }

AutoTimes auto_times(const std::vector<PlannedSystem>& systems, const RunOptions& options) {
  AutoTimes times;
  for (const PlannedSystem& system : systems)
    for (const PlannedVariant& plan : system.variants) {
      if (!plan.auto_time) continue;
      const std::size_t topology = system.on->topology;
      const auto meshes = std::ranges::count_if(systems, [&](const PlannedSystem& other) { return other.on->topology == topology; });
      AutoTime& known = times[auto_key(*system.on, plan.variant->group)];
      known = {std::min(known.time, *plan.auto_time), options.most_work_beside_auto / std::max<std::int64_t>(2, meshes)};
    }
  return times;
}

/// Of those that nobody asked for by their name.
AutoTime auto_time(const AutoTimes& times, const Planned& planned) {
  if (!std::ranges::all_of(planned.variants, &Variant::unless_long)) return {};
  const auto found = times.find(auto_key(*planned.on, planned.plan->variant->group));
  return found == times.end() ? AutoTime{} : found->second;
}

/// Those that are too large to be played where another variant will do.
void find_large(const std::vector<Together>& groups, const AutoTimes& times, bool wants_all) {
  for (const Together& group : groups)
    for (const Planned& planned : group) {
      PlannedVariant& plan = *planned.plan;
      if (wants_all && auto_time(times, planned).time == end_of_clock) continue;
      const double least = least_instances(*plan.posed);
      plan.is_large = least > most_of_collective;
      if (plan.is_large)
        plan.row = Diagnostic{{}, fmt::format("at least {:.3g} million task instances; expected less than {:.3g} million where another algorithm will do, or `force` to run it", least * 1e-6, most_of_collective * 1e-6), Cause::too_large};
    }
}

Expected<Run> run_of(const Planned& planned, const RunOptions& options) {
  if (has_alternatives(*planned.on)) return simulate(planned.on->system, planned.plan->variant->problem, options);
  return simulate(planned.plan->posed->system, planned.plan->posed->problem, options);
}

void play_one(const Planned& planned, const RunOptions& options, BestTimes& best) {
  const auto& [on, plan, variants] = planned;
  RunOptions within = options;
  within.control.limit = best.limit(*on, variants);
  auto run = run_of(planned, within);
  const bool is_given_up = run && run->timeline.interrupted && !options.stopped();
  if (is_given_up && run->timeline.is_long) plan->long_least = run->timeline.makespan;
  plan->slower = is_given_up && !plan->long_least;
  if (run && !run->timeline.interrupted) best.add(*on, variants, run->timeline.makespan);
  plan->row = finished_row(std::move(run));
}

/// One that is long to play: not to its end, unless it is as fast as what `auto` chose. `wanted`: by then it must have ended.
void play_long(const Planned& planned, const RunOptions& options, Picoseconds wanted, Picoseconds auto_time) {
  PlannedVariant& plan = *planned.plan;
  RunOptions within = options;
  within.control.limit = std::min(wanted, auto_time);
  bool is_given_up = *plan.long_least > within.control.limit;
  if (!is_given_up) {
    auto run = run_of(planned, within);
    is_given_up = run && run->timeline.interrupted && !options.stopped();
    plan.row = finished_row(std::move(run));
  }
  plan.slower = is_given_up && (wanted <= auto_time || *plan.long_least > wanted);
  plan.is_large = is_given_up && !plan.slower;
  if (plan.is_large)
    plan.row = Diagnostic{{}, fmt::format("at least {}, longer than what `auto` chose ({}), and long to simulate, as many transfers share links; `force` simulates it", to_text(to_seconds(std::max(*plan.long_least, auto_time))), to_text(to_seconds(auto_time))), Cause::too_large};
}

/// By the cuts of the topology, but for rounding; zero of what is no collective.
Picoseconds least_by_cuts(const ProblemSummary& problem) {
  if (!problem.collective || !problem.collective->bound) return {};
  return Picoseconds{static_cast<std::int64_t>(problem.collective->bound->count() * (1 - 1e-6) * 1e12)};
}

/// By the links of a chip, but for rounding.
Picoseconds least_by_ports(const PosedProblem& posed) {
  return Picoseconds{static_cast<std::int64_t>(least_port_time(posed.system, posed.problem.schedule).count() * (1 - 1e-6) * 1e12)};
}

/// None of them takes less.
Picoseconds least_time(const Together& together) {
  Picoseconds least = end_of_clock;
  for (const Planned& planned : together) {
    const PosedProblem& posed = *planned.plan->posed;
    // Of alternatives, which place devices otherwise, only what the cuts of the topology say.
    const Picoseconds core = has_alternatives(*planned.on) ? Picoseconds{} : std::max(least_core_time(posed.system.machine, posed.problem.schedule), least_by_ports(posed));
    least = std::min(least, std::max(core, least_by_cuts(posed.problem.summary)));
  }
  return least;
}

/// Whether all are slower than the best, as their bound shows.
bool are_slower(const Together& together, Picoseconds bound, BestTimes& best) {
  return std::all_of(together.begin(), together.end(), [&](const Planned& planned) { return bound > best.limit(*planned.on, planned.variants); });
}

/// The large ones of a topology on which nothing else that computes the same was played.
void play_large(const std::vector<Together>& groups, const RunOptions& options, BestTimes& best) {
  std::set<std::pair<std::size_t, std::size_t>> played;  // topology and group
  for (const Together& group : groups)
    for (const Planned& planned : group)
      if (planned.plan->row || planned.plan->slower) played.emplace(planned.on->topology, planned.plan->variant->group);
  for (const Together& group : groups)
    for (const Planned& planned : group) {
      if (options.stopped()) return;
      if (!planned.plan->is_large || played.contains({planned.on->topology, planned.plan->variant->group})) continue;
      options.tell(planned.on->name + " " + planned.plan->variant->name);
      planned.plan->is_large = false;
      play_one(planned, options, best);
    }
}

/// With `best.wants_all()` in any order, otherwise in that of the bounds; where these are equal, as on all meshes of a slice with a broken cable, what `auto` chose first, as it tells soonest
/// how long the others may take.
void play_all(std::vector<Together> groups, const RunOptions& options, BestTimes& best, const AutoTimes& times) {
  struct Turn {
    Picoseconds bound;
    bool is_later = false;
    std::size_t group = 0;
    auto operator<=>(const Turn&) const = default;
  };
  if (!options.force) find_large(groups, times, best.wants_all());
  std::vector<Turn> order;
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (!groups[g].front().plan->is_large)
      order.push_back({best.wants_all() ? Picoseconds{} : least_time(groups[g]), !best.wants_all() && !groups[g].front().plan->is_chosen, g});
  std::sort(order.begin(), order.end());
  RunOptions each = options;
  each.control.record = false;
  each.threads = 1;
  // SimGrid's child must not be forked from among threads.
  ThreadPool pool{options.engine->folds ? options.threads : 1};
  pool.for_each(order.size(), [&](std::size_t i, std::size_t) {
    const auto [bound, is_later, g] = order[i];
    const Planned& first = groups[g].front();
    if (options.stopped()) return;
    options.count(i, order.size());
    options.tell(first.on->name + " " + first.plan->variant->name);
    if (are_slower(groups[g], bound, best)) {
      for (const Planned& planned : groups[g]) planned.plan->slower = true;
      return;
    }
    RunOptions own = each;
    if (!options.force) own.control.most_work = auto_time(times, first).most_work;
    if (groups[g].size() == 1) return play_one(first, own, best);
    std::vector<const PosedProblem*> problems;
    for (const Planned& planned : groups[g]) problems.push_back(&*planned.plan->posed);
    auto rows = simulate_together(problems, each);
    for (std::size_t r = 0; r < rows.size(); ++r) groups[g][r].plan->row = std::move(rows[r]);
  });
  // No best.add() any more: what is given up must not depend on which thread is first.
  pool.for_each(order.size(), [&](std::size_t i, std::size_t) {
    const Planned& planned = groups[order[i].group].front();
    if (!planned.plan->long_least || options.stopped()) return;
    options.tell(planned.on->name + " " + planned.plan->variant->name);
    *planned.plan->long_least = std::max(*planned.plan->long_least, order[i].bound);
    play_long(planned, each, best.limit(*planned.on, planned.variants), auto_time(times, planned).time);
  });
  options.count(0, 0);
  play_large(groups, each, best);
}

Expected<ComparedRows> rows_of(const PlannedSystem& system) {
  ComparedRows result;
  for (const PlannedVariant& plan : system.variants) {
    const auto& row = system.variants[plan.same_as].row;
    if (plan.is_named) continue;
    if (plan.slower || (plan.posed && system.variants[plan.same_as].slower)) {
      result.slower.push_back(plan.variant);
      continue;
    }
    if (plan.posed && system.variants[plan.same_as].is_large) result.large.push_back(plan.variant);
    if (!plan.posed || !row) {
      if (auto ok = skip(what_of(*system.on, *plan.variant), !plan.posed ? plan.posed.error() : row.error(), result.skipped); !ok) return ok.error();
      continue;
    }
    result.rows.push_back(*row);
    result.rows.back().problem = plan.posed->problem.summary;
    result.rows.back().group = plan.variant->group;
    result.variants.push_back(plan.variant);
  }
  return result;
}

bool has_workloads(const ComparedSystem& on) { return !on.variants.empty() && std::holds_alternative<WorkloadSpec>(on.variants.front().problem); }

/// A workload's row, and the number of its mesh among these of one topology: that of the fastest plan.
struct RowOnMesh {
  std::size_t mesh = 0;
  Row row;
};
Expected<RowOnMesh> workload_row(const std::vector<const ComparedSystem*>& meshes, const Variant& variant, const RunOptions& given) {
  RunOptions options = given;
  options.control.record = false;
  std::vector<System> systems;
  for (const ComparedSystem* on : meshes) systems.push_back(on->system);
  const auto found = choose_plan(std::move(systems), std::get<WorkloadSpec>(variant.problem), options);
  if (!found) return found.error();
  const System& system = meshes[found->system]->system;
  auto row = finished_row(simulate(system, ProblemSpec{found->planned}, options));
  if (row && variant.passes_apart && found->planned.pass == Pass::both) row = with_passes(*std::move(row), system, found->planned, options);
  if (!row) return row.error();
  return RowOnMesh{found->system, *std::move(row)};
}

/// Of each mesh. Each variant alone, as it uses all threads to choose its plan.
Expected<std::vector<ComparedRows>> simulate_workloads(const std::vector<const ComparedSystem*>& meshes, const RunOptions& options) {
  std::vector<ComparedRows> results(meshes.size());
  const ComparedSystem& first = *meshes.front();
  for (const Variant& variant : first.variants) {
    if (options.stopped()) break;
    const std::string what = what_of(first, variant);
    options.count(static_cast<std::size_t>(&variant - first.variants.data()), first.variants.size());
    options.tell(what);
    auto found = workload_row(meshes, variant, options);
    if (found)
      results[found->mesh].rows.push_back(std::move(found->row)), results[found->mesh].variants.push_back(&variant);
    else if (auto ok = skip(what, found.error(), results.front().skipped); !ok)
      return ok.error();
  }
  return results;
}

/// The meshes of a topology that are searched, from this one on; otherwise this one alone.
std::vector<const ComparedSystem*> meshes_from(const std::vector<const ComparedSystem*>& systems, std::size_t first) {
  std::vector<const ComparedSystem*> meshes;
  for (std::size_t s = first; s < systems.size() && (s == first || (systems[s]->is_mesh_searched && systems[s]->topology == systems[first]->topology)); ++s) meshes.push_back(systems[s]);
  return meshes;
}

/// Where those begin that differ from this one by more than values of the machine.
std::size_t end_of_alike(const std::vector<const ComparedSystem*>& systems, std::size_t first) {
  std::size_t end = first + 1;
  while (end < systems.size() && differ_in_machine_only(systems[first]->system, systems[end]->system)) ++end;
  return end;
}

std::vector<Together> all_to_play(const std::vector<const ComparedSystem*>& systems, std::vector<PlannedSystem>& planned) {
  std::vector<Together> groups;
  for (std::size_t s = 0, end = 0; s < systems.size(); s = end) {
    end = end_of_alike(systems, s);
    auto of_alike = to_play(std::span{planned}.subspan(s, end - s));
    std::move(of_alike.begin(), of_alike.end(), std::back_inserter(groups));
  }
  return groups;
}

std::vector<Expected<ComparedRows>> simulate_on(const std::vector<const ComparedSystem*>& systems, const RunOptions& options, BestTimes& best) {
  std::vector<PlannedSystem> planned = plan_variants(systems, options);
  const AutoTimes times = auto_times(planned, options);
  play_all(all_to_play(systems, planned), options, best, times);
  take_rows(planned);
  play_all(all_to_play(systems, planned), options, best, times);
  std::vector<Expected<ComparedRows>> results;
  while (results.size() < systems.size()) {
    const std::size_t s = results.size();
    if (!has_workloads(*systems[s])) {
      results.push_back(rows_of(planned[s]));
      continue;
    }
    const std::vector<const ComparedSystem*> meshes = meshes_from(systems, s);
    auto found = simulate_workloads(meshes, options);
    for (std::size_t m = 0; m < meshes.size(); ++m) results.push_back(found ? Expected<ComparedRows>{std::move((*found)[m])} : found.error());
  }
  return results;
}

/// A row with its system's number and its variant.
struct RowOn {
  std::size_t system = 0;
  const Variant* variant = nullptr;
  Row row;
};

/// Leaves the best of each group, and of each group on each topology, in order.
void rank(const std::vector<ComparedSystem>& systems, std::vector<RowOn>& rows, std::size_t top) {
  std::stable_sort(rows.begin(), rows.end(), [](const RowOn& a, const RowOn& b) {
    return std::tie(a.row.group, a.row.result.makespan_s) < std::tie(b.row.group, b.row.result.makespan_s);
  });
  if (top == 0) return;
  std::map<std::size_t, std::size_t> kept;
  std::set<std::pair<std::size_t, std::size_t>> topologies;
  std::erase_if(rows, [&](const RowOn& row) {
    const bool is_best_of_topology = topologies.insert({systems[row.system].topology, row.row.group}).second;
    return ++kept[row.row.group] > top && !is_best_of_topology;
  });
}

/// Leaves of variants on searched meshes the fastest row.
void keep_fastest_meshes(const std::vector<ComparedSystem>& systems, std::vector<RowOn>& rows) {
  std::map<OnTopology, const RowOn*> fastest;
  for (const RowOn& row : rows) {
    const auto [known, is_first] = fastest.try_emplace(on_topology(systems[row.system], *row.variant), &row);
    if (!is_first && row.row.result.makespan_s < known->second->row.result.makespan_s) known->second = &row;
  }
  std::vector<RowOn> kept;
  for (RowOn& row : rows)
    if (!systems[row.system].is_mesh_searched || fastest.at(on_topology(systems[row.system], *row.variant)) == &row) kept.push_back(std::move(row));
  rows = std::move(kept);
}

/// What was skipped on one of the meshes that are searched, once, if it applies to none of them; that it is too large, rather than that it does not apply.
void keep_what_never_applies(const std::vector<ComparedSystem>& systems, const std::set<OnTopology>& applied, std::vector<Skipped>& skipped) {
  std::map<std::string, OnTopology> searched;
  for (const ComparedSystem& on : systems)
    if (on.is_mesh_searched)
      for (const Variant& variant : on.variants) searched.emplace(what_of(on, variant), on_topology(on, variant));
  std::set<OnTopology> told;
  std::ranges::stable_partition(skipped, [](const Skipped& entry) { return entry.why.cause == Cause::too_large; });
  std::erase_if(skipped, [&](const Skipped& entry) {
    const auto found = searched.find(entry.what);
    return found != searched.end() && (applied.contains(found->second) || !told.insert(found->second).second);
  });
}

/// The rows by system and group; of topologies whose meshes are searched by topology and group.
std::vector<RankedGroup> by_system(const std::vector<ComparedSystem>& systems, std::vector<RowOn> rows) {
  const auto place = [&](const RowOn& row) {
    const ComparedSystem& on = systems[row.system];
    return std::tuple{on.topology, on.is_mesh_searched ? 0 : row.system, row.row.group};
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const RowOn& a, const RowOn& b) { return place(a) < place(b); });
  std::vector<RankedGroup> ranked;
  std::optional<decltype(place(rows.front()))> before;
  for (RowOn& row : rows) {
    const auto here = place(row);
    if (here != before) ranked.push_back({row.system, {}, static_cast<std::size_t>(std::ranges::count(systems, systems[row.system].topology, &ComparedSystem::topology))});
    before = here;
    ranked.back().rows.push_back(std::move(row.row));
  }
  return ranked;
}

}  // namespace

std::vector<Expected<ComparedRows>> simulate_variants_on(const std::vector<const ComparedSystem*>& systems, const RunOptions& options) {
  BestTimes all{0, false};
  return simulate_on(systems, options, all);
}

Expected<ComparedRows> simulate_variants(const ComparedSystem& on, const RunOptions& options) { return std::move(simulate_variants_on({&on}, options).front()); }

Expected<ComparedResults> compare(const std::vector<ComparedSystem>& systems, const RunOptions& options, std::size_t top) {
  BestTimes best{top, std::ranges::any_of(systems, &ComparedSystem::is_mesh_searched)};
  std::vector<const ComparedSystem*> all;
  for (const ComparedSystem& system : systems) all.push_back(&system);
  auto simulated = simulate_on(all, options, best);
  ComparedResults comparison;
  std::vector<RowOn> rows;
  std::set<OnTopology> applied;  // of topologies whose meshes are searched
  std::vector<OnTopology> large;
  for (std::size_t s = 0; s < systems.size(); ++s) {
    auto& found = simulated[s];
    if (!found) return found.error();
    for (std::size_t r = 0; r < found->rows.size(); ++r) {
      found->rows[r].varied = systems[s].varied;
      rows.push_back({s, found->variants[r], std::move(found->rows[r])});
    }
    comparison.skipped.insert(comparison.skipped.end(), found->skipped.begin(), found->skipped.end());
    for (const Variant* variant : found->large) large.push_back(on_topology(systems[s], *variant));
    if (!systems[s].is_mesh_searched) comparison.slower += found->slower.size() + found->rows.size();
    for (const auto* variants : {&found->variants, &found->slower})
      if (systems[s].is_mesh_searched)
        for (const Variant* variant : *variants) applied.insert(on_topology(systems[s], *variant));
  }
  comparison.large = static_cast<std::size_t>(std::ranges::count_if(large, [&](const OnTopology& variant) { return applied.contains(variant); }));
  keep_what_never_applies(systems, applied, comparison.skipped);
  keep_fastest_meshes(systems, rows);
  comparison.slower += applied.size();
  rank(systems, rows, top);
  comparison.slower -= rows.size();
  for (const RowOn& entry : rows) comparison.rows.push_back(entry.row);
  comparison.by_system = by_system(systems, std::move(rows));
  return comparison;
}

}  // namespace podsim
