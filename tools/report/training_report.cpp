#include "tools/report/training_report.hpp"

#include <fmt/format.h>

#include "algorithms/pipeline/pipeline.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/units.hpp"
#include "tools/report/table.hpp"
#include "workloads/training/maxtext.hpp"

namespace podsim {

namespace {

/// Ranks of a pipeline that hold the same.
struct RankGroup {
  std::string ranks;
  RankEnds ends;
};
std::vector<RankGroup> rank_groups(std::int64_t stages) {
  if (stages == 1) return {{"0", {true, true}}};
  std::vector<RankGroup> groups{{"0", {true, false}}};
  if (stages == 3) groups.push_back({"1", {false, false}});
  if (stages > 3) groups.push_back({fmt::format("1..{}", stages - 2), {false, false}});
  groups.push_back({std::to_string(stages - 1), {false, true}});
  return groups;
}

std::int64_t live_forwards_of(const TrainingReport& report) {
  const TrainingStep& step = report.divided.step;
  if (step.mesh.stage == 1) return 1;  // a microbatch is done before the next one begins
  return report.live_forwards.value_or(step.microbatches * step.virtual_stages);
}

std::string flops_cell(Flops flops) { return flops.count() == 0 ? "-" : to_text(flops); }

std::string model_text(const TrainingModel& model) {
  return fmt::format("{} layers, width {}, {} heads of {}{}, MLP {} x {} matrices{}, {}{}", model.layers, model.width, model.heads, model.head_dim,
                     model.kv_heads == model.heads ? "" : fmt::format(" ({} of keys and values)", model.kv_heads), model.mlp, model.gated ? 3 : 2,
                     model.experts == 0 ? "" : fmt::format(" in each of {} experts, of which a token takes {}", model.experts, model.experts_per_token),
                     model.vocabulary == 0 ? "no vocabulary" : fmt::format("vocabulary {}{}", model.vocabulary, model.tied ? " (tied)" : ""),
                     model.parallel ? ", attention and MLP in parallel" : "");
}

std::string parts_table(const TrainingCounts& counts) {
  std::vector<std::vector<std::string>> rows{{"part", "parameters", "forward", "backward", "again"}};
  for (const PartCount& part : counts.parts)
    if (part.parameters != 0 || part.forward.count() != 0)
      rows.push_back({part.name, parameters_text(part.parameters), flops_cell(part.forward), flops_cell(part.backward), flops_cell(part.recomputed)});
  rows.push_back({"model", parameters_text(counts.parameters()), flops_cell(counts.forward()), flops_cell(counts.backward()), flops_cell(counts.recomputed())});
  return table(rows, 1);
}

std::string memory_table(const TrainingReport& report) {
  const TrainingStep& step = report.divided.step;
  std::vector<std::vector<std::string>> rows{{"rank", "weights", "gradients", "optimizer", "activations", "working", "total"}};
  for (const RankGroup& group : rank_groups(step.mesh.stage)) {
    const TrainingMemory memory = memory_of(step, group.ends, live_forwards_of(report));
    rows.push_back({group.ranks, to_text(memory.weights), to_text(memory.gradients), to_text(memory.optimizer), to_text(memory.activations), to_text(memory.working), to_text(memory.total())});
  }
  return table(rows, 1);
}

std::string padding_text(const TrainingReport& report) {
  if (report.divided.paddings.empty()) return "";
  std::string text = "padded: ";
  for (const Padding& padding : report.divided.paddings)
    text += fmt::format("{}{} {} to {}", &padding == &report.divided.paddings.front() ? "" : ", ", padding.extent, padding.from, padding.to);
  const Flops given = counts_of(report.given, report.attention).hardware_flops(), padded = counts_of(report.divided.step, report.attention).hardware_flops();
  text += fmt::format("; {} of the FLOPs are waste\n\n", percent(1 - given.count() / padded.count()));
  std::vector<std::vector<std::string>> rows{{"wasted", "parameters", "FLOPs"}};
  for (const PaddedCount& waste : padding_waste(report.given, report.divided.step)) rows.push_back({waste.name, parameters_text(waste.parameters), flops_cell(waste.flops)});
  return text + table(rows, 1) + "\n";
}

Json memory_json(const TrainingMemory& memory) {
  return Json{{"weights", memory.weights.count()},         {"gradients", memory.gradients.count()}, {"optimizer", memory.optimizer.count()},
              {"activations", memory.activations.count()}, {"working", memory.working.count()},     {"total", memory.total().count()}};
}

Json model_json(const TrainingModel& model) {
  return Json{{"layers", model.layers},         {"width", model.width},           {"heads", model.heads},
              {"kv_heads", model.kv_heads},     {"head_dim", model.head_dim},     {"mlp", model.mlp},
              {"mlp_matrices", model.gated ? 3 : 2}, {"experts", model.experts},         {"experts_per_token", model.experts_per_token},
              {"vocabulary", model.vocabulary}, {"tied", model.tied},
              {"positions", model.positions},   {"parallel", model.parallel},     {"causal", model.causal},
              {"sequence", model.sequence},     {"weights", name_of(model.weights)}, {"gradients", name_of(model.gradients)},
              {"activations", name_of(model.activations)}};
}

}  // namespace

std::string parameters_text(std::int64_t count) {
  if (count == 0) return "-";
  if (count < 1'000'000) return std::to_string(count);
  const bool billions = count >= 1'000'000'000;
  return fmt::format("{:.4g}e{}", static_cast<double>(count) / (billions ? 1e9 : 1e6), billions ? 9 : 6);
}

std::string training_table(const TrainingReport& report) {
  const TrainingStep& step = report.divided.step;
  const TrainingModel& model = step.model;
  const TrainingCounts counts = counts_of(step, report.attention);
  std::string text = model.name + (model.description.empty() ? "" : ": " + model.description) + "\n" + model_text(model) + "\n";
  text += fmt::format("{} sequences of {} in {} microbatch{} on {} device{} ({}){}\n", step.batch, model.sequence, step.microbatches, step.microbatches == 1 ? "" : "es", step.mesh.devices(),
                      step.mesh.devices() == 1 ? "" : "s", to_text(step.mesh),
                      step.pipeline.empty() ? "" : fmt::format(", {}{}", step.pipeline, step.virtual_stages == 1 ? "" : fmt::format(" with {} virtual stages", step.virtual_stages)));
  text += fmt::format("remat {}, scan {}, {}{}\n\n", to_text(step.remat), step.scan ? "on" : "off", name_of(step.optimizer), step.shard_optimizer_over_data ? " divided over data" : "");
  text += parts_table(counts) + "\n" + padding_text(report);
  std::vector<std::vector<std::string>> facts;
  if (model.experts > 0) facts.push_back({"active parameters", parameters_text(active_parameters(step)) + " (without the experts that a token does not take)"});
  const double devices = static_cast<double>(step.mesh.devices());
  facts.push_back({"model FLOPs", fmt::format("{}, {} per device (what MFU counts)", to_text(counts.model_flops()), to_text(Flops{counts.model_flops().count() / devices}))});
  facts.push_back({"hardware FLOPs", fmt::format("{}, {:.4g} x the model's (also what is computed again)", to_text(counts.hardware_flops()), counts.hardware_flops().count() / counts.model_flops().count())});
  facts.push_back({"MaxText counts", fmt::format("{:.5g} TFLOP per device, {:.5g} with half of causal attention", maxtext_flops(step, AttentionFlops::whole).count() / devices / 1e12,
                                                 maxtext_flops(step, AttentionFlops::causal).count() / devices / 1e12)});
  text += table(facts, 2) + "\nmemory of a device at its peak (estimated)\n" + memory_table(report);
  if (step.mesh.stage > 1)
    text += fmt::format("activations of {} live forward{}{}\n", live_forwards_of(report), live_forwards_of(report) == 1 ? "" : "s", report.live_forwards ? "" : ", all that there are; --live-forwards says how many a schedule holds");
  if (const auto pipeline = pipeline_schedule_named(step.pipeline); step.mesh.stage > 1 && pipeline && splits_backward(*pipeline))
    text += fmt::format("left out: what {} keeps between the halves of its backward passes\n", step.pipeline);
  return text;
}

Json training_json(const TrainingReport& report) {
  const TrainingStep& step = report.divided.step;
  const TrainingCounts counts = counts_of(step, report.attention);
  Json json{{"name", step.model.name}, {"description", step.model.description}, {"parameters", counts.parameters()}, {"active_parameters", active_parameters(step)}, {"model", model_json(step.model)}};
  Json mesh = Json::object();
  for (const std::string_view axis : training_axes)
    if (size_of(step.mesh, axis) > 1) mesh.set(axis, size_of(step.mesh, axis));
  json.set("batch", step.batch);
  json.set("microbatches", step.microbatches);
  json.set("devices", step.mesh.devices());
  json.set("mesh", std::move(mesh));
  json.set("pipeline", or_null(step.pipeline));
  json.set("virtual_stages", step.virtual_stages);
  json.set("remat", to_text(step.remat));
  json.set("scan", step.scan);
  json.set("optimizer", name_of(step.optimizer));
  json.set("shard_optimizer_over_data", step.shard_optimizer_over_data);
  json.set("attention_flops", report.attention == AttentionFlops::whole ? "whole" : "causal");
  Json parts = Json::array(), memory = Json::array(), padding = Json::array(), waste = Json::array();
  for (const PartCount& part : counts.parts)
    parts.push_back(Json{{"name", part.name},
                         {"parameters", part.parameters},
                         {"forward_flops", part.forward.count()},
                         {"backward_flops", part.backward.count()},
                         {"recomputed_flops", part.recomputed.count()},
                         {"in_model", part.in_model}});
  for (const RankGroup& group : rank_groups(step.mesh.stage))
    memory.push_back(Json{{"ranks", group.ranks},
                          {"layers", step.model.layers / step.mesh.stage},
                          {"live_forwards", live_forwards_of(report)},
                          {"memory_bytes", memory_json(memory_of(step, group.ends, live_forwards_of(report)))}});
  for (const Padding& one : report.divided.paddings) padding.push_back(Json{{"extent", one.extent}, {"from", one.from}, {"to", one.to}});
  if (!report.divided.paddings.empty())
    for (const PaddedCount& one : padding_waste(report.given, step)) waste.push_back(Json{{"name", one.name}, {"parameters", one.parameters}, {"flops", one.flops.count()}});
  json.set("parts", std::move(parts));
  json.set("model_flops", counts.model_flops().count());
  json.set("hardware_flops", counts.hardware_flops().count());
  json.set("maxtext_flops", maxtext_flops(step, report.attention).count());
  json.set("memory", std::move(memory));
  json.set("padding", std::move(padding));
  json.set("padding_waste", std::move(waste));
  TrainingStep exact = step;
  exact.pad = false;
  const auto maxtext = to_maxtext(exact);
  json.set("maxtext", maxtext ? Json(*maxtext) : Json());
  return json;
}

std::string training_csv(const TrainingReport& report) {
  std::string text = csv_row({"part", "parameters", "forward_flops", "backward_flops", "recomputed_flops", "in_model"});
  for (const PartCount& part : counts_of(report.divided.step, report.attention).parts)
    text += csv_row({part.name, std::to_string(part.parameters), fmt::format("{}", part.forward.count()), fmt::format("{}", part.backward.count()),
                     fmt::format("{}", part.recomputed.count()), part.in_model ? "true" : "false"});
  return text;
}

}  // namespace podsim
