#include "workloads/tuning/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "sim/base/units.hpp"
#include "workloads/tuning/system_search.hpp"

namespace podsim {

namespace {

/// Enough to keep some cores busy, and the same on every machine: what is simulated does not depend on the threads.
constexpr std::size_t batch = 8, exhaustive_batch = 256;

class Search {
 public:
  explicit Search(const TuningRequest& request)
      : request_{request}, costs_{request.systems, request.options, std::string{by_dimension_name}, *request.engine, request.threads, request.stop, request.choose_auto, request.elsewhere.get(), request.fewest_to_bound} {}

  /// Told to stop, of some systems only: then there is nothing else to be asked for.
  Status prepare() {
    if (request_.systems.empty()) return Diagnostic{{}, "there is no system to search on"};
    for (std::size_t p = 0; p < request_.systems.size(); ++p) {
      if (stopped()) break;
      if (const auto submesh = workload_submesh(request_.systems[p].mesh); !submesh) return submesh.error();
      auto search = SystemSearch::make(request_, p, costs_);
      if (!search) return search.error();
      searches_.push_back(*std::move(search));
    }
    return success();
  }

  /// The plans within a limit of memory, best first. What one limit rules out stays so: limits only fall.
  std::vector<TunedPlan> plans(std::optional<Bytes> limit) {
    best_.assign(searches_.size(), std::nullopt);
    stale_.assign(searches_.size(), true);
    if (request_.exhaustive) simulate_everything();
    const std::size_t wanted = std::max<std::size_t>(request_.top, 1);
    std::vector<TunedPlan> found;
    while (!stopped()) {
      refresh();
      const std::vector<std::size_t> order = by_bound();
      found.clear();
      std::vector<PartCosts::Job> jobs;
      bool excluded = false;
      for (const std::size_t p : order) {
        const SystemSearch::Path& path = *best_[p];
        if (found.size() >= wanted && path.time > found.back().time) break;  // of those that take equally long memory decides
        if (!path.known) {
          for (const WorkloadPart& part : path.parts)
            if (costs_.known(p, part) == nullptr) jobs.push_back({p, part});
          if (jobs.size() >= batch) break;
          continue;
        }
        if (!jobs.empty()) continue;  // plans behind one that is not known yet have no place
        TunedPlan plan = searches_[p].plan_of(path);
        if (limit && plan.memory.total() > *limit) {
          searches_[p].exclude(plan, *limit);
          note_excluded(p, plan, *limit);
          stale_[p] = true;
          excluded = true;
          continue;
        }
        found.push_back(std::move(plan));
      }
      if (excluded) continue;
      if (jobs.empty()) break;
      bound_ = best_[order.front()]->time;
      if (!sharpen(jobs)) simulate(jobs, true);
    }
    if (stopped()) found = known_plans(limit);
    sort(found);
    if (found.size() > wanted) found.erase(found.begin() + static_cast<std::ptrdiff_t>(wanted), found.end());
    // Of a stopped search neither the next best nor what bounds rule out are known: some options were never looked at.
    if (!found.empty() && !stopped()) found.front().alternatives = searches_[found.front().system].alternatives(found.front().plan);
    return found;
  }

  std::vector<TunedPlan> baselines() {
    std::vector<PartCosts::Job> jobs;
    for (const BaselinePlan& baseline : request_.baselines)
      if (const auto parts = parts_of(request_.workload, baseline.plan, request_.systems[baseline.system].mesh, request_.pass))
        for (const WorkloadPart& part : *parts) jobs.push_back({baseline.system, part});
    simulate(jobs);
    std::vector<TunedPlan> plans;
    for (const BaselinePlan& baseline : request_.baselines) {
      auto parts = parts_of(request_.workload, baseline.plan, request_.systems[baseline.system].mesh, request_.pass);
      std::string problem = parts ? "" : parts.error().message;
      if (parts)
        for (const WorkloadPart& part : *parts) {
          const PartCost* cost = costs_.known(baseline.system, part);
          if (cost == nullptr || !cost->problem.empty()) problem = cost == nullptr ? "interrupted" : cost->problem;
        }
      if (!problem.empty()) {
        excluded_.push_back({baseline.name, problem});
        continue;
      }
      plans.push_back(searches_[baseline.system].plan_of({{}, baseline.plan, *std::move(parts), true}));
      plans.back().baseline = baseline.name;
    }
    return plans;
  }

  [[nodiscard]] std::string first_reason() const { return excluded_.front().reason; }

  /// A baseline that the options do not contain may still be the best.
  void admit_baselines(Tuning& tuning) const {
    for (const TunedPlan& baseline : tuning.baselines)
      if (!request_.hbm || baseline.memory.total() <= *request_.hbm)
        if (tuning.plans.empty() || baseline.time < tuning.plans.front().time) tuning.plans.insert(tuning.plans.begin(), baseline);
    if (tuning.plans.size() > request_.top) tuning.plans.resize(std::max<std::size_t>(request_.top, 1));
  }

