#include "workloads/ledger/label_place.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "algorithms/pipeline/pipeline.hpp"

namespace podsim {

namespace {

constexpr std::string_view backward_end = " backward";

bool is_number(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return '0' <= c && c <= '9'; });
}

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }
std::string_view without_first_word(std::string_view text) {
  const std::size_t space = text.find(' ');
  return space == std::string_view::npos ? std::string_view{} : text.substr(space + 1);
}

StepPass pass_of(PipelineTaskKind kind) {
  switch (kind) {
    case PipelineTaskKind::forward: return StepPass::forward;
    case PipelineTaskKind::backward: return StepPass::backward;
    case PipelineTaskKind::backward_inputs: return StepPass::backward_inputs;
    case PipelineTaskKind::backward_weights: return StepPass::backward_weights;
  }
  return StepPass::none;
}

bool take(std::string_view& rest, std::string_view begin) {
  if (!rest.starts_with(begin)) return false;
  rest.remove_prefix(begin.size());
  return true;
}

/// "fwd_0__3 layer 7 ff1: matmul": takes the first word.
bool take_pipeline_task(std::string_view& rest, LabelPlace& place) {
  const auto task = pipeline_task_named(first_word(rest));
  if (!task) return false;
  place.pass = pass_of(task->kind);
  place.microbatch = LabelPlace::Microbatch{task->microbatch, task->stage};
  rest = without_first_word(rest);
  return true;
}

/// "layer 7", "embedding", "loss": parts of a model between which a training step is divided.
void take_layer(std::string_view& rest, LabelPlace& place) {
  const std::string_view word = first_word(rest);
  std::string_view behind = without_first_word(rest);
  if (word == "layer" && is_number(first_word(behind))) {
    place.layers.push_back("layer " + std::string{first_word(behind)});
    rest = without_first_word(behind);
  } else if (word == "embedding" || word == "positions" || word == "logits" || word == "loss") {
    place.layers.emplace_back(word);
    rest = behind;
  }
}

/// "while.1 0 while.2 3 all-gather.2": trips of loops.
void take_trips(std::string_view& rest, LabelPlace& place) {
  while (rest.starts_with("while")) {
    const std::string_view loop = first_word(rest), behind = without_first_word(rest), trip = first_word(behind);
    if (!is_number(trip) || trip.size() == behind.size()) return;
    place.layers.push_back(std::string{loop} + " " + std::string{trip});
    rest = without_first_word(behind);
  }
}

/// "ff1 backward: dX: gather W"
void take_sections(std::string_view& rest, LabelPlace& place) {
  for (std::size_t colon = rest.find(": "); colon != std::string_view::npos; colon = rest.find(": ")) {
    const std::string_view section = rest.substr(0, colon);
    const bool gradient = section.ends_with(backward_end) || section == "dX" || section == "dW";
    if (gradient && place.pass == StepPass::none) place.pass = StepPass::backward;
    place.layers.emplace_back(section);
    rest.remove_prefix(colon + 2);
  }
}

/// What a training step does between its passes.
constexpr std::array<std::string_view, 5> joins_gradients{"reduce gradients", "sum gradients over slices", "add d embedding", "send d embedding",
                                                          "recv d embedding"};

}  // namespace

std::string_view name_of(StepPass pass) {
  switch (pass) {
    case StepPass::none: return "";
    case StepPass::forward: return "forward";
    case StepPass::backward: return "backward";
    case StepPass::backward_inputs: return "backward of inputs";
    case StepPass::backward_weights: return "backward of weights";
    case StepPass::optimiser: return "optimiser";
  }
  return "";
}

LabelPlace place_of(std::string_view label) {
  LabelPlace place;
  std::string_view rest = label;
  for (const auto& [begin, operation] : {std::pair{"gather weights of ", "gather weights"}, {"retrieve for ", "retrieve"}}) {
    std::string_view behind = rest;
    if (!take(behind, begin) || !take_pipeline_task(behind, place)) continue;
    place.operation = behind.empty() ? operation : std::string{operation} + " " + std::string{behind};
    return place;
  }
  if (take_pipeline_task(rest, place)) {
    take_layer(rest, place);
  } else if (take(rest, "update ")) {
    place.pass = StepPass::optimiser;
    take_layer(rest, place);
  } else if (rest.starts_with("update_") && is_number(first_word(rest).substr(7))) {
    place.pass = StepPass::optimiser;
  } else if (rest.starts_with("add loss") || std::ranges::any_of(joins_gradients, [&](std::string_view begin) { return rest.starts_with(begin); })) {
    place.pass = StepPass::backward;
  } else {
    take_trips(rest, place);
  }
  take_sections(rest, place);
  place.operation = rest;
  return place;
}

}  // namespace podsim
