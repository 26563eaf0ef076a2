// The costs of parts on systems, by simulation; each part is simulated once.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/engine/engine.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/schedule/lower.hpp"
#include "topologies/system.hpp"
#include "workloads/collectives.hpp"
#include "workloads/plan.hpp"
#include "workloads/tuning/bound.hpp"

namespace podsim {

struct PartCost {
  Picoseconds time;
  Bytes working;          // besides weights, their gradients and activations: gathered operands, partial sums, gradients of activations
  std::string problem{};  // why it cannot run; empty: it can
};

/// What has been simulated, by key: equal keys, equal results, on whichever host. A search takes from it what it would simulate.
struct SimulatedParts {
  std::unordered_map<std::string, PartCost> parts;
  std::unordered_map<std::string, Seconds> collectives;  // alone: a lower bound of their time in a part
  std::unordered_map<std::string, Picoseconds> least;    // of parts, as if they shared nothing
};

/// The chooser of a schedule whose collectives name auto_name, by simulation (scenario/collective_choice.hpp has one). Called from any thread. Errors: no algorithm applies; cancelled work.
using AutoChooser = std::function<Expected<CollectiveChooser>(const System&, const Schedule&, Cancellation)>;

/// A part with fewer task instances costs less to simulate than to make its model twice.
inline constexpr std::int64_t few_activities = 20'000;

/// Simulates parts in parallel, one per thread. Systems whose axes lie over equal rings share results. The systems must outlive this object.
class PartCosts {
 public:
  /// `elsewhere`: what other hosts have simulated; it must outlive this object. Only time shows whether a result comes from there. `choose_auto`: of products by auto_name.
  PartCosts(const std::vector<System>& systems, const PartOptions& options, std::string collectives, const EngineEntry& engine, int threads, Cancellation stop,
            AutoChooser choose_auto = {}, const SimulatedParts* elsewhere = nullptr, std::int64_t fewest_to_bound = few_activities);

  /// A key that is equal for simulations with equal results. Keep it where a part is looked up often.
  [[nodiscard]] std::string key(std::size_t system, const WorkloadPart& part) const;
  /// nullptr: not simulated yet. The pointer stays valid.
  [[nodiscard]] const PartCost* known(const std::string& key) const;
  [[nodiscard]] const PartCost* known(std::size_t system, const WorkloadPart& part) const { return known(key(system, part)); }

  struct Job {
    std::size_t system = 0;
    WorkloadPart part;
  };
  /// Simulates the jobs that are not known yet; calls `simulated` as each ends, from any thread, one at a time. Returns early if cancelled.
  void simulate(const std::vector<Job>& jobs, const std::function<void()>& simulated) { simulate(jobs, false, simulated); }
  /// The same, but of a part with `fewest_to_bound` task instances or more it first finds what it would take if it shared nothing (least_makespan(), a tenth of the cost of
  /// events), as its bound. With that the job may not be wanted any more; if it still is, the next call simulates it.
  void bound_or_simulate(const std::vector<Job>& jobs, const std::function<void()>& simulated) { simulate(jobs, true, simulated); }

  /// Finds better bounds for jobs that are not known yet, where simulating their collectives alone does so; each collective is simulated once.
  void sharpen(const std::vector<Job>& jobs);
  /// By key: the bound that sharpen() or bound_or_simulate() has found; none: neither was asked, or there is no better one than product_bound().
  [[nodiscard]] Seconds sharp_bound(const std::string& key) const;
  /// Whether sharpen() was asked for it.
  [[nodiscard]] bool sharpened(const std::string& key) const { return bounds_.contains(key); }

  [[nodiscard]] std::int64_t simulations() const { return simulations_; }
  /// All that is known by now.
  [[nodiscard]] SimulatedParts simulated() const { return {costs_, collectives_alone_, least_}; }
  [[nodiscard]] const std::optional<AxisRings>& rings(std::size_t system) const { return rings_[system]; }

 private:
  /// What a simulation has found: a cost, or first its bound.
  struct Found {
    std::optional<PartCost> cost{};
    Picoseconds least{};
  };
  void simulate(const std::vector<Job>& jobs, bool bound_first, const std::function<void()>& simulated);
  [[nodiscard]] Found find(const Job& job, const std::string& key, bool bound_first) const;

  const std::vector<System>& systems_;
  PartOptions options_;
  std::string collectives_;
  const EngineEntry& engine_;
  int threads_;
  Cancellation stop_;
  AutoChooser choose_auto_;
  std::vector<std::optional<AxisRings>> rings_;
  std::vector<std::string> signatures_;  // systems with the same one are equivalent
  std::unordered_map<std::string, PartCost> costs_;
  std::unordered_map<std::string, Seconds> bounds_;             // by key of a part
  std::unordered_map<std::string, Picoseconds> least_;          // the same: of those that bound_or_simulate() has bounded
  std::unordered_map<std::string, Seconds> collectives_alone_;  // by signature and LoneCollective::key
  const SimulatedParts* elsewhere_;
  std::int64_t fewest_to_bound_;
  std::int64_t simulations_ = 0;
};

/// Simulates one part and splits the time of the busiest device. Errors: those of building, lowering and running it.
Expected<TimeSplit> split_of_part(const System& system, const WorkloadPart& part, const PartOptions& options, const std::string& collectives,
                                  const EngineEntry& engine, Cancellation stop = {}, const AutoChooser& choose_auto = {});

/// The chooser for a plan's collectives: by_dimension_name, or the name of an algorithm. Errors: no such algorithm.
Expected<CollectiveChooser> chooser_of(const std::string& collectives, ChunkRule chunks = {});

}  // namespace podsim
