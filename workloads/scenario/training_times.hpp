// What the calls of a training step take by themselves, by des: what bounds on steps are made of.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "workloads/scenario/training_problem.hpp"

namespace podsim {

/// In seconds, each call alone.
struct LayerTimes {
  double forward = 0, backward = 0, inputs = 0, weights = 0;  // of a layer
  double embed = 0, loss = 0, embed_gradient = 0;
  Bytes kept;              // of a layer and microbatch between its forward and backward, its input among it
  Bytes kept_for_weights;  // between the halves of a split backward
  // Weights of a layer, by position in the group: what each pass reads first, what the forward pass reads last, whose gradient is made last.
  std::size_t forward_first = 0, backward_first = 0, inputs_first = 0, forward_last = 0, made_last = 0;
};
/// Of one weight: its gather and the reduction of its gradient over fsdp; the sum over data of that when it is complete; its block.
struct TransferTimes {
  double gather = 0, reduce = 0, sum = 0;
  Bytes block;
};
/// By WeightGroup.
struct WeightTimes {
  std::array<std::vector<TransferTimes>, 4> transfers{};  // of each weight
  std::array<double, 4> gather{}, reduce{}, update{};     // of all of a group; the optimiser
  std::array<bool, 4> fetched{};                          // whether a block is not what the shard is
  std::array<Bytes, 4> weights{}, optimizer{}, gradients{};  // gradients as they are when they are complete: where the optimizer is divided over data, parts
};

/// Simulate some of the calls. Errors: those of the model; cancelled work.
Status add_layer(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options,
                 LayerTimes& times);  // forward, backward
Status add_halves(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options,
                  LayerTimes& times);  // inputs, weights
Status add_ends(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options,
                LayerTimes& times);  // embed, loss, embed_gradient
Expected<WeightTimes> weight_times(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options);
/// Needs no simulation.
void add_kept(const StepParts& parts, LayerTimes& times);

/// Whether the pipeline of a step splits backward passes.
bool splits_backward(const TrainingStep& step);
/// Of a microbatch, on the devices along row and col.
std::int64_t sequences_of(const TrainingStep& divided);

/// Times are equal for equal keys. On an undamaged torus whose links are alike in all directions a key says which rings lie under the axes, else it
/// names the system.
std::string rings_key(const System& system, std::size_t number, const TrainingStep& divided);  // of layers but for their sequences and what they keep
std::string layer_key(const System& system, std::size_t number, const TrainingStep& divided);  // of layers
std::string weight_key(const System& system, std::size_t number, const TrainingStep& divided);  // of weights

}  // namespace podsim
