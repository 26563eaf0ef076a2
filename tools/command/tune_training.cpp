#include "tools/command/tune_training.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <chrono>

#include "algorithms/pipeline/pipeline.hpp"
#include "sim/base/units.hpp"
#include "tools/command/answer_so_far.hpp"
#include "tools/command/command.hpp"
#include "tools/command/not_searched.hpp"
#include "tools/command/record_option.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/search_options.hpp"
#include "tools/console/progress.hpp"
#include "tools/report/shell_word.hpp"
#include "tools/report/training_tuning_report.hpp"
#include "tools/sweep/points.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

// Those that the search decides, unless they are given.
constexpr std::array<std::string_view, 6> searched_fields{"mesh", "microbatches", "pipeline", "virtual_stages", "remat", "shard_optimizer_over_data"};

Expected<std::vector<std::int64_t>> integers_of(const Options& options, const std::string& name) {
  std::vector<std::int64_t> numbers;
  if (!options.given(name)) return numbers;
  for (const std::string& text : split(options.text(name))) {
    const auto number = parse_integer(text, 1, std::int64_t{1} << 40, option(name));
    if (!number) return number.error();
    numbers.push_back(*number);
  }
  return numbers;
}

// MaxText's keys for the mesh of a slice, which the search decides.
constexpr std::array<std::string_view, 5> searched_keys{"ici_pipeline_parallelism=1", "ici_data_parallelism=1", "ici_fsdp_parallelism=-1", "ici_expert_parallelism=1",
                                                        "ici_tensor_parallelism=1"};

void leave_mesh_open(Fields& fields, std::int64_t slices) {
  const std::vector<FieldText> given = fields.texts("training");
  fields.erase("training");
  for (const FieldText& key : given) {
    const auto same = [&](std::string_view other) { return key.text.substr(0, key.text.find('=')) == other.substr(0, other.find('=')); };
    if (std::none_of(searched_keys.begin(), searched_keys.end(), same) && !same("dcn_data_parallelism")) fields.add("training", key.text, key.where);
  }
  for (const std::string_view key : searched_keys) fields.add("training", std::string{key}, option("chips"));
  fields.add("training", fmt::format("dcn_data_parallelism={}", slices), option("pods"));
}

/// The step without what is searched.
Expected<TrainingStep> step_to_tune(const Options& options, const System& system) {
  Fields fields = fields_of(options);
  for (const std::string_view name : searched_fields) fields.erase(name);
  if (fields.has("maxtext")) leave_mesh_open(fields, system.slices);
  TrainingMesh mesh;
  mesh.slice = system.slices, mesh.fsdp = system.mesh.devices() / system.slices;
  auto step = read_training_step(fields, mesh, {mesh.fsdp, mesh.slice});
  if (!step) return fields.placed(step.error());
  return step;
}

Status read_lists(const Options& options, TrainingRequest& request) {
  auto microbatches = integers_of(options, "microbatches"), virtual_stages = integers_of(options, "virtual-stages");
  for (const auto* list : {&microbatches, &virtual_stages})
    if (!*list) return list->error();
  request.microbatches = *std::move(microbatches), request.virtual_stages = *std::move(virtual_stages);
  for (const std::string& name : options.given("pipeline") ? split(options.text("pipeline")) : std::vector<std::string>{}) {
    const auto known = pipeline_schedule_named(name, option("pipeline"));
    if (!known) return known.error();
    request.pipelines.push_back(name);
  }
  if (options.given("shard-optimizer-over-data")) {
    const std::string word = options.text("shard-optimizer-over-data");
    if (word != "on" && word != "off") return Diagnostic{option("shard-optimizer-over-data"), "expected on or off, found " + quoted(word)};
    request.shard_optimizer_over_data = word == "on";
  }
  if (options.given("remat")) {
    const auto remat = parse_remat(options.text("remat"), option("remat"));
    if (!remat) return remat.error();
    request.remats.push_back(*remat);
  }
  return success();
}

