#include "tools/sweep/point_run.hpp"

#include <algorithm>
#include <chrono>

#include "tools/sweep/content_key.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

/// What a broken cable leaves to choose from is tried in full by simulate(), so all of it belongs to the key.
Expected<std::string> key_of_alternatives(const System& system, const ProblemSpec& problem, const RunOptions& options) {
  std::string keys;
  for (const Alternative& alternative : alternatives(system)) {
    auto posed = pose(alternative.system, problem, options);
    const auto lowered = posed ? lower_problem(posed->system, std::move(posed->problem), options) : Expected<LoweredProblem>{posed.error()};
    if (!lowered && !is_of_input(lowered.error().cause)) return lowered.error();
    keys += lowered ? content_key({key_of_placement(posed->system.placement), key_of_schedule(lowered->lowered)}) : to_text(lowered.error());
  }
  return keys;
}

Expected<System> system_of(const Fields& fields) {
  const auto whole = with_plan(fields);
  if (!whole) return whole.error();
  return read_system(*whole);
}

}  // namespace

std::shared_ptr<const SharedSystem> RecentSystems::system(const PointInputs& inputs) {
  const Fields fields = fields_of(inputs);
  std::string id;
  for (const FieldKind* field : fields.given())
    // A schedule says the mesh where none is given, a plan the whole system.
    if (field->part() == FieldKind::Part::system || field->name == "schedule" || field->name == "plan")
      for (const FieldText& given : fields.texts(field->name)) id += std::string{field->name} + '=' + given.text + '\0';
  const auto find = [&] {
    const auto found = std::find_if(systems_.begin(), systems_.end(), [&](const auto& entry) { return entry.first == id; });
    return found == systems_.end() ? nullptr : found->second;
  };
  {
    const std::scoped_lock lock{mutex_};
    if (auto known = find()) return known;
  }
  // Made without the lock: two threads may make the same one, which costs less than all of them waiting.
  auto system = system_of(fields);
  std::string hardware = system ? key_of_hardware(*system) : "";
  auto made = std::make_shared<const SharedSystem>(SharedSystem{std::move(system), std::move(hardware)});
  if (!made->system && !is_of_input(made->system.error().cause)) return made;  // another attempt may succeed
  const std::scoped_lock lock{mutex_};
  if (auto known = find()) return known;
  systems_.emplace_back(std::move(id), made);
  if (systems_.size() > most_) systems_.pop_front();
  return made;
}

Expected<ReadyRun> make_ready(const PointInputs& inputs, RecentSystems& systems, const std::string& version, Cancellation stop) {
  const auto begin = std::chrono::steady_clock::now();
  PointInputs asked = inputs;
  const bool no_system = inputs.text("mesh") == "all";  // expand() found none to lay meshes over
  if (no_system) asked.texts[sweep_field("mesh")].clear();
  const Fields fields = fields_of(asked);
  auto options = read_run_options(fields);
  if (!options) return options.error();
  options->control.stop = stop;
  options->control.record = false;
  const auto shared = systems.system(asked);
  if (!shared->system) return shared->system.error();
  if (no_system) return Diagnostic{of_field("mesh"), "expected NAME=SIZE separated by commas, found \"all\""};
  auto problem = read_problem(fields, *shared->system, DType::bf16);
  if (!problem) return problem.error();
  auto posed = pose(*shared->system, *problem, *options);
  if (!posed) return posed.error();
  auto lowered = lower_problem(posed->system, std::move(posed->problem), *options);
  if (!lowered) return lowered.error();
  ReadyRun ready{*std::move(options), shared, *std::move(problem), std::move(posed->system), *std::move(lowered), "", 0};
  // Folding changes how many devices and events are simulated, which a result tells, where the engine folds at all.
  const std::string fold = ready.options.folds() ? "folded" : "";
  const auto keys = ready.system.faults.broken.empty() ? Expected<std::string>{""} : key_of_alternatives(*shared->system, ready.problem, ready.options);
  if (!keys) return keys.error();
  ready.key = content_key({version, ready.options.engine->name, fold, shared->hardware, key_of_placement(ready.system.placement),
                           key_of_schedule(ready.lowered.lowered), *keys});
  ready.build_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ready;
}

Expected<Run> simulate(ReadyRun ready) {
  if (!ready.system.faults.broken.empty()) return simulate(*ready.shared->system, ready.problem, ready.options);
  auto run = simulate(ready.system, std::move(ready.lowered), ready.options);
  if (run) run->row.result.build_s = ready.build_s;
  return run;
}

}  // namespace podsim
