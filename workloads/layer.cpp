#include "workloads/layer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/compose_parts.hpp"

namespace podsim {

namespace {

using Strings = std::vector<std::string>;

bool has(const Strings& names, const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); }
void add_once(Strings& names, const std::string& name) {
  if (!has(names, name)) names.push_back(name);
}

/// The function of what a composer has written, without what its outputs do not need; `again`: but with all that repeats work.
TensorFunction function_of(PartComposer composer, const Strings& outputs, bool again = false) {
  Schedule schedule = std::move(composer).finish(outputs);
  schedule.programs.front() = without_unneeded(schedule.programs.front(), again);
  return tensor_function(std::move(schedule));
}

Strings inputs_of(const TensorFunction& function) {
  Strings names;
  for (const Buffer& parameter : function.parameters)
    if (parameter.role == Role::input) names.push_back(parameter.tensor);
  return names;
}

struct NamedPart {
  WorkloadPart part;
  PartComposer::Names names;
};

class LayerWriter {
 public:
  LayerWriter(const Submesh& submesh, const std::string& name, const Plan& plan, const LayerOptions& options)
      : submesh_{submesh},
        plan_{plan},
        options_{options},
        forward_{submesh, name + " forward"},
        backward_{submesh, name + " backward", &forward_},
        weights_{submesh, name + " backward, weights", &backward_} {}

  Expected<LayerFunctions> write(const std::vector<NamedPart>& parts) {
    for (const NamedPart& each : parts)
      if (each.part.pass == Pass::forward)
        if (auto ok = append_part(forward_, submesh_, each.part, plan_.options, each.names); !ok) return ok.error();
    if (options_.recompute)
      for (const NamedPart& each : parts)
        if (each.part.pass == Pass::forward && !has(options_.saved, each.part.name))
          if (auto ok = append_part(backward_, submesh_, each.part, plan_.options, each.names, true); !ok) return ok.error();
    Strings gradients, of_weights;
    for (const NamedPart& each : parts) {
      if (each.part.pass == Pass::forward) continue;
      if (auto ok = append_part(backward_, submesh_, each.part, plan_.options, each.names); !ok) return ok.error();
      const auto weight = each.names.find("dW");
      if (weight == each.names.end()) continue;
      of_weights.push_back(weight->second);
      if (auto ok = append_part(weights_, submesh_, each.part, plan_.options, each.names); !ok) return ok.error();
    }
    const std::string dx = "dX";
    gradients = of_weights;
    gradients.push_back(dx);
    LayerFunctions layer;
    layer.backward = function_of(backward_, gradients, options_.whole);
    layer.backward_weights = function_of(std::move(weights_), of_weights);
    Strings handed{dx};  // from the first half of the backward pass
    for (const std::string& name : inputs_of(layer.backward_weights))
      if (backward_.made(name)) handed.push_back(name);
    layer.backward_inputs = function_of(std::move(backward_), handed, options_.whole);
    layer.backward_inputs.function.name += ", inputs";
    Strings kept{"Y"};
    for (const TensorFunction* reader : {&layer.backward, &layer.backward_inputs, &layer.backward_weights})
      for (const std::string& name : inputs_of(*reader))
        if (reader != &layer.backward_weights || !has(handed, name)) add_once(kept, name);
    layer.forward = function_of(std::move(forward_), kept);
    layer.tensors = tensors_of(parts, layer);
    return layer;
  }

 private:
  static std::map<std::string, LayerTensor> tensors_of(const std::vector<NamedPart>& parts, const LayerFunctions& layer) {
    using Use = LayerTensor::Use;
    std::map<std::string, LayerTensor> tensors{{"X", {Use::input}}, {"Y", {Use::output}}, {"dY", {Use::output_gradient}}, {"dX", {Use::input_gradient}}};
    for (const NamedPart& each : parts) {
      const auto add = [&](const char* name, Use use) {
        if (const auto named = each.names.find(name); named != each.names.end()) tensors.try_emplace(named->second, LayerTensor{use, each.part.name});
      };
      add("W", Use::weight), add("dW", Use::weight_gradient);
      if (each.part.pass == Pass::forward) add("Y", Use::kept);
    }
    for (const TensorFunction* function : {&layer.forward, &layer.backward, &layer.backward_inputs, &layer.backward_weights})
      for (const Buffer& parameter : function->parameters) tensors.try_emplace(parameter.tensor);
    return tensors;
  }

  const Submesh& submesh_;
  const Plan& plan_;
  const LayerOptions& options_;
  PartComposer forward_, backward_, weights_;
};

}  // namespace

Expected<LayerFunctions> layer_functions(const Submesh& submesh, const Workload& workload, const Plan& plan, const LayerOptions& options) {
  if (!workload.data_flows()) return Diagnostic{{}, fmt::format("{} is no layer: its stages do not follow one another", quoted(workload.name))};
  const auto parts = parts_of(workload, plan, submesh, Pass::both);
  if (!parts) return parts.error();
  const auto forward_parts = static_cast<std::size_t>(std::count_if(parts->begin(), parts->end(), [](const WorkloadPart& part) { return part.pass == Pass::forward; }));
  StageWiring wiring{true};
  std::vector<NamedPart> named;
  for (std::size_t p = 0; p < parts->size(); ++p) {
    const WorkloadPart& part = (*parts)[p];
    named.push_back({part, part.pass == Pass::forward ? wiring.forward(part, p + 1 == forward_parts) : wiring.backward(part, p + 1 == parts->size())});
  }
  return LayerWriter{submesh, workload.name, plan, options}.write(named);
}

}  // namespace podsim
