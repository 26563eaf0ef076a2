#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <chrono>

#include "sim/base/output_file.hpp"
#include "sim/base/units.hpp"
#include "tools/command/answer_so_far.hpp"
#include "tools/command/answers.hpp"
#include "tools/command/baseline_option.hpp"
#include "tools/command/command.hpp"
#include "tools/command/not_searched.hpp"
#include "tools/command/record_option.hpp"
#include "tools/console/caller.hpp"
#include "tools/console/progress.hpp"
#include "tools/report/jax_plan_report.hpp"
#include "tools/report/tuning_report.hpp"
#include "tools/command/search_options.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/tune_training.hpp"
#include "tools/command/tuning_request.hpp"
#include "workloads/scenario/jax_plan.hpp"

namespace podsim {

namespace {

std::string progress_text(const TuningProgress& progress, double seconds) {
  const double rate = static_cast<double>(progress.simulated) / seconds;
  std::string text = fmt::format("{} parts simulated, {:.0f}/s; {}", progress.simulated, rate,
                                 progress.best ? "best so far " + to_text(to_seconds(*progress.best)) : "no plan yet");
  if (progress.parts_in_all > 0) return text + fmt::format("; {:.0f} s left", static_cast<double>(progress.parts_in_all - progress.simulated) / rate);
  return progress.bound > Picoseconds{} ? text + fmt::format(", none is below {}", to_text(to_seconds(progress.bound))) : text;
}

OptionGroup tune_options() {
  return joined({search_options(), field_options({FieldKind::Group::system, FieldKind::Group::precision, FieldKind::Group::what_if, FieldKind::Group::workload, FieldKind::Group::model}), tuning_options(), tuned_training_options(), baseline_option(), threads_option(), record_options(),
                 output_options(table_json)});
}

std::string text_of(const Options& options, const TuningReport& found) {
  return format_of(options) == Format::json ? tuning_json(found) : tuning_table(found);
}

/// The search, and --pareto. What was found before an interruption counts.
Status search(const Options& options, TuningRequest& request, TuningReport& found, AnswerSoFar& so_far, Console& console) {
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [begin] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  ProgressLine line{console, options.flag("quiet")};
  request.improved = [&](const std::function<Tuning()>& known) {
    so_far.better([&] {
      TuningReport report;
      report.request = &request;
      report.tuning = known();
      report.wall_s = elapsed();
      return text_of(options, report);
    });
  };
  request.progress = [&](const TuningProgress& progress) { line.show([&](double seconds) { return progress_text(progress, seconds); }); };
  auto tuning = tune(request);
  if (!tuning) return tuning.error();
  found.tuning = *std::move(tuning);
  // The one that does best on a mesh of its shape speaks for the baseline.
  auto& baselines = found.tuning.baselines;
  std::stable_sort(baselines.begin(), baselines.end(), [](const TunedPlan& a, const TunedPlan& b) { return a.time < b.time; });
  if (baselines.size() > 1) baselines.resize(1);
  found.wall_s = elapsed();
  if (!found.tuning.plans.empty()) so_far.last([&] {
    TuningReport report = found;  // what is asked for beside the plans is still to come
    report.tuning.interrupted = true;
    return text_of(options, report);
  });
  if (options.has("pareto") && !found.tuning.interrupted) {
    const auto most = options.integer("pareto", 1, 100);
    if (!most) return most.error();
    auto front = pareto_plans(request, static_cast<std::size_t>(*most));
    if (!front && front.error().cause != Cause::cancelled) return front.error();
    if (front) found.pareto = *std::move(front);
    found.tuning.interrupted = console.interrupted.requested();
  }
  found.not_searched = not_searched(options, request);
  found.wall_s = elapsed();
  return success();
}

/// --explain
Status add_explanation(const TuningRequest& request, TuningReport& found) {
  const Tuning& tuning = found.tuning;
  for (const TunedPlan& plan : tuning.plans) {
    const auto split = split_of(request, plan);
    if (!split) return split.error();
    found.splits.push_back(*split);
  }
  if (tuning.plans.size() < 2) return success();
  auto flips = what_flips(request, tuning.plans[0], tuning.plans[1]);
  if (!flips) return flips.error();
  found.flips = *std::move(flips);
  return success();
}

/// The best plan for JAX, for pages. Left out where a PartitionSpec cannot say it.
std::string code_for_jax(const TuningRequest& request, const TunedPlan& best) {
  const System& system = request.systems[best.system];
  const auto submesh = workload_submesh(system.mesh);
  if (!submesh) return {};
  const auto plan = jax_plan(*submesh, request.workload, best.plan, request.pass);
  return plan ? jax_plan_code(*plan, jax_device_ids(system)) : "";
}

/// -o FILE.textproto gets the best plan, and the console what was found.
Expected<int> write_found(const Options& options, const TuningReport& found, Console& console) {
  const TuningRequest& request = *found.request;
  const std::string text = text_of(options, found);
  if (!options.has("output") || !options.text("output").ends_with(".textproto")) return print_output(options, text, console);
  if (auto ok = write_file(options.text("output"), write_plan(saved_plan(request, found.tuning.plans.front(), options))); !ok) return ok.error();
  console.out << text;
  return exit_done;
}

Expected<int> tune_and_print(const Options& options, Console& console) {
  if (auto ok = options_suit_search(options); !ok) return ok.error();
  if (tunes_training(options)) return tune_training_and_print(options, console);
  AnswerSoFar so_far{options, console};
  so_far.nothing("0 parts simulated", nothing_known);
  auto request = tuning_request(options, console);
  if (!request && request.error().cause == Cause::cancelled) return so_far.print_nothing("0 parts simulated", nothing_known);
  if (!request) return request.error();
  warn(doubts_about(request->systems.front().machine), console);
  const auto record = record_request(options);
  if (!record) return record.error();
  const auto answer = std::make_shared<TuningAnswer>();
  answer->request = *std::move(request);
  TuningReport& found = answer->found;
  found.request = &answer->request;
  if (auto ok = add_baseline(options, answer->request, found); !ok) return ok.error();
  if (auto ok = search(options, answer->request, found, so_far, console); !ok)
    return ok.error().cause == Cause::cancelled ? Expected<int>{so_far.print_nothing("0 parts simulated", nothing_known)} : ok.error();
  const Tuning& tuning = found.tuning;
  if (answer->request.shares > 1) {  // what it simulated is all that is asked for
    console.caller->tuning = answer;
    return tuning.interrupted ? exit_interrupted : exit_done;
  }
  if (tuning.plans.empty()) {
    return so_far.print_nothing(fmt::format("{} parts simulated", tuning.simulated), tuning_json(found));
  }
  if (options.flag("explain") && !tuning.interrupted)
    if (auto ok = add_explanation(answer->request, found); !ok) {
      if (ok.error().cause != Cause::cancelled) return ok.error();
      found.splits.clear();
      found.tuning.interrupted = true;
    }
  if (*record != nullptr || format_of(options) == Format::json || console.caller != nullptr) found.jax = code_for_jax(answer->request, tuning.plans.front());
  if (*record != nullptr)
    if (auto ok = write_record(**record, "tune", tuning_json(found), options); !ok) return ok.error();
  if (console.caller != nullptr) {
    for (const TunedPlan& plan : tuning.plans) answer->plans.push_back(saved_plan(answer->request, plan, options));
    console.caller->tuning = answer;
    if (!options.has("output")) return tuning.interrupted ? exit_interrupted : exit_done;
  }
  const auto status = write_found(options, found, console);
  return status && *status == exit_done && tuning.interrupted ? static_cast<int>(exit_interrupted) : status;
}

}  // namespace

int tune_verb(const std::vector<std::string>& arguments, Console& console) {
  static const OptionGroup described = tune_options();  // programs call it often
  return perform(arguments, described, "tune", console, &tune_and_print, words_of_training(arguments));
}

}  // namespace podsim
