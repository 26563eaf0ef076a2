// Training steps from fields: a model with options, or a configuration of MaxText.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "algorithms/pipeline/pipeline.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "workloads/scenario/known_objects.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/training/maxtext.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_sequences = std::int64_t{1} << 40;

/// Those of a model and of a step that MaxText has keys for.
constexpr std::array<std::string_view, 6> model_fields{"seq", "heads", "kv_heads", "head_dim", "ff", "layers"};
constexpr std::array<std::string_view, 10> step_fields{"batch", "batch_per_device", "microbatches", "pipeline", "virtual_stages", "remat", "scan", "optimizer", "shard_optimizer_over_data", "fuse_steady_state"};

Expected<std::int64_t> read_batch(const Fields& fields, const TrainingMesh& mesh) {
  if (fields.has("batch") && fields.has("batch_per_device"))
    return Diagnostic{fields.where("batch_per_device"), "says what `batch` says; expected one of them"};
  if (fields.has("batch")) return fields.count("batch");
  if (!fields.has("batch_per_device")) return mesh.devices();
  const auto each = parse_number(fields.text("batch_per_device"), fields.where("batch_per_device"));
  if (!each) return each.error();
  const double all = *each * static_cast<double>(mesh.devices()), whole = std::round(all);
  if (!(whole >= 1 && whole <= static_cast<double>(most_sequences) && std::abs(all - whole) <= 1e-6 * whole))
    return Diagnostic{fields.where("batch_per_device"), fmt::format("expected a whole number of sequences on {} devices, found {}", mesh.devices(), all)};
  return static_cast<std::int64_t>(whole);
}

/// The model that is named, with the extents that fields change. Learned positions become as many as a longer sequence needs.
Expected<TrainingModel> read_model(const Fields& fields) {
  const std::vector<FieldText> names = fields.texts("training");
  if (names.size() > 1) return Diagnostic{names[1].where, "expected one model, found " + quoted(names[0].text) + " and " + quoted(names[1].text)};
  auto model = model_named(fields, names.front().text);
  if (!model) return fields.of_named_file("training", model.error());
  for (const char* name : {"heads", "kv_heads", "head_dim"})
    if (fields.has(name) && model->heads == 0) return Diagnostic{fields.where(name), fmt::format("belongs to attention, which the layers of {} do not have", model->name)};
  if (auto ok = set_extents(fields, {model->sequence, model->heads, model->kv_heads, model->head_dim, model->width, model->mlp, model->layers}); !ok) return ok.error();
  if (model->positions > 0) model->positions = std::max(model->positions, model->sequence);
  return model;
}

Expected<TrainingStep> read_step(const Fields& fields, const TrainingMesh& mesh) {
  const auto model = read_model(fields);
  if (!model) return model.error();
  TrainingStep step;
  step.model = *model;
  step.mesh = mesh;
  const auto batch = read_batch(fields, mesh), microbatches = fields.count("microbatches"), virtual_stages = fields.count("virtual_stages");
  for (const auto* number : {&batch, &microbatches, &virtual_stages})
    if (!*number) return number->error();
  step.batch = *batch, step.microbatches = *microbatches, step.virtual_stages = *virtual_stages;
  const auto remat = parse_remat(fields.text("remat"), fields.where("remat"));
  if (!remat) return remat.error();
  step.remat = *remat;
  if (fields.has("pipeline") && mesh.stage == 1)
    return Diagnostic{fields.where("pipeline"), fmt::format("expected several stages, as stage=4 in the mesh, found {}", to_text(mesh))};
  if (fields.has("pipeline")) {
    const auto pipeline = pipeline_schedule_named(fields.text("pipeline"), fields.where("pipeline"));
    if (!pipeline) return pipeline.error();
    step.pipeline = fields.text("pipeline");
  } else if (mesh.stage > 1) {
    step.pipeline = *virtual_stages > 1 ? "interleaved-1f1b" : "1f1b";
  }
  const auto scan = on_off(fields, "scan");
  if (!scan) return scan.error();
  step.scan = *scan;
  const auto optimizer = optimizer_named(fields.text("optimizer"));
  if (!optimizer) return wrong_word("optimizer", fields.text("optimizer"), fields.where("optimizer"));
  step.optimizer = *optimizer;
  const auto shard_optimizer = on_off(fields, "shard_optimizer_over_data");
  if (!shard_optimizer) return shard_optimizer.error();
  step.shard_optimizer_over_data = *shard_optimizer;
  return step;
}

