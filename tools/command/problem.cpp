#include "tools/command/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "algorithms/collectives/collectives.hpp"
#include "sim/base/units.hpp"
#include "tools/command/collective.hpp"
#include "tools/command/workload.hpp"
#include "workloads/collectives.hpp"

namespace podsim {

namespace {

Expected<Problem> gemm_problem(const Options& options, Pod& pod, DType default_dtype, const Manner& manner) {
  auto request = gemm_request(options, pod, default_dtype);
  if (!request) return request.error();
  if (!options.has("algorithm")) {
    std::vector<std::string_view> names;
    for (const GemmAlgorithmEntry& entry : gemm_algorithms()) names.push_back(entry.name);
    return Diagnostic{{}, fmt::format("--gemm needs --algorithm: {}", fmt::join(names, ", "))};
  }
  const auto entry = gemm_algorithm(options.text("algorithm"));
  if (!entry) return Diagnostic{option("algorithm"), entry.error().message};
  request->algorithm = *entry;
  const auto dataflow = options.has("dataflow") ? dataflow_named(options.text("dataflow")) : (*entry)->only.value_or(Dataflow::os);
  if (!dataflow) return Diagnostic{option("dataflow"), "expected os, ls or rs, found " + quoted(options.text("dataflow"))};
  request->problem.dataflow = *dataflow;
  if ((*entry)->needs_slice_count && !options.has("slice-count"))
    return Diagnostic{{}, fmt::format("--algorithm {} needs --slice-count", (*entry)->name)};
  if (!(*entry)->takes_slice_count && options.has("slice-count"))
    return Diagnostic{{}, fmt::format("--algorithm {} takes no --slice-count", (*entry)->name)};
  if (options.has("slice-count")) {
    const auto slices = options.integer("slice-count", 1, 1 << 20);
    if (!slices) return slices.error();
    request->options.slice_count = *slices;
  }
  auto used = pod_for(**entry, std::move(pod));
  if (!used) return used.error();
  pod = std::move(*used);
  return make_problem(pod, *request, manner);
}

/// An option of another problem would be ignored without a word.
Done options_belong(const Options& options, std::string_view problem) {
  struct Owner {
    const char* name;
    std::string_view first, second = "", third = "";
  };
  static constexpr std::array<Owner, 27> owners{{
      {"axis", "collective"},
      {"bytes", "collective"},
      {"dtype", "collective"},
      {"root", "collective"},
      {"chunks", "collective"},
      {"shift", "collective"},
      {"pairs", "collective"},
      {"dataflow", "gemm", "workload"},
      {"slice-count", "gemm", "workload"},
      {"pass", "gemm", "workload", "plan"},
      {"wang-operand", "gemm"},
      {"block", "gemm", "workload"},
      {"prefetch", "gemm", "workload"},
      {"slice-copies", "gemm", "workload"},
      {"pad", "gemm"},
      {"collectives", "gemm"},
      {"algorithm", "gemm", "collective", "workload"},
      {"crossover", "gemm"},
      {"given", "gemm"},
      {"only", "workload"},
      {"batch", "workload"},
      {"seq", "workload"},
      {"heads", "workload"},
      {"kv-heads", "workload"},
      {"head-dim", "workload"},
      {"ff", "workload"},
      {"layers", "workload"},
  }};
  for (const Owner& owner : owners) {
    if (!options.given(owner.name) || owner.first == problem || owner.second == problem || owner.third == problem) continue;
    if (std::string_view{owner.name} == "algorithm" && problem == "schedule") continue;  // of its collectives
    std::string text = fmt::format("belongs to --{}", owner.first);
    if (!owner.second.empty()) text += fmt::format("{} --{}", owner.third.empty() ? " and" : ",", owner.second);
    if (!owner.third.empty()) text += fmt::format(" and --{}", owner.third);
    return Diagnostic{option(owner.name), fmt::format("{}, not to --{}", text, problem)};
  }
  return done();
}

/// What lowers collectives: an algorithm, `auto`, or where nothing is named a ring, or a line on open axes.
Expected<CollectiveChooser> chooser_named(const Pod& pod, const std::string& name, const Manner& manner) {
  const ChunkRule chunks = chunk_rule(pod.machine);
  if (name.empty()) return ring_or_line(chunks);
  if (name == "auto") return cheapest(pod, chunks, manner);
  return always(name, chunks);
}

/// A saved schedule; --algorithm names what lowers its collectives.
Expected<Problem> saved_problem(const Options& options, const Pod& pod, const Manner& manner) {
  const std::string& path = options.text("schedule");
  auto schedule = saved_schedule(path);
  if (!schedule) return schedule.error();
  if (schedule->mesh.devices() != pod.mesh.devices())
    return Diagnostic{
        {path, 0, 0},
        fmt::format("the schedule's mesh is {}, the pod's is {}: they must have as many devices", to_text(schedule->mesh), to_text(pod.mesh))};
  auto chooser = chooser_named(pod, options.has("algorithm") ? options.text("algorithm") : "", manner);
  if (!chooser) return Diagnostic{option("algorithm"), chooser.error().message};
  Problem problem{std::move(*schedule), *std::move(chooser), "schedule", "", std::nullopt, 0};
  if (options.has("algorithm")) problem.lowering = options.text("algorithm");
  return problem;
}

}  // namespace

Expected<DType> parse_dtype(const std::string& text, const SourceLocation& where) {
  if (const auto dtype = dtype_named(text)) return *dtype;
  return Diagnostic{where, "expected the dtype bf16 or f32, found " + quoted(text)};
}

Expected<GemmProblem> parse_gemm(const std::string& text, DType default_dtype) {
  GemmProblem problem;
  problem.dtype = default_dtype;
  const SourceLocation where = option("gemm");
  std::vector<std::string> seen;
  for (const std::string& piece : split(text)) {
    const std::size_t equals = piece.find('=');
    const std::string name = piece.substr(0, equals);
    if (equals == std::string::npos || (name != "m" && name != "n" && name != "k" && name != "dtype"))
      return Diagnostic{where, "expected m=,n=,k= and perhaps dtype=, separated by commas, found " + quoted(piece)};
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return Diagnostic{where, name + " is given twice"};
    seen.push_back(name);
    if (name == "dtype") {
      const auto dtype = parse_dtype(piece.substr(equals + 1), where);
      if (!dtype) return dtype.error();
      problem.dtype = *dtype;
      continue;
    }
    const auto extent = parse_integer(piece.substr(equals + 1), 1, std::int64_t{1} << 40, where);
    if (!extent) return extent.error();
    (name == "m" ? problem.m : name == "n" ? problem.n : problem.k) = *extent;
  }
  for (const auto& [name, extent] : {std::pair{"m", problem.m}, {"n", problem.n}, {"k", problem.k}})
    if (extent == 0) return Diagnostic{where, fmt::format("{}= is missing in {}", name, quoted(text))};
  return problem;
}

Expected<Pass> pass_of(const Options& options) {
  if (const auto pass = pass_named(options.text("pass"))) return *pass;
  return Diagnostic{option("pass"), "expected forward, backward or both, found " + quoted(options.text("pass"))};
}

Expected<PartOptions> part_options_of(const Options& options, const Machine& machine) {
  const auto block = options.integer("block", 1, 1 << 20);
  if (!block) return block.error();
  const auto prefetch = options.integer("prefetch", 0, 1024);
  if (!prefetch) return prefetch.error();
  const auto copies = options.has("slice-copies") ? options.on_off("slice-copies") : Expected<bool>{machine.slice_copies};
  if (!copies) return copies.error();
  return PartOptions{*block, static_cast<int>(*prefetch), *copies};
}

Expected<GemmRequest> gemm_request(const Options& options, const Pod& pod, DType default_dtype) {
  const auto problem = parse_gemm(options.text("gemm"), default_dtype);
  if (!problem) return problem.error();
  GemmRequest request{nullptr, *problem, Pass::forward, {}, options.flag("pad"), options.has("collectives") ? options.text("collectives") : ""};
  const auto pass = pass_of(options);
  if (!pass) return pass.error();
  request.pass = *pass;
  const auto part_options = part_options_of(options, pod.machine);
  if (!part_options) return part_options.error();
  request.options = gemm_options(*part_options, 0);
  if (options.has("wang-operand")) {
    const std::string& operand = options.text("wang-operand");
    if (operand != "x" && operand != "w") return Diagnostic{option("wang-operand"), "expected x or w, found " + quoted(operand)};
    request.options.wang_operand = operand == "x" ? WangOperand::x : WangOperand::w;
  }
  return request;
}

Expected<Pod> pod_for(const GemmAlgorithmEntry& algorithm, Pod pod) {
  if (algorithm.mesh == MeshUse::row_col || pod.mesh.axes().size() == 1) return pod;
  auto ring = mesh_over(pod.layout, {{"ring", pod.mesh.devices()}});
  if (!ring) return ring.error();
  pod.mesh = std::move(*ring);
  return pod;
}

Expected<Problem> make_problem(const Pod& pod, const GemmRequest& request, const Manner& manner) {
  const Mesh& mesh = pod.mesh;
  const GemmAlgorithmEntry& algorithm = *request.algorithm;
  GemmProblem problem = request.problem;
  double padding = 0;
  if (request.pad) {
    const auto multiples = required_multiples(algorithm, mesh, problem.dataflow, request.pass, request.options);
    if (!multiples) return multiples.error();
    const auto volume = [](const GemmProblem& p) { return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k); };
    problem = padded(problem, *multiples);
    padding = 1 - volume(request.problem) / volume(problem);
  }
  auto schedule = make_layer(algorithm, mesh, problem, request.pass, request.options);
  if (!schedule) return schedule.error();
  std::vector<Replicated> replicated = replicated_tensors(*schedule);
  if (request.given) {
    schedule = gather_inputs(*std::move(schedule), *request.given);
    if (!schedule) return schedule.error();
    for (Replicated& tensor : replicated)
      tensor.gathered = tensor.role == Role::input && std::find(request.given->begin(), request.given->end(), tensor.tensor) == request.given->end();
  }
  auto chooser = chooser_named(pod, request.collectives, manner);
  if (!chooser) return Diagnostic{option("collectives"), chooser.error().message};
  std::optional<std::int64_t> slices;
  if (algorithm.takes_slice_count) slices = request.options.slice_count;
  if (slices == 0) slices = std::lcm(mesh.axes()[0].size, mesh.axes()[1].size);  // summa's own
  Problem made{std::move(*schedule), *std::move(chooser), std::string{algorithm.name}, std::string{name_of(problem.dataflow)}, slices, padding};
  made.replicated = std::move(replicated);
  made.lowering = request.collectives;
  return made;
}

Expected<std::string_view> problem_kind(const Options& options, std::span<const char* const> kinds) {
  std::string_view problem;
  int given = 0;
  for (const char* name : kinds)
    if (options.has(name)) problem = name, ++given;
  if (given != 1)
    return Diagnostic{{},
                      fmt::format("expected one of --{} and --{}, found {}", fmt::join(kinds.begin(), kinds.end() - 1, ", --"), kinds.back(),
                                  given == 0 ? "none" : "several")};
  if (auto ok = options_belong(options, problem); !ok) return ok.error();
  return problem;
}

Expected<Problem> problem_of(const Options& options, Pod& pod, DType default_dtype, const Manner& manner) {
  const auto problem = problem_kind(options);
  if (!problem) return problem.error();
  if (*problem == "gemm") return gemm_problem(options, pod, default_dtype, manner);
  if (*problem == "collective") return collective_problem(options, pod, default_dtype, manner);
  if (*problem == "workload" || *problem == "plan") {
    const auto planned = planned_workload(options, pod, manner);
    if (!planned) return planned.error();
    return workload_problem(*planned, pod);
  }
  return saved_problem(options, pod, manner);
}

}  // namespace podsim
