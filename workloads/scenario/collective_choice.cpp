#include "workloads/scenario/collective_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "sim/base/units.hpp"
#include "sim/schedule/validate.hpp"
#include "workloads/collectives.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

namespace {

constexpr std::string_view over_factors = " over ";  // "halves over 4x4"

struct Candidate {
  std::string algorithm;
  CollectiveChooser chooser;
};

/// By more than rounding to picoseconds.
bool is_less(Picoseconds a, Picoseconds b) { return static_cast<double>(a.count()) < static_cast<double>(b.count()) * (1 - 1e-5); }

/// By des, within a limit: nullopt if it takes longer.
Expected<std::optional<Picoseconds>> makespan_within(Picoseconds limit, const System& system, const Schedule& lowered, const RunOptions& options) {
  const auto model = model_on(system, lowered, options);
  if (!model) return model.error();
  RunControl control = options.control;
  control.limit = limit;
  const auto timeline = options.engine->run(*model, control);
  if (!timeline) return timeline.error();
  if (options.stopped()) return cancelled_work();
  return timeline->interrupted ? std::optional<Picoseconds>{} : timeline->makespan;
}

/// Every algorithm by name; where the collective has one axis that folds several dimensions, also on those.
Expected<std::vector<Candidate>> candidates(const Mesh& mesh, const Collective& collective, const ChunkRule& chunks) {
  std::vector<Candidate> result;
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) {
    const auto chooser = always(entry.name, chunks);
    if (!chooser) return chooser.error();
    result.push_back({std::string{entry.name}, *chooser});
    if (collective.axes.size() != 1 || collective.axes.front() != mesh.whole(collective.axes.front().axis)) continue;
    const std::vector<AxisView> factors = mesh.factors(collective.axes.front().axis);
    if (factors.size() < 2) continue;
    std::string sizes;
    for (const AxisView& factor : factors) sizes += (sizes.empty() ? "" : "x") + std::to_string(factor.size);
    result.push_back({fmt::format("{}{}{}", entry.name, over_factors, sizes), on_factors(*chooser, factors)});
  }
  return result;
}

/// What tells collectives of one schedule apart as far as their time goes.
std::string signature(const Program& program, const Collective& c) {
  std::string text = fmt::format("{} {} {} {}", static_cast<int>(c.kind), c.dim, c.split_dim, c.root);
  for (const Collective::Pair& pair : c.pairs) text += fmt::format(" {}-{}", pair.from, pair.to);
  for (const AxisView& axis : c.axes) text += fmt::format(" {}.{}.{}", axis.axis, axis.stride, axis.size);
  for (const Region* region : {&c.input, &c.output}) {
    text += fmt::format(" {}", name_of(program.buffers[region->buffer.index()].dtype));
    for (const Range& range : region->dims) text += fmt::format(" {}", range.length);
  }
  return text;
}

/// The algorithm that takes the least time, the collective alone, by des; ties: the first of the table. What is too large to be simulated without
/// `force` is passed over. Errors: none applies (says why the last did not); cancelled work.
Expected<Candidate> cheapest_algorithm(const System& system, const Schedule& schedule, const Program& program, const Collective& collective,
                                       const ChunkRule& chunks, const RunOptions& options) {
  RunOptions choosing = options;
  choosing.engine = &des_engine();
  choosing.fold = true;
  choosing.control.record = false;
  choosing.control.progress = {};
  const Schedule alone{schedule.name, schedule.mesh, {{program.devices, program.buffers, {{"collective", collective, {}, {}, {}}}}}, {}};
  const auto all = candidates(schedule.mesh, collective, chunks);
  if (!all) return all.error();
  const Candidate* best = nullptr;
  Picoseconds least = end_of_clock;
  Diagnostic why;
  std::optional<Diagnostic> too_large;
  for (const auto& candidate : *all) {
    if (options.stopped()) return cancelled_work();
    options.tell(fmt::format("choosing how to lower {}: {}", name_of(collective.kind), candidate.algorithm));
    const auto lowered = lower(alone, candidate.chooser);
    if (!lowered) {
      why = lowered.error();
      continue;
    }
    const auto makespan = makespan_within(least, system, *lowered, choosing);
    if (!makespan && makespan.error().cause != Cause::input) return makespan.error();
    if (!makespan) too_large = makespan.error();
    if (makespan && *makespan && is_less(**makespan, least)) least = **makespan, best = &candidate;
  }
  if (best == nullptr && too_large) return *too_large;
  if (best == nullptr) return Diagnostic{why.where, "no algorithm applies; the last one: " + why.message};
  return *best;
}

