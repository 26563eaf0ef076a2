#include "tools/command/baseline_option.hpp"

#include <fmt/format.h>

#include "tools/command/search_options.hpp"
#include "topologies/machines.hpp"
#include "workloads/tuning/reference_tuner.hpp"

namespace podsim {

namespace {

constexpr std::string_view reference_prefix = "meshslice-reference";

/// "meshslice-reference[:tpu_measured|:simulation_fit|:from-machine|:FILE]"
Expected<ReferenceParameters> baseline_parameters(const std::string& text, const Machine& machine) {
  const std::size_t colon = text.find(':');
  if (text.substr(0, colon) != reference_prefix)
    return Diagnostic{option("baseline"),
                      fmt::format("expected {}[:tpu_measured|:simulation_fit|:from-machine|:FILE], found {}", reference_prefix, quoted(text))};
  const std::string which = colon == std::string::npos ? "tpu_measured" : text.substr(colon + 1);
  if (which == "from-machine") return from_machine(machine);
  if (const auto parameters = reference_parameters(which)) return *parameters;
  const auto file = find_machine(which);
  if (file) return from_machine(*file);
  if (!file.error().where.file.empty()) return file.error();
  return Diagnostic{option("baseline"), reference_parameters(which).error().message + ", from-machine, or a machine file"};
}

/// Its choice on every system of that shape; a system of its own where there is none.
Expected<std::vector<BaselinePlan>> reference_plans(const std::string& name, const ReferenceTuning& reference, TuningRequest& request,
                                                    const Options& options) {
  const ReferenceShapePlan& choice = reference.choice();
  Plan plan{request.options, std::string{by_dimension_name}, {}};
  std::size_t product = 0;
  for (const Stage& stage : request.workload.stages) {
    StagePlan staged{stage.name, ActivationLayout::tokens_by_row, {}};
    if (stage.kind == Stage::Kind::product) {
      const ReferenceLayerPlan& layer = choice.layers[product++];
      staged.product = ProductChoice{"meshslice", layer.dataflow, false, layer.choice().slice_count};
      staged.layout = input_layout(layer.dataflow, false);
    }
    plan.stages.push_back(std::move(staged));
  }
  std::vector<BaselinePlan> plans;
  const auto add = [&](std::size_t p) { plans.push_back({name, p, plan}); };
  const auto is_its = [&](const System& system) {
    const auto& axes = system.mesh.axes();
    return axes.size() == 2 && axes[0].size == choice.shape.rows && axes[1].size == choice.shape.cols;
  };
  for (std::size_t p = 0; p < request.systems.size(); ++p)
    if (is_its(request.systems[p])) add(p);
  if (!plans.empty()) return plans;
  auto system = system_of_shape(options, request.systems.front().slice, choice.shape.rows, choice.shape.cols);
  if (!system) return system.error();
  request.systems.push_back(*std::move(system));
  add(request.systems.size() - 1);
  return plans;
}

/// Behind the colon of meshslice-reference:FILE.
std::vector<std::string> file_of_baseline(const std::string& value) { return {value.substr(value.find(':') + 1)}; }

}  // namespace

OptionGroup baseline_option() {
  return {{"baseline", input_file("NAME", file_of_baseline),
           "a published tuner's plan beside: meshslice-reference[:tpu_measured|:simulation_fit|:from-machine|:FILE]"}};
}

Status add_baseline(const Options& options, TuningRequest& request, TuningReport& found) {
  if (!options.has("baseline")) return success();
  const auto parameters = baseline_parameters(options.text("baseline"), request.systems.front().machine);
  if (!parameters) return parameters.error();
  std::vector<ReferenceLayer> layers;
  for (const Stage& stage : request.workload.stages)
    if (stage.kind == Stage::Kind::product) layers.push_back({stage.name, stage.tokens, stage.inputs, stage.outputs});
  auto reference = tune_by_reference(layers, request.systems.front().mesh.devices(), *parameters);
  if (!reference) return Diagnostic{option("baseline"), reference.error().message};
  auto baselines = reference_plans(options.text("baseline"), *reference, request, options);
  if (!baselines) return baselines.error();
  request.baselines = *std::move(baselines);
  found.reference = *std::move(reference);
  return success();
}

}  // namespace podsim
