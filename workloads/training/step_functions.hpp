// The functions that the programs of a training step call: one for each sort of work, each written once however many layers and microbatches call it.
//
// A call may do three things beside its work, so that transfers overlap it: gather weights, take back from the host what the next call reads, and reduce
// gradients. No such transfer crosses the end of a call. Sums over `data` are no part of a call: the program has them.
//
// Who holds a block when. A layer gathers its weights itself, each one ahead of its use: when the one before the previous one has been used for the first
// time, so that two of a forward pass are there at once. The first one that it reads is gathered by the call before, beside that call's last weight, and is
// a parameter of both. A block is given back after its last use. A layer reduces each gradient as soon as it is made, and gives it back then; the one that
// it makes last is a parameter, and the call behind reduces it. The weights and gradients of an end of the model pass whole from call to call.
// Gathers and reductions along an axis run one after the other, in the order of the work that they are for.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "workloads/layer.hpp"
#include "workloads/training/step_weights.hpp"

namespace podsim {

enum class StepWork {
  nothing,         // only what it does beside
  embed,           // tokens, embedding.W, positions.W -> Y
  layer_forward,   // X, <stage>.W -> Y, and what the layer keeps
  layer_backward,  // dY, X, <stage>.W, what it kept -> dX, <stage>.dW
  layer_inputs,    // the first half of a split backward pass (LayerFunctions)
  layer_weights,   // the second half
  loss,            // X, logits.W, targets -> dX, logits.dW, loss: final norm, logits, loss and their gradients. Without a vocabulary a mean square
  embed_gradient,  // dY, tokens -> embedding.dW, positions.dW
  join_slices,     // gradient.0, gradient.1, ...: all of a rank, added up over `data` and `slice`; of a divided optimizer parts, over `slice`
  update,          // <w>.shard, <w>.gradient, <w>.m, <w>.v, <w>.master of a group: the optimiser. Divided over `data` all but <w>.shard are parts
};

/// Weights and gradients have a name for each use:
///   <w>.W, <w>.dW                                       blocks, in the dtype of activations: of the work. Of a layer whose weights are gathered the first
///                                                       that it reads, and the last gradient that it makes
///   <w>.shard, <w>.gradient                             shards of a layer's other weights, which it gathers itself, and of the sums of its other gradients
///   fetch.<w>.shard -> fetch.<w>.W                      those that the next call has as blocks
///   reduce.<w>.dW -> reduce.<w>.gradient                those that the call before had as blocks; a shard, in the dtype of gradients, which it adds to
///                                                       unless `first`
/// An output of a stage that is kept on the host:
///   <stage>.Y.host                                      of layer_forward, which hands it over beside its work
///   <stage>.Y                                           on the device: of the other works of layers
///   retrieve.<stage>.Y.host -> retrieve.<stage>.Y       what the next call reads
/// StepParameter says the same as values.
struct StepCall {
  StepWork work = StepWork::nothing;
  WeightGroup of = WeightGroup::none;  // update: whose
  StepWork fetch = StepWork::nothing;     // the next call's work, if that reads weights that are gathered
  StepWork reduce = StepWork::nothing;    // the work of the call before, if that made gradients
  StepWork retrieve = StepWork::nothing;  // the next call's work, if that reads what is kept on the host
  bool first = false;            // reduce: there is nothing to add to
  bool first_positions = false;  // the same of positions: the sum of a tied embedding begins with the logits
  bool first_own = false;        // the same of the gradients that a layer reduces itself
  bool alone = false;            // of a layer: nothing passes beside it, all weights and gradients are given as blocks
  int step = 1;        // update: counts from 1
  friend auto operator<=>(const StepCall&, const StepCall&) = default;
};

/// What a parameter of a function is.
struct StepParameter {
  enum class Part { work, fetch, reduce, retrieve };  // of a call
  enum class Use {
    input, output, output_gradient, input_gradient,   // X, Y, dY, dX
    tokens, targets, loss,
    weight, weight_gradient,                          // a block
    shard, gradient, master, first_moment, second_moment,
    joined,                                           // a gradient, of join_slices
    kept,                                             // by a layer, perhaps on the host
    retrieved,                                        // the same, back on the device
  };
  Use use = Use::kept;
  const StepWeight* weight = nullptr;  // of the StepParts; of uses from `weight` to `second_moment`
  Part part = Part::work;
  std::string tensor{};                // joined, kept, retrieved: its name
};

/// A TensorFunction of a step.
struct StepFunction {
  Function function;
  std::vector<Buffer> parameters;
  std::vector<StepParameter> uses;  // of each parameter
};

/// In which order a work uses weights, by position in their group.
struct WeightOrder {
  std::vector<std::size_t> read;  // by first use
  std::vector<std::size_t> made;  // gradients, by last use
};

/// The tasks of a function that name a parameter, by position.
std::vector<std::size_t> users_of(const TensorFunction& function, std::size_t parameter);

/// What all functions of a step are made from.
struct StepParts {
  TrainingStep step;  // divided()
  Mesh mesh;
  StepAxes axes;
  Submesh layer_mesh;  // rows and columns, on all devices
  Plan plan;
  Workload layer;  // on the sequences of one microbatch on the devices along row and col
  LayerFunctions functions;
  StepWeights layer_weights, embedding, logits;
  Optimiser optimiser;
  std::map<StepWork, WeightOrder> orders{};  // of the works of layers

