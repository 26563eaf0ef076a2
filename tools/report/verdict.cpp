#include "tools/report/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sim/base/units.hpp"
#include "tools/report/comparison_report.hpp"
#include "workloads/scenario/vary.hpp"

namespace podsim {

namespace {

std::string name_of(const Row& row) {
  std::string given;
  for (const Replicated& tensor : row.problem.replicated)
    if (tensor.role == Role::input && !tensor.gathered) given += (given.empty() ? ", given " : " and ") + tensor.tensor;
  return fmt::format("{}{}{}{}", row.problem.algorithm, row.problem.dataflow.empty() ? "" : " " + row.problem.dataflow,
                     row.problem.slice_count ? fmt::format(" S={}", *row.problem.slice_count) : "", given);
}

/// What makes `slower` slower than `faster`, in the terms of the three parts of the time.
std::string why(const Row& faster, const Row& slower) {
  const Result& f = faster.result;
  const Result& s = slower.result;
  std::vector<std::string> more, less;
  const auto weigh = [&](double difference, const std::string& what) {
    if (std::abs(difference) < 1e-2 * (s.makespan_s - f.makespan_s)) return;
    (difference > 0 ? more : less).push_back(fmt::format("{} {} {}", time_text(std::abs(difference)), difference > 0 ? "more" : "less", what));
  };
  weigh(s.exposed_communication_s - f.exposed_communication_s, "exposed communication");
  weigh(s.compute_s - f.compute_s, "core time");
  weigh(s.waiting_s - f.waiting_s, "waiting");
  if (more.empty()) return "the same time";
  return fmt::format("{}{}{}", fmt::join(more, " and "), less.empty() ? "" : ", ", fmt::join(less, " and "));
}

/// "tpu_v4 4x8x8", "tpu_v4 4x8x8 crossbar"
std::string topology_of(const Row& row) {
  const std::string changes = to_text(row.changes);
  return fmt::format("{} {}{}{}", row.result.machine, row.result.slice, changes.empty() ? "" : " ", changes);
}

/// "", " snake"
std::string order_of(const Row& row) { return row.mesh_order == "row-major" ? "" : " " + row.mesh_order; }

/// "tpu_v4 4x8x8 row=32,col=8 snake (hypothetical)"
std::string place_of(const Row& row) {
  return fmt::format("{} {}{}{}{}", topology_of(row), mesh_text(row.result), order_of(row), row.varied.empty() ? "" : " " + to_text(row.varied), row.result.hypothetical ? " (hypothetical)" : "");
}

/// With its mesh, where that is not the mesh of the best: each variant has its own best one.
std::string name_beside(const Row& best, const Row& row) { return name_of(row) + (row.result.mesh == best.result.mesh ? "" : " on " + mesh_text(row.result)); }

/// How much longer than the best.
std::string margin(const Row& best, const Row& row) {
  // What takes no time at all is the best, and so is whatever takes as long.
  return fmt::format("+{:.1f} %", best.result.makespan_s > 0 ? 100 * (row.result.makespan_s / best.result.makespan_s - 1) : 0);
}

/// What the neighbours of the best slice count say about what sets it.
std::string slice_counts_around(const Row& best, const std::vector<Row>& rows) {
  const Row *below = nullptr, *above = nullptr;
  for (const Row& candidate : rows) {
    const Row* row = &candidate;
    if (row->problem.algorithm != best.problem.algorithm || row->problem.dataflow != best.problem.dataflow || !row->problem.slice_count) continue;
    if (*row->problem.slice_count < *best.problem.slice_count && (!below || *row->problem.slice_count > *below->problem.slice_count)) below = row;
    if (*row->problem.slice_count > *best.problem.slice_count && (!above || *row->problem.slice_count < *above->problem.slice_count)) above = row;
  }
  std::string text;
  for (const Row* neighbour : {below, above})
    if (neighbour) text += fmt::format(" S={}{} is {}: {}.", *neighbour->problem.slice_count, neighbour->result.mesh == best.result.mesh ? "" : " on " + mesh_text(neighbour->result), margin(best, *neighbour), why(best, *neighbour));
  if (!below != !above) text += fmt::format(" S={} is at the {} of the range asked for.", *best.problem.slice_count, below ? "upper end" : "lower end");
  return text;
}

/// Of collectives: their time is communication, there is nothing to explain it by.
std::string verdict_on_collectives(const std::vector<Row>& rows) {
  const Row& best = rows.front();
  const CollectiveSummary& asked = *best.problem.collective;
  const auto bandwidths = bandwidths_of(asked, Seconds{best.result.makespan_s});
  std::string text =
      fmt::format("{}: {} of {} along {}: {} wins with {}{}", place_of(best), name_of(asked.kind), to_exact_text(asked.input), asked.axes,
                  best.problem.algorithm, time_text(best.result.makespan_s), bandwidths ? ", busbw " + to_text(bandwidths->bus) : "");
  const auto other = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.result.makespan_s > best.result.makespan_s; });
  if (const auto ties = other - rows.begin() - 1; ties > 0) text += fmt::format("; {} as long", ties == 1 ? name_beside(best, rows[1]) + " takes" : fmt::format("{} more take", ties));
  if (other != rows.end()) text += fmt::format("; {} takes {} ({})", name_beside(best, *other), time_text(other->result.makespan_s), margin(best, *other));
  return text + ".";
}