Expected<TrainingRequest> training_request(const Options& options, const Console& console) {
  TrainingRequest request;
  auto systems = systems_to_search(options, searched_axes({}));
  if (!systems) return systems.error();
  auto step = step_to_tune(options, systems->front());
  if (!step) return step.error();
  request.spec.step = *std::move(step);
  if (request.spec.step.model.experts > 0) systems = systems_to_search(options, searched_axes(request.spec.step.model));
  if (!systems) return systems.error();
  request.systems = *std::move(systems);
  request.spec.options.fuse_steady_state = options.flag("fuse-steady-state");
  if (options.given("algorithms")) {
    const auto algorithm = gemm_algorithm(options.text("algorithms"));
    if (!algorithm) return Diagnostic{option("algorithms"), algorithm.error().message + "; of training steps one, or none for the fastest"};
    request.spec.layers.algorithm = (*algorithm)->name;
  }
  request.spec.collectives = usual_step_collectives(request.systems.front());
  if (options.given("collectives")) {
    const auto policy = parse_policy(options.text("collectives"), option("collectives"));
    if (!policy) return policy.error();
    request.spec.collectives = policy->algorithm;
  }
  // What a configuration asks for is not searched. MaxText would divide it over slices too, which podsim does not.
  if (request.spec.step.shard_optimizer_over_data || (options.has("maxtext") && request.systems.front().slices > 1))
    request.shard_optimizer_over_data = request.spec.step.shard_optimizer_over_data;
  if (auto ok = read_lists(options, request); !ok) return ok.error();
  const auto top = options.integer("top", 1, 10000), threads = options.integer("threads", 0, 1024);
  for (const auto* number : {&top, &threads})
    if (!*number) return number->error();
  request.top = static_cast<std::size_t>(*top);
  request.threads = static_cast<int>(*threads);
  request.exhaustive = options.flag("exhaustive");
  request.ignore_memory = options.flag("ignore-memory");
  request.stop = console.interrupted;
  return request;
}

void add_field(std::string& line, const FieldKind& field, const std::string& text) {
  line += " --" + option_of(field.name);
  if (field.form != Form::flag) line += " " + shell_word(text);
}

/// The fields that the command line gives and the search does not decide.
std::string fields_line(const Options& options, FieldKind::Part part) {
  const Fields fields = fields_of(options);
  std::string line;
  for (const FieldKind* field : fields.given()) {
    if (field->part() != part || field->name == "slice" || field->name == "training" || field->name == "maxtext") continue;
    if (std::find(searched_fields.begin(), searched_fields.end(), field->name) != searched_fields.end()) continue;
    if (field->repeated)
      for (const FieldText& given : fields.texts(field->name)) add_field(line, *field, given.text);
    else
      add_field(line, *field, fields.text(field->name));
  }
  return line;
}

/// `podsim run` of a plan. Errors: MaxText's keys cannot say it.
Expected<std::string> run_line(const Options& options, const TrainingRequest& request, const TrainingPlan& plan) {
  const System& system = request.systems[plan.system];
  std::string line =
      fmt::format("podsim run{} --slice {} --mesh {}", fields_line(options, FieldKind::Part::system), to_text(system.slice), to_text(plan.step.mesh));
  if (options.given("algorithms")) line += " --algorithm " + options.text("algorithms");
  if (options.given("collectives")) line += " --collectives " + shell_word(options.text("collectives"));
  line += fields_line(options, FieldKind::Part::problem);
  if (options.has("maxtext")) {
    const auto keys = to_maxtext(plan.step);
    if (!keys) return keys.error();
    line += " --maxtext " + shell_word(options.text("maxtext"));
    for (const std::string& key : split(*keys, ' ')) line += " " + shell_word(key);
    return line;
  }
  line += " --training " + shell_word(options.text("training"));
  if (!options.given("batch") && !options.given("batch-per-device")) line += fmt::format(" --batch {}", plan.step.batch);
  line += fmt::format(" --microbatches {}", plan.step.microbatches);
  if (!plan.step.pipeline.empty()) line += " --pipeline " + plan.step.pipeline;
  if (plan.step.virtual_stages > 1) line += fmt::format(" --virtual-stages {}", plan.step.virtual_stages);
  if (plan.step.shard_optimizer_over_data) line += " --shard-optimizer-over-data on";
  return line + " --remat " + shell_word(to_text(plan.step.remat));
}

