// Several problems on several systems: simulated and ranked.
#pragma once

#include <string>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "workloads/scenario/problem.hpp"
#include "workloads/scenario/run_options.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// One problem among those compared on a system.
struct Variant {
  std::string name;  // "meshslice os S=8", "all-reduce along row of 1MiB by ring"
  ProblemSpec problem;
  std::size_t group = 0;      // variants of one group compute the same and are ranked against each other
  bool unless_named = false;  // `auto` beside all names: dropped if another variant names the algorithm that it chose
  bool passes_apart = false;  // of a workload with both passes: forward and backward are also simulated separately
  bool unless_same = false;   // skipped, with a note, if an earlier variant is the same schedule by the same algorithms
  bool unless_long = false;   // one of all algorithms: skipped, with a note, if it is slower than `auto` and long to simulate, or too large
};

/// A system with the variants that are simulated on it.
struct ComparedSystem {
  System system;
  std::string name;  // "tpu_v4 4x4 row=4,col=4 link.latency=1us"
  std::vector<Override> varied{};
  std::vector<Variant> variants;
  std::size_t topology = 0;     // systems of one number differ in their mesh only
  bool is_mesh_searched = false;  // of each variant only the fastest mesh of the topology is wanted
};

/// A variant or a system that does not apply, and why.
struct Skipped {
  std::string what;
  Diagnostic why;
};

/// The rows of one system in the order of its variants; variants that do not apply are skipped. A schedule that occurs twice (one slice is `collective`) is
/// simulated once. `options.threads` runs at a time. If cancelled, the finished rows. Errors: a run that failed for want of memory or the like.
struct ComparedRows {
  std::vector<Row> rows;
  std::vector<const Variant*> variants{};  // of each row
  std::vector<Skipped> skipped;
  std::vector<const Variant*> slower{};  // that were not simulated to their end, as others are better
  std::vector<const Variant*> large{};   // that were skipped as too large or too long to simulate
};
Expected<ComparedRows> simulate_variants(const ComparedSystem& on, const RunOptions& options);
/// The same for systems that differ in the values of their machines only, which may be simulated together. One entry per system.
std::vector<Expected<ComparedRows>> simulate_variants_on(const std::vector<const ComparedSystem*>& systems, const RunOptions& options);

/// The rows of one system and group, best first; where meshes are searched, of one topology and group.
struct RankedGroup {
  std::size_t system = 0;  // its number among those compared; that of the best row
  std::vector<Row> rows{};
  std::size_t meshes = 1;  // of its topology among those compared
};
struct ComparedResults {
  std::vector<Row> rows;               // of all systems: group by group, each best first
  std::vector<RankedGroup> by_system;  // system by system
  std::vector<Skipped> skipped;
  std::size_t slower = 0;  // variants that are not among the best
  std::size_t large = 0;   // variants that were skipped as too large or too long on one of the meshes that are searched, but simulated on another
};
/// `top` > 0: only so many rows of each group, the best, and the best of each topology. Where a topology's meshes are searched, one row of each variant: that of its fastest mesh, of equally fast ones the first; of a
/// block that of the mesh that choose_plan() finds. Variants are then simulated in the order of a lower bound on their times, least_core_time() or those by ports and cuts (port_bound.hpp, cut_bound.hpp), of equal ones what `auto` chose first; those
/// whose bound is above what is wanted are not, and no run goes on longer than that. What applies to some of the searched meshes is not skipped.
/// Without `force` not every collective is simulated: not one of more than two million task instances that is `unless_long` (or, where not every row is wanted, any, if
/// another one runs on the topology); nor to its end one that is `unless_long`, slower than what `auto` chose and long to simulate (RunOptions::most_work_beside_auto). They are
/// skipped.
/// Errors: as simulate_variants(). If cancelled, the finished rows.
Expected<ComparedResults> compare(const std::vector<ComparedSystem>& systems, const RunOptions& options, std::size_t top = 0);

}  // namespace podsim
