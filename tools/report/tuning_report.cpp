#include "tools/report/tuning_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/units.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/report/json.hpp"
#include "tools/report/run_report.hpp"
#include "workloads/scenario/coverage.hpp"
#include "workloads/scenario/trust.hpp"

namespace podsim {

namespace {

double in_seconds(Picoseconds time) { return to_seconds(time).count(); }
std::string text(Picoseconds time) { return time_text(in_seconds(time)); }

/// FLOPs of the products as they are computed.
double flops_of(const TunedPlan& plan) {
  double flops = 0;
  for (const TunedPart& part : plan.parts)
    if (part.part.kind == WorkloadPart::Kind::product)
      flops += (part.part.pass == Pass::forward ? 2.0 : 4.0) * static_cast<double>(part.part.tokens) * static_cast<double>(part.part.inputs) *
               static_cast<double>(part.part.outputs);
  return flops;
}

double mfu_of(const TuningRequest& request, const TunedPlan& plan) {
  const System& system = request.systems[plan.system];
  return flops_of(plan) / (static_cast<double>(system.mesh.devices()) * peak_of(system.machine, request.workload.dtype).count() * in_seconds(plan.time));
}

/// What a stage takes in each pass; a re-layout before it is a stage of its own.
struct StageTimes {
  std::string name;
  const WorkloadPart* part = nullptr;
  Picoseconds forward, backward;
};
std::vector<StageTimes> stages_of(const TunedPlan& plan) {
  std::vector<StageTimes> stages;
  for (const TunedPart& part : plan.parts) {
    const auto known = std::find_if(stages.begin(), stages.end(), [&](const StageTimes& stage) { return stage.name == part.part.name; });
    StageTimes& stage = known != stages.end() ? *known : stages.emplace_back(StageTimes{part.part.name, &part.part, {}, {}});
    (part.part.pass == Pass::forward ? stage.forward : stage.backward) += part.cost.time;
  }
  return stages;
}

/// Of the collectives of a product.
const std::string& lowering_of(const ProductChoice& choice, const TunedPlan& plan) { return choice.collectives.empty() ? plan.plan.collectives : choice.collectives; }

std::string stages_table(const TunedPlan& plan) {
  std::vector<std::vector<std::string>> rows{{"stage", "algorithm", "flow", "S", "collectives", "reads", "forward", "backward", "share"}};
  bool transposed = false;
  for (const StageTimes& stage : stages_of(plan)) {
    const WorkloadPart& part = *stage.part;
    const bool product = part.kind == WorkloadPart::Kind::product;
    const ProductChoice& choice = part.product;
    transposed = transposed || (product && choice.transposed);
    rows.push_back({stage.name, product ? choice.algorithm : "-",
                    product ? fmt::format("{}{}", choice.transposed ? "transposed " : "", name_of(choice.dataflow)) : "-",
                    choice.slice_count > 0 ? std::to_string(choice.slice_count) : "-", product ? lowering_of(choice, plan) : "-", std::string{name_of(part.layout)}, text(stage.forward),
                    text(stage.backward), percent(in_seconds(stage.forward + stage.backward) / in_seconds(plan.time))});
  }
  return table(rows, 3) + (transposed ? fmt::format("transposed: {}\n", transposed_meaning) : "");
}

std::string memory_text(const MemoryUse& memory) {
  return fmt::format("{} per device: weights {}, gradients {}, optimiser {}, activations {}, working {}", to_text(memory.total()),
                     to_text(memory.weights), to_text(memory.gradients), to_text(memory.optimizer), to_text(memory.activations),
                     to_text(memory.working));
}

std::string place_of(const TuningRequest& request, const TunedPlan& plan) {
  const System& system = request.systems[plan.system];
  return fmt::format("{}{} {}", to_text(system.slice), is_hypothetical(system) ? " (hypothetical)" : "", to_text(system.mesh));
}

/// "ff2 backward 0.4 ms, ff1 backward 0.3 ms; but in_proj forward -0.1 ms"
std::string why_slower(const TunedPlan& best, const TunedPlan& plan) {
  std::vector<std::string> more, less;
  constexpr std::size_t shown = 3;
  for (const PartDifference& difference : differences(best, plan)) {
    const bool slower = difference.second > difference.first;
    auto& list = slower ? more : less;
    if (list.size() < shown)
      list.push_back(fmt::format("{}{} {}{}", difference.name, difference.pass == Pass::forward ? "" : " backward", slower ? "+" : "-",
                                 text(slower ? difference.second - difference.first : difference.first - difference.second)));
  }
  if (more.empty()) return "equally fast, but it needs more memory";
  return fmt::format("{}{}{}", fmt::join(more, ", "), less.empty() ? "" : "; but ", fmt::join(less, ", "));
}

/// Of the operations of all parts.
RunTrust trust_of(const TuningRequest& request, const TunedPlan& plan) {
  const System& system = request.systems[plan.system];
  std::vector<Coverage> operations;
  for (const TunedPart& part : plan.parts) {
    if (system.machine.trust.covers.empty()) break;  // nothing to compare them with
    if (const auto schedule = part_schedule(system.mesh, part.part, plan.plan.options)) merge(operations, operations_in(*schedule, system));
  }
  return podsim::trust_of(system, operations);
}

std::string trust_text(const TuningRequest& request, const TunedPlan& plan) {
  std::string text;
  for (const std::string& line : lines_of(trust_of(request, plan))) text += fmt::format("{}{}\n", text.empty() ? "trust: " : "  ", line);
  return text;
}

bool refused_activations(const Tuning& tuning) {
  return std::any_of(tuning.excluded.begin(), tuning.excluded.end(), [](const ExcludedOption& option) { return option.by_activations; });
}

std::string pass_text(Pass pass) { return pass == Pass::both ? "forward and backward" : pass == Pass::forward ? "forward" : "backward"; }

/// "gpt3-block, 256 sequences of 2048 tokens (524288 tokens), forward and backward"
std::string problem_text(const TuningRequest& request) {
  const auto tokens = tokens_of(request.workload);
  return fmt::format("{}{}, {}", request.workload.name, tokens ? ", " + tokens_text(*tokens) : "", pass_text(request.pass));
}

std::string blocks_text(const TuningRequest& request, Picoseconds time) {
  const auto& block = request.workload.block;
  return block && block->layers > 1 ? fmt::format("; {} blocks: {}", block->layers, time_text(in_seconds(time) * static_cast<double>(block->layers)))
                                    : "";
}

std::string baselines_text(const TuningReport& report) {
  std::string lines;
  for (const TunedPlan& baseline : report.tuning.baselines) {
    const double ratio = in_seconds(baseline.time) / in_seconds(report.tuning.plans.front().time);
    lines += fmt::format("baseline {} on {}: {} ({:+.1f} % against the best plan): ", baseline.baseline, place_of(*report.request, baseline),
                         text(baseline.time), 100 * (ratio - 1));
    std::vector<std::string> choices;
    for (const StagePlan& stage : baseline.plan.stages)
      if (stage.product) choices.push_back(fmt::format("{} {}", stage.name, choice_text(*stage.product)));
    lines += fmt::format("{}\n", fmt::join(choices, ", "));
    lines += fmt::format("  it loses in {}\n", why_slower(report.tuning.plans.front(), baseline));
  }
  if (report.reference) lines += fmt::format("  its own model says {} for that plan\n", time_text(report.reference->choice().emulated().count()));
  return lines;
}

std::string alternatives_text(const TunedPlan& plan) {
  std::string lines;
  for (const StageAlternative& other : plan.alternatives) {
    const double more = in_seconds(other.time) / in_seconds(other.of_plan) - 1;  // below zero where the search was interrupted
    lines += fmt::format("  {}: {} {} would take {}{} ({:+.1f} %)\n", other.stage, other.choice.algorithm, choice_text(other.choice),
                         other.exact ? "" : "at least ", text(other.time), 100 * more);
  }
  return lines;
}

/// The products of a plan.
Json layers_json(const TunedPlan& plan, const ReferenceShapePlan* reference) {
  Json layers = Json::array();
  std::size_t product = 0;
  for (const StageTimes& stage : stages_of(plan)) {
    if (stage.part->kind != WorkloadPart::Kind::product) continue;
    const ProductChoice& choice = stage.part->product;
    Json layer{{"name", stage.name}, {"algorithm", choice.algorithm}, {"dataflow", name_of(choice.dataflow)}, {"transposed", choice.transposed}};
    layer.set("collectives", lowering_of(choice, plan));
    layer.set("slice_count", choice.slice_count > 0 ? Json(choice.slice_count) : Json());
    layer.set("layout", name_of(stage.part->layout));
    layer.set("forward_s", in_seconds(stage.forward));
    layer.set("backward_s", in_seconds(stage.backward));
    if (reference != nullptr && product < reference->layers.size()) {
      const ReferenceLayerPlan& own = reference->layers[product++];
      layer.set("reference_traffic_s", own.traffic.count());
      layer.set("reference_latency_s", own.choice().latency.count());
      layer.set("reference_pipeline_s", own.choice().pipeline.count());
      layer.set("reference_emulated_s", own.choice().emulated.count());
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

/// What is between the products: norms, attention, re-layouts and so on.
Json others_json(const TunedPlan& plan) {
  Json others = Json::array();
  for (const StageTimes& stage : stages_of(plan))
    if (stage.part->kind != WorkloadPart::Kind::product)
      others.push_back(Json{{"name", stage.name},
                            {"layout", name_of(stage.part->layout)},
                            {"forward_s", in_seconds(stage.forward)},
                            {"backward_s", in_seconds(stage.backward)}});
  return others;
}

Json plan_json(const TuningRequest& request, const TunedPlan& plan, Picoseconds best, const ReferenceShapePlan* reference) {
  const System& system = request.systems[plan.system];
  Json mesh = Json::object();
  for (const MeshAxis& axis : system.mesh.axes()) mesh.set(axis.name, axis.size);
  Json json{{"machine", system.machine.name}, {"slice", to_text(system.slice)}, {"hypothetical", is_hypothetical(system)}, {"mesh", mesh}};
  if (!plan.baseline.empty()) json.set("baseline", plan.baseline);
  json.set("predicted_s", in_seconds(plan.time));
  json.set("forward_s", in_seconds(plan.forward));
  json.set("backward_s", in_seconds(plan.backward));
  json.set("margin", in_seconds(plan.time) / in_seconds(best) - 1);
  json.set("mfu", mfu_of(request, plan));
  json.set("peak_memory_bytes", plan.memory.total().count());
  json.set("memory", Json{{"weights_bytes", plan.memory.weights.count()},
                          {"gradients_bytes", plan.memory.gradients.count()},
                          {"optimizer_bytes", plan.memory.optimizer.count()},
                          {"activations_bytes", plan.memory.activations.count()},
                          {"working_bytes", plan.memory.working.count()}});
  json.set("layers", layers_json(plan, reference));
  json.set("others", others_json(plan));
  json.set("trust", trust_json(trust_of(request, plan)));
  return json;
}

Json reference_json(const ReferenceTuning& reference) {
  Json shapes = Json::array();
  for (const ReferenceShapePlan& plan : reference.shapes) {
    Json layers = Json::array();
    for (const ReferenceLayerPlan& layer : plan.layers) {
      Json counts = Json::array();
      for (const ReferenceTimes& times : layer.candidates)
        counts.push_back(Json{{"slice_count", times.slice_count},
                              {"reference_latency_s", times.latency.count()},
                              {"reference_pipeline_s", times.pipeline.count()},
                              {"reference_emulated_s", times.emulated.count()}});
      layers.push_back(Json{{"name", layer.layer.name},
                            {"dataflow", name_of(layer.dataflow)},
                            {"reference_traffic_s", layer.traffic.count()},
                            {"slice_count", layer.choice().slice_count},
                            {"slice_counts", std::move(counts)}});
    }
    shapes.push_back(Json{{"shape", std::vector<int>{plan.shape.rows, plan.shape.cols}}, {"layers", std::move(layers)}});
  }
  return shapes;
}

}  // namespace

std::string plan_table(const TuningRequest& request, const TunedPlan& plan) {
  const System& system = request.systems[plan.system];
  return fmt::format("{}, on {} {} ({} devices): {} (forward {}, backward {}; MFU {}){}\n{}\n{}\nmemory: {}\n", problem_text(request),
                     system.machine.name, place_of(request, plan), system.mesh.devices(), text(plan.time), text(plan.forward),
                     text(plan.backward), percent(mfu_of(request, plan)), blocks_text(request, plan.time), trust_text(request, plan),
                     stages_table(plan), memory_text(plan.memory));
}

std::string plan_json(const TuningRequest& request, const TunedPlan& plan) {
  Json json{{"workload", request.workload.name}};
  if (const auto tokens = tokens_of(request.workload)) json.update(tokens_json(*tokens));
  json.update(plan_json(request, plan, plan.time, nullptr));
  return json.dump(2) + "\n";
}

std::string tuning_table(const TuningReport& report) {
  const TuningRequest& request = *report.request;
  const std::vector<TunedPlan>& plans = report.tuning.plans;
  const System& first = request.systems.front();
  std::string out = fmt::format("{}, on {} devices of {}{}\n", problem_text(request), first.mesh.devices(), first.machine.name,
                                report.tuning.interrupted ? " (interrupted: the best plans known so far)" : "");
  out += (plans.empty() ? "" : trust_text(request, plans.front())) + "\n";
  std::vector<std::vector<std::string>> rows{{"plan", "slice", "mesh", "time", "vs best", "forward", "backward", "MFU", "memory"}};
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const TunedPlan& plan = plans[p];
    const System& system = request.systems[plan.system];
    rows.push_back({std::to_string(p + 1) + (plan.baseline.empty() ? "" : " " + plan.baseline),
                    to_text(system.slice) + (is_hypothetical(system) ? " (hypothetical)" : ""), to_text(system.mesh), text(plan.time),
                    fmt::format("+{}", percent(in_seconds(plan.time) / in_seconds(plans.front().time) - 1)), text(plan.forward), text(plan.backward),
                    percent(mfu_of(request, plan)), to_text(plan.memory.total())});
  }
  out += table(rows, 3);
  if (!plans.empty()) {
    out +=
        fmt::format("\nplan 1, {}{}:\n{}", place_of(request, plans.front()), blocks_text(request, plans.front().time), stages_table(plans.front()));
    out += fmt::format("memory: {}\n", memory_text(plans.front().memory));
    if (!plans.front().alternatives.empty()) out += "\nthe next best of each product:\n" + alternatives_text(plans.front());
  }
  if (plans.size() > 1) out += "\nwhy the others lose:\n";
  for (std::size_t p = 1; p < plans.size(); ++p)
    out += fmt::format("  {}. {}: {}\n", p + 1, place_of(request, plans[p]), why_slower(plans.front(), plans[p]));
  if (!report.tuning.baselines.empty()) out += "\n" + baselines_text(report);
  if (!report.splits.empty()) {
    rows = {{"plan", "compute", "exposed comm", "waiting"}};
    for (std::size_t p = 0; p < report.splits.size(); ++p)
      rows.push_back(
          {std::to_string(p + 1), text(report.splits[p].compute), text(report.splits[p].exposed_communication), text(report.splits[p].waiting)});
    out += "\n" + table(rows, 1);
    if (plans.size() > 1) {
      std::vector<std::string> flips;
      for (const Flip& flip : report.flips) flips.push_back(fmt::format("{} x {:.2g}", flip.parameter, flip.factor));
      out += fmt::format("plan 2 would be faster than plan 1 with {}\n", flips.empty()
                                                                             ? "no single value of the machine between 1/8 and 8 times what it is"
                                                                             : fmt::format("{}", fmt::join(flips, ", or ")));
    }
  }
  if (!report.pareto.empty()) {
    rows = {{"time against memory", "mesh", "time", "memory", "working"}};
    for (const TunedPlan& plan : report.pareto)
      rows.push_back({to_text(request.systems[plan.system].slice), to_text(request.systems[plan.system].mesh), text(plan.time), to_text(plan.memory.total()),
                      to_text(plan.memory.working)});
    out += "\n" + table(rows, 2);
  }
  for (const ExcludedOption& option : report.tuning.excluded) out += fmt::format("left out: {}: {}\n", option.what, option.reason);
  if (refused_activations(report.tuning)) out += fmt::format("note: {}\n", no_remat);
  out += fmt::format("\n{} options of products on {} meshes; {} parts simulated in {}", report.tuning.candidates, request.systems.size(), report.tuning.simulated,
                     time_text(report.wall_s));
  if (!report.tuning.interrupted) out += fmt::format("; {} options ruled out by their bounds", report.tuning.pruned);
  out += "\n";
  for (const std::string& left : report.not_searched) out += fmt::format("not searched: {}\n", left);
  return out;
}

std::string tuning_json(const TuningReport& report) {
  const TuningRequest& request = *report.request;
  const Tuning& tuning = report.tuning;
  Json json{{"workload", request.workload.name}};
  if (const auto tokens = tokens_of(request.workload)) json.update(tokens_json(*tokens));
  Json plans = Json::array();
  const Picoseconds best = tuning.plans.empty() ? Picoseconds{} : tuning.plans.front().time;
  for (std::size_t p = 0; p < tuning.plans.size(); ++p) {
    Json plan{{"rank", p + 1}};
    plan.update(plan_json(request, tuning.plans[p], best, nullptr));
    if (p < report.splits.size()) {
      plan.set("compute_s", in_seconds(report.splits[p].compute));
      plan.set("exposed_communication_s", in_seconds(report.splits[p].exposed_communication));
      plan.set("waiting_s", in_seconds(report.splits[p].waiting));
    }
    if (p > 0) plan.set("why", why_slower(tuning.plans.front(), tuning.plans[p]));
    plans.push_back(std::move(plan));
  }
  json.set("plans", std::move(plans));
  if (!report.jax.empty()) json.set("jax", report.jax);
  if (!tuning.plans.empty()) {
    Json alternatives = Json::array();
    for (const StageAlternative& other : tuning.plans.front().alternatives)
      alternatives.push_back(Json{{"name", other.stage},
                                  {"algorithm", other.choice.algorithm},
                                  {"dataflow", name_of(other.choice.dataflow)},
                                  {"transposed", other.choice.transposed},
                                  {"collectives", lowering_of(other.choice, tuning.plans.front())},
                                  {"slice_count", other.choice.slice_count > 0 ? Json(other.choice.slice_count) : Json()},
                                  {"time_s", in_seconds(other.time)},
                                  {"of_plan_s", in_seconds(other.of_plan)},
                                  {"exact", other.exact}});
    json.set("alternatives", std::move(alternatives));
  }
  if (!tuning.baselines.empty()) {
    Json baseline = plan_json(request, tuning.baselines.front(), best, report.reference ? &report.reference->choice() : nullptr);
    if (report.reference) baseline.set("reference_candidates", reference_json(*report.reference));
    json.set("baseline", std::move(baseline));
  }
  if (!report.splits.empty()) {
    Json flips = Json::array();
    for (const Flip& flip : report.flips) flips.push_back(Json{{"parameter", flip.parameter}, {"factor", flip.factor}});
    json.set("flips", std::move(flips));
  }
  if (!report.pareto.empty()) {
    Json pareto = Json::array();
    for (const TunedPlan& plan : report.pareto) pareto.push_back(plan_json(request, plan, best, nullptr));
    json.set("pareto", std::move(pareto));
  }
  Json excluded = Json::array();
  for (const ExcludedOption& option : tuning.excluded) excluded.push_back(Json{{"what", option.what}, {"reason", option.reason}});
  json.set("excluded", std::move(excluded));
  Json notes = Json::array();
  if (refused_activations(tuning)) notes.push_back(no_remat);
  json.set("notes", std::move(notes));
  json.set("candidates", tuning.candidates);
  json.set("pruned", tuning.pruned);
  json.set("simulated", tuning.simulated);
  json.set("not_searched", report.not_searched);
  json.set("interrupted", tuning.interrupted);
  json.set("wall_s", report.wall_s);
  return json.dump(2) + "\n";
}

}  // namespace podsim