/// What slicing gains over a program whose collectives run whole.
std::string slicing(const std::vector<Row>& rows) {
  const Row *program = nullptr, *sliced = nullptr;  // the best of each
  for (const Row& row : rows) {
    if (row.problem.program && !program) program = &row;
    if (row.problem.slice_count && !sliced) sliced = &row;
  }
  if (!program || !sliced) return "";
  const double gain = 1 - sliced->result.makespan_s / program->result.makespan_s;
  return gain > 0 ? fmt::format(" Slicing gains {:.1f} %: {} overlaps what {} does in one piece.", 100 * gain, name_of(*sliced), name_of(*program))
                  : fmt::format(" Slicing gains nothing here: {} takes {:.1f} % longer than {}.", name_of(*sliced), -100 * gain, name_of(*program));
}

/// All rows are of one system and one problem, best first.
std::string verdict(const std::vector<Row>& rows) {
  const Row& best = rows.front();
  if (best.problem.collective) return verdict_on_collectives(rows);
  std::string text = fmt::format("{}: {} wins with {}", place_of(best), name_of(best), time_text(best.result.makespan_s));
  const auto other = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.problem.algorithm != best.problem.algorithm; });
  if (other != rows.end())
    text += fmt::format("; {} takes {} ({}): {}", name_beside(best, *other), time_text(other->result.makespan_s), margin(best, *other), why(best, *other));
  text += "." + slicing(rows);
  return best.problem.slice_count ? text + slice_counts_around(best, rows) : text;
}

/// Systems that are compared with each other: on each the same is computed, by machines of the same values.
struct Contest {
  std::size_t group = 0;
  std::string varied;
  std::vector<const RankedGroup*> systems;
};

std::vector<Contest> contests_of(const std::vector<RankedGroup>& by_system) {
  std::vector<Contest> contests;
  for (const RankedGroup& system : by_system) {
    const Row& best = system.rows.front();
    const std::string varied = to_text(best.varied);
    auto contest = std::find_if(contests.begin(), contests.end(), [&](const Contest& c) { return c.group == best.group && c.varied == varied; });
    if (contest == contests.end()) contest = contests.insert(contests.end(), {best.group, varied, {}});
    contest->systems.push_back(&system);
  }
  return contests;
}

/// What the systems of a contest differ in.
enum class Rivals : std::uint8_t { topologies, orders, meshes };

