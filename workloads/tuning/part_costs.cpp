#include "workloads/tuning/part_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "sim/base/invariant.hpp"
#include "sim/base/thread_pool.hpp"
#include "sim/engine/max_plus/analytic_engine.hpp"
#include "sim/model/fold.hpp"
#include "sim/analysis/peak_memory.hpp"
#include "workloads/collectives.hpp"
#include "workloads/tuning/lone_collectives.hpp"

namespace podsim {

namespace {

/// A part that does not fold and is this large would take longer than a search may.
constexpr std::uint64_t most_activities = 20'000'000;

std::string text_of(const std::vector<AxisRings::Ring>& rings) {
  std::string text;
  for (const AxisRings::Ring& ring : rings)
    text += fmt::format("{}{} {} {},", ring.size, ring.wraps ? 'o' : '-', ring.link.bandwidth.count(), ring.link.latency.count());
  return text;
}

/// nullptr: not there.
template <class T>
const T* found_in(const std::unordered_map<std::string, T>* known, const std::string& key) {
  if (known == nullptr) return nullptr;
  const auto found = known->find(key);
  return found == known->end() ? nullptr : &found->second;
}

struct Run {
  Schedule lowered;
  Model model;
  Timeline timeline;
};

/// A run that has not begun. Its model keeps a pointer to its schedule.
Expected<std::unique_ptr<Run>> prepare_run(const System& system, const Schedule& schedule, const std::string& collectives, const EngineEntry& engine, Cancellation stop,
                                           const AutoChooser& choose_auto) {
  const bool states = states_auto(schedule);
  PODSIM_ASSERT(!states || choose_auto);
  const auto chooser = states ? choose_auto(system, schedule, stop) : chooser_of(collectives, chunk_rule(system));
  if (!chooser) return chooser.error();
  auto lowered = lower(schedule, *chooser);
  if (!lowered) return lowered.error();
  auto run = std::make_unique<Run>();
  run->lowered = *std::move(lowered);
  if (stop.requested()) return cancelled_work();
  const auto too_large = [](std::uint64_t activities) {
    return Diagnostic{{}, fmt::format("{} task instances that do not fold are more than a search simulates", activities)};
  };
  // If guards already distinguish devices, that is known before routes are found and devices compared.
  if (const FoldedSize least = least_guarded_size(run->lowered, engine.folds); least.instances > most_activities) return too_large(least.instances);
  auto model = engine.folds ? make_folded_model(run->lowered, system.machine, *system.topology, system.placement, stop)
                            : make_model(run->lowered, system.machine, *system.topology, system.placement, stop);
  if (!model) return model.error();
  run->model = *std::move(model);
  if (run->model.deployment.activities() > most_activities) return too_large(run->model.deployment.activities());
  return run;
}

Expected<std::unique_ptr<Run>> prepare_part(const System& system, const WorkloadPart& part, const PartOptions& options, const std::string& collectives,
                                            const EngineEntry& engine, Cancellation stop, const AutoChooser& choose_auto) {
  const auto schedule = part_schedule(system.mesh, part, options);
  if (!schedule) return schedule.error();
  return prepare_run(system, *schedule, collectives, engine, stop, choose_auto);
}

/// Runs what was prepared, or hands on why it could not be.
Expected<std::unique_ptr<Run>> played(Expected<std::unique_ptr<Run>> run, const EngineEntry& engine, Cancellation stop) {
  if (!run) return run;
  RunControl control;
  control.stop = stop;
  auto timeline = engine.run((*run)->model, control);
  if (!timeline) return timeline.error();
  (*run)->timeline = *std::move(timeline);
  return run;
}

PartCost cost_of(const Run& run) {
  if (run.timeline.interrupted) return {{}, {}, cancelled_work().message};
  PartCost cost{run.timeline.makespan, {}, {}};
  const std::vector<Bytes> peaks = peak_memory(run.model, run.timeline);
  Bytes resident;
  for (const Buffer& buffer : run.lowered.programs.front().buffers)
    if (buffer.role != Role::scratch && buffer.tensor != "dX" && buffer.tensor != "dY") resident += size_of(buffer);
  cost.working = *std::max_element(peaks.begin(), peaks.end()) - resident;
  return cost;
}

}  // namespace

Expected<CollectiveChooser> chooser_of(const std::string& collectives, ChunkRule chunks) {
  if (collectives == by_dimension_name) return by_dimension(std::move(chunks));
  return always(collectives, std::move(chunks));
}

PartCosts::PartCosts(const std::vector<System>& systems, const PartOptions& options, std::string collectives, const EngineEntry& engine, int threads,
                     Cancellation stop, AutoChooser choose_auto, const SimulatedParts* elsewhere, std::int64_t fewest_to_bound)
    : systems_{systems},
      options_{options},
      collectives_{std::move(collectives)},
      engine_{engine},
      threads_{engine.folds ? threads : 1},
      stop_{stop},
      choose_auto_{std::move(choose_auto)},
      elsewhere_{elsewhere},
      fewest_to_bound_{fewest_to_bound} {
  for (std::size_t p = 0; p < systems.size(); ++p) {
    rings_.push_back(axis_rings(systems[p]));
    const bool on_rings = rings_.back() && systems[p].placement.speed.empty();
    signatures_.push_back(on_rings ? fmt::format("{}|{}", text_of(rings_.back()->row), text_of(rings_.back()->col)) : fmt::format("pod {}", p));
  }
}

std::string PartCosts::key(std::size_t system, const WorkloadPart& part) const {
  const auto& axes = systems_[system].mesh.axes();
  return fmt::format("{}x{} {} {}", axes[0].size, axes.size() > 1 ? axes[1].size : 0, signatures_[system], key_of(part));
}

const PartCost* PartCosts::known(const std::string& key) const {
  const auto found = costs_.find(key);
  return found == costs_.end() ? nullptr : &found->second;
}

PartCosts::Found PartCosts::find(const Job& job, const std::string& key, bool bound_first) const {
  const bool wants_bound = bound_first && !least_.contains(key);
  if (elsewhere_ != nullptr) {
    if (const Picoseconds* const least = wants_bound ? found_in(&elsewhere_->least, key) : nullptr) return {{}, *least};
    if (const PartCost* const known = found_in(&elsewhere_->parts, key)) return {*known};
  }
  auto run = prepare_part(systems_[job.system], job.part, options_, collectives_, engine_, stop_, choose_auto_);
  if (run && wants_bound && (*run)->model.deployment.activities() >= fewest_to_bound_)
    if (const auto least = least_makespan((*run)->model, stop_)) return {{}, *least};
  run = played(std::move(run), engine_, stop_);
  return {run ? cost_of(**run) : PartCost{{}, {}, run.error().message}};
}

void PartCosts::simulate(const std::vector<Job>& jobs, bool bound_first, const std::function<void()>& simulated) {
  std::unordered_set<std::string> seen;
  std::vector<const Job*> todo;
  std::vector<std::string> keys;
  for (const Job& job : jobs) {
    std::string k = key(job.system, job.part);
    if (costs_.contains(k) || !seen.insert(k).second) continue;
    todo.push_back(&job);
    keys.push_back(std::move(k));
  }
  std::vector<Found> found(todo.size());
  std::mutex reporting;
  ThreadPool pool{threads_};
  pool.for_each(todo.size(), [&](std::size_t i, std::size_t) {
    if (stop_.requested()) return;
    Found of_job = find(*todo[i], keys[i], bound_first);
    if (stop_.requested()) return;  // what was interrupted is not known
    found[i] = std::move(of_job);
    if (!found[i].cost) return;
    const std::scoped_lock lock{reporting};
    simulated();
  });
  for (std::size_t i = 0; i < todo.size(); ++i) {
    if (found[i].cost) {
      costs_.emplace(std::move(keys[i]), *std::move(found[i].cost));
      ++simulations_;
    } else if (found[i].least > Picoseconds{}) {
      Seconds& bound = bounds_[keys[i]];
      bound = std::max(bound, to_seconds(found[i].least));
      least_.emplace(std::move(keys[i]), found[i].least);
    }
  }
}

Seconds PartCosts::sharp_bound(const std::string& key) const {
  const auto found = bounds_.find(key);
  return found == bounds_.end() ? Seconds{} : found->second;
}

void PartCosts::sharpen(const std::vector<Job>& jobs) {
  struct Sharpening {
    const Job* job;
    std::string key;
    std::vector<LoneCollective> collectives;
  };
  std::vector<Sharpening> todo;
  for (const Job& job : jobs) {
    std::string k = key(job.system, job.part);
    if (!costs_.contains(k) && bounds_.emplace(k, Seconds{}).second) todo.push_back({&job, std::move(k), {}});
  }
  ThreadPool pool{threads_};
  pool.for_each(todo.size(), [&](std::size_t i, std::size_t) {
    const Job& job = *todo[i].job;
    todo[i].collectives = lone_collectives(job.part, options_, systems_[job.system], rings_[job.system]);
    for (LoneCollective& lone : todo[i].collectives) lone.key.insert(0, signatures_[job.system] + ": ");
  });
  struct Lone {
    std::size_t system;
    const LoneCollective* collective;
    std::optional<Seconds> time{};
  };
  std::vector<Lone> unknown;
  for (const Sharpening& part : todo)
    for (const LoneCollective& lone : part.collectives)
      if (collectives_alone_.emplace(lone.key, Seconds{}).second) unknown.push_back({part.job->system, &lone});
  pool.for_each(unknown.size(), [&](std::size_t i, std::size_t) {
    if (const Seconds* known = found_in(elsewhere_ == nullptr ? nullptr : &elsewhere_->collectives, unknown[i].collective->key)) {
      unknown[i].time = *known;
      return;
    }
    const auto run = played(prepare_run(systems_[unknown[i].system], unknown[i].collective->schedule, collectives_, engine_, stop_, choose_auto_), engine_, stop_);
    if (run && !(*run)->timeline.interrupted) unknown[i].time = least_in_part((*run)->timeline.makespan);
  });
  for (const Lone& lone : unknown)
    if (lone.time) collectives_alone_[lone.collective->key] = *lone.time;
  for (const Sharpening& part : todo) {
    if (part.collectives.empty()) continue;
    std::vector<SliceCollectives> known(gemms_of(part.job->part).size());
    for (const LoneCollective& lone : part.collectives)
      (lone.axis == 0 ? known[lone.gemm].row : known[lone.gemm].col) = collectives_alone_.at(lone.key);
    bounds_[part.key] = product_bound(part.job->part, options_, systems_[part.job->system], rings_[part.job->system], known);
  }
}

Expected<TimeSplit> split_of_part(const System& system, const WorkloadPart& part, const PartOptions& options, const std::string& collectives,
                                  const EngineEntry& engine, Cancellation stop, const AutoChooser& choose_auto) {
  const auto run = played(prepare_part(system, part, options, collectives, engine, stop, choose_auto), engine, stop);
  if (!run) return run.error();
  if (stop.requested()) return cancelled_work();
  return measure((*run)->model, (*run)->timeline).split;
}

}  // namespace podsim
