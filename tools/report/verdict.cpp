#include "tools/report/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

/// "tpu_v4 4x8x8 row=32,col=8 (hypothetical)"
std::string place_of(const Row& row) {
  return fmt::format("{} {}{}{}", topology_of(row), mesh_text(row.result), row.varied.empty() ? "" : " " + to_text(row.varied), row.result.hypothetical ? " (hypothetical)" : "");
}

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
    if (neighbour) text += fmt::format(" S={} is {}: {}.", *neighbour->problem.slice_count, margin(best, *neighbour), why(best, *neighbour));
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
  if (rows.size() > 1) {
    const Row& other = rows[1];
    text += fmt::format("; {} takes {} ({})", other.problem.algorithm, time_text(other.result.makespan_s), margin(best, other));
  }
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
    text += fmt::format("; {} takes {} ({}): {}", name_of(*other), time_text(other->result.makespan_s), margin(best, *other), why(best, *other));
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

/// Of each topology the mesh on which it is fastest; of one topology all meshes. The fastest first.
std::vector<const RankedGroup*> ranked(const std::vector<const RankedGroup*>& systems, bool one_topology) {
  const auto time = [](const RankedGroup* system) { return system->rows.front().result.makespan_s; };
  std::vector<const RankedGroup*> best;
  for (const RankedGroup* system : systems) {
    const auto same = std::find_if(best.begin(), best.end(), [&](const RankedGroup* known) { return topology_of(known->rows.front()) == topology_of(system->rows.front()); });
    if (one_topology || same == best.end())
      best.push_back(system);
    else if (time(system) < time(*same))
      *same = system;
  }
  std::ranges::stable_sort(best, {}, time);
  return best;
}

constexpr std::size_t most_named = 6;

/// Which topology, or which mesh of one, is fastest.
std::string verdict_across(const std::vector<const RankedGroup*>& best, bool one_topology) {
  const Row& first = best.front()->rows.front();
  std::string text = fmt::format("{} {}: {}: {} wins with {}", best.size(), one_topology ? "meshes" : "topologies, each at its best mesh", place_of(first), name_of(first),
                                 time_text(first.result.makespan_s));
  for (std::size_t i = 1; i < std::min(best.size(), most_named); ++i) {
    const Row& row = best[i]->rows.front();
    text += fmt::format("; {}: {} takes {} ({}){}", place_of(row), name_of(row), time_text(row.result.makespan_s), margin(first, row),
                        row.problem.collective ? "" : ": " + why(first, row));
  }
  return text + (best.size() > most_named ? fmt::format("; and {} more.", best.size() - most_named) : ".");
}

}  // namespace

std::vector<std::string> verdicts(const std::vector<RankedGroup>& by_system) {
  std::vector<std::string> texts;
  for (const Contest& contest : contests_of(by_system)) {
    const std::string topology = topology_of(contest.systems.front()->rows.front());
    const bool one_topology = std::all_of(contest.systems.begin(), contest.systems.end(), [&](const RankedGroup* system) { return topology_of(system->rows.front()) == topology; });
    const std::vector<const RankedGroup*> best = ranked(contest.systems, one_topology);
    if (best.size() > 1) texts.push_back(verdict_across(best, one_topology));
    for (std::size_t i = 0; i < (one_topology ? 1 : std::min(best.size(), most_named)); ++i) texts.push_back(verdict(best[i]->rows));
  }
  return texts;
}

}  // namespace podsim
