// Variants: models of one schedule on machines with other values. They share deployment and routes; only costs differ.
#pragma once

#include <optional>

#include "sim/model/model.hpp"

namespace podsim {

/// The model of the same schedule on another machine: field by field what make_model() makes of it, but it shares the deployment, the routings and the
/// links of paths with the given one. nullopt: it could not share them, as the model is folded, plays calls or uses adding switches, as other links are
/// unlimited or memories come into play or leave it, or as transfers pass memories another number of times; make_model() must make it then.
///   before   `topology` is that of the other machine: the same chips, links and faults, as with_machine() makes it. The placement may differ in speeds
///   cost     O(tasks + links + hops of distinct paths); with core shares or memories that devices share also the distinct participants * devices
///   errors   those of check_durations()
Expected<std::optional<Model>> recost(const Model& model, const Machine& machine, const Topology& topology, const Placement& placement,
                                      Cancellation stop = {});

/// Whether both models share everything but costs, so that one walk over tasks and devices can play both.
bool differ_in_costs_only(const Model& one, const Model& other);

}  // namespace podsim
