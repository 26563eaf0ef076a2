// Layers of a training step, with what passes beside them. Internal to workloads/training.
#pragma once

#include "workloads/training/function_writer.hpp"
#include "workloads/training/weight_transfers.hpp"

namespace podsim {

/// A work of a layer. Weights are gathered and gradients reduced between its tasks, as StepCall says.
void write_layer(FunctionWriter& w, WeightTransfers& transfers, const StepCall& call);

/// Takes back from the host what the next call reads, one copy after the other.
void write_retrieval(FunctionWriter& w, StepWork work);

}  // namespace podsim
