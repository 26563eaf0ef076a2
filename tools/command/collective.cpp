#include "tools/command/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/engine/table/engines.hpp"
#include "tools/command/simulate.hpp"
#include "workloads/collectives.hpp"

namespace podsim {

namespace {

/// Those of --axis; without it the only axis of more than one device.
Expected<std::vector<AxisView>> axes_of(const Options& options, const Mesh& mesh) {
  std::vector<AxisView> axes;
  if (!options.has("axis")) {
    for (int a = 0; a < static_cast<int>(mesh.axes().size()); ++a)
      if (mesh.whole(a).size > 1 || mesh.axes().size() == 1) axes.push_back(mesh.whole(a));
    if (axes.size() == 1) return axes;
    return Diagnostic{{}, "--axis is missing: the mesh axes of the collective, of " + to_text(mesh)};
  }
  for (const std::string& name : split(options.text("axis"))) {
    const auto axis = mesh.axis(name);
    if (!axis) return Diagnostic{option("axis"), axis.error().message};
    if (std::find(axes.begin(), axes.end(), *axis) != axes.end()) return Diagnostic{option("axis"), "mesh axis " + quoted(name) + " is named twice"};
    axes.push_back(*axis);
  }
  return axes;
}

/// "row,col"
std::string names_of(const Mesh& mesh, const std::vector<AxisView>& axes) {
  std::string names;
  for (const AxisView& axis : axes) names += (names.empty() ? "" : ",") + mesh.name(axis);
  return names;
}

Expected<CollectiveDetails> details_of(const Options& options, CollectiveKind kind, std::int64_t devices) {
  CollectiveDetails details;
  const bool rooted = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce, permutes = kind == CollectiveKind::permute;
  for (const auto& [name, belongs, to] : {std::tuple{"root", rooted, "broadcast and reduce"},
                                          {"chunks", rooted, "broadcast and reduce"},
                                          {"shift", permutes, "permute"},
                                          {"pairs", permutes, "permute"}})
    if (options.has(name) && !belongs) return Diagnostic{option(name), fmt::format("belongs to {}, not to {}", to, name_of(kind))};
  if (options.has("root")) {
    const auto root = options.integer("root", 0, devices - 1);
    if (!root) return root.error();
    details.root = *root;
  }
  if (!permutes) return details;
  if (options.has("shift") == options.has("pairs")) return Diagnostic{{}, "a permute needs --shift or --pairs, one of them"};
  if (options.has("shift")) {
    const auto by = options.integer("shift", -devices, devices);
    if (!by) return by.error();
    details.pairs = shift_pairs(devices, *by);
    return details;
  }
  const auto text = read_file(options.text("pairs"), list_limit);
  if (!text) return text.error();
  auto pairs = parse_pairs(*text, options.text("pairs"), devices);
  if (!pairs) return pairs.error();
  details.pairs = std::move(*pairs);
  return details;
}

/// By more than rounding to picoseconds.
bool is_less(Picoseconds a, Picoseconds b) { return static_cast<double>(a.count()) < static_cast<double>(b.count()) * (1 - 1e-5); }

/// By des, within a limit: nullopt if it takes longer.
Expected<std::optional<Picoseconds>> makespan_within(Picoseconds limit, const Pod& pod, const Schedule& lowered, const Manner& manner) {
  const auto model = model_on(pod, lowered, manner);
  if (!model) return model.error();
  RunControl control = manner.control;
  control.limit = limit;
  const auto timeline = manner.engine->run(*model, control);
  if (!timeline) return timeline.error();
  if (manner.stopped()) return cancelled_work();
  return timeline->interrupted ? std::optional<Picoseconds>{} : timeline->makespan;
}

/// The program that holds a Collective, whose buffers its regions name.
const Program* program_with(const Schedule& schedule, const Collective& collective) {
  for (const Program& program : schedule.programs)
    for (const Task& task : program.tasks)
      if (const auto* held = std::get_if<Collective>(&task.op); held && *held == collective) return &program;
  return nullptr;
}

}  // namespace

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

namespace {

/// Every algorithm by name; where the collective has one axis that folds several dimensions, also on those.
Expected<std::vector<std::pair<std::string, CollectiveChooser>>> candidates(const Mesh& mesh, const Collective& collective, const ChunkRule& chunks) {
  std::vector<std::pair<std::string, CollectiveChooser>> result;
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) {
    const auto chooser = always(entry.name, chunks);
    if (!chooser) return chooser.error();
    result.emplace_back(entry.name, *chooser);
    if (collective.axes.size() != 1 || collective.axes.front() != mesh.whole(collective.axes.front().axis)) continue;
    const std::vector<AxisView> factors = mesh.factors(collective.axes.front().axis);
    if (factors.size() < 2) continue;
    std::string sizes;
    for (const AxisView& factor : factors) sizes += (sizes.empty() ? "" : "x") + std::to_string(factor.size);
    result.emplace_back(fmt::format("{} over {}", entry.name, sizes), on_factors(*chooser, factors));
  }
  return result;
}

/// What tells collectives of one schedule apart as far as their time goes.
std::string signature(const Schedule& schedule, const Collective& c) {
  const Program& program = *program_with(schedule, c);
  std::string text = fmt::format("{} {} {} {}", static_cast<int>(c.kind), c.dim, c.split_dim, c.root);
  for (const Collective::Pair& pair : c.pairs) text += fmt::format(" {}-{}", pair.from, pair.to);
  for (const AxisView& axis : c.axes) text += fmt::format(" {}.{}.{}", axis.axis, axis.stride, axis.size);
  for (const Region* region : {&c.input, &c.output}) {
    text += fmt::format(" {}", name_of(program.buffers[region->buffer.index()].dtype));
    for (const Range& range : region->dims) text += fmt::format(" {}", range.length);
  }
  return text;
}

}  // namespace

