#include "tools/command/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "sim/base/blame.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/engine/table/engines.hpp"
#include "tools/command/file_options.hpp"

namespace podsim {

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 30;
constexpr std::array<const char*, 8> of_workloads{"only", "batch", "seq", "heads", "kv-heads", "head-dim", "ff", "layers"};

}  // namespace

po::options_description workload_options() {
  po::options_description group{"workload"};
  const auto word = [](const char* name) { return po::value<std::string>()->value_name(name); };
  group.add_options()  //
      ("workload", input_file("NAME|FILE"),
       "a transformer block: gpt3-block, megatron-nlg-block, llama3-8b-block,\nllama3-70b-block, llama3-405b-block (-mlp in place of -block: the MLP "
       "alone),\nor a textproto file (workloads/transformer.proto)")                                 //
      ("only", word("gemm|other"), "the products of --workload alone, or everything but them")       //
      ("batch", word("N"), "sequences; left out: as the workload says, or as many as devices")       //
      ("seq", word("N"), "tokens of a sequence")                                                     //
      ("heads", word("N"), "attention heads; the model's width follows: heads * head-dim")           //
      ("kv-heads", word("N"), "heads of keys and values")                                            //
      ("head-dim", word("N"), "width of a head")                                                     //
      ("ff", word("N"), "width of the MLP; left out with --heads: grows as the model's width does")  //
      ("layers", word("N"), "blocks that a device holds: counts in memory");
  return group;
}

Done no_workload_options(const Options& options) {
  for (const char* name : of_workloads)
    if (options.given(name)) return Diagnostic{option(name), "belongs to --workload"};
  return done();
}

Expected<Workload> workload_asked_for(const Options& options, int devices) {
  auto block = find_transformer_block(options.text("workload"));
  if (!block) return block.error().where.file.empty() ? blamed_on(option("workload"), block.error()) : block.error();
  const auto set = [&](const char* name, std::int64_t& field) -> Done {
    if (!options.has(name)) return done();
    const auto value = options.integer(name, 1, largest);
    if (!value) return value.error();
    field = *value;
    return done();
  };
  const std::int64_t width = block->heads * block->head_dim;
  const bool own_width = block->hidden != width, grouped = block->kv_heads != block->heads;
  for (const auto& [name, field] : {std::pair{"batch", &block->batch},
                                    {"seq", &block->sequence},
                                    {"heads", &block->heads},
                                    {"head-dim", &block->head_dim},
                                    {"layers", &block->layers}})
    if (auto ok = set(name, *field); !ok) return ok.error();
  if (!grouped) block->kv_heads = block->heads;
  if (auto ok = set("kv-heads", block->kv_heads); !ok) return ok.error();
  if (block->heads % block->kv_heads != 0)
    return Diagnostic{option("kv-heads"), fmt::format("must divide the {} heads, found {}", block->heads, block->kv_heads)};
  if (!own_width) block->hidden = block->heads * block->head_dim;
  if (block->heads * block->head_dim != width && !options.has("ff")) {
    if (block->ff * block->heads * block->head_dim % width != 0)
      return Diagnostic{{},
                        fmt::format("--ff is missing: {} of {} features is no whole number of {}", block->ff, width, block->heads * block->head_dim)};
    block->ff = block->ff * block->heads * block->head_dim / width;
  }
  if (auto ok = set("ff", block->ff); !ok) return ok.error();
  Only only = Only::everything;
  if (options.has("only")) {
    const auto named = only_named(options.text("only"));
    if (!named) return Diagnostic{option("only"), "expected gemm or other, found " + quoted(options.text("only"))};
    only = *named;
  }
  return workload_of(*block, devices, only);
}