ChunkRule chunks_of(const CollectivePolicy& policy, const System& system) {
  if (!policy.chunks) return chunk_rule(system);
  return in_chunks(*policy.chunks);
}

/// "all-gather along row of 1 MiB"
std::string name_of(const Schedule& schedule, const Program& program, const Collective& collective) {
  std::string axes;
  for (const AxisView& axis : collective.axes) axes += (axes.empty() ? "" : ",") + schedule.mesh.name(axis);
  const Bytes size = bytes_of(program, collective.input);
  return fmt::format("{} along {} of {}", name_of(collective.kind), axes, to_exact_text(size));
}

/// The program that holds a Collective, whose buffers its regions name.
const Program& program_with(const Schedule& schedule, const Collective& collective) {
  for (const Program& program : schedule.programs)
    for (const Task& task : program.tasks)
      if (const auto* held = std::get_if<Collective>(&task.op); held && *held == collective) return program;
  assert(false && "the collective is of this schedule");
  return schedule.programs.front();
}

Expected<CollectiveChoices> choose_each(const System& system, const Schedule& schedule, const ChunkRule& chunks, const RunOptions& options) {
  if (const auto problems = check_shapes(schedule); !problems.empty()) return problems.front();
  CollectiveChoices choices;
  auto known = std::make_shared<std::map<std::string, CollectiveChooser>>();  // a sliced GEMM has the same one again and again
  for (const Program& program : schedule.programs)
    for (const Task& task : program.tasks) {
      const auto* collective = std::get_if<Collective>(&task.op);
      if (collective == nullptr) continue;
      const std::string key = signature(program, *collective);
      if (known->contains(key)) continue;
      auto best = cheapest_algorithm(system, schedule, program, *collective, chunks, options);
      if (!best) return best.error();
      known->emplace(key, std::move(best->chooser));
      choices.chosen.push_back({name_of(schedule, program, *collective), std::move(best->algorithm)});
    }
  choices.chooser = [known](const Schedule& of, const Collective& collective) -> Expected<CollectiveAlgorithm> {
    const auto found = known->find(signature(program_with(of, collective), collective));
    if (found == known->end()) return Diagnostic{{}, "nothing was chosen for this collective"};
    return found->second(of, collective);
  };
  return choices;
}

}  // namespace

Expected<CollectiveChoices> choose_collectives(const System& system, const Schedule& schedule, const CollectivePolicy& policy, const RunOptions& options) {
  const ChunkRule chunks = chunks_of(policy, system);
  if (policy.is_auto()) return choose_each(system, schedule, chunks, options);
  if (policy.algorithm.empty()) return CollectiveChoices{{}, ring_or_line(chunks)};
  if (policy.algorithm == by_dimension_name) return CollectiveChoices{{}, by_dimension(chunks)};
  const std::size_t over = policy.algorithm.find(over_factors);
  auto chooser = always(policy.algorithm.substr(0, over), chunks);
  if (!chooser) return Diagnostic{of_field("collectives"), chooser.error().message};
  if (over == std::string::npos) return CollectiveChoices{{}, *std::move(chooser)};
  return CollectiveChoices{{}, [each = *std::move(chooser)](const Schedule& of, const Collective& collective) {
                             return on_factors(each, of.mesh.factors(collective.axes.front().axis))(of, collective);
                           }};
}

std::string to_text(const CollectiveChoices& choices) {
  std::string text;
  for (const CollectiveChoice& choice : choices.chosen) text += fmt::format("{}: {}\n", choice.collective, choice.algorithm);
  return text;
}

}  // namespace podsim
