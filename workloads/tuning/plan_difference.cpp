#include "workloads/tuning/plan_difference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace podsim {

namespace {

/// The stage that a part belongs to.
std::string stage_of(const WorkloadPart& part) {
  constexpr std::string_view suffix = " re-layout";
  return part.name.ends_with(suffix) ? part.name.substr(0, part.name.size() - suffix.size()) : part.name;
}

struct ScaledValue {
  std::string_view name;
  void (*scale)(Machine&, double);
};
constexpr std::array<ScaledValue, 5> values{{
    {"link bandwidth",
     [](Machine& m, double f) {
       for (LinkParameters& link : m.link) link.bandwidth = f * link.bandwidth;
       m.chip.injection_bandwidth = f * m.chip.injection_bandwidth;
       m.chip.ejection_bandwidth = f * m.chip.ejection_bandwidth;
     }},
    {"latency of a message",
     [](Machine& m, double f) {
       for (LinkParameters& link : m.link) link.latency = f * link.latency;
       m.software.per_message = f * m.software.per_message;
     }},
    {"launch",
     [](Machine& m, double f) {
       for (Seconds& launch : m.software.launch) launch = f * launch;
     }},
    {"peak FLOP/s",
     [](Machine& m, double f) {
       for (FlopsPerSecond& peak : m.chip.peak) peak = f * peak;
     }},
    {"HBM bandwidth", [](Machine& m, double f) { m.chip.hbm_bandwidth = f * m.chip.hbm_bandwidth; }},
}};

/// What both plans take on machines with one value scaled.
class ScaledRace {
 public:
  ScaledRace(const TuningRequest& request, const TunedPlan& first, const TunedPlan& second) : request_{request}, plans_{&first, &second} {}

  /// By how much `second` is slower; negative: faster.
  Expected<double> lead(const ScaledValue& value, double factor) const {
    std::vector<System> systems;
    for (const TunedPlan* plan : plans_) {
      const System& system = request_.systems[plan->system];
      Machine machine = system.machine;
      value.scale(machine, factor);
      auto scaled = with_machine(system, std::move(machine));
      if (!scaled) return scaled.error();
      systems.push_back(*std::move(scaled));
    }
    PartCosts costs{systems, request_.options, std::string{by_dimension_name}, *request_.engine, request_.threads, request_.stop, request_.choose_auto};
    std::vector<PartCosts::Job> jobs;
    for (std::size_t p = 0; p < 2; ++p)
      for (const TunedPart& part : plans_[p]->parts) jobs.push_back({p, part.part});
    costs.simulate(jobs, [] {});
    std::array<double, 2> times{};
    for (const PartCosts::Job& job : jobs) {
      const PartCost* cost = costs.known(job.system, job.part);
      if (cost == nullptr) return cancelled_work();
      if (!cost->problem.empty()) return Diagnostic{{}, cost->problem};
      times[job.system] += to_seconds(cost->time).count();
    }
    return times[1] - times[0];
  }

 private:
  const TuningRequest& request_;
  std::array<const TunedPlan*, 2> plans_;
};

}  // namespace

std::vector<PartDifference> differences(const TunedPlan& first, const TunedPlan& second) {
  std::map<std::pair<std::string, Pass>, PartDifference> by_name;
  const auto add = [&](const TunedPlan& plan, Picoseconds PartDifference::*time) {
    for (const TunedPart& part : plan.parts) {
      PartDifference& entry = by_name[{stage_of(part.part), part.part.pass}];
      entry.name = stage_of(part.part);
      entry.pass = part.part.pass;
      entry.*time += part.cost.time;
    }
  };
  add(first, &PartDifference::first);
  add(second, &PartDifference::second);
  std::vector<PartDifference> result;
  for (auto& [key, entry] : by_name)
    if (entry.first != entry.second) result.push_back(std::move(entry));
  std::stable_sort(result.begin(), result.end(), [](const PartDifference& a, const PartDifference& b) {
    return std::abs((a.second - a.first).count()) > std::abs((b.second - b.first).count());
  });
  return result;
}

Expected<TimeSplit> split_of(const TuningRequest& request, const TunedPlan& plan) {
  TimeSplit sum;
  for (const TunedPart& part : plan.parts) {
    const auto split = split_of_part(request.systems[plan.system], part.part, plan.plan.options, plan.plan.collectives, *request.engine, request.stop, request.choose_auto);
    if (!split) return split.error();
    sum.compute += split->compute;
    sum.exposed_communication += split->exposed_communication;
    sum.waiting += split->waiting;
  }
  return sum;
}

Expected<std::vector<Flip>> what_flips(const TuningRequest& request, const TunedPlan& first, const TunedPlan& second) {
  const ScaledRace race{request, first, second};
  std::vector<Flip> flips;
  for (const ScaledValue& value : values) {
    // The nearest power of two at which they change places, on either side; then by bisection.
    double inside = 1, outside = 0;
    for (const double factor : {0.5, 2.0, 0.25, 4.0, 0.125, 8.0}) {
      const auto lead = race.lead(value, factor);
      if (!lead) return lead.error();
      if (*lead >= 0) continue;
      inside = factor < 1 ? 2 * factor : factor / 2;
      outside = factor;
      break;
    }
    if (outside == 0) continue;
    while (std::abs(std::log(outside / inside)) > 0.03) {
      const double middle = std::sqrt(inside * outside);
      const auto lead = race.lead(value, middle);
      if (!lead) return lead.error();
      (*lead < 0 ? outside : inside) = middle;
    }
    flips.push_back({std::string{value.name}, outside});
  }
  return flips;
}

}  // namespace podsim