Expected<TrainingStep> read_configuration(const Fields& fields, const MaxTextSystem& system) {
  for (const std::span<const std::string_view> names : {std::span<const std::string_view>{model_fields}, std::span<const std::string_view>{step_fields}})
    for (const std::string_view name : names)
      if (fields.has(name)) return Diagnostic{fields.where(name), "MaxText's keys say this; expected KEY=VALUE"};
  const std::string file = fields.text("maxtext");
  const auto text = read_file(file, config_limit);
  if (!text) return fields.of_named_file("maxtext", text.error());
  std::vector<std::string> keys;
  for (const FieldText& key : fields.texts("training")) keys.push_back(key.text);
  return read_maxtext(*text, file, keys, system);
}

}  // namespace

Expected<TrainingStep> read_training_step(const Fields& fields, const TrainingMesh& mesh, const MaxTextSystem& system) {
  auto step = fields.has("maxtext") ? read_configuration(fields, system) : read_step(fields, mesh);
  if (!step) return step.error();
  step->pad = fields.flag("pad");
  return step;
}

Expected<TrainingMesh> mesh_of_training(const Fields& fields, const MaxTextSystem& system) {
  if (fields.has("maxtext")) {
    const auto step = read_configuration(fields, system);
    if (!step) return step.error();
    return step->mesh;
  }
  TrainingMesh mesh;
  mesh.slice = system.slices.value_or(1);
  mesh.fsdp = system.devices.value_or(1);
  return mesh;
}

Expected<TrainingSpec> read_training(const Fields& fields, const System& system, DType default_dtype) {
  const auto axes = step_axes(system.mesh);
  if (!axes) return Diagnostic{fields.where("mesh"), axes.error().message};
  const TrainingMesh mesh = sizes_of(*axes);
  const bool emulated = default_dtype == DType::f32 && !fields.has("pods");  // numeric runs have no network between slices
  if (mesh.slice != system.slices && !emulated)
    return Diagnostic{fields.where("mesh"), fmt::format("expected slice={}, one coordinate for each slice of `pods`, found {}", system.slices, to_text(mesh))};
  auto step = read_training_step(fields, mesh, {mesh.devices() / mesh.slice, mesh.slice});
  if (!step) return step.error();
  if (step->mesh != mesh)
    return Diagnostic{fields.where("mesh"), fmt::format("expected {}, as MaxText's keys say, found {}", to_text(step->mesh), to_text(mesh))};
  TrainingSpec spec{*std::move(step)};
  if (default_dtype == DType::f32) {  // of numeric runs
    TrainingModel& model = spec.step.model;
    model.weights = model.gradients = model.activations = model.moments = DType::f32;
    model.master_weights = false;
    spec.options.claims = true;
    spec.options.optimiser = {0.005, 0.9, 0.95, 1e-3, 0.1};  // steps so large that a wrong gradient shows in the parameters
  }
  const auto steps = fields.count("steps");
  if (!steps) return steps.error();
  spec.options.steps = static_cast<int>(*steps);
  spec.options.fuse_steady_state = fields.flag("fuse_steady_state");
  if (fields.has("algorithm")) {
    const auto algorithm = gemm_algorithm(fields.text("algorithm"));
    if (!algorithm) return Diagnostic{fields.where("algorithm"), algorithm.error().message};
    spec.layers.algorithm = (*algorithm)->name;
  }
  if (fields.has("slice_count")) {
    const auto count = fields.count("slice_count");
    if (!count) return count.error();
    spec.layers.slice_count = *count;
  }
  if (default_dtype != DType::f32) spec.collectives = usual_step_collectives(system);
  if (fields.has("collectives")) {
    const auto policy = parse_policy(fields.text("collectives"), fields.where("collectives"));
    if (!policy) return policy.error();
    spec.collectives = policy->algorithm;
  }
  return spec;
}

}  // namespace podsim
