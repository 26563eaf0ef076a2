#include "workloads/advice/advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "sim/base/cancellation.hpp"
#include "sim/base/thread_pool.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

TriedRemedy outcome_of(Remedy remedy, const Run& run) {
  return {std::move(remedy), run.row.result.makespan_s, run.row.result.exposed_communication_s, Bytes{run.row.result.peak_memory_bytes}, run.row.over_hbm};
}

/// Tasks that an engine plays for a run: of devices that behave alike those of one.
double played_tasks(const Run& run) {
  double tasks = 0;
  for (std::size_t p = 0; p < run.model.costs.size(); ++p) tasks += static_cast<double>(run.model.costs[p].size()) * static_cast<double>(run.model.deployment.programs[p].devices.size());
  return tasks;
}

constexpr double most_tasks_of_one = 10e6;  // a few seconds

class Trials {
 public:
  /// `played`: tasks of the run itself.
  Trials(const Fields& fields, const RunOptions& options, double played) : fields_{fields}, options_{options} {
    // In another order devices may no longer behave alike: a hundred times as many tasks.
    if (!options.force) options_.most_instances = std::min(options_.most_instances, std::max(most_tasks_of_one, 4 * played));
    options_.control.record = false;
    options_.control.progress = {};
    options_.doing = {};
    options_.counting = {};
  }

  Expected<TriedRemedy> of(const Remedy& remedy) const {
    if (options_.stopped()) return cancelled_work();
    const Fields fields = with(fields_, remedy);
    const auto system = read_system(fields);
    if (!system) return system.error();
    const auto problem = read_problem(fields, *system, DType::bf16);
    if (!problem) return problem.error();
    const auto run = simulate(*system, *problem, options_);
    if (!run) return run.error();
    if (run->timeline.interrupted) return cancelled_work();
    return outcome_of(remedy, *run);
  }

 private:
  const Fields& fields_;
  RunOptions options_;
};

bool is_part_of(const Remedy& part, const Remedy& whole) {
  return std::ranges::all_of(part.changes, [&](const FieldChange& change) { return std::ranges::find(whole.changes, change) != whole.changes.end(); });
}

/// What several remedies change; nullopt: two of them give one field different texts.
std::optional<Remedy> joined(const std::vector<const Remedy*>& remedies) {
  Remedy all;
  std::vector<std::string> names;
  for (const Remedy* remedy : remedies) {
    names.push_back(remedy->what);
    for (const FieldChange& change : remedy->changes) {
      const auto same = std::ranges::find(all.changes, subject_of(change), &subject_of);
      if (same == all.changes.end()) {
        all.changes.push_back(change);
      } else if (same->text != change.text) {
        return std::nullopt;
      }
    }
  }
  all.what = fmt::format("{}", fmt::join(names, "; "));
  return all;
}

/// The first three of different fields that help, none a part of another.
std::vector<const Remedy*> best_three(const Advice& advice) {
  constexpr std::size_t most = 3;
  std::vector<const Remedy*> best;
  for (const TriedRemedy& one : advice.tried) {
    if (best.size() == most) break;
    const auto is_like = [&](const Remedy* other) {
      return subject_of(other->changes.front()) == subject_of(one.remedy.changes.front()) || is_part_of(*other, one.remedy) || is_part_of(one.remedy, *other);
    };
    if (!helps(one, advice) || std::ranges::any_of(best, is_like)) continue;
    best.push_back(&one.remedy);
    if (!joined(best)) best.pop_back();
  }
  return best;
}

/// The least of these factors that halves what is exposed, found by bisection; then the run with it, else that with the largest.
Status find_links(Advice& advice, const Run& run, const Trials& trials) {
  static constexpr std::array factors{1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, most_links_factor};
  if (!(advice.before.exposed_communication_s > least_advised_gain * advice.before.makespan_s) || faster_links(run, 2).changes.empty()) return success();
  std::size_t low = 0, high = factors.size();  // the answer is in [low, high); high: none
  while (low < high) {
    const std::size_t middle = std::min((low + high) / 2, factors.size() - 1);
    auto tried = trials.of(faster_links(run, factors[middle]));
    if (!tried && tried.error().cause == Cause::cancelled) return tried.error();
    if (!tried) return success();  // on such links it takes too long to simulate: the rest of the advice stands
    const bool is_half = tried->exposed_communication_s <= advice.before.exposed_communication_s / 2;
    if (is_half || middle + 1 == factors.size()) advice.faster_links = *std::move(tried);
    if (is_half) {
      advice.links_factor = factors[middle];
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return success();
}

}  // namespace

bool helps(const TriedRemedy& tried, const Advice& advice) {
  const auto is_better_than = [&](const TriedRemedy& other) {
    return tried.over_hbm != other.over_hbm ? other.over_hbm : tried.makespan_s < other.makespan_s * (1 - least_advised_gain);
  };
  const auto is_other_part = [&](const TriedRemedy& other) { return other.remedy.changes.size() < tried.remedy.changes.size() && is_part_of(other.remedy, tried.remedy); };
  return is_better_than(advice.before) && std::ranges::all_of(advice.tried, [&](const TriedRemedy& other) { return !is_other_part(other) || is_better_than(other); });
}

Expected<Advice> advise(const Fields& fields, const Run& run, const RunOptions& options) {
  Advice advice;
  advice.before = outcome_of({}, run);
  std::vector<Remedy> remedies = remedies_of(fields, run);
  advice.refused = needless_remedies(fields, run);
  const double played = played_tasks(run);
  if (!options.force) {
    constexpr std::size_t always = 6;
    const auto most = std::max(always, static_cast<std::size_t>(most_played_for_advice / std::max(1.0, played)));
    if (remedies.size() > most) {
      advice.not_tried.assign(remedies.begin() + static_cast<std::ptrdiff_t>(most), remedies.end());
      remedies.resize(most);
    }
  }
  options.tell(fmt::format("simulating {} remedies", remedies.size()));
  const Trials trials{fields, options, played};
  std::vector<Expected<TriedRemedy>> outcomes(remedies.size(), Expected<TriedRemedy>{TriedRemedy{}});
  std::atomic<std::size_t> done = 0;
  ThreadPool{options.engine->folds ? options.threads : 1}.for_each(remedies.size(), [&](std::size_t r, std::size_t) {
    outcomes[r] = trials.of(remedies[r]);
    options.count(++done, remedies.size());
  });
  options.count(0, 0);
  if (options.stopped()) return cancelled_work();
  for (std::size_t r = 0; r < remedies.size(); ++r) {
    if (outcomes[r])
      advice.tried.push_back(*std::move(outcomes[r]));
    else if (outcomes[r].error().cause == Cause::too_large)
      advice.not_tried.push_back(remedies[r]);
    else
      advice.refused.push_back({remedies[r], outcomes[r].error().message});
  }
  std::ranges::stable_sort(advice.tried, [](const TriedRemedy& a, const TriedRemedy& b) { return std::pair{a.over_hbm, a.makespan_s} < std::pair{b.over_hbm, b.makespan_s}; });

  if (const auto best = best_three(advice); best.size() > 1) {
    options.tell("simulating the best together");
    auto together = trials.of(*joined(best));
    if (!together && together.error().cause == Cause::cancelled) return together.error();
    if (together)
      advice.together = *std::move(together);
    else
      advice.why_not_together = together.error().message;
  }
  options.tell("simulating faster links");
  if (auto ok = find_links(advice, run, trials); !ok) return ok.error();
  return advice;
}

}  // namespace podsim