  void finish(Tuning& tuning) const {
    count(tuning);
    tuning.parts = costs_.simulated();
    if (!stopped())
      for (const SystemSearch& search : searches_) tuning.pruned += search.never_simulated();
    for (std::size_t p = 0; p < searches_.size(); ++p)
      if (!best_[p] && !stopped())
        for (const std::string& reason : searches_[p].reasons()) tuning.excluded.push_back({name_of_pod(p), reason});
    tuning.interrupted = stopped();
  }

 private:
  void count(Tuning& tuning) const {
    tuning.simulated = costs_.simulations();
    for (const SystemSearch& search : searches_) tuning.candidates += search.candidates();
    tuning.excluded = excluded_;
  }

  [[nodiscard]] bool stopped() const { return request_.stop.requested(); }
  [[nodiscard]] bool is_ours(std::size_t p) const { return p % request_.shares == request_.share; }
  [[nodiscard]] std::string name_of_pod(std::size_t p) const {
    return fmt::format("{} {}", to_text(request_.systems[p].slice), to_text(request_.systems[p].mesh));
  }

  void refresh() {
    for (std::size_t p = 0; p < searches_.size(); ++p)
      if (stale_[p] && is_ours(p)) best_[p] = searches_[p].best(false), stale_[p] = false;
  }

  [[nodiscard]] std::vector<std::size_t> by_bound() const {
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < searches_.size(); ++p)
      if (best_[p]) order.push_back(p);
    // Of equally long ones first those that are not known: they may be better in memory.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple{best_[a]->time, best_[a]->known} < std::tuple{best_[b]->time, best_[b]->known};
    });
    return order;
  }

  /// Whether jobs have been given better bounds: others may now be better.
  bool sharpen(const std::vector<PartCosts::Job>& jobs) {
    const auto better = [&](const PartCosts::Job& job) { return costs_.sharp_bound(costs_.key(job.system, job.part)) > Seconds{}; };
    std::vector<PartCosts::Job> rough;
    for (const PartCosts::Job& job : jobs)
      if (!costs_.sharpened(costs_.key(job.system, job.part))) rough.push_back(job);
    costs_.sharpen(rough);
    if (std::none_of(rough.begin(), rough.end(), better)) return false;
    stale_.assign(searches_.size(), true);
    return true;
  }

  void simulate(const std::vector<PartCosts::Job>& jobs, bool or_bound = false) {
    std::int64_t count = costs_.simulations();
    const auto simulated = [&] {
      if (request_.progress) request_.progress({++count, incumbent_, bound_, request_.exhaustive ? all_parts_ : 0});
    };
    if (or_bound)
      costs_.bound_or_simulate(jobs, simulated);
    else
      costs_.simulate(jobs, simulated);
    // Systems may share what was found.
    stale_.assign(searches_.size(), true);
    if (!request_.progress && !request_.improved) return;
    const std::optional<Picoseconds> before = incumbent_;
    for (const PartCosts::Job& job : jobs)
      if (const auto path = searches_[job.system].best(true)) incumbent_ = incumbent_ ? std::min(*incumbent_, path->time) : path->time;
    if (request_.improved && incumbent_ != before) request_.improved([this] { return so_far(); });
  }

  /// The best of the plans that are known by now. Leaves out systems whose fastest known plan needs too much memory.
  Tuning so_far() {
    std::vector<std::pair<SystemSearch::Path, std::size_t>> paths;
    for (std::size_t p = 0; p < searches_.size(); ++p)
      if (auto path = searches_[p].best(true)) paths.emplace_back(*std::move(path), p);
    std::stable_sort(paths.begin(), paths.end(), [](const auto& a, const auto& b) { return a.first.time < b.first.time; });
    Tuning tuning;
    for (const auto& [path, p] : paths) {
      if (tuning.plans.size() == std::max<std::size_t>(request_.top, 1)) break;
      TunedPlan plan = searches_[p].plan_of(path);
      if (!request_.hbm || plan.memory.total() <= *request_.hbm) tuning.plans.push_back(std::move(plan));
    }
    sort(tuning.plans);
    count(tuning);
    tuning.interrupted = true;
    return tuning;
  }

  void simulate_everything() {
    std::vector<PartCosts::Job> jobs;
    for (const SystemSearch& search : searches_) {
      if (!is_ours(search.system())) continue;
      for (WorkloadPart& part : search.all_parts()) jobs.push_back({search.system(), std::move(part)});
    }
    std::set<std::string> different;
    for (const PartCosts::Job& job : jobs) different.insert(costs_.key(job.system, job.part));
    all_parts_ = static_cast<std::int64_t>(different.size());
    for (std::size_t first = 0; first < jobs.size(); first += exhaustive_batch)
      simulate({jobs.begin() + static_cast<std::ptrdiff_t>(first), jobs.begin() + static_cast<std::ptrdiff_t>(std::min(first + exhaustive_batch, jobs.size()))});
  }

  std::vector<TunedPlan> known_plans(std::optional<Bytes> limit) {
    std::vector<TunedPlan> found;
    for (SystemSearch& search : searches_)
      while (const auto path = search.best(true)) {
        TunedPlan plan = search.plan_of(*path);
        if (!limit || plan.memory.total() <= *limit) {
          found.push_back(std::move(plan));
          break;
        }
        search.exclude(plan, *limit);
      }
    return found;
  }

  static void sort(std::vector<TunedPlan>& plans) {
    std::stable_sort(plans.begin(), plans.end(), [](const TunedPlan& a, const TunedPlan& b) {
      return std::tuple{a.time, a.memory.total(), a.system} < std::tuple{b.time, b.memory.total(), b.system};
    });
  }

  void note_excluded(std::size_t p, const TunedPlan& plan, Bytes limit) {
    if (!request_.hbm || limit != *request_.hbm) return;  // a step of the Pareto front
    const MemoryUse& m = plan.memory;
    excluded_.push_back({name_of_pod(p),
                         fmt::format("a plan of {} needs {} of {}: weights {}, gradients {}, optimiser {}, activations {}, working {}",
                                     to_text(to_seconds(plan.time)), to_text(m.total()), to_text(limit), to_text(m.weights), to_text(m.gradients),
                                     to_text(m.optimizer), to_text(m.activations), to_text(m.working)),
                         m.activations > Bytes{} && request_.pass != Pass::forward});
  }

  const TuningRequest& request_;
  PartCosts costs_;
  std::vector<SystemSearch> searches_;
  std::vector<std::optional<SystemSearch::Path>> best_;
  std::vector<bool> stale_;
  std::vector<ExcludedOption> excluded_;
  std::optional<Picoseconds> incumbent_;
  Picoseconds bound_;
  std::int64_t all_parts_ = 0;
};

