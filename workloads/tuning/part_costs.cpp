#include "workloads/tuning/part_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "sim/base/thread_pool.hpp"
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

/// The run's model keeps a pointer to its schedule.
Expected<std::unique_ptr<Run>> run_schedule(const System& system, const Schedule& schedule, const std::string& collectives, const EngineEntry& engine,
                                            Cancellation stop) {
  const auto chooser = chooser_of(collectives, chunk_rule(system));
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
  RunControl control;
  control.stop = stop;
  auto timeline = engine.run(run->model, control);
  if (!timeline) return timeline.error();
  run->timeline = *std::move(timeline);
  return run;
}

Expected<std::unique_ptr<Run>> run_part(const System& system, const WorkloadPart& part, const PartOptions& options, const std::string& collectives,
                                        const EngineEntry& engine, Cancellation stop) {
  const auto schedule = part_schedule(system.mesh, part, options);
  if (!schedule) return schedule.error();
  return run_schedule(system, *schedule, collectives, engine, stop);
}

}  // namespace

Expected<CollectiveChooser> chooser_of(const std::string& collectives, ChunkRule chunks) {
  if (collectives == by_dimension_name) return by_dimension(std::move(chunks));
  return always(collectives, std::move(chunks));
}

PartCosts::PartCosts(const std::vector<System>& systems, const PartOptions& options, std::string collectives, const EngineEntry& engine, int threads,
                     Cancellation stop, const SimulatedParts* elsewhere)
    : systems_{systems},
      options_{options},
      collectives_{std::move(collectives)},
      engine_{engine},
      threads_{engine.folds ? threads : 1},
      stop_{stop},
      elsewhere_{elsewhere} {
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

PartCost PartCosts::run(std::size_t system, const WorkloadPart& part) const {
  const auto run = run_part(systems_[system], part, options_, collectives_, engine_, stop_);
  if (!run) return {{}, {}, run.error().message};
  PartCost cost{(*run)->timeline.makespan, {}, {}};
  if ((*run)->timeline.interrupted) return {{}, {}, cancelled_work().message};
  const std::vector<Bytes> peaks = peak_memory((*run)->model, (*run)->timeline);
  Bytes resident;
  for (const Buffer& buffer : (*run)->lowered.programs.front().buffers)
    if (buffer.role != Role::scratch && buffer.tensor != "dX" && buffer.tensor != "dY") resident += size_of(buffer);
  cost.working = *std::max_element(peaks.begin(), peaks.end()) - resident;
  return cost;
}

void PartCosts::simulate(const std::vector<Job>& jobs, const std::function<void()>& simulated) {
  std::unordered_set<std::string> seen;
  std::vector<const Job*> todo;
  std::vector<std::string> keys;
  for (const Job& job : jobs) {
    std::string k = key(job.system, job.part);
    if (costs_.contains(k) || !seen.insert(k).second) continue;
    todo.push_back(&job);
    keys.push_back(std::move(k));
  }
  std::vector<std::optional<PartCost>> found(todo.size());
  std::mutex reporting;
  ThreadPool pool{threads_};
  pool.for_each(todo.size(), [&](std::size_t i, std::size_t) {
    if (stop_.requested()) return;
    const PartCost* const known = found_in(elsewhere_ == nullptr ? nullptr : &elsewhere_->parts, keys[i]);
    PartCost cost = known != nullptr ? *known : run(todo[i]->system, todo[i]->part);
    if (stop_.requested()) return;  // what was interrupted is not known
    found[i] = std::move(cost);
    const std::scoped_lock lock{reporting};
    simulated();
  });
  for (std::size_t i = 0; i < todo.size(); ++i)
    if (found[i]) costs_.emplace(std::move(keys[i]), *std::move(found[i])), ++simulations_;
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
    const auto run = run_schedule(systems_[unknown[i].system], unknown[i].collective->schedule, collectives_, engine_, stop_);
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
                                  const EngineEntry& engine, Cancellation stop) {
  const auto run = run_part(system, part, options, collectives, engine, stop);
  if (!run) return run.error();
  if (stop.requested()) return cancelled_work();
  return measure((*run)->model, (*run)->timeline).split;
}

}  // namespace podsim