Rivals rivals_of(const Contest& contest) {
  const Row& first = contest.systems.front()->rows.front();
  const auto all = [&](const auto& same) { return std::ranges::all_of(contest.systems, [&](const RankedGroup* system) { return same(system->rows.front()); }); };
  if (!all([&](const Row& row) { return topology_of(row) == topology_of(first); })) return Rivals::topologies;
  return all([&](const Row& row) { return row.mesh_order == first.mesh_order; }) ? Rivals::meshes : Rivals::orders;
}

/// Of each rival the mesh on which it is fastest. The fastest first.
std::vector<const RankedGroup*> ranked(const Contest& contest, Rivals rivals) {
  const auto time = [](const RankedGroup* system) { return system->rows.front().result.makespan_s; };
  const auto name = [&](const RankedGroup* system) {
    const Row& row = system->rows.front();
    return topology_of(row) + order_of(row) + (rivals == Rivals::meshes ? mesh_text(row.result) : "");
  };
  std::vector<const RankedGroup*> best;
  for (const RankedGroup* system : contest.systems) {
    const auto same = std::ranges::find_if(best, [&](const RankedGroup* known) { return name(known) == name(system); });
    if (same == best.end())
      best.push_back(system);
    else if (time(system) < time(*same))
      *same = system;
  }
  std::ranges::stable_sort(best, {}, time);
  return best;
}

/// "12 topologies, each at its best mesh"
std::string heading_of(const std::vector<const RankedGroup*>& best, Rivals rivals, bool has_other_meshes) {
  const std::string count = fmt::format("{} {}", best.size(), rivals == Rivals::topologies ? "topologies" : rivals == Rivals::orders ? "mesh orders" : "meshes");
  if (rivals == Rivals::meshes) return count;
  if (has_other_meshes) return count + ", each at its best mesh";
  const auto mesh = [](const RankedGroup* system) { return mesh_text(system->rows.front().result); };
  const bool is_one_mesh = std::ranges::all_of(best, [&](const RankedGroup* system) { return mesh(system) == mesh(best.front()); });
  return count + (is_one_mesh ? ", all on mesh " + mesh(best.front()) : ", each on a mesh of its own");
}

constexpr std::size_t most_named = 6;

/// Which topology, or which mesh order or mesh of one, is fastest.
std::string verdict_across(const std::vector<const RankedGroup*>& best, const std::string& heading) {
  const Row& first = best.front()->rows.front();
  std::string text = fmt::format("{}: {}: {} wins with {}", heading, place_of(first), name_of(first), time_text(first.result.makespan_s));
  for (std::size_t i = 1; i < std::min(best.size(), most_named); ++i) {
    const Row& row = best[i]->rows.front();
    text += fmt::format("; {}: {} takes {} ({}){}", place_of(row), name_of(row), time_text(row.result.makespan_s), margin(first, row),
                        row.problem.collective ? "" : ": " + why(first, row));
  }
  return text + (best.size() > most_named ? fmt::format("; and {} more.", best.size() - most_named) : ".");
}

}  // namespace

std::vector<std::string> verdicts(const std::vector<RankedGroup>& by_system, const std::string& terms) {
  std::vector<std::string> texts;
  for (const Contest& contest : contests_of(by_system)) {
    const Rivals rivals = rivals_of(contest);
    const std::vector<const RankedGroup*> best = ranked(contest, rivals);
    const bool are_several = best.size() > 1;
    if (are_several) {
      const std::string heading = heading_of(best, rivals, std::ranges::any_of(contest.systems, [](const RankedGroup* system) { return system->meshes > 1; }));
      const bool says_terms = rivals == Rivals::topologies && texts.empty() && !terms.empty();
      texts.push_back(verdict_across(best, heading) + (says_terms ? " The comparison is " + terms + "." : ""));
    }
    for (std::size_t i = 0; i < (rivals == Rivals::meshes ? 1 : std::min(best.size(), most_named)); ++i)
      if (!are_several || best[i]->rows.size() > 1) texts.push_back(verdict(best[i]->rows));
  }
  return texts;
}

}  // namespace podsim
