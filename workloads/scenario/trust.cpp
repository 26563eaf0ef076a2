#include "workloads/scenario/trust.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"

namespace podsim {

namespace {

/// `tier` of a training step on a machine as shipped.
constexpr std::string_view steps_tier = "training steps";

/// From near to far. Several operations at once are predicted better than one that was not observed.
constexpr std::array<Tier, tier_count> by_distance{Tier::other_sizes, Tier::other_products, Tier::composite, Tier::other_operation,
                                                   Tier::other_scale};

bool within(const SizeRange& inner, const SizeRange& outer) { return outer.least <= inner.least && inner.most <= outer.most; }

std::string bytes_text(const SizeRange& range) {
  const std::string least = to_exact_text(Bytes{range.least}), most = to_exact_text(Bytes{range.most});
  return least == most ? least : fmt::format("{} to {}", least, most);
}
std::string extent_text(const SizeRange& range) {
  return range.least == range.most ? std::to_string(range.least) : fmt::format("{} to {}", range.least, range.most);
}
std::string extents_text(const Coverage& c) { return fmt::format("m={}, n={}, k={}", extent_text(c.m), extent_text(c.n), extent_text(c.k)); }


/// Compares what runs with what was fitted.
class Comparison {
 public:
  explicit Comparison(const std::vector<Coverage>& covers) : covers_{covers} {}

  void add(const Coverage& run) {
    std::set<std::string> operations, devices, along;
    const Coverage* same = nullptr;
    for (const Coverage& fitted : covers_) {
      operations.insert(std::string{name_of(fitted.operation)});
      if (fitted.operation != run.operation) continue;
      devices.insert(std::to_string(fitted.devices));
      if (fitted.devices != run.devices) continue;
      along.insert(fitted.along);
      if (fitted.along == run.along) same = &fitted;
    }
    const std::string_view name = name_of(run.operation);
    if (devices.empty())
      note(Tier::other_operation, fmt::format("{}, fitted to {}", name, fmt::join(operations, ", ")));
    else if (along.empty())
      note(Tier::other_scale, fmt::format("{} over {} devices, fitted over {}", name, run.devices, fmt::join(devices, ", ")));
    else if (same == nullptr)
      note(Tier::other_scale, fmt::format("{} along {}, fitted along {}", name, run.along, fmt::join(along, " and ")));
    else if (run.operation == CostKind::matmul && !(within(run.m, same->m) && within(run.n, same->n) && within(run.k, same->k)))
      note(Tier::other_products, fmt::format("{} of {}, fitted with {}", name, extents_text(run), extents_text(*same)));
    else if (!within(run.bytes, same->bytes))
      note(Tier::other_sizes, fmt::format("{} of {}, fitted from {}", name, bytes_text(run.bytes), bytes_text(same->bytes)));
  }

  void note(Tier tier, std::string text) {
    if (std::find(beyond.begin(), beyond.end(), text) == beyond.end()) beyond.push_back(std::move(text));
    const auto distance = [](Tier of) { return std::find(by_distance.begin(), by_distance.end(), of); };
    if (!furthest || distance(tier) > distance(*furthest)) furthest = tier;
  }

  std::optional<Tier> furthest;
  std::vector<std::string> beyond;

 private:
  const std::vector<Coverage>& covers_;
};

Comparison compared(const System& system, const std::vector<Coverage>& run) {
  Comparison comparison{system.machine.trust.covers};
  std::set<std::string> operations;
  for (const Coverage& one : run) {
    comparison.add(one);
    operations.insert(std::string{name_of(one.operation)});
  }
  if (operations.size() > 1) comparison.note(Tier::composite, fmt::format("{} in one run, fitted one by one", fmt::join(operations, ", ")));
  return comparison;
}

}  // namespace

std::string_view name_of(Tier tier) {
  constexpr std::array<std::string_view, tier_count> names{"other sizes", "other operation", "other scale", "composite", "other products"};
  return names.at(static_cast<std::size_t>(tier));
}

const std::array<TierError, tier_count>& tier_errors() {
  static constexpr std::array<TierError, tier_count> errors{{{Tier::other_sizes, 0.038, 0.43},
                                                             {Tier::other_operation, 0.081, 0.29},
                                                             {Tier::other_scale, 0.088, 0.35},
                                                             {Tier::composite, 0.025, 0.058},
                                                             {Tier::other_products, 0.046, 0.17}}};
  return errors;
}

const std::vector<StepError>& step_errors() {
  static const std::vector<StepError> errors{{"tpu_v4", "tpu_v4_training", false, 6, 2, 0.018, 0.045},
                                             {"tpu_v5e", "tpu_v5e_training", false, 36, 20, 0.061, 0.14},
                                             {"tpu_v5p", "tpu_v5p_training", false, 10, 9, 0.074, 0.16},
                                             {"dgx_a100", "bloom_a100 fsdp_a100 megatron_a100 megatron_a100_2021", true, 46, 45, 0.28, 0.53},
                                             {"dgx_h100", "fsdp_h100 nemo_h100", true, 26, 26, 0.162, 0.215}};
  return errors;
}

const StepError* step_error_of(std::string_view machine) {
  // Relatives are those whose products and attention the machine's file takes; of GPUs the newest whose published steps are a dataset of many rows here.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> relatives{{{"tpu_v3", "tpu_v4"},
                                                                                           {"tpu_v6e", "tpu_v5e"},
                                                                                           {"tpu7x", "tpu_v5p"},
                                                                                           {"dgx_h200", "dgx_h100"},
                                                                                           {"dgx_b200", "dgx_h100"},
                                                                                           {"gb200_nvl72", "dgx_h100"}}};
  const auto relative = std::ranges::find(relatives, machine, &std::pair<std::string_view, std::string_view>::first);
  const std::string_view of = relative == relatives.end() ? machine : relative->second;
  const auto found = std::ranges::find(step_errors(), of, &StepError::machine);
  return found == step_errors().end() ? nullptr : &*found;
}