  [[nodiscard]] std::int64_t tokens() const { return layer.stages.front().tokens; }  // of one microbatch, on the devices along row and col
  /// [tokens, width] of a device.
  [[nodiscard]] std::vector<std::int64_t> activation() const { return {tokens() / axes.row.size, step.model.width / axes.col.size}; }
  [[nodiscard]] const StepWeights& weights(WeightGroup group) const;
  /// Whether a block is not what the shard is: it is gathered, or converted.
  [[nodiscard]] bool is_fetched(WeightGroup group) const;
  [[nodiscard]] bool is_fetched(const StepWeight& weight) const { return step.model.weights != step.model.activations || !weight.gathered.empty(); }
  /// The weights that a work reads and that are fetched, in order of their first use; and those whose gradients it makes, in order of their last.
  [[nodiscard]] std::vector<const StepWeight*> reads(StepWork work) const;
  [[nodiscard]] std::vector<const StepWeight*> makes(StepWork work) const;
  /// Those of a layer's work in this order; of the logits, and where the work is `of_embedding` of the embedding, all.
  [[nodiscard]] std::vector<const StepWeight*> in_order(StepWork work, std::vector<std::size_t> WeightOrder::*of_layer, StepWork of_embedding) const;
  /// Those of them that calls hand over as blocks: of a layer the first that is read, and the last that is made.
  [[nodiscard]] std::vector<const StepWeight*> reads_first(StepWork work) const;
  [[nodiscard]] std::vector<const StepWeight*> makes_last(StepWork work) const;
  /// The gradients that a work reduces itself.
  [[nodiscard]] std::vector<const StepWeight*> makes_first(StepWork work) const;
  /// The function of a layer that a work runs; null: no layer's.
  [[nodiscard]] const TensorFunction* layer_function(StepWork work) const;
  /// The outputs of stages that are kept on the host and that a backward pass, or a half of one, reads.
  [[nodiscard]] std::vector<Buffer> retrieved(StepWork work) const;
  /// Whether a tensor of a layer ("in_proj.Y") is kept on the host.
  [[nodiscard]] bool is_on_host(const std::string& tensor) const;
};

/// The dtypes, mesh and plan must fit. Errors: those of layer_functions(); gradients that the slices' devices cannot share.
Expected<StepParts> step_parts(const TrainingStep& step, const Mesh& mesh, const Plan& plan, const Optimiser& optimiser);

/// The group whose weights a work uses.
WeightGroup group_of(StepWork work);

/// Functions of a schedule, made when they are first asked for.
class StepFunctions {
 public:
  explicit StepFunctions(const StepParts& parts) : parts_{parts} {}

  /// Its number in the schedule.
  int number(const StepCall& call, const std::vector<const StepWeight*>& joined = {});
  [[nodiscard]] const StepFunction& at(int number) const { return made_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] std::vector<Function> take() &&;

 private:
  const StepParts& parts_;
  std::map<std::pair<StepCall, std::vector<std::vector<std::int64_t>>>, int> numbers_;  // with the shards of joined weights
  std::vector<StepFunction> made_;
};

}  // namespace podsim
