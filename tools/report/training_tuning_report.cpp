#include "tools/report/training_tuning_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/base/units.hpp"
#include "tools/report/run_report.hpp"
#include "tools/report/step_report.hpp"
#include "tools/report/table.hpp"
#include "workloads/scenario/trust.hpp"
#include "workloads/training/maxtext.hpp"

namespace podsim {

namespace {

TextOrReason maxtext_of(const TrainingPlan& plan) {
  auto keys = to_maxtext(plan.step);
  if (keys) return {*std::move(keys), {}};
  return {{}, keys.error().message};
}

std::string place_of(const TrainingRequest& request, std::size_t system, const TrainingStep& step) {
  const System& on = request.systems[system];
  return fmt::format("{}{} {}", to_text(on.slice), is_hypothetical(on) ? " (hypothetical)" : "", to_text(step.mesh));
}

/// "16 microbatches, interleaved-1f1b with 4 virtual stages, remat full, optimizer divided over data"
std::string choice_of(const TrainingStep& step) {
  return fmt::format("{} microbatch{}{}{}, remat {}{}", step.microbatches, step.microbatches == 1 ? "" : "es",
                     step.pipeline.empty() ? "" : ", " + step.pipeline,
                     step.virtual_stages > 1 ? fmt::format(" with {} virtual stages", step.virtual_stages) : "", to_text(step.remat),
                     step.shard_optimizer_over_data ? ", optimizer divided over data" : "");
}

std::vector<std::pair<std::string, double>> parts_of(const TrainingSplit& split) {
  std::vector<std::pair<std::string, double>> parts{{"compute", split.compute},     {"recompute", split.recompute}, {"bubble", split.bubble},
                                                    {"optimizer", split.optimizer}, {"copies", split.copies}, {"launches", split.launch},
                                                    {"waiting", split.waiting}};
  double exposed = 0;
  for (const auto& [axis, time] : split.exposed) exposed += time;
  parts.emplace_back("exposed communication", exposed);
  return parts;
}

/// "bubble +0.4 s, recompute +0.3 s; but optimizer -0.1 s": the parts of the step that differ most.
std::string why_slower(const TrainingPlan& best, const TrainingPlan& plan) {
  const auto first = parts_of(best.row.training->split), second = parts_of(plan.row.training->split);
  std::vector<std::pair<double, std::string>> differences;
  for (std::size_t p = 0; p < first.size(); ++p) differences.emplace_back(second[p].second - first[p].second, first[p].first);
  std::stable_sort(differences.begin(), differences.end(), [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::vector<std::string> more, less;
  const double smallest = 0.001 * best.row.training->step_s;
  for (const auto& [difference, name] : differences) {
    auto& list = difference > 0 ? more : less;
    if (std::abs(difference) >= smallest && list.size() < 2)
      list.push_back(fmt::format("{} {}{}", name, difference > 0 ? "+" : "-", time_text(std::abs(difference))));
  }
  if (more.empty()) return plan.row.result.makespan_s > best.row.result.makespan_s ? "a little of everything" : "as fast, with no less memory";
  return fmt::format("{}{}{}", fmt::join(more, ", "), less.empty() ? "" : "; but ", fmt::join(less, ", "));
}

std::string constraint_text(const TrainingRequest& request, const BindingConstraint& constraint) {
  return fmt::format("{}: {}, {}: at least {}, but {}", constraint.kind, place_of(request, constraint.system, constraint.step),
                     choice_of(constraint.step), time_text(constraint.bound_s), constraint.needs);
}

Json mesh_json(const TrainingMesh& mesh) {
  Json json = Json::object();
  for (const std::string_view axis : training_axes) json.set(axis, size_of(mesh, axis));
  return json;
}

Json constraint_json(const TrainingRequest& request, const BindingConstraint& constraint) {
  return Json{{"kind", constraint.kind},
              {"bound_s", constraint.bound_s},
              {"slice", to_text(request.systems[constraint.system].slice)},
              {"mesh", mesh_json(constraint.step.mesh)},
              {"microbatches", constraint.step.microbatches},
              {"pipeline", constraint.step.pipeline.empty() ? Json() : Json(constraint.step.pipeline)},
              {"virtual_stages", constraint.step.virtual_stages},
              {"remat", to_text(constraint.step.remat)},
              {"shard_optimizer_over_data", constraint.step.shard_optimizer_over_data},
              {"needs", constraint.needs}};
}

Json plan_json(const TrainingTuningReport& report, std::size_t p) {
  const TrainingPlan& plan = report.tuning.plans[p];
  const System& system = report.request->systems[plan.system];
  Json json{{"rank", static_cast<std::int64_t>(p) + 1},
            {"slice", to_text(system.slice)},
            {"hypothetical", is_hypothetical(system)},
            {"mesh", mesh_json(plan.step.mesh)}};
  json.update(step_json(plan.row));
  json.set("shard_optimizer_over_data", plan.step.shard_optimizer_over_data);
  const TrainingTuning& tuning = report.tuning;
  json.set("margin", plan.row.result.makespan_s / tuning.plans.front().row.result.makespan_s - 1);
  const BindingConstraint* binding = binding_of(tuning, plan.row.training->step_s);
  if (p > 0) json.set("why", why_slower(tuning.plans.front(), plan));
  json.set("binding", binding == nullptr ? Json() : Json(binding->kind));
  const TextOrReason maxtext = maxtext_of(plan);
  json.set("maxtext", maxtext.text.empty() ? Json() : Json(maxtext.text));
  json.set("maxtext_reason", maxtext.text.empty() ? Json(maxtext.reason) : Json());
  const TextOrReason& run = report.runs[p];
  json.set("run", run.text.empty() ? Json() : Json(run.text));
  json.set("run_reason", run.text.empty() ? Json(run.reason) : Json());
  json.set("trust", trust_json(plan.row.result.trust));
  return json;
}

std::vector<std::vector<std::string>> plan_rows(const TrainingTuningReport& report) {
  std::vector<std::vector<std::string>> rows{{"plan", "slice", "mesh", "pipeline", "remat", "microbatches", "step", "vs best", "MFU", "memory"}};
  const std::vector<TrainingPlan>& plans = report.tuning.plans;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const TrainingPlan& plan = plans[p];
    const System& system = report.request->systems[plan.system];
    const TrainingResult& result = *plan.row.training;
    rows.push_back(
        {std::to_string(p + 1), to_text(system.slice) + (is_hypothetical(system) ? " (hypothetical)" : ""), to_text(plan.step.mesh),
         plan.step.pipeline.empty() ? "-" : plan.step.pipeline + (plan.step.virtual_stages > 1 ? fmt::format(" x {}", plan.step.virtual_stages) : ""),
         to_text(plan.step.remat) + (plan.step.shard_optimizer_over_data ? ", optimizer over data" : ""), std::to_string(plan.step.microbatches), time_text(result.step_s),
         "+" + percent(plan.row.result.makespan_s / plans.front().row.result.makespan_s - 1), mfu_text(result), to_text(result.memory.total())});
  }
  return rows;
}

}  // namespace

std::string training_tuning_table(const TrainingTuningReport& report) {
  const TrainingRequest& request = *report.request;
  const TrainingTuning& tuning = report.tuning;
  const TrainingPlan& best = tuning.plans.front();
  const System& first = request.systems.front();
  std::string out =
      fmt::format("{}, {} sequences of {} tokens, on {} devices of {}{}\n", best.step.model.name, best.step.batch, best.step.model.sequence,
                  first.mesh.devices(), first.machine.name, tuning.interrupted ? " (interrupted: the best plans known so far)" : "");
  out += fmt::format("trust: {}\n\n", fmt::join(lines_of(best.row.result.trust), "\n  "));
  out += table(plan_rows(report), 5);
  out += fmt::format("\nplan 1, {}, {}:\n{}", place_of(request, best.system, best.step), choice_of(best.step), step_tables(best.row));
  const BindingConstraint* binding = binding_of(tuning, best.row.training->step_s);
  if (binding != nullptr)
    out += fmt::format("\nwhat binds: {}\n", constraint_text(request, *binding));
  else if (!tuning.interrupted)
    out += "\nwhat binds: nothing that was excluded would be faster\n";
  out += report.runs.front().text.empty() ? fmt::format("run: {}\n", report.runs.front().reason) : report.runs.front().text + "\n";
  const TextOrReason maxtext = maxtext_of(best);
  out += fmt::format("maxtext: {}\n", maxtext.text.empty() ? maxtext.reason : maxtext.text);
  if (tuning.plans.size() > 1) out += "\nwhy the others lose:\n";
  for (std::size_t p = 1; p < tuning.plans.size(); ++p)
    out += fmt::format("  {}. {}: {}\n", p + 1, place_of(request, tuning.plans[p].system, tuning.plans[p].step), why_slower(best, tuning.plans[p]));
  std::string others;
  for (const BindingConstraint& constraint : tuning.excluded)
    if (&constraint != binding) others += fmt::format("  {}\n", constraint_text(request, constraint));
  if (!others.empty()) out += "\nwhat else is excluded:\n" + others;
  out += fmt::format("\n{} candidates on {} meshes; {} steps simulated, {} over memory; {} layers simulated for bounds\n", tuning.candidates,
                     request.systems.size(), tuning.simulated, tuning.over_memory, tuning.layers);
  for (const std::string& left : report.not_searched) out += fmt::format("not searched: {}\n", left);
  return out;
}

std::string training_tuning_json(const TrainingTuningReport& report) {
  const TrainingTuning& tuning = report.tuning;
  const TrainingStep& step = report.request->spec.step;
  Json json{{"training", step.model.name},
            {"batch", step.batch},
            {"sequence", step.model.sequence},
            {"machine", report.request->systems.front().machine.name},
            {"devices", report.request->systems.front().mesh.devices()}};
  Json plans = Json::array();
  for (std::size_t p = 0; p < tuning.plans.size(); ++p) plans.push_back(plan_json(report, p));
  json.set("plans", std::move(plans));
  Json excluded = Json::array();
  for (const BindingConstraint& constraint : tuning.excluded) excluded.push_back(constraint_json(*report.request, constraint));
  json.set("excluded", std::move(excluded));
  json.set("candidates", tuning.candidates);
  json.set("pruned", tuning.candidates - tuning.simulated);
  json.set("simulated", tuning.simulated);
  json.set("over_memory", tuning.over_memory);
  json.set("layers_simulated", tuning.layers);
  json.set("not_searched", report.not_searched);
  json.set("interrupted", tuning.interrupted);
  json.set("wall_s", report.wall_s);
  return json.dump(2) + "\n";
}

}  // namespace podsim
