// Both ends of the model: the embedding, and the loss with the logits. Internal to workloads/training.
#pragma once

#include "sim/base/expected.hpp"
#include "workloads/training/function_writer.hpp"

namespace podsim {

/// StepWork::embed, embed_gradient and loss.
void write_embedding(FunctionWriter& w);
void write_embedding_gradient(FunctionWriter& w);
/// Errors: those of part_schedule(), for the final norm.
Status write_loss(FunctionWriter& w);

}  // namespace podsim
