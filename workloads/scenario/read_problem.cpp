#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "sim/base/blame.hpp"
#include "sim/base/file_names.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "workloads/chakra/chakra_schedule.hpp"
#include "workloads/chakra/read_chakra.hpp"
#include "workloads/scenario/collective_candidates.hpp"
#include "workloads/scenario/known_objects.hpp"
#include "workloads/scenario/one_axis.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/tuning/part_costs.hpp"

namespace podsim {

Expected<bool> on_off(const Fields& fields, std::string_view name) {
  const auto word = fields.word(name);
  if (!word) return word.error();
  return *word == "on";
}

namespace {

/// Errors: a field that is given and empty, too.
Expected<CollectivePolicy> read_policy(const Fields& fields, std::string_view name) {
  if (fields.has(name) && fields.text(name).empty()) return Diagnostic{fields.where(name), always("").error().message};
  return parse_policy(fields.text(name), fields.where(name));
}

}  // namespace

Expected<ProblemSpec> read_whole_gemm(const Fields& fields, const System& system, DType default_dtype) {
  auto spec = read_gemm(fields, system.machine, default_dtype);
  if (!spec) return spec.error();
  if (!fields.has("algorithm")) {
    std::vector<std::string_view> names;
    for (const GemmAlgorithmEntry& entry : gemm_algorithms()) names.push_back(entry.name);
    return Diagnostic{{}, fmt::format("`gemm` needs `algorithm`, one of {}; `podsim compare` ranks several", fmt::join(names, ", "))};
  }
  const auto entry = gemm_algorithm(fields.text("algorithm"));
  if (!entry) return Diagnostic{fields.where("algorithm"), entry.error().message};
  spec->algorithm = *entry;
  spec->problem.dataflow = (*entry)->only.value_or(Dataflow::os);
  if (fields.has("dataflow")) {
    const auto dataflow = parse_dataflow(fields.text("dataflow"), fields.where("dataflow"));
    if (!dataflow) return dataflow.error();
    spec->problem.dataflow = *dataflow;
  }
  if ((*entry)->needs_slice_count && !fields.has("slice_count"))
    return Diagnostic{{}, fmt::format("`algorithm` {} needs `slice_count`", (*entry)->name)};
  if (!(*entry)->takes_slice_count && fields.has("slice_count"))
    return Diagnostic{{}, fmt::format("`algorithm` {} takes no `slice_count`", (*entry)->name)};
  if (fields.has("slice_count")) {
    const auto slices = fields.count("slice_count");
    if (!slices) return slices.error();
    spec->options.slice_count = *slices;
  }
  return ProblemSpec{*std::move(spec)};
}

Expected<ProblemSpec> read_open_workload(const Fields& fields, const System& system) {
  auto workload = read_workload(fields, system.mesh.devices());
  if (!workload) return workload.error();
  auto choices = read_plan_choices(fields, system.machine, *workload);
  if (!choices) return choices.error();
  if (fields.has("algorithm")) choices->algorithms = split(fields.text("algorithm"));
  return ProblemSpec{WorkloadSpec{*std::move(workload), *std::move(choices)}};
}

Expected<ProblemSpec> read_planned(const Fields& fields) {
  auto saved = plan_named(fields);
  if (!saved) return fields.of_named_file("plan", saved.error());
  if (const auto chooser = chooser_of(saved->plan.collectives); !chooser) return blamed_on(saved->collectives_where, chooser.error());
  Pass pass = saved->pass;
  if (fields.has("pass")) {
    const auto asked = read_pass(fields);
    if (!asked) return asked.error();
    pass = *asked;
  }
  return ProblemSpec{PlannedWorkload{std::move(saved->workload), std::move(saved->plan), pass}};
}

Expected<ProblemSpec> read_saved_schedule(const Fields& fields, const System& system) {
  const std::string path = fields.text("schedule");
  auto schedule = schedule_named(fields);
  if (!schedule) return fields.of_named_file("schedule", schedule.error());
  if (schedule->mesh.devices() != system.mesh.devices())
    return Diagnostic{{path, 0, 0},
                      fmt::format("the schedule's mesh is {}, the system's is {}: they must have as many devices", to_text(schedule->mesh), to_text(system.mesh))};
  auto policy = read_policy(fields, "algorithm");
  if (!policy) return policy.error();
  return ProblemSpec{ScheduleSpec{*std::move(schedule), *std::move(policy)}};
}

Expected<ProblemSpec> read_traces(const Fields& fields, const System& system) {
  const std::string prefix = fields.text("chakra");
  const int devices = system.mesh.devices();
  if (const int ranks = chakra_ranks(prefix); ranks != devices)
    return Diagnostic{{chakra_file(prefix, std::min(ranks, devices))},
                      fmt::format("expected the traces of {} ranks, one for each device of the mesh {}, found {}", devices, to_text(system.mesh), ranks)};
  const auto cost = fields.word("chakra_cost");
  if (!cost) return cost.error();
  ChakraGroups groups;
  const std::string beside = chakra_groups_file(prefix);
  if (fields.has("chakra_groups") || file_exists(beside)) {
    auto read = read_chakra_groups(fields.has("chakra_groups") ? fields.text("chakra_groups") : beside, devices);
    if (!read) return fields.has("chakra_groups") ? fields.of_named_file("chakra_groups", read.error()) : read.error();
    groups = *std::move(read);
  }
  auto traces = chakra_schedule(
      system.mesh, [&](int rank) { return read_chakra(prefix, rank); }, groups, *cost == "flops" ? ChakraCost::flops : ChakraCost::recorded);
  if (!traces) return traces.error();
  auto policy = read_policy(fields, "algorithm");
  if (!policy) return policy.error();
  if (!fields.has("algorithm")) {
    if (traces->collective_algorithm != by_dimension_name)
      if (auto ok = parse_policy(traces->collective_algorithm, {chakra_file(prefix, 0)}); !ok) return ok.error();
    policy->algorithm = traces->collective_algorithm;
    if (traces->collective_chunks > 0) policy->chunks = traces->collective_chunks;
  }
  return ProblemSpec{ScheduleSpec{std::move(traces->schedule), *std::move(policy)}};
}

Expected<DType> parse_dtype(const std::string& text, const SourceLocation& where) {
  if (const auto dtype = dtype_named(text)) return *dtype;
  return Diagnostic{where, "expected the dtype f32, bf16, f8e4m3fn, f8e5m2, s8, c64 or s32, found " + quoted(text)};
}

Expected<DType> parse_product_dtype(const std::string& text, const SourceLocation& where) {
  if (const auto dtype = dtype_named(text); dtype && is_product_dtype(*dtype)) return *dtype;
  return Diagnostic{where, fmt::format("expected the dtype {}, found {}", product_dtype_names(), quoted(text))};
}

Expected<CollectiveKind> parse_collective_kind(const std::string& text, const SourceLocation& where) {
  constexpr std::array<std::pair<std::string_view, CollectiveKind>, 6> others{{{"psum", CollectiveKind::all_reduce}, {"psumscatter", CollectiveKind::reduce_scatter}, {"ppermute", CollectiveKind::permute},  // of JAX
                                                                               {"collectivepermute", CollectiveKind::permute}, {"sendrecv", CollectiveKind::permute}, {"bcast", CollectiveKind::broadcast}}};  // XLA, nccl-tests, MPI
  for (const auto& [name, kind] : others)
    if (plain_spelling(text) == name) return kind;
  std::vector<std::string> names;
  for (int k = 0; k < collective_kind_count; ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    names.emplace_back(name_of(kind));
    if (plain_spelling(names.back()) == plain_spelling(text)) return kind;
  }
  return Diagnostic{where, "there is no collective " + quoted(text) + did_you_mean(text, names)};
}

namespace {

constexpr std::string_view range_mark = "..";

/// 8, 64KiB, 1MiB: bare bytes where no binary unit says it.
std::string short_size(std::int64_t bytes) {
  constexpr std::array<std::string_view, 4> units{"", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; unit + 1 < units.size() && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, units[unit]);
}

Status add_range(const FieldText& range, std::vector<FieldText>& sizes) {
  const std::size_t mark = range.text.find(range_mark), colon = range.text.find(':');
  const std::string from = range.text.substr(0, mark), to = range.text.substr(0, colon).substr(std::min(colon, mark + range_mark.size()));
  const Diagnostic wrong{range.where, "expected FROM..TO with FROM above 0 and at most TO, found " + quoted(range.text)};
  if (from.empty() || to.empty()) return wrong;
  const auto low = parse_input_bytes(from, range.where);
  if (!low) return low.error();
  const auto high = parse_input_bytes(to, range.where);
  if (!high) return high.error();
  const auto factor = colon == std::string::npos ? Expected<std::int64_t>{2} : parse_integer(range.text.substr(colon + 1), 2, 1024, range.where);
  if (!factor) return factor.error();
  if (low->count() < 1 || *high < *low) return wrong;
  for (std::int64_t size = low->count();; size *= *factor) {
    sizes.push_back({short_size(size), range.where});
    if (size > high->count() / *factor) return success();
  }
}

}  // namespace

Expected<std::vector<FieldText>> input_sizes(const Fields& fields) {
  std::vector<FieldText> sizes;
  for (const FieldText& given : fields.texts("bytes"))
    for (std::string& text : split(given.text)) {
      FieldText size{std::move(text), given.where};
      if (size.text.find(range_mark) != std::string::npos) {
        if (auto ok = add_range(size, sizes); !ok) return ok.error();
        continue;
      }
      if (const auto one = parse_input_bytes(size.text, size.where); !one) return one.error();
      sizes.push_back(std::move(size));
    }
  return sizes;
}

Expected<Bytes> parse_input_bytes(const std::string& text, const SourceLocation& where) {
  if (text.find(range_mark) != std::string::npos) return Diagnostic{where, "expected one amount of data, found the range " + quoted(text) + "; `podsim compare` takes several"};
  const std::size_t unit = text.find_first_not_of("0123456789.");
  if (unit == std::string::npos) return parse_bytes(text + "B", where);
  const bool is_binary = unit > 0 && unit + 1 == text.size() && std::string_view{"KMG"}.find(text.back()) != std::string_view::npos;
  return parse_bytes(is_binary ? text + "iB" : text, where);
}

Expected<Dataflow> parse_dataflow(const std::string& text, const SourceLocation& where) {
  if (const auto dataflow = dataflow_named(text)) return *dataflow;
  return wrong_word("dataflow", text, where);
}

Expected<CollectivePolicy> parse_policy(const std::string& text, const SourceLocation& where) {
  if (!text.empty() && text != auto_name && !is_rule(text))
    if (const auto known = lowering_named(lowered_as_one_axis(text).value_or(text)); !known) return Diagnostic{where, known.error().message};
  return CollectivePolicy{text, {}};
}

Expected<GemmProblem> parse_gemm(const std::string& text, DType default_dtype, const SourceLocation& where) {
  GemmProblem problem;
  problem.dtype = default_dtype;
  std::vector<std::string> seen;
  std::vector<std::string> pieces = split(text, text.find_first_not_of("0123456789x") == std::string::npos ? 'x' : ',');  // 4096x4096x4096
  constexpr std::array<std::string_view, 3> extents{"m=", "n=", "k="};
  if (pieces.size() >= extents.size() && std::ranges::all_of(pieces.begin(), pieces.begin() + extents.size(), [](const std::string& piece) { return piece.find('=') == std::string::npos; }))
    for (std::size_t i = 0; i < extents.size(); ++i) pieces[i].insert(0, extents[i]);  // 4096,4096,4096
  for (const std::string& piece : pieces) {
    const std::size_t equals = piece.find('=');
    const std::string name = piece.substr(0, equals);
    if (equals == std::string::npos || (name != "m" && name != "n" && name != "k" && name != "dtype"))
      return Diagnostic{where, "expected m=,n=,k= and perhaps dtype=, separated by commas, found " + quoted(piece)};
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return Diagnostic{where, name + " is given twice"};
    seen.push_back(name);
    if (name == "dtype") {
      const auto dtype = parse_product_dtype(piece.substr(equals + 1), where);
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

Expected<Pass> read_pass(const Fields& fields) {
  const std::string text = fields.text("pass");
  if (const auto pass = pass_named(text)) return *pass;
  return wrong_word("pass", text, fields.where("pass"));
}

Expected<PartOptions> read_part_options(const Fields& fields, const Machine& machine) {
  const auto block = fields.count("block");
  if (!block) return block.error();
  const auto prefetch = fields.count("prefetch");
  if (!prefetch) return prefetch.error();
  const auto copies = fields.has("slice_copies") ? on_off(fields, "slice_copies") : Expected<bool>{machine.slice_copies};
  if (!copies) return copies.error();
  return PartOptions{*block, static_cast<int>(*prefetch), *copies};
}

Expected<std::vector<std::string>> parse_given(const std::string& text, const SourceLocation& where) {
  std::vector<std::string> given = split(text);
  for (const std::string& tensor : given)
    if (tensor != "X" && tensor != "W" && tensor != "dY") return Diagnostic{where, "expected X, W or dY, found " + quoted(tensor)};
  return given;
}

Expected<GemmSpec> read_gemm(const Fields& fields, const Machine& machine, DType default_dtype) {
  const auto problem = parse_gemm(fields.text("gemm"), default_dtype, fields.where("gemm"));
  if (!problem) return problem.error();
  auto policy = read_policy(fields, "collectives");
  if (!policy) return policy.error();
  GemmSpec spec{nullptr, *problem, Pass::forward, {}, fields.flag("pad"), *std::move(policy)};
  const auto pass = read_pass(fields);
  if (!pass) return pass.error();
  spec.pass = *pass;
  const auto part_options = read_part_options(fields, machine);
  if (!part_options) return part_options.error();
  spec.options = gemm_options(*part_options, 0);
  if (fields.has("given")) {
    auto given = parse_given(fields.text("given"), fields.where("given"));
    if (!given) return given.error();
    spec.given = *std::move(given);
  }
  if (fields.has("wang_operand")) {
    const auto operand = fields.word("wang_operand");
    if (!operand) return operand.error();
    spec.options.wang_operand = *operand == "x" ? WangOperand::x : WangOperand::w;
  }
  return spec;
}

namespace {

/// Whether a number of chunks can matter.
bool in_chunks(const std::string& algorithm, CollectiveKind kind) {
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) return true;
  if (kind == CollectiveKind::permute) return false;
  const CollectiveAlgorithmEntry* entry = collective_algorithm_named(algorithm);
  return algorithm == "auto" || (entry != nullptr && (takes_chunks(*entry, kind) || entry->name == "rotations"));
}

Expected<CollectiveDetails> read_details(const Fields& fields, CollectiveKind kind, std::int64_t devices) {
  CollectiveDetails details;
  const bool rooted = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce, permutes = kind == CollectiveKind::permute;
  for (const auto& [name, belongs, to] : {std::tuple{"root", rooted, "broadcast and reduce"},
                                          {"shift", permutes, "permute"},
                                          {"pairs", permutes, "permute"}})
    if (fields.has(name) && !belongs) return Diagnostic{fields.where(name), fmt::format("belongs to {}, not to {}", to, name_of(kind))};
  if (const std::string name = fields.has("algorithm") ? fields.text("algorithm") : "auto"; fields.has("chunks") && !in_chunks(name, kind))
    return Diagnostic{fields.where("chunks"), fmt::format("belongs to broadcast, reduce and algorithms that work in chunks, not to {} by {}", name_of(kind), name)};
  if (fields.has("root")) {
    const auto root = fields.integer("root", 0, devices - 1);
    if (!root) return root.error();
    details.root = *root;
  }
  if (!permutes) return details;
  if (fields.has("shift") == fields.has("pairs")) return Diagnostic{{}, "a permute needs `shift` or `pairs`, one of them"};
  if (fields.has("shift")) {
    const auto by = fields.integer("shift", -devices, devices);
    if (!by) return by.error();
    details.pairs = shift_pairs(devices, *by);
    return details;
  }
  const auto text = read_file(fields.text("pairs"), list_limit);
  if (!text) return fields.of_named_file("pairs", text.error());
  auto pairs = parse_pairs(*text, fields.text("pairs"), devices);
  if (!pairs) return pairs.error();
  details.pairs = std::move(*pairs);
  return details;
}

}  // namespace

Expected<CollectiveSpec> read_collective(const Fields& fields, const System& system, DType default_dtype) {
  CollectiveSpec spec;
  const auto kind = parse_collective_kind(fields.text("collective"), fields.where("collective"));
  if (!kind) return kind.error();
  spec.kind = *kind;
  if (!fields.has("bytes")) return Diagnostic{{}, "`bytes` is missing: the input of the collective on each device"};
  if (fields.has("axis")) spec.axes = split(fields.text("axis"));
  const auto axes = axes_of(spec.axes, system.mesh);
  if (!axes) return fields.placed(axes.error());
  std::int64_t devices = 1;
  for (const AxisView& axis : *axes) devices *= axis.size;
  const auto bytes = parse_input_bytes(fields.text("bytes"), fields.where("bytes"));
  if (!bytes) return bytes.error();
  spec.input = *bytes;
  const auto dtype = fields.has("dtype") ? parse_dtype(fields.text("dtype"), fields.where("dtype")) : Expected<DType>{default_dtype};
  if (!dtype) return dtype.error();
  spec.dtype = *dtype;
  auto details = read_details(fields, *kind, devices);
  if (!details) return details.error();
  spec.details = *std::move(details);
  auto policy = read_policy(fields, "algorithm");
  if (!policy) return policy.error();
  spec.policy = *std::move(policy);
  if (!fields.has("algorithm")) spec.policy.algorithm = "auto";
  if (!fields.has("chunks")) return spec;
  const auto count = fields.count("chunks");
  if (!count) return count.error();
  spec.policy.chunks = static_cast<int>(*count);
  return spec;
}

Expected<std::vector<Collective::Pair>> parse_pairs(const std::string& text, const std::string& file, std::int64_t devices) {
  std::vector<Collective::Pair> pairs;
  std::set<std::int64_t> senders, receivers;
  const std::vector<std::string> lines = split(text, '\n');
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const std::string line = lines[l].substr(0, lines[l].find('#'));
    std::vector<std::int64_t> numbers;
    constexpr std::string_view blank = " \t\r";
    for (std::size_t begin = line.find_first_not_of(blank); begin != std::string::npos;) {
      const std::size_t end = std::min(line.find_first_of(blank, begin), line.size());
      const SourceLocation where{file, static_cast<int>(l) + 1, static_cast<int>(begin) + 1};
      if (numbers.size() == 2)
        return Diagnostic{where, "expected `from to` and the end of the line, found " + quoted(line.substr(begin, end - begin))};
      const auto number = parse_integer(line.substr(begin, end - begin), 0, devices - 1, where);
      if (!number) return number.error();
      std::set<std::int64_t>& taken = numbers.empty() ? senders : receivers;
      if (!taken.insert(*number).second)
        return Diagnostic{where, fmt::format("position {} {} twice", *number, numbers.empty() ? "sends" : "receives")};
      numbers.push_back(*number);
      begin = line.find_first_not_of(blank, end);
    }
    if (numbers.size() == 1)
      return Diagnostic{{file, static_cast<int>(l) + 1, static_cast<int>(line.size()) + 1}, "expected `from to`, found the end of the line"};
    if (numbers.size() == 2) pairs.push_back({numbers[0], numbers[1]});
  }
  if (pairs.empty()) return Diagnostic{{file, static_cast<int>(lines.size()), 1}, "expected at least one line `from to`"};
  return pairs;
}

}  // namespace podsim
