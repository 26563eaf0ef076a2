// Folding: equivalent devices are simulated once.
#pragma once

#include <limits>
#include <optional>

#include "sim/model/model.hpp"

namespace podsim {

/// A model with one node per class of equivalent devices. The classes are the coarsest stable colouring of a graph of devices, links and flows. Each
/// transfer has one flow per sender, joined to its sender, its receiver and every link of its actual route. Initial colours are program, presence,
/// costs and link bandwidths. All devices of a class start and end their tasks at the same picosecond. A flow of the folded model takes as many
/// shares of a link as equivalent flows cross it. Classes are found by hashing, then proven member by member. If the proof fails or nothing folds,
/// the model is returned unchanged. A model whose nodes stand for orbits already, all of one size, is folded further.
///   source  colour refinement: Weisfeiler, Leman 1968; equitable partitions and max-min rates: see README.md
///   cost    O(rounds * (distinct participants * devices * hops)); rounds <= the largest distance at which two devices can be distinguished
/// If cancelled, the model is returned unchanged.
Model fold(Model model, Cancellation stop = {});

/// Folds a schedule on a torus by the translations that change nothing about it (translations.hpp), before any device is looked at: one device of each
/// orbit is deployed and routed, and fold() joins what else is equivalent. A program without guards, whose shifts are constant and go along whole
/// dimensions, becomes one class. nullopt: no such translation is recognised, or the orbits have more than `most` task instances.
/// Errors: those of make_model().
///   cost    O(tasks + distinct participants * orbits * hops), plus one pass over links and devices
Expected<std::optional<Model>> fold_by_translations(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                                          Cancellation stop = {}, std::shared_ptr<const PlayedCalls> calls = {},
                                          double most = std::numeric_limits<double>::infinity());

/// The folded model, by fold_by_translations() or fold(); unfolded if nothing folds. Errors: those of make_model().
Expected<Model> make_folded_model(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                                  Cancellation stop = {}, std::shared_ptr<const PlayedCalls> calls = {});

/// A lower bound on a model's size before the schedule is deployed. It uses guards only: devices on which different tasks are present are never
/// equivalent. `folds` true: equivalent devices count once. nullopt: several programs. The schedule must be well-shaped.
///   cost    O(tasks * sizes of mesh axes)
struct FoldedSize {
  std::uint32_t classes = 0;
  std::uint64_t instances = 0;
  friend bool operator==(const FoldedSize&, const FoldedSize&) = default;
};
FoldedSize least_guarded_size(const Schedule& lowered, bool folds);

/// A lower bound on the folded model's size before any route is found: the classes of the coarsest stable colouring of devices and transfers, and
/// their task instances. fold() also colours links, so its classes only subdivide these. nullopt: cancelled work.
///   cost    O(rounds * distinct participants * devices); stops as soon as there are more than `enough` instances
std::optional<FoldedSize> least_folded_size(const Deployment& deployment, const std::vector<double>& speed, double enough, Cancellation stop = {});

}  // namespace podsim