namespace {

/// "8", or "in_proj=8,ff1=4".
Expected<std::map<std::string, std::int64_t>> parse_slice_counts(const std::string& text, const Workload& workload) {
  std::map<std::string, std::int64_t> counts;
  std::vector<std::string> names;
  for (const Stage& stage : workload.stages)
    if (stage.kind == Stage::Kind::product) names.push_back(stage.name);
  for (const std::string& piece : split(text)) {
    const std::size_t equals = piece.find('=');
    const std::string name = equals == std::string::npos ? "" : piece.substr(0, equals);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      return Diagnostic{option("slice-count"), "the workload has no product " + quoted(name) + did_you_mean(name, names) +
                                                   fmt::format("; it has {}", fmt::join(names, ", "))};
    const auto count = parse_integer(equals == std::string::npos ? piece : piece.substr(equals + 1), 1, 1 << 20, option("slice-count"));
    if (!count) return count.error();
    if (!counts.emplace(name, *count).second)
      return Diagnostic{option("slice-count"), name.empty() ? "expected one number, or STAGE=NUMBER for each stage" : name + " is given twice"};
  }
  return counts;
}

}  // namespace

Expected<WorkloadRequest> workload_request(const Options& options, const Pod& pod, const Workload& workload) {
  WorkloadRequest request;
  if (options.given("dataflow"))
    for (const std::string& name : split(options.text("dataflow"))) {
      const auto dataflow = dataflow_named(name);
      if (!dataflow) return Diagnostic{option("dataflow"), "expected os, ls or rs, found " + quoted(name)};
      request.dataflows.push_back(*dataflow);
    }
  if (options.has("slice-count")) {
    auto counts = parse_slice_counts(options.text("slice-count"), workload);
    if (!counts) return counts.error();
    request.slice_counts = *std::move(counts);
  }
  if (options.given("pass")) {
    const auto pass = pass_of(options);
    if (!pass) return pass.error();
    request.pass = *pass;
  }
  const auto part_options = part_options_of(options, pod.machine);
  if (!part_options) return part_options.error();
  request.options = *part_options;
  return request;
}

Expected<TunedPlan> fastest_plan(const Pod& pod, const Workload& workload, const WorkloadRequest& asked, const Manner& manner) {
  const auto des = timing_engine("des");
  if (!des) return des.error();
  TuningRequest request;
  request.workload = workload;
  request.pods = {pod};
  request.pass = asked.pass;
  request.algorithms = asked.algorithms;
  request.options = asked.options;
  request.top = 1;
  request.engine = *des;
  request.threads = manner.threads;
  request.progress = [&](const TuningProgress& progress) { manner.tell(fmt::format("choosing how to compute {}: {} parts simulated", workload.name, progress.simulated)); };
  request.stop = manner.control.stop;
  for (const auto& [stage, count] : asked.slice_counts) request.largest_slice_count = std::max(request.largest_slice_count, count);
  request.allowed = [&asked](const std::string& stage, const ProductChoice& choice) {
    if (!asked.dataflows.empty() &&
        (choice.transposed || std::find(asked.dataflows.begin(), asked.dataflows.end(), choice.dataflow) == asked.dataflows.end()))
      return false;
    const auto own = asked.slice_counts.find(stage), all = asked.slice_counts.find("");
    const auto wanted = own != asked.slice_counts.end() ? own : all;
    return wanted == asked.slice_counts.end() || choice.slice_count == 0 || choice.slice_count == wanted->second;
  };
  auto tuning = tune(request);
  if (!tuning) return tuning.error();
  if (tuning->interrupted || tuning->plans.empty()) return cancelled_work();
  return std::move(tuning->plans.front());
}

Expected<PlannedWorkload> planned_workload(const Options& options, const Pod& pod, const Manner& manner) {
  if (options.has("plan")) {
    const auto text = read_file(options.text("plan"), config_limit);
    if (!text) return text.error();
    auto saved = read_plan(*text, options.text("plan"));
    if (!saved) return saved.error();
    if (const auto chooser = chooser_of(saved->plan.collectives, pod.machine); !chooser)
      return blamed_on(saved->places.at("collectives"), chooser.error());
    Pass pass = saved->pass;
    if (options.given("pass")) {
      const auto asked = pass_of(options);
      if (!asked) return asked.error();
      pass = *asked;
    }
    return PlannedWorkload{std::move(saved->workload), std::move(saved->plan), pass};
  }
  auto workload = workload_asked_for(options, pod.mesh.devices());
  if (!workload) return workload.error();
  auto request = workload_request(options, pod, *workload);
  if (!request) return request.error();
  request->algorithms = options.has("algorithm") ? split(options.text("algorithm")) : default_tuning_algorithms();
  auto plan = fastest_plan(pod, *workload, *request, manner);
  if (!plan) return plan.error();
  return PlannedWorkload{*std::move(workload), std::move(plan->plan), request->pass};
}