Expected<std::pair<std::string, CollectiveChooser>> cheapest_algorithm(const Pod& pod, const Schedule& schedule, const Collective& collective,
                                                                       const ChunkRule& chunks, const Manner& manner) {
  const auto des = timing_engine("des");
  if (!des) return des.error();
  Manner choosing = manner;
  choosing.engine = *des;
  choosing.fold = true;
  choosing.control.record = false;
  choosing.control.progress = {};
  const Program* program = program_with(schedule, collective);
  if (!program) return Diagnostic{{}, "the collective is not in the schedule"};
  const Schedule alone{schedule.name, schedule.mesh, {{program->devices, program->buffers, {{"collective", collective, {}, {}, {}}}}}, {}};
  const auto all = candidates(schedule.mesh, collective, chunks);
  if (!all) return all.error();
  const std::pair<std::string, CollectiveChooser>* best = nullptr;
  Picoseconds least = end_of_clock;
  Diagnostic why;
  std::optional<Diagnostic> too_large;
  for (const auto& candidate : *all) {
    if (manner.stopped()) return cancelled_work();
    manner.tell(fmt::format("choosing how to lower {}: {}", name_of(collective.kind), candidate.first));
    const auto lowered = lower(alone, candidate.second);
    if (!lowered) {
      why = lowered.error();
      continue;
    }
    const auto makespan = makespan_within(least, pod, *lowered, choosing);
    if (!makespan && makespan.error().cause != Cause::input) return makespan.error();
    if (!makespan) too_large = makespan.error();
    if (makespan && *makespan && is_less(**makespan, least)) least = **makespan, best = &candidate;
  }
  if (best == nullptr && too_large) return *too_large;
  if (best == nullptr) return Diagnostic{why.where, "no algorithm applies; the last one: " + why.message};
  return *best;
}

CollectiveChooser cheapest(const Pod& pod, ChunkRule chunks, const Manner& manner) {
  auto known = std::make_shared<std::map<std::string, CollectiveChooser>>();  // a sliced GEMM asks for the same one again and again
  return [on = std::make_shared<const Pod>(pod), known, chunks = std::move(chunks), manner](
             const Schedule& schedule, const Collective& collective) -> Expected<CollectiveAlgorithm> {
    const std::string key = signature(schedule, collective);
    if (const auto found = known->find(key); found != known->end()) return found->second(schedule, collective);
    const auto best = cheapest_algorithm(*on, schedule, collective, chunks, manner);
    if (!best) return best.error();
    known->emplace(key, best->second);
    return best->second(schedule, collective);
  };
}

Expected<CollectiveKind> collective_kind_asked(const std::string& text) {
  if (const auto kind = collective_kind_named(text)) return *kind;
  std::vector<std::string> names;
  for (int k = 0; k < collective_kind_count; ++k) names.emplace_back(name_of(static_cast<CollectiveKind>(k)));
  return Diagnostic{option("collective"), "there is no collective " + quoted(text) + did_you_mean(text, names)};
}

Expected<Bytes> collective_bytes_asked(const std::string& text) {
  const bool bare = text.find_first_not_of("0123456789") == std::string::npos;
  return parse_bytes(bare ? text + "B" : text, option("bytes"));
}

Expected<Problem> collective_problem(const Options& options, const Pod& pod, DType default_dtype, const Manner& manner) {
  const auto kind = collective_kind_asked(options.text("collective"));
  if (!kind) return kind.error();
  if (!options.has("bytes")) return Diagnostic{{}, "--bytes is missing: the input of the collective on each device"};
  const auto axes = axes_of(options, pod.mesh);
  if (!axes) return axes.error();
  std::int64_t devices = 1;
  for (const AxisView& axis : *axes) devices *= axis.size;
  const auto bytes = collective_bytes_asked(options.text("bytes"));
  if (!bytes) return bytes.error();
  DType dtype = default_dtype;
  if (options.has("dtype")) {
    const auto named = parse_dtype(options.text("dtype"), option("dtype"));
    if (!named) return named.error();
    dtype = *named;
  }
  const auto details = details_of(options, *kind, devices);
  if (!details) return details.error();
  ChunkRule chunks = chunk_rule(pod.machine);
  if (options.has("chunks")) {
    const auto count = options.integer("chunks", 1, 1 << 20);
    if (!count) return count.error();
    chunks = [n = static_cast<int>(*count)](int, Bytes) { return n; };
  }
  auto schedule = collective_schedule(pod.mesh, *kind, *axes, *bytes, dtype, *details);
  if (!schedule) return Diagnostic{option("collective"), schedule.error().message};

  Problem problem{std::move(*schedule), ring_or_line(chunks), *kind == CollectiveKind::permute ? "direct" : "ring or line", "", std::nullopt, 0};
  problem.collective = CollectiveAsked{*kind, names_of(pod.mesh, *axes), *bytes, devices};
  if (!options.has("algorithm")) return problem;
  problem.algorithm = options.text("algorithm");
  std::string name = problem.algorithm;
  if (name == "auto") {
    const auto best = cheapest_algorithm(pod, problem.schedule, std::get<Collective>(problem.schedule.computes), chunks, manner);
    if (!best) return best.error().cause == Cause::input ? Diagnostic{option("algorithm"), best.error().message} : best.error();
    problem.algorithm = "auto: " + best->first;
    problem.chooser = best->second;
    problem.lowering = best->first;
    return problem;
  }
  auto chooser = always(name, chunks);
  if (!chooser) return Diagnostic{option("algorithm"), chooser.error().message};
  problem.chooser = std::move(*chooser);
  problem.lowering = name;
  return problem;
}

}  // namespace podsim
