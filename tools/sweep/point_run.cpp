#include "tools/sweep/point_run.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>

#include "tools/command/failures.hpp"
#include "tools/command/manner.hpp"
#include "tools/command/workload.hpp"
#include "tools/sweep/content_key.hpp"

namespace podsim {

namespace {

/// What a broken cable leaves to choose from is tried in full by simulate_best(), so all of it belongs to the key.
Expected<std::string> key_of_alternatives(const ReadyRun& ready) {
  std::string keys;
  for (const Alternative& alternative : alternatives(*ready.shared->pod)) {
    Pod pod = alternative.pod;
    const auto problem = problem_of(ready.options, pod, DType::bf16, ready.manner);
    const auto lowered = problem ? lower(problem->schedule, problem->chooser) : Expected<Schedule>{problem.error()};
    if (!lowered && lowered.error().cause != Cause::input) return lowered.error();
    keys += lowered ? content_key({key_of_placement(pod.placement), key_of_schedule(*lowered)}) : to_text(lowered.error());
  }
  return keys;
}

}  // namespace

po::options_description point_options() {
  po::options_description described;
  described.add(pod_options(false)).add(what_if_options(false)).add(problem_options(false)).add(workload_options()).add(engine_options());
  return described;
}

Options options_of(const PointInputs& inputs, const po::options_description& described) {
  auto options = parse_options(arguments_of(inputs), described);
  assert(options);
  return *std::move(options);
}

std::shared_ptr<const SharedPod> RecentPods::pod(const PointInputs& inputs, const Options& options) {
  std::string id = inputs.text("schedule") + '\0' + inputs.text("plan");  // say the mesh where none is given
  for (const std::string& argument : arguments_of(inputs, "gemm")) id += '\0' + argument;
  const auto find = [&] {
    const auto found = std::find_if(pods_.begin(), pods_.end(), [&](const auto& entry) { return entry.first == id; });
    return found == pods_.end() ? nullptr : found->second;
  };
  {
    const std::scoped_lock lock{mutex_};
    if (auto known = find()) return known;
  }
  // Made without the lock: two threads may make the same one, which costs less than all of them waiting.
  auto pod = pod_of(options, "");
  std::string hardware = pod ? key_of_hardware(*pod) : "";
  auto made = std::make_shared<const SharedPod>(SharedPod{std::move(pod), std::move(hardware)});
  if (!made->pod && made->pod.error().cause != Cause::input) return made;  // another attempt may succeed
  const std::scoped_lock lock{mutex_};
  if (auto known = find()) return known;
  pods_.emplace_back(std::move(id), made);
  if (pods_.size() > most_) pods_.pop_front();
  return made;
}

Expected<ReadyRun> make_ready(const PointInputs& inputs, const po::options_description& described, RecentPods& pods, const std::string& version,
                              Cancellation stop) {
  const auto begin = std::chrono::steady_clock::now();
  PointInputs asked = inputs;
  const bool no_pod = inputs.text("mesh") == "all";  // expand() found none to lay meshes over
  if (no_pod) asked.texts[sweep_field("mesh")].clear();
  Options options = options_of(asked, described);
  std::ostringstream unused;
  const Console console{unused, unused, false, stop};
  auto manner = manner_of(options, console);
  if (!manner) return manner.error();
  const auto shared = pods.pod(asked, options);
  if (!shared->pod) return shared->pod.error();
  if (no_pod) return Diagnostic{option("mesh"), "expected NAME=SIZE separated by commas, found \"all\""};
  Pod pod = *shared->pod;
  auto problem = problem_of(options, pod, DType::bf16, *manner);
  if (!problem) return problem.error();
  auto lowered = lower(problem->schedule, problem->chooser);
  if (!lowered) return lowered.error();
  ReadyRun ready{std::move(options), *std::move(manner), shared, std::move(pod), *std::move(problem), *std::move(lowered), "", 0};
  // Folding changes how many devices and events are simulated, which a result tells, where the engine folds at all.
  const std::string fold = ready.manner.fold && ready.manner.engine->folds ? "folded" : "";
  const auto alternatives = ready.pod.what_if.fail.empty() ? Expected<std::string>{""} : key_of_alternatives(ready);
  if (!alternatives) return alternatives.error();
  ready.key = content_key({version, ready.manner.engine->name, fold, shared->hardware, key_of_placement(ready.pod.placement),
                           key_of_schedule(ready.lowered), *alternatives});
  ready.build_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ready;
}

Expected<SimulatedRun> simulate(ReadyRun ready) {
  if (!ready.pod.what_if.fail.empty())
    return simulate_best(
        *ready.shared->pod, [&](Pod& on, const Manner& how) { return problem_of(ready.options, on, DType::bf16, how); }, ready.manner);
  auto run = simulate_lowered(ready.pod, ready.problem, std::move(ready.lowered), ready.manner);
  if (run) run->row.result.build_s = ready.build_s;
  return run;
}

}  // namespace podsim
