#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "sim/base/output_file.hpp"
#include "sim/base/units.hpp"
#include "tools/command/command.hpp"
#include "tools/command/progress.hpp"
#include "tools/report/tuning_report.hpp"
#include "tools/command/search_options.hpp"
#include "tools/command/scenario_options.hpp"
#include "topologies/machines.hpp"

namespace podsim {

namespace {

constexpr std::string_view tune_usage =
    R"(usage: podsim tune --machine M (--chips N | --slice AxB) (--workload NAME | --gemm m=M,n=N,k=K...) [OPTION...]

Finds the fastest plan for a workload: slice, mesh, and for each product the algorithm, dataflow, transposition and slice count S. Every part of a
plan is simulated; lower bounds rule out what need not be. Prints the best plan of each of the best meshes, what the others lose and where, and
writes the best as a file that `podsim run --plan` takes.

Parts of a plan start together on all devices; `podsim run --plan` simulates the whole as one schedule: the same time where all devices are alike,
less where some are ready early.

examples:
  podsim tune --machine tpu_v4 --chips 256 --workload gpt3-block -o plan.textproto && podsim run --plan plan.textproto --explain
  podsim tune --machine tpu_v4 --chips 256 --slices 2-d --workload gpt3-block --only gemm --baseline meshslice-reference
  podsim tune --machine tpu_v6e --chips 256 --workload llama3-70b-block --layers 80 --explain --pareto 5
  podsim tune --machine tpu_v5p --slice 8x8 --gemm m=65536,n=8192,k=8192 --gemm m=65536,n=28672,k=8192 --pass forward --format json
)";

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

Expected<Workload> workload_to_tune(const Options& options, int devices) {
  const std::vector<std::string> gemms = options.texts("gemm");
  if (options.has("workload") == !gemms.empty())
    return Diagnostic{{},
                      gemms.empty() ? "expected --workload NAME or --gemm m=M,n=N,k=K, found neither" : "expected --workload or --gemm, found both"};
  if (options.has("workload")) return read_workload(fields_of(options), devices);
  if (auto ok = no_workload_options(options); !ok) return ok.error();
  std::vector<NamedProduct> products;
  for (const std::string& text : gemms) {
    const auto gemm = parse_gemm(text, DType::bf16, option("gemm"));
    if (!gemm) return gemm.error();
    products.push_back({gemm->m, gemm->n, gemm->k, gemm->dtype});
  }
  return workload_of(products);
}

std::string progress_text(const TuningProgress& progress, double seconds) {
  const double rate = static_cast<double>(progress.simulated) / seconds;
  std::string text = fmt::format("{} parts simulated, {:.0f}/s; {}", progress.simulated, rate,
                                 progress.best ? "best so far " + to_text(to_seconds(*progress.best)) : "no plan yet");
  if (progress.parts_in_all > 0) return text + fmt::format("; {:.0f} s left", static_cast<double>(progress.parts_in_all - progress.simulated) / rate);
  return progress.bound > Picoseconds{} ? text + fmt::format(", none is below {}", to_text(to_seconds(progress.bound))) : text;
}

/// All of a search but the workload and the baselines.
Expected<TuningRequest> tuning_request(const Options& options, Console& console) {
  TuningRequest request;
  auto systems = systems_to_search(options);
  if (!systems) return systems.error();
  request.systems = *std::move(systems);
  request.engine = &des_engine();
  request.algorithms = split(options.text("algorithms"));
  Fields fields = fields_of(options);
  if (!fields.has("pass")) fields.set("pass", options.text("pass"), option("pass"));
  const auto pass = read_pass(fields);
  if (!pass) return pass.error();
  request.pass = *pass;
  const auto top = options.integer("top", 1, 10000), slices = options.integer("max-slice-count", 1, 4096),
             threads = options.integer("threads", 0, 1024);
  for (const auto* number : {&top, &slices, &threads})
    if (!*number) return number->error();
  request.top = static_cast<std::size_t>(*top);
  request.largest_slice_count = *slices;
  request.threads = static_cast<int>(*threads);
  const Machine& machine = request.systems.front().machine;
  const auto part_options = read_part_options(fields, machine);
  if (!part_options) return part_options.error();
  request.options = *part_options;
  if (!options.flag("ignore-memory")) request.hbm = machine.chip.hbm;
  request.exhaustive = options.flag("exhaustive");
  request.stop = console.interrupted;
  return request;
}

SavedPlan saved_plan(const TuningRequest& request, const TunedPlan& plan, const Options& options) {
  const System& system = request.systems[plan.system];
  SavedPlan saved;
  saved.machine = options.text("machine");
  saved.sets = options.texts("set");
  saved.slice = to_text(system.slice);
  saved.wrap = options.text("wrap");
  saved.topology = system.joined_by.name;
  saved.mesh = to_text(system.mesh);
  saved.mesh_order = options.text("mesh-order");
  saved.workload = request.workload;
  saved.pass = request.pass;
  saved.plan = plan.plan;
  saved.predicted = to_text(to_seconds(plan.time));
  return saved;
}

/// Behind the colon of meshslice-reference:FILE.
std::vector<std::string> file_of_baseline(const std::string& value) { return {value.substr(value.find(':') + 1)}; }

OptionGroup tune_options() {
  const OptionGroup own{
      {"gemm", words("m=M,n=N,k=K[,dtype=bf16]"), "products that have nothing to do with each other; repeatable"},
      {"algorithms", word("NAME[,...]", fmt::format("{}", fmt::join(PlanChoices{}.algorithms, ","))), "which algorithms products may use"},
      {"pass", word("forward|backward|both", "both"), "what is to be fast"},
      {"max-slice-count", word("S", "64"), "the largest slice count looked at"},
      {"block", word("B", "8"), "rows or columns of a slice's interleaved blocks"},
      {"prefetch", word("P", "1"), "slices that run ahead of the matmul"},
      {"slice-copies", word("on|off"), "whether cutting slices costs copies on the core;\nleft out: as the machine says"},
      {"top", word("N", "5"), "meshes whose best plans are wanted"},
      {"exhaustive", flag(), "simulate every option: the same plans, without trusting the bounds"},
      {"ignore-memory", flag(), "admit plans that need more than the device has"},
      {"explain", flag(), "how the plans spend their time, and what would make the second the first"},
      {"pareto", word("N"), "up to N plans that trade time for memory"},
      {"baseline", input_file("NAME", file_of_baseline),
       "a published tuner's plan beside: meshslice-reference[:tpu_measured|\n:simulation_fit|:from-machine|:FILE]"}};
  return joined({search_options(), system_options(false), what_if_options(false), workload_options(), own, threads_option(), output_options(table_json)});
}

/// --baseline: the published tuner's choice, among the plans of the request too.
Done add_baseline(const Options& options, TuningRequest& request, TuningReport& found) {
  if (!options.has("baseline")) return done();
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
  return done();
}

/// The search, and --pareto.
Done search(const Options& options, TuningRequest& request, TuningReport& found, Console& console) {
  const auto begin = std::chrono::steady_clock::now();
  ProgressLine line{console, options.flag("quiet")};
  request.progress = [&](const TuningProgress& progress) { line.show([&](double seconds) { return progress_text(progress, seconds); }); };
  auto tuning = tune(request);
  if (!tuning) return tuning.error();
  found.tuning = *std::move(tuning);
  // The one that does best on a mesh of its shape speaks for the baseline.
  auto& baselines = found.tuning.baselines;
  std::stable_sort(baselines.begin(), baselines.end(), [](const TunedPlan& a, const TunedPlan& b) { return a.time < b.time; });
  if (baselines.size() > 1) baselines.resize(1);
  if (options.has("pareto") && !found.tuning.interrupted) {
    const auto most = options.integer("pareto", 1, 100);
    if (!most) return most.error();
    auto front = pareto_plans(request, static_cast<std::size_t>(*most));
    if (!front) return front.error();
    found.pareto = *std::move(front);
  }
  found.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return done();
}

/// --explain
Done add_explanation(const TuningRequest& request, TuningReport& found) {
  const Tuning& tuning = found.tuning;
  for (const TunedPlan& plan : tuning.plans) {
    const auto split = split_of(request, plan);
    if (!split) return split.error();
    found.splits.push_back(*split);
  }
  if (tuning.plans.size() < 2) return done();
  auto flips = what_flips(request, tuning.plans[0], tuning.plans[1]);
  if (!flips) return flips.error();
  found.flips = *std::move(flips);
  return done();
}

/// -o FILE.textproto gets the best plan, and the console what was found.
Expected<int> write_found(const Options& options, const TuningReport& found, Console& console) {
  const TuningRequest& request = *found.request;
  const std::string text = format_of(options) == Format::json ? tuning_json(found) : tuning_table(found);
  if (!options.has("output") || !options.text("output").ends_with(".textproto")) return print_output(options, text, console);
  if (auto ok = write_file(options.text("output"), write_plan(saved_plan(request, found.tuning.plans.front(), options))); !ok) return ok.error();
  console.out << text;
  const System& first = request.systems.front();
  if ((first.slices > 1 || !first.faults.none()) && !options.flag("quiet"))
    fmt::print(console.err, "podsim: note: a plan does not hold --pods, --fail, --degrade and --straggler; give them again to run it\n");
  return exit_done;
}

Expected<int> tune_and_print(const Options& options, Console& console) {
  auto request = tuning_request(options, console);
  if (!request) return request.error();
  auto workload = workload_to_tune(options, request->systems.front().mesh.devices());
  if (!workload) return workload.error();
  request->workload = *std::move(workload);
  TuningReport found;
  found.request = &*request;
  if (auto ok = add_baseline(options, *request, found); !ok) return ok.error();
  if (auto ok = search(options, *request, found, console); !ok) return ok.error();
  const Tuning& tuning = found.tuning;
  if (tuning.plans.empty()) {
    fmt::print(console.err, "podsim: interrupted before the first plan was known: {} parts simulated\n", tuning.simulated);
    return exit_interrupted;
  }
  if (options.flag("explain") && !tuning.interrupted)
    if (auto ok = add_explanation(*request, found); !ok) return ok.error();
  const auto status = write_found(options, found, console);
  return status && *status == exit_done && tuning.interrupted ? static_cast<int>(exit_interrupted) : status;
}

}  // namespace

int tune_verb(const std::vector<std::string>& arguments, Console& console) {
  const Parsed parsed = parse(arguments, tune_options(), tune_usage, console);
  if (parsed.status) return *parsed.status;
  const auto status = tune_and_print(*parsed.options, console);
  return status ? *status : report(status.error(), console);
}

}  // namespace podsim
