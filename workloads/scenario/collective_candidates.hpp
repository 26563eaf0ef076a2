// The ways in which `auto` may lower a collective, and their names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/collectives/axis_cells.hpp"
#include "algorithms/collectives/collectives.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// An algorithm of the table, the axes it works along and in which order, and its number of chunks:
///   "ring"                               as the collective names its axes
///   "rotations over 4x4"                 along the physical dimensions that the collective's only axis folds
///   "ring over col,row"                  in this order of axes; with levels, outermost first. The result is the same
///   "hierarchical over 2x8 order 2,1"    along the dimensions, the second one first
///   "tree in 16 chunks"                  instead of what the chunk rule says
struct Lowering {
  const CollectiveAlgorithmEntry* algorithm = nullptr;
  bool on_factors = false;
  std::string order{};  // names of the axes, numbers of the dimensions; empty: as the collective has them
  std::optional<int> chunks{};
  friend bool operator==(const Lowering&, const Lowering&) = default;
};

/// The name for this collective.
std::string name_of(const Lowering& lowering, const Mesh& mesh, const Collective& collective);
/// The inverse, for any collective. Errors: no such algorithm; a text that is no such name.
Expected<Lowering> lowering_named(std::string_view name);

/// Whether the collective has the axes, or its only axis the physical dimensions, that the lowering names.
bool fits(const Lowering& lowering, const Mesh& mesh, const Collective& collective);

/// The chooser that lowers every collective in this way; fits() holds for each. Along one axis that is not folded `rotations` and `hamiltonian-ring` go through the
/// dimensions that `cells` knows under it.
CollectiveChooser chooser_of(const Lowering& lowering, const ChunkRule& chunks, const CellRule& cells = {});

/// All that may apply, in the order in which equally fast ones are preferred: the order of the table; axes as named before dimensions; as given
/// before every other order (of more than four: before reversed alone). An order of axes that another candidate has too is left out. With `cells` what a TPU's module states of a
/// collective along one axis (collective_strategy.hpp) is among them.
std::vector<Lowering> candidates(const Mesh& mesh, const Collective& collective, const CellRule& cells = {});

/// Leaves of candidates that differ in the order of axes alone, and these are dimensions of a torus or mesh that are alike, the first: they take as long.
void leave_out_alike(std::vector<Lowering>& candidates, const System& system, const Mesh& mesh, const Collective& collective);

/// Whether a number of chunks matters.
bool takes_chunks(const CollectiveAlgorithmEntry& algorithm, CollectiveKind kind);

/// A lower bound on the time: the transfers that must follow each other, times the least latency between neighbours along their axes; of `direct` between all
/// chips of a torus or mesh what the cuts take. `input`: bytes on a device.
Seconds least_time(const Lowering& lowering, const System& system, const Mesh& mesh, const Collective& collective, Bytes input);

/// Whether the first device shares switches that add up with all others along the axes on which the algorithm needs it.
bool has_its_switches(const Lowering& lowering, const System& system, const Mesh& mesh, const Collective& collective);

/// Of an all-reduce with more than 100,000 transfers between pairs: `direct` in phases, as `hierarchical-direct` is at least as good, and `tree` with every
/// pair at once along the longest axis, as the other order has fewer messages.
bool another_does_as_well(const Lowering& lowering, const Mesh& mesh, const Collective& collective);

/// A lower bound on the transfers that must be looked at one by one, per device, without lowering: `channels` over thousands of devices would be millions of
/// tasks. 0: not known.
double least_transfers(const Lowering& lowering, const Mesh& mesh, const Collective& collective);

}  // namespace podsim
