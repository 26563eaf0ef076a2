#include "workloads/scenario/collective_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "algorithms/collectives/builder.hpp"
#include "sim/base/invariant.hpp"
#include "sim/base/units.hpp"
#include "sim/engine/busiest_link.hpp"
#include "sim/engine/max_plus/analytic_engine.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/validate.hpp"
#include "workloads/collectives.hpp"
#include "workloads/scenario/chosen_lowerings.hpp"
#include "workloads/scenario/collective_candidates.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

namespace {

constexpr double most_transfers = 2e6;  // of a candidate, where another one applies: it would take seconds to choose
constexpr double most_chunked = 4e6;    // task instances with another number of chunks
constexpr double share_of_function = 0.05;  // of both, where a schedule has functions: its collectives are many, and of training steps on hundreds of devices
constexpr int most_chunks_tried = 128;
constexpr std::int64_t most_at_once = 5'000;  // task instances of a candidate that is played when it is tried

/// By des, within a limit: nullopt if it takes longer.
Expected<std::optional<Picoseconds>> makespan_within(Picoseconds limit, const Model& model, const RunOptions& options) {
  RunControl control = options.control;
  control.limit = limit;
  const auto timeline = options.engine->run(model, control);
  if (!timeline) return timeline.error();
  if (options.stopped()) return cancelled_work();
  return timeline->interrupted ? std::optional<Picoseconds>{} : timeline->makespan;
}

/// Without the axes of one device, which change nothing but what algorithms and names see; of one device as it is.
Collective along_moving_axes(Collective collective) {
  if (std::vector<AxisView> moving = moving_along(collective.axes); !moving.empty()) collective.axes = std::move(moving);
  return collective;
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

/// How many ways the devices send: of an open dimension that goes round by itself those at its end the other way.
double ways_of(const Mesh& mesh, const Shift& shift) {
  double ways = 1;
  if (shift.by_dimension)
    for (const AxisView& dimension : mesh.factors(shift.axis.axis))
      if (!mesh.wraps(dimension) && std::abs(shift.by.constant) / dimension.stride % dimension.size != 0) ways *= 2;
  return ways;
}

/// Transfers that are looked at one by one: with different routes, or not present everywhere.
double transfers_of(const Schedule& lowered) {
  double transfers = 0;
  for (const Program& program : lowered.programs) {
    std::set<std::tuple<AxisView, std::int64_t>> shifts;
    for (const Task& task : program.tasks)
      if (const auto* shift = std::get_if<Shift>(&task.op); shift != nullptr && (!task.where.empty() || shifts.insert({shift->axis, shift->by.constant}).second))
        transfers += ways_of(lowered.mesh, *shift) * size_of(program.devices);
  }
  return transfers;
}

/// What a run takes at least: the longest path of tasks as if they shared nothing.
Picoseconds longest_path(const Model& model, const RunOptions& options) { return least_makespan(model, options.control.stop).value_or(Picoseconds{}); }

/// A collective by itself, and the fastest way found so far to lower it.
class Cheapest {
 public:
  Cheapest(const System& system, const Schedule& schedule, const Program& program, const Collective& collective, const ChunkRule& chunks,
           const RunOptions& options, Picoseconds limit)
      : system_{system},
        alone_{schedule.name, schedule.mesh, {{program.devices, program.buffers, {{"collective", collective, {}, {}, {}}}}}, {}},
        collective_{collective},
        chunks_{chunks},
        cells_{cells_along(system)},
        choosing_{options},
        limited_{limit < end_of_clock},
        least_{limit} {
    choosing_.engine = &des_engine();
    choosing_.fold = true;
    choosing_.control.record = false;
    choosing_.control.progress = {};
    choosing_.control.most_work = RunControl{}.most_work;
    if (!schedule.functions.empty()) most_transfers_ *= share_of_function, most_chunked_ *= share_of_function;
  }

  /// Ties: the first of candidates(). Levels are tried first, as they are often the fastest and then cut the other runs short. Candidates that are
  /// certain to take longer are not lowered. Those of many task instances come last, by what they take at least: where thousands of flows share links, as of
  /// `direct` beside a broken cable, only that keeps them from being played. nullopt: all take longer than the limit. Errors: none applies (says why the last did
  /// not); cancelled work.
  Expected<std::optional<ChosenLowering>> find() {
    std::vector<Lowering> all = candidates(alone_.mesh, collective_, cells_);
    leave_out_alike(all, system_, alone_.mesh, collective_);
    std::erase_if(all, [&](const Lowering& lowering) {
      return !has_its_switches(lowering, system_, alone_.mesh, collective_) || another_does_as_well(lowering, alone_.mesh, collective_);
    });
    std::vector<std::size_t> order;
    for (const bool levels : {true, false})
      for (std::size_t c = 0; c < all.size(); ++c)
        if (all[c].algorithm->has_levels == levels && all[c].algorithm->name != "channels") order.push_back(c);
    for (std::size_t c = 0; c < all.size(); ++c)
      if (all[c].algorithm->name == "channels") order.push_back(c);
    std::vector<std::size_t> large;
    for (const std::size_t c : order) {
      const auto tried = attempt(all[c], c, most_transfers_);
      if (!tried) return tried.error();
      if (!*tried) large.push_back(c);
    }
    if (auto ok = play_waiting(); !ok) return ok.error();
    for (const std::size_t c : large)
      if (!best_ && !beyond_limit_) {
        if (auto tried = attempt(all[c], c, std::numeric_limits<double>::infinity()); !tried) return tried.error();
        if (auto ok = play_waiting(); !ok) return ok.error();
      }
    if (!best_ && beyond_limit_) return std::optional<ChosenLowering>{};
    if (!best_ && too_large_) return *too_large_;
    if (!best_) return Diagnostic{why_.where, "no algorithm applies; the last one: " + why_.message};
    if (auto ok = try_chunks(); !ok) return ok.error();
    return std::optional{ChosenLowering{*best_, least_}};
  }
  /// For CollectivePolicy::chunks: no other numbers are tried.
  void keep_chunks() { other_chunks_ = false; }

 private:
  struct Candidate {
    Lowering lowering;
    std::size_t rank = 0, turn = 0;  // among candidates(); among those that were tried
  };
  /// A candidate before it is played. The model points to the schedule.
  struct Prepared {
    Schedule lowered;
    CostedModel costed;
  };
  /// One that is played when all have been looked at. A million task instances are a gigabyte: only the most promising candidate keeps its model.
  struct Waiting {
    Candidate candidate;
    Picoseconds least;         // by its busiest link
    bool has_paths = false;    // and by the longest path of its tasks
    std::unique_ptr<Prepared> prepared{};
    friend bool operator<(const Waiting& a, const Waiting& b) { return std::tie(a.least, a.candidate.turn) < std::tie(b.least, b.candidate.turn); }
  };

  [[nodiscard]] Expected<Schedule> lowered_by(const Lowering& lowering) const { return lower(alone_, chooser_of(lowering, chunks_, cells_)); }

  /// nullptr: it does not run on the system, or is too large.
  Expected<std::unique_ptr<Prepared>> prepare(Schedule lowered) {
    auto prepared = std::make_unique<Prepared>(Prepared{std::move(lowered), {}});
    auto costed = costed_model_on(system_, prepared->lowered, choosing_);
    if (!costed && !is_of_input(costed.error().cause)) return costed.error();
    if (!costed) too_large_ = costed.error();
    if (!costed) return std::unique_ptr<Prepared>{};
    prepared->costed = *std::move(costed);
    return prepared;
  }

  /// False: too large.
  Expected<bool> fold_if_not_yet(Prepared& prepared) {
    if (prepared.costed.is_folded) return true;
    auto model = folded_model(std::move(prepared.costed), choosing_);
    if (!model && !is_of_input(model.error().cause)) return model.error();
    if (!model) too_large_ = model.error();
    if (!model) return false;
    prepared.costed = {*std::move(model), true};
    return true;
  }

  /// False: not tried, as it has more than `most` transfers. One of many task instances waits for play_waiting().
  Expected<bool> attempt(const Lowering& lowering, std::size_t rank, double most) {
    if (choosing_.stopped()) return cancelled_work();
    choosing_.tell(fmt::format("choosing how to lower {}: {}", name_of(collective_.kind), name_of(lowering, alone_.mesh, collective_)));
    if (is_beyond(least_time(lowering, system_, alone_.mesh, collective_, bytes_of(alone_.programs.front(), collective_.input)) > to_seconds(least_))) return true;
    if (least_transfers(lowering, alone_.mesh, collective_) * size_of(alone_.programs.front().devices) > most) return false;
    auto lowered = lowered_by(lowering);
    if (!lowered) {
      why_ = lowered.error();
      return true;
    }
    if (transfers_of(*lowered) > most) return false;
    auto prepared = prepare(*std::move(lowered));
    if (!prepared) return prepared.error();
    const Candidate candidate{lowering, rank, tried_++};
    if (*prepared == nullptr) return true;
    const Model& model = (*prepared)->costed.model;
    if (model.deployment.activities() <= most_at_once) {
      const auto folded = fold_if_not_yet(**prepared);
      if (!folded) return folded.error();
      if (!*folded) return true;
      if (auto ok = play(candidate, model); !ok) return ok.error();
      return true;
    }
    const Picoseconds least = time_of_busiest_link(model);
    if (is_beyond(least > least_)) return true;
    add({candidate, least, false, *std::move(prepared)});
    return true;
  }

  void add(Waiting added) {
    const bool is_first = std::ranges::all_of(waiting_, [&](const Waiting& other) { return added < other; });
    if (is_first)
      for (Waiting& other : waiting_) other.prepared.reset();
    else
      added.prepared.reset();
    waiting_.push_back(std::move(added));
  }

  /// The one that may be the fastest first: it is played if it still is when the paths of its tasks are known.
  Status play_waiting() {
    while (!waiting_.empty()) {
      if (choosing_.stopped()) return cancelled_work();
      const auto first = std::min_element(waiting_.begin(), waiting_.end());
      Waiting next = std::move(*first);
      waiting_.erase(first);
      if (is_beyond(next.least > least_)) break;  // so are the others
      if (auto ok = play_first(std::move(next)); !ok) return ok;
    }
    waiting_.clear();
    return success();
  }

  Status play_first(Waiting first) {
    const Lowering& lowering = first.candidate.lowering;
    choosing_.tell(fmt::format("choosing how to lower {}: {}", name_of(collective_.kind), name_of(lowering, alone_.mesh, collective_)));
    if (first.prepared == nullptr) {
      auto lowered = lowered_by(lowering);
      if (!lowered) return lowered.error();
      auto prepared = prepare(*std::move(lowered));
      if (!prepared) return prepared.error();
      first.prepared = *std::move(prepared);
      PODSIM_ASSERT(first.prepared != nullptr);  // it was there before
    }
    auto folded = fold_if_not_yet(*first.prepared);
    if (!folded) return folded.error();
    if (!*folded) return success();
    const Model& model = first.prepared->costed.model;
    if (first.has_paths || model.deployment.activities() <= most_at_once) return play(first.candidate, model);
    first.least = std::max(first.least, longest_path(model, choosing_));
    first.has_paths = true;
    add(std::move(first));
    return success();
  }

  /// Notes that one takes longer than what is wanted.
  bool is_beyond(bool longer) {
    beyond_limit_ |= longer && limited_;
    return longer;
  }

  Status play(const Candidate& candidate, const Model& model) {
    const auto makespan = makespan_within(least_, model, choosing_);
    if (!makespan && !is_of_input(makespan.error().cause)) return makespan.error();
    if (!makespan) too_large_ = makespan.error();
    if (!makespan) return success();
    if (is_beyond(!*makespan || **makespan > least_)) return success();  // a run without events goes on beyond its limit
    const bool tie = best_ && **makespan == least_;
    if (!tie) in_chunks_.reset();
    if (takes_chunks(*candidate.lowering.algorithm, collective_.kind) && (!in_chunks_ || candidate.turn < turn_in_chunks_)) in_chunks_ = candidate.lowering, turn_in_chunks_ = candidate.turn;
    if (!tie || candidate.rank < rank_) best_ = candidate.lowering, least_ = **makespan, rank_ = candidate.rank;
    return success();
  }

  /// Twice and half as many chunks as the rule says, as long as that is faster by a hundredth: the rule knows no other traffic.
  Status try_chunks() {
    if (!other_chunks_ || !in_chunks_) return success();
    int fewest = most_chunks_tried, most = 1;  // each phase asks, in the order of the axes
    const ChunkRule noting = [&](const Mesh& mesh, const std::vector<PipelineStage>& stages) {
      const int chunks = chunks_ ? chunks_(mesh, stages) : default_chunks;
      fewest = std::min(fewest, chunks), most = std::max(most, chunks);
      return chunks;
    };
    const Lowering chunked = *in_chunks_;  // the best, or as fast
    const auto lowered = lower(alone_, chooser_of(chunked, noting, cells_));
    if (!lowered) return lowered.error();
    fewest = std::min(fewest, most);
    const double instances = static_cast<double>(lowered->programs.front().tasks.size()) * size_of(lowered->programs.front().devices);
    for (const bool more : {true, false})
      for (int n = more ? most : fewest;;) {
        n = more ? 2 * n : n / 2;
        if (n < 1 || n > most_chunks_tried || instances * n / most > most_chunked_) break;
        Lowering other = chunked;
        other.chunks = n;
        const Picoseconds before = least_;
        if (auto tried = attempt(other, rank_ + 1, most_transfers_); !tried) return tried.error();
        if (auto ok = play_waiting(); !ok) return ok.error();
        if (static_cast<double>(least_.count()) > 0.99 * static_cast<double>(before.count())) break;
      }
    return success();
  }

  const System& system_;
  Schedule alone_;
  const Collective& collective_;
  const ChunkRule& chunks_;
  CellRule cells_;
  RunOptions choosing_;
  double most_transfers_ = most_transfers, most_chunked_ = most_chunked;
  bool other_chunks_ = true;
  std::vector<Waiting> waiting_;
  std::size_t tried_ = 0;
  std::optional<Lowering> best_, in_chunks_;
  std::size_t turn_in_chunks_ = 0;  // of in_chunks_: the first of those that are as fast
  bool limited_ = false, beyond_limit_ = false;
  Picoseconds least_;
  std::size_t rank_ = 0;
  Diagnostic why_;
  std::optional<Diagnostic> too_large_;
};

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

/// What else than the system and the mesh a choice depends on.
std::string key_of_choice(const Schedule& schedule, const Program& program, const std::string& collective, const CollectivePolicy& policy, const RunOptions& options) {
  std::string key = fmt::format("{}; chunks {}; functions {}; force {} {}; on", collective, policy.chunks.value_or(0), !schedule.functions.empty(), options.force, options.most_instances);
  for (const DeviceSet::Interval& interval : program.devices.intervals) key += fmt::format(" {}-{}", interval.first, interval.last);
  return key;
}

/// What was chosen before, or is now. `key` says what the choice depends on. nullopt: all take longer than the limit.
Expected<std::optional<ChosenLowering>> fastest(const System& system, const Schedule& schedule, const Program& program, const Collective& collective, const CollectivePolicy& policy,
                                                const ChunkRule& chunks, const RunOptions& options, const std::string& key, Picoseconds limit) {
  if (auto known = options.chosen->find(system, schedule.mesh, key)) return known->time > limit ? std::optional<ChosenLowering>{} : known;
  Cheapest cheapest{system, schedule, program, collective, chunks, options, limit};
  if (policy.chunks) cheapest.keep_chunks();
  auto found = cheapest.find();
  if (found && *found) options.chosen->add(system, schedule.mesh, key, **found);
  return found;
}

/// Chooses for each collective, or where there is a chooser for all others for each that names auto_name.
Expected<CollectiveChoices> choose_each(const System& system, const Schedule& schedule, const CollectivePolicy& policy, const ChunkRule& chunks, const RunOptions& options,
                                        const CollectiveChooser& others = {}) {
  if (const auto problems = check_shapes(schedule); !problems.empty()) return problems.front();
  CollectiveChoices choices;
  auto known = std::make_shared<std::map<std::string, CollectiveChooser>>();  // a sliced GEMM has the same one again and again
  const auto choose_in = [&](const Program& program) -> Status {
    for (const Task& task : program.tasks) {
      const auto* stated = std::get_if<Collective>(&task.op);
      if (stated == nullptr || (others && stated->algorithm != auto_name)) continue;
      const std::string key = signature(program, *stated);
      if (known->contains(key)) continue;
      const Collective collective = along_moving_axes(*stated);
      const std::string of_choice = key_of_choice(schedule, program, key, policy, options);
      const auto best = fastest(system, schedule, program, collective, policy, chunks, options, of_choice, end_of_clock);
      if (!best) return best.error();
      const Lowering& lowering = (*best)->lowering;  // some take no longer than the clock
      known->emplace(key, on_factors(chooser_of(lowering, chunks, cells_along(system)), collective.axes));
      choices.chosen.push_back({name_of(schedule, program, collective), name_of(lowering, schedule.mesh, collective), lowering});
    }
    return success();
  };
  for (const Program& program : schedule.programs)
    if (auto ok = choose_in(program); !ok) return ok.error();
  for (std::size_t f = 0; f < schedule.functions.size(); ++f) {
    const auto caller = caller_of(schedule, f);
    if (!caller) continue;
    Program body = schedule.functions[f].body;
    body.devices = schedule.programs[*caller].devices;
    if (auto ok = choose_in(body); !ok) return ok.error();
  }
  choices.chooser = [known, others](const Schedule& of, const Program& program, const Collective& collective) -> Expected<CollectiveAlgorithm> {
    if (others && collective.algorithm != auto_name) return others(of, program, collective);
    const auto found = known->find(signature(program, collective));
    if (found == known->end()) return Diagnostic{{}, "nothing was chosen for this collective"};
    return found->second(of, program, collective);
  };
  return choices;
}

}  // namespace

Expected<CollectiveChoices> choose_collectives(const System& system, const Schedule& schedule, const CollectivePolicy& policy, const RunOptions& options) {
  const ChunkRule chunks = chunks_of(policy, system);
  if (policy.is_auto()) return choose_each(system, schedule, policy, chunks, options);
  if (policy.algorithm.empty()) return CollectiveChoices{{}, ring_or_line(chunks)};
  if (policy.algorithm == by_dimension_name && states_auto(schedule)) return choose_each(system, schedule, policy, chunks, options, by_dimension(chunks, cells_along(system)));
  if (policy.algorithm == by_dimension_name) return CollectiveChoices{{}, by_dimension(chunks, cells_along(system))};
  if (policy.algorithm == nccl_name) return CollectiveChoices{{}, as_nccl(chunks)};
  if (policy.algorithm == direct_between_slices_name) return CollectiveChoices{{}, direct_between_slices(system, by_dimension(chunks, cells_along(system)))};
  const auto lowering = policy.chosen ? Expected<Lowering>{*policy.chosen} : lowering_named(policy.algorithm);
  if (!lowering) return Diagnostic{of_field("collectives"), lowering.error().message};
  if (!lowering->on_factors && lowering->order.empty()) return CollectiveChoices{{}, chooser_of(*lowering, chunks, cells_along(system))};
  return CollectiveChoices{{}, [chooser = chooser_of(*lowering, chunks, cells_along(system)), lowering = *lowering, name = policy.algorithm, is_chosen = policy.chosen.has_value()](
                                   const Schedule& of, const Program& program, const Collective& stated) -> Expected<CollectiveAlgorithm> {
                             const Collective collective = along_moving_axes(stated);
                             std::string along;
                             for (const AxisView& axis : collective.axes) along += (along.empty() ? "" : ",") + of.mesh.name(axis);
                             // A name that a user gives says which axes it is for.
                             if (!is_chosen && (!fits(lowering, of.mesh, collective) || name_of(lowering, of.mesh, collective) != name))
                               return Diagnostic{{}, fmt::format("`{}` does not fit a collective along {}: `over` names the sizes of the physical dimensions of "
                                                                 "its only axis, or its axes in another order",
                                                                 name, along)};
                             return on_factors(chooser, collective.axes)(of, program, collective);
                           }};
}

Expected<std::optional<FastestLowering>> fastest_within(Picoseconds limit, const System& system, const Schedule& schedule, const CollectivePolicy& policy, const RunOptions& options) {
  if (const auto problems = check_shapes(schedule); !problems.empty()) return problems.front();
  const Program& program = schedule.programs.front();
  const auto& stated = std::get<Collective>(program.tasks.front().op);
  const Collective collective = along_moving_axes(stated);
  const std::string key = key_of_choice(schedule, program, signature(program, stated), policy, options);
  const auto found = fastest(system, schedule, program, collective, policy, chunks_of(policy, system), options, key, limit);
  if (!found) return found.error();
  if (!*found) return std::optional<FastestLowering>{};
  return std::optional{FastestLowering{name_of((*found)->lowering, schedule.mesh, collective), (*found)->lowering, (*found)->time}};
}

AutoChooser auto_chooser(const RunOptions& options) {
  return [options](const System& system, const Schedule& schedule, Cancellation stop) -> Expected<CollectiveChooser> {
    RunOptions own = options;
    own.control.stop = stop;
    auto choices = choose_collectives(system, schedule, {std::string{auto_name}, {}}, own);
    if (!choices) return choices.error();
    return std::move(choices->chooser);
  };
}

std::string to_text(const CollectiveChoices& choices) {
  std::string text;
  for (const CollectiveChoice& choice : choices.chosen) text += fmt::format("{}: {}\n", choice.collective, choice.algorithm);
  return text;
}

}  // namespace podsim
