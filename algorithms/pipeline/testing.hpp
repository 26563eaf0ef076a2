// What tests of pipelines share. Not for production code.
#pragma once

#include "algorithms/pipeline/pipeline.hpp"
#include "sim/base/rng.hpp"

namespace podsim::testing {

/// A pipeline that check_pipeline() takes, of any schedule: up to 6 ranks, 4 stages on each, 30 microbatches.
inline PipelineSpec random_pipeline(std::uint64_t seed) {
  Rng rng{seed, stream_of("pipeline")};
  for (;;) {
    PipelineSpec spec;
    spec.schedule = all_pipeline_schedules()[rng.below(all_pipeline_schedules().size())];
    spec.ranks = rng.between(1, 6);
    spec.stages = spec.ranks * rng.between(1, 4);
    spec.microbatches = rng.between(1, 30);
    spec.fuse_steady_state = rng.below(2) == 1;
    if (check_pipeline(spec)) return spec;
  }
}

}  // namespace podsim::testing