Diagnostic nothing_applies(const Tuning& tuning) {
  std::string text = "no plan applies";
  std::size_t shown = 0;
  for (const ExcludedOption& option : tuning.excluded)
    if (shown++ < 6) text += fmt::format("{} {}: {}", shown == 1 ? ":" : ";", option.what, option.reason);
  if (shown > 6) text += fmt::format("; and {} more", shown - 6);
  if (std::any_of(tuning.excluded.begin(), tuning.excluded.end(), [](const ExcludedOption& option) { return option.by_activations; }))
    text += fmt::format("; {}", no_remat);
  return {{}, text};
}

}  // namespace

Expected<Tuning> tune(const TuningRequest& request) {
  Search search{request};
  if (auto ok = search.prepare(); !ok) return ok.error();
  Tuning tuning;
  tuning.interrupted = request.stop.requested();
  if (tuning.interrupted) return tuning;
  tuning.baselines = search.baselines();
  tuning.plans = search.plans(request.hbm);
  search.admit_baselines(tuning);
  search.finish(tuning);
  if (tuning.plans.empty() && !tuning.interrupted && request.shares == 1) return nothing_applies(tuning);
  return tuning;
}

Expected<TunedPlan> evaluate_plan(const System& system, const Workload& workload, const Plan& plan, Pass pass, const EngineEntry& engine, int threads,
                                   Cancellation stop, AutoChooser choose_auto) {
  TuningRequest request;
  request.workload = workload;
  request.systems = {system};
  request.pass = pass;
  request.options = plan.options;
  request.baselines = {{"plan", 0, plan}};
  request.engine = &engine;
  request.threads = threads;
  request.stop = stop;
  request.choose_auto = std::move(choose_auto);
  Search search{request};
  if (auto ok = search.prepare(); !ok) return ok.error();
  if (stop.requested()) return cancelled_work();
  std::vector<TunedPlan> plans = search.baselines();
  if (stop.requested()) return cancelled_work();
  if (plans.empty()) return Diagnostic{{}, search.first_reason()};
  plans.front().baseline.clear();
  return std::move(plans.front());
}

Expected<std::vector<TunedPlan>> pareto_plans(const TuningRequest& request, std::size_t most) {
  TuningRequest one = request;
  one.top = 1;
  Search search{one};
  if (auto ok = search.prepare(); !ok) return ok.error();
  if (request.stop.requested()) return cancelled_work();
  std::vector<TunedPlan> front;
  std::optional<Bytes> limit = request.hbm;
  while (front.size() < most) {
    std::vector<TunedPlan> best = search.plans(limit);
    if (best.empty()) break;
    limit = best.front().memory.total() - Bytes{1};
    front.push_back(std::move(best.front()));
  }
  return front;
}

}  // namespace podsim