Expected<Problem> workload_problem(const PlannedWorkload& planned, const Pod& pod) {
  auto schedule = block_schedule(pod.mesh, planned.workload, planned.plan, planned.pass);
  if (!schedule) return schedule.error();
  auto chooser = chooser_of(planned.plan.collectives, pod.machine);
  if (!chooser) return chooser.error();
  std::set<std::string> algorithms;
  std::vector<std::pair<std::string, ProductChoice>> layers;
  for (const StagePlan& stage : planned.plan.stages)
    if (stage.product) algorithms.insert(stage.product->algorithm), layers.emplace_back(stage.name, *stage.product);
  const std::int64_t blocks = planned.workload.block ? planned.workload.block->layers : 1;
  return Problem{std::move(*schedule), *std::move(chooser), fmt::format("{}", fmt::join(algorithms, "+")), "", std::nullopt, 0, std::move(layers),
                 blocks, tokens_of(planned.workload)};
}

std::optional<TokenCount> tokens_of(const Workload& workload) {
  if (!workload.block) return std::nullopt;
  return TokenCount{workload.block->batch, workload.block->sequence};
}

std::string tokens_text(const TokenCount& tokens) {
  return fmt::format("{} sequences of {} tokens ({} tokens)", tokens.batch, tokens.sequence, tokens.tokens());
}

std::vector<std::string> default_tuning_algorithms() { return {"collective", "meshslice", "wang"}; }

std::string choice_text(const ProductChoice& choice) {
  return fmt::format("{}{}{}", choice.transposed ? "transposed " : "", name_of(choice.dataflow),
                     choice.slice_count > 0 ? fmt::format(" S={}", choice.slice_count) : "");
}

std::vector<std::string> workload_algorithms(const Options& options) {
  std::vector<std::string> names = split(options.text("algorithms"));
  if (names != std::vector<std::string>{"all"}) return names;
  names.clear();
  for (const GemmAlgorithmEntry& entry : gemm_algorithms())
    if (entry.mesh == MeshUse::row_col) names.emplace_back(entry.name);
  return names;
}

Expected<std::vector<Row>> simulate_workload(const Pod& pod, const Options& options, const Manner& manner, std::vector<Skipped>& skipped) {
  const auto workload = workload_asked_for(options, pod.mesh.devices());
  if (!workload) return workload.error();
  auto request = workload_request(options, pod, *workload);
  if (!request) return request.error();
  std::vector<Row> rows;
  for (const std::string& name : workload_algorithms(options)) {
    if (manner.control.stop.requested()) break;
    const auto entry = gemm_algorithm(name);
    if (!entry) return Diagnostic{option("algorithms"), entry.error().message};
    const std::string what = fmt::format("{} {} {}, {} {}", pod.machine.name, to_text(pod.slice), to_text(pod.mesh), workload->name, name);
    manner.tell(what);
    request->algorithms = {name};
    const auto plan = fastest_plan(pod, *workload, *request, manner);
    const auto run = [&](Pass pass) -> Expected<Row> {
      if (!plan) return plan.error();
      const auto problem = workload_problem({*workload, plan->plan, pass}, pod);
      if (!problem) return problem.error();
      auto simulated = simulate(pod, *problem, manner);
      if (!simulated) return simulated.error();
      if (simulated->timeline.interrupted) return cancelled_work();
      return std::move(simulated->row);
    };
    auto row = run(request->pass);
    for (const auto& [pass, seconds] : {std::pair{Pass::forward, &Row::forward_s}, std::pair{Pass::backward, &Row::backward_s}}) {
      if (!row || request->pass != Pass::both) continue;
      const auto apart = run(pass);
      if (apart)
        (*row).*seconds = apart->result.makespan_s;
      else if (apart.error().cause != Cause::cancelled)  // then the whole is known, and that is all there is time for
        row = apart.error();
    }
    if (!row) {
      if (auto ok = skip(what, row.error(), skipped); !ok) return ok.error();
      continue;
    }
    rows.push_back(*std::move(row));
  }
  return rows;
}

}  // namespace podsim
