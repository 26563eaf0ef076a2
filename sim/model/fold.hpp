// Folding: equivalent devices are simulated once.
#pragma once

#include <optional>

#include "sim/model/model.hpp"

namespace podsim {

/// A model with one node per class of devices. Classes are those of the coarsest stable colouring of devices, links and flows, a flow for each
/// transfer and sender, joined to its sender, its receiver and every link of its actual route; colours start as program, presence, costs and link
/// bandwidths. Devices of a class start and end their tasks at the same picoseconds, and a flow of a class takes as many shares of a link as
/// equivalent flows cross it. The colouring is found by hashing and then proven member by member; where the proof fails, or nothing folds, the model
/// comes back as it is.
///   source  colour refinement: Weisfeiler, Leman 1968; equitable partitions and max-min rates: see README.md
///   cost    O(rounds * (distinct participants * devices * hops)); rounds <= the largest distance at which devices can tell themselves apart
/// Told to stop, the model comes back as it is.
Model fold(Model model, Cancellation stop = {});

/// Without writing out anything per device: a program without guards whose shifts are whole and constant, along single dimensions of a torus that
/// the mesh's axes, or their factors, are laid over, looks the same from every device: one class. nullopt: not so, or not easily seen.
/// Errors: those of make_model().
///   cost    O(tasks), and a look at every link and device
Expected<std::optional<Model>> fold_torus(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement);

/// The folded model by whichever way applies; unfolded where nothing folds. Errors: those of make_model().
Expected<Model> make_folded_model(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                                  Cancellation stop = {});

/// What a model has at least, before its schedule is deployed: by its guards alone, since devices on which different tasks are present are never
/// equivalent. `folds`: equivalent ones count once. Nothing, where there are several programs. The schedule is well-shaped.
///   cost    O(tasks * sizes of mesh axes)
struct FoldedSize {
  std::uint32_t classes = 0;
  std::uint64_t instances = 0;
  friend bool operator==(const FoldedSize&, const FoldedSize&) = default;
};
FoldedSize least_guarded_size(const Schedule& lowered, bool folds);

/// What the folded model of a deployment has at least, before any route is found: the classes of the coarsest stable colouring of devices and
/// transfers alone, of which fold()'s are parts, since it colours links too; and their task instances. nullopt: cancelled work.
///   cost    O(rounds * distinct participants * devices); ends as soon as there are more than `enough` instances
std::optional<FoldedSize> least_folded_size(const Deployment& deployment, const std::vector<double>& speed, double enough, Cancellation stop = {});

}  // namespace podsim
