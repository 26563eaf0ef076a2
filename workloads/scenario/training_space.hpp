// The candidates of a search for training plans. Internal to the search.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/scenario/training_search.hpp"

namespace podsim {

struct TrainingCandidate {
  std::uint32_t system = 0;
  std::int64_t microbatches = 1, virtual_stages = 1;
  std::string_view pipeline{};  // of all_pipeline_schedules(); empty: one stage
  std::uint32_t remat = 0;      // in TrainingSpace::remats
  std::uint32_t rings = 0;      // in TrainingSpace::largest
  bool shard_optimizer_over_data = false;
};

/// A candidate that the model or the batch does not let be.
struct RefusedCandidate {
  TrainingCandidate candidate;
  double bound_s = 0;  // arithmetic_bound() of the step as it is given
  std::string needs;   // what divided() or check_pipeline() expected
};

struct TrainingSpace {
  std::vector<Remat> remats;
  std::vector<TrainingCandidate> candidates;                     // in the order of the search's ties
  std::vector<double> bounds_s;                                  // their arithmetic_bound()
  std::map<std::string, std::vector<RefusedCandidate>> refused;  // by the extent to blame; of each the few with the least bounds, increasing
  std::vector<TrainingStep> largest;                             // of candidates with equal rings_key() the one with most sequences, without remat
  std::vector<std::size_t> largest_systems;                      // theirs
};

/// Every combination that is left open. Errors: those of the request's lists (fields microbatches, virtual_stages); cancelled work.
Expected<TrainingSpace> training_space(const TrainingRequest& request);

/// The step of a candidate, not yet divided().
TrainingStep step_of(const TrainingRequest& request, const TrainingSpace& space, const TrainingCandidate& candidate);

/// The nearest step that divided() takes: the batch padded, layers rounded up. nullopt: there is none.
std::optional<TrainingStep> relaxed(const TrainingStep& step);

}  // namespace podsim