bool has_nodes(const System& system) {
  const std::vector<int>& extents = system.slice.extents;
  return system.machine.interconnect == Interconnect::rail && extents.size() > 1 && extents.front() > 1 && extents.back() > 1;
}

RunTrust trust_of(const System& system, const std::vector<Coverage>& run, const std::optional<OtherLowering>& lowering) {
  const Trust& machine = system.machine.trust;
  RunTrust trust{std::string{name_of(machine.level)}, machine.dataset, machine.error};
  if (is_hypothetical(system) || system.machine.slices.any_shape) return as_what_if(std::move(trust));
  if (machine.level != TrustLevel::fitted) return trust;
  if (machine.covers.empty()) {
    trust.beyond = {"the machine's file does not say what it was fitted to"};
    return trust;
  }
  Comparison comparison = compared(system, run);
  const std::size_t known = comparison.beyond.size();
  const bool communicates_any = std::any_of(run.begin(), run.end(), [](const Coverage& one) { return one.devices > 1; });
  if (communicates_any && !system.devices.empty()) comparison.beyond.emplace_back("a mesh on listed devices, fitted on all of a slice");
  const bool communicates = std::any_of(run.begin(), run.end(), [](const Coverage& one) { return one.devices > 1 && one.operation != CostKind::permute; });
  // calibrate predicts an all-reduce by a ring or in the switch, whichever is faster.
  const bool is_covered = !lowering || (lowering->in_switch && has_adding_switches(system.machine));
  if (communicates && !is_covered)
    comparison.beyond.push_back(fmt::format("collectives by {}, fitted by ring or line{}", lowering->name, has_nodes(system) ? ", GPUs of a node first" : ""));
  if (comparison.beyond.empty()) return trust;
  const bool unknown_error = comparison.beyond.size() > known;
  trust.level = "extrapolated";
  trust.fitted_error = std::exchange(trust.error, std::nullopt);
  trust.beyond = std::move(comparison.beyond);
  if (!comparison.furthest) return trust;
  trust.tier = name_of(*comparison.furthest);
  const TierError& error = tier_errors().at(static_cast<std::size_t>(*comparison.furthest));
  if (unknown_error) return trust;
  trust.error = error.median;
  trust.p95_error = error.p95;
  return trust;
}

RunTrust of_training_step(RunTrust trust, const System& system, bool has_experts) {
  if (trust.level != name_of(TrustLevel::measured)) return trust;
  if (has_experts) {
    trust.beyond = {"training steps with experts: of those that are published one was predicted, whose experts are not divided (podsim validate tpu_v5p_mixtral), so how wrong this one is is not known"};
    return trust;
  }
  const StepError* steps = step_error_of(system.machine.name);
  if (steps == nullptr) return trust;
  trust.error = steps->median, trust.p95_error = steps->p95;
  trust.tier = steps_tier;
  const std::string where = steps->machine == system.machine.name ? "" : fmt::format(", on {}, its nearest relative: not measured here", steps->machine);
  trust.beyond = {fmt::format("training steps: published ones that nothing was fitted to come out with a median error of {} and a 95th percentile of {} ({} predictions of podsim validate {}{}; {} of them too fast)",
                              rough_percent(steps->median), rough_percent(steps->p95), steps->predictions, steps->datasets, where, steps->too_fast == steps->predictions ? "all" : std::to_string(steps->too_fast)),
                  "to narrow it: podsim calibrate ROWS.csv --steps STEPS.textproto with steps that were timed on the machine in question"};
  return trust;
}

RunTrust as_what_if(RunTrust trust) {
  RunTrust what_if{std::string{name_of(TrustLevel::hypothetical)}, std::move(trust.dataset)};
  what_if.fitted_error = trust.fitted_error ? trust.fitted_error : trust.error;
  return what_if;
}

std::vector<std::string> lines_of(const RunTrust& trust) {
  const std::string fitted_error = trust.fitted_error ? fmt::format(", median error {}", rough_percent(*trust.fitted_error)) : "";
  if (trust.level == "spec") return {"spec: specified and published values, not calibrated"};
  if (trust.level == "hypothetical") {
    if (trust.dataset.empty()) return {"hypothetical: a what-if"};
    return {trust.fitted_error ? fmt::format("hypothetical: a what-if of a machine fitted to {}{} as it was", trust.dataset, fitted_error)
                               : fmt::format("hypothetical: a what-if of a machine whose values were measured: {}", trust.dataset)};
  }
  if (trust.level != "extrapolated") {
    const std::string error = trust.error && trust.tier != steps_tier ? fmt::format(", median error {}", rough_percent(*trust.error)) : "";  // of the dataset
    std::vector<std::string> lines{trust.dataset.empty() ? trust.level + error : fmt::format("{}: {}{}", trust.level, trust.dataset, error)};
    lines.insert(lines.end(), trust.beyond.begin(), trust.beyond.end());
    return lines;
  }
  const std::string known = trust.error ? fmt::format("such predictions have a median error of {} and a 95th percentile of {} in podsim validate",
                                                      rough_percent(*trust.error), rough_percent(*trust.p95_error))
                                        : "how wrong such predictions are is not known";
  std::vector<std::string> lines{fmt::format("extrapolated{}{}: {}", trust.tier.empty() ? "" : " to ", trust.tier, known),
                                 fmt::format("fitted: {}{}", trust.dataset, fitted_error)};
  for (const std::string& beyond : trust.beyond) lines.push_back("beyond the fit: " + beyond);
  return lines;
}

}  // namespace podsim
