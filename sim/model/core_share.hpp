// Core shares: what a Collective, transfer or dma task takes from the core while it goes on beside it.
#pragma once

#include "sim/model/model.hpp"

namespace podsim {

/// The pieces of core time of every program; empty if no operation has a share. README.md ("Core share") has the rule. The model's costs, deployment
/// and routes must be there.
///   cost    O((tasks + edges of Collectives with a share) * nodes)
std::vector<CoreShares> core_shares_of(const Model& model);

}  // namespace podsim