TrainingTuningReport report_of(const Options& options, const TrainingRequest& request, TrainingTuning tuning, std::chrono::steady_clock::time_point begin) {
  TrainingTuningReport report{&request, std::move(tuning), 0, {}, not_searched(options, request)};
  for (const TrainingPlan& plan : report.tuning.plans) {
    auto run = run_line(options, request, plan);
    report.runs.push_back(run ? TextOrReason{*std::move(run), {}} : TextOrReason{{}, run.error().message});
  }
  report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

std::string text_of(const Options& options, const TrainingTuningReport& report) {
  return format_of(options) == Format::json ? training_tuning_json(report) : training_tuning_table(report);
}

std::string progress_text(const TrainingRequest::Progress& progress, double seconds) {
  return fmt::format("{} steps simulated of {} candidates, {:.2g}/s; {}{}", progress.simulated, progress.candidates, static_cast<double>(progress.simulated) / seconds,
                     progress.best_s ? "best so far " + to_text(Seconds{*progress.best_s}) : "no plan yet",
                     progress.bound_s > 0 ? ", the rest is above " + to_text(Seconds{progress.bound_s}) : "");
}

}  // namespace

OptionGroup tuned_training_options() {
  OptionGroup options = field_options({FieldKind::Group::training});
  std::erase_if(options, [](const OptionSpec& spec) { return spec.name == "steps"; });
  const auto says = [&](const char* name, OptionValue value, const char* help) {
    for (OptionSpec& spec : options)
      if (spec.name == name) spec.value = std::move(value), spec.help = help;
  };
  says("microbatches", no_field(word("M[,...]")), "of a training step; left out: every divisor of the batch");
  says("pipeline", no_field(word("NAME[,...]")),
       "of training steps with several stages; left out: all of gpipe, 1f1b, eager-1f1b, interleaved-1f1b, kimi-k2, zero-bubble, dual-pipe-v");
  says("virtual-stages", no_field(word("V[,...]")), "stages on each rank; left out: up to 12 that divide its layers");
  says("remat", no_field(word("none|full|selected:LIST")),
       "what the backward pass computes again; left out: none, full and what MaxText's policies keep");
  says("shard-optimizer-over-data", no_field(word("on|off")),
       "the optimizer's state and update in parts over the axis data: ZeRO-1, Megatron-LM's --use-distributed-optimizer; left out: both, where data divides the batch");
  options.push_back({"pad", flag(), "of training steps: round extents up to what the axes divide"});
  return options;
}

bool tunes_training(const Options& options) { return options.has("training") || options.has("maxtext"); }

Status options_suit_search(const Options& options) {
  const bool training = tunes_training(options);
  if (training) {
    for (const char* name : {"gemm", "workload", "only", "pass", "max-slice-count", "block",
                             "prefetch", "slice-copies", "explain", "pareto", "baseline"})
      if (options.given(name))
        return Diagnostic{option(name),
                          fmt::format("belongs to --workload and --gemm; found {}", options.has("maxtext") ? "--maxtext" : "--training")};
    return success();
  }
  for (const OptionSpec& spec : tuned_training_options())
    if (options.given(spec.long_name())) return Diagnostic{option(spec.long_name()), "belongs to --training and --maxtext"};
  return success();
}

Expected<int> tune_training_and_print(const Options& options, Console& console) {
  const auto begin = std::chrono::steady_clock::now();
  AnswerSoFar so_far{options, console};
  so_far.nothing("0 steps simulated", nothing_known);
  auto request = training_request(options, console);
  if (!request && request.error().cause == Cause::cancelled) return so_far.print_nothing("0 steps simulated", nothing_known);
  if (!request) return in_options(request.error());
  warn(doubts_about(request->systems.front().machine), console);
  const auto record = record_request(options);
  if (!record) return record.error();
  ProgressLine line{console, options.flag("quiet")};
  request->progress = [&](const TrainingRequest::Progress& progress) { line.show([&](double seconds) { return progress_text(progress, seconds); }); };
  request->improved = [&](const std::function<TrainingTuning()>& known) {
    so_far.better([&] { return text_of(options, report_of(options, *request, known(), begin)); });
  };
  auto tuning = tune_training(*request);
  line.end();
  if (!tuning && tuning.error().cause == Cause::cancelled) return so_far.print_nothing("0 steps simulated", nothing_known);
  if (!tuning) return in_options(tuning.error());
  const TrainingTuningReport report = report_of(options, *request, *std::move(tuning), begin);
  if (report.tuning.plans.empty())
    return so_far.print_nothing(fmt::format("{} steps simulated", report.tuning.simulated), training_tuning_json(report));
  if (*record != nullptr)
    if (auto ok = write_record(**record, "tune", training_tuning_json(report), options); !ok) return ok.error();
  tell_table([&] { return training_tuning_table(report); }, console);
  const auto status =
      print_output(options, text_of(options, report), console);
  return status == exit_done && report.tuning.interrupted ? static_cast<int>(exit_interrupted) : status;
}

}  // namespace podsim
