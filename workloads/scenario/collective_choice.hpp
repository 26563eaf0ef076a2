// Which algorithm lowers each collective of a schedule: a pass of its own before lower(), whose choices can be printed.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/problem.hpp"
#include "workloads/scenario/run_options.hpp"
#include "workloads/tuning/part_costs.hpp"

namespace podsim {

struct CollectiveChoice {
  std::string collective;  // "all-gather along row of 1 MiB"
  std::string algorithm;   // "ring"; "rotations over 4x4": the name of `lowering` (collective_candidates.hpp)
  Lowering lowering{};
};

struct CollectiveChoices {
  std::vector<CollectiveChoice> chosen;  // by `auto`: one for all equivalent collectives, in the order of the schedule
  CollectiveChooser chooser;             // for lower()
};

/// `auto` simulates each collective by itself with des, once per candidate (algorithm, order of axes or levels), and takes the fastest; ties: the first
/// of candidates(). Then it tries other numbers of chunks. Candidates whose latencies alone take longer are skipped, so are those of more than 2
/// million transfers where another one applies, and those that are too large to simulate without `force`. In a schedule with functions 100 thousand are the limit. What it has chosen on a system is kept in `options.chosen`. With
/// by-dimension so are the collectives chosen that name auto_name. Any other policy is looked up by name.
/// Errors: an unknown algorithm (field `collectives`); no algorithm applies (says why the last one does not); cancelled work.
Expected<CollectiveChoices> choose_collectives(const System& system, const Schedule& schedule, const CollectivePolicy& policy, const RunOptions& options);

/// What `auto` chooses for a schedule of one collective, if that takes no longer than `limit` alone. nullopt: it takes longer. Errors: those of choose_collectives().
struct FastestLowering {
  std::string name;
  Lowering lowering;
  Picoseconds time;
};
Expected<std::optional<FastestLowering>> fastest_within(Picoseconds limit, const System& system, const Schedule& schedule, const CollectivePolicy& policy, const RunOptions& options);

/// For products of the tuner: choose_collectives() by `auto`.
AutoChooser auto_chooser(const RunOptions& options = {});

/// A line per choice.
std::string to_text(const CollectiveChoices& choices);

}  // namespace podsim
