// Where in a step a task belongs, as its label says: those who write schedules put it there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace podsim {

enum class StepPass { none, forward, backward, backward_inputs, backward_weights, optimiser };
/// "forward", "backward", "backward of inputs", "backward of weights", "optimiser"; empty for none.
std::string_view name_of(StepPass pass);

struct LabelPlace {
  StepPass pass = StepPass::none;
  struct Microbatch {
    int number = 0, stage = 0;
    friend bool operator==(const Microbatch&, const Microbatch&) = default;
  };
  std::optional<Microbatch> microbatch{};
  std::vector<std::string> layers{};  // outermost first: "layer 7", "ff1"
  std::string operation{};            // what is left: "gather W s0"
  friend bool operator==(const LabelPlace&, const LabelPlace&) = default;
};

///   "ff1 backward: dX: gather W s0"     backward; ff1 backward, dX; gather W s0
///   "fwd_0__3 layer 7 ff1: matmul"      forward of stage 0, microbatch 3; layer 7, ff1; matmul
///   "gather weights of bwd_1__0"        backward of stage 1, microbatch 0; gather weights
///   "update layer 7"                    optimiser; layer 7
///   "while.1 0 all-gather.2"            while.1 0; all-gather.2: a trip of a loop in a compiled module
/// Of other labels everything is the operation. That a layer without a backward in its label is in the forward pass is not known from one label.
LabelPlace place_of(std::string_view label);

}  // namespace podsim
