// The variants of a comparison as they are to be simulated.
#pragma once

#include <optional>
#include <vector>

#include "workloads/scenario/compare.hpp"
#include "workloads/scenario/plan_choice.hpp"

namespace podsim {

/// A variant on one system.
struct PlannedVariant {
  const Variant* variant = nullptr;
  Expected<PosedProblem> posed;
  std::size_t same_as = 0;  // an earlier one of its system, or itself
  Expected<Row> row;
  std::optional<Picoseconds> auto_time{};  // of what `auto` chose for a collective, by des
  bool is_chosen = false;        // by `auto`: the fastest of its system, but for others that are as fast
  bool is_named = false;         // what `auto` chose is a variant with a name, on this mesh or on the fastest one: this one is no row
  bool is_fastest_mesh = false;  // for what `auto` chose, of those before
  bool slower = false;           // than the best: it was not simulated to its end
  std::optional<Picoseconds> long_least{};  // of one that is long to play: what it takes at least
  bool is_large = false;         // not played, or not to its end, where another will do: `row` says why
  struct Like {
    const ComparedSystem* on = nullptr;
    const PlannedVariant* variant = nullptr;
  };
  Like like{};  // what takes as long on an earlier system, whose axes have other names
  bool is_to_play = true;
};

/// A system's variants, in their order.
struct PlannedSystem {
  const ComparedSystem* on;
  std::vector<PlannedVariant> variants;
};

/// With broken cables there are several ways to run a problem (faults.hpp).
inline bool has_alternatives(const ComparedSystem& on) { return !on.system.faults.broken.empty(); }

/// Poses all variants but those of workloads. Where meshes are searched, what `auto` chooses is looked for on one mesh no longer than it takes on another; of equally fast
/// ones the first is left, the others are `slower`. What is equal but for the names of axes is to be played once. If cancelled, some have no variants.
std::vector<PlannedSystem> plan_variants(const std::vector<const ComparedSystem*>& systems, const RunOptions& options);

/// Gives those their rows that take as long as others. What is to be played then: where the other does not run, this one says why in its own words.
void take_rows(std::vector<PlannedSystem>& systems);

}  // namespace podsim
