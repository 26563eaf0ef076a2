#include "validation/validate/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/blame.hpp"
#include "sim/base/thread_pool.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

/// A row that is predicted, and on which system.
struct Target {
  Observation observation;
  std::size_t system = 0;
};

/// One fit and what it predicts. Jobs of one case and hypothesis are the parts that are fitted in turn.
struct Job {
  std::size_t result = 0;        // of all cases under all hypotheses
  SourceLocation where;          // of the case
  std::vector<Observation> fit;  // none: the machine as it stands
  System fit_system;
  CalibrateOptions options;
  std::vector<Target> targets;
  std::vector<System> systems;
  std::vector<ValidatedRow> rows;  // what it found
};

/// The jobs of a dataset's cases.
class Planner {
 public:
  Planner(const Dataset& dataset, std::vector<Job>& jobs, std::vector<ValidatedCase>& results) : dataset_{dataset}, jobs_{jobs}, results_{results} {}

  Status plan() {
    for (const StudyCase& study_case : dataset_.study.cases)
      if (auto ok = plan(study_case); !ok) return ok;
    return success();
  }

 private:
  Status plan(const StudyCase& wanted) {
    Job job;
    std::vector<Observation> fit;
    for (const RowFilter& filter : wanted.fit) {
      const auto rows = rows_of(filter);
      if (!rows) return rows.error();
      fit.insert(fit.end(), rows->begin(), rows->end());
    }
    std::vector<Target> targets;
    for (const RowFilter& filter : wanted.predict) {
      const auto rows = rows_of(filter);
      if (!rows) return rows.error();
      auto system = system_for(filter.system, filter.where);
      if (!system) return system.error();
      for (const Observation& row : *rows) {
        if (std::any_of(fit.begin(), fit.end(), [&](const Observation& other) { return same_place(row, other); }))
          return Diagnostic{wanted.where,
                            fmt::format("case {} is fitted to what it predicts: {}:{}", quoted(wanted.name), row.where.file, row.where.line)};
        targets.push_back({row, job.systems.size()});
      }
      job.systems.push_back(*std::move(system));
    }
    auto fit_system = system_for(wanted.fit_system, wanted.where);
    if (!fit_system) return fit_system.error();
    job.fit_system = *std::move(fit_system);
    job.where = wanted.where;
    job.options.dataset = dataset_.name;
    job.options.priors = wanted.priors;
    job.options.hold = wanted.hold;
    const auto unknown = [](const Observation& row) { return !is_known(row); };
    const bool each = std::any_of(fit.begin(), fit.end(), unknown) ||
                      std::any_of(targets.begin(), targets.end(), [&](const Target& target) { return unknown(target.observation); });
    const std::vector<Hypothesis> none{{}};
    for (const Hypothesis& hypothesis : each ? dataset_.study.hypotheses : none) {
      job.options.predict = hypothesis.predict;
      add(wanted, hypothesis, job, fit, targets, !each && wanted.bound);
    }
    return success();
  }

  void add(const StudyCase& wanted, const Hypothesis& hypothesis, Job job, const std::vector<Observation>& fit, const std::vector<Target>& targets,
           bool counted) {
    ValidatedCase result;
    result.name = wanted.name;
    result.hypothesis = hypothesis.name;
    result.tier = wanted.tier;
    result.counted = counted;
    result.bound = wanted.bound;
    result.no_bound = wanted.no_bound;
    job.result = results_.size();
    std::size_t fitted = 0;
    const int turns = std::max(wanted.turns, 1);
    for (int part = 0; part < turns; ++part) {
      job.fit = fit;
      job.targets.clear();
      std::map<ObservedOp, int> seen;
      for (const Target& target : targets) {
        if (wanted.parts > 0 && seen[target.observation.op]++ % wanted.parts == part)
          job.fit.push_back(target.observation);
        else
          job.targets.push_back(target);
      }
      fitted += job.fit.size();
      jobs_.push_back(job);
    }
    result.fitted = fitted / static_cast<std::size_t>(turns);
    results_.push_back(std::move(result));
  }

  Expected<std::vector<Observation>> rows_of(const RowFilter& filter) {
    std::vector<Observation> all = dataset_.observations;
    if (!filter.dataset.empty()) {
      auto found = find_observations(filter.dataset);
      if (!found) return Diagnostic{filter.where, to_text(found.error())};
      all = *std::move(found);
    }
    std::erase_if(all, [&](const Observation& row) { return !passes(filter, row); });
    if (all.empty()) return Diagnostic{filter.where, "no row of the dataset is of this"};
    return all;
  }

  /// `own`, or the system of the study.
  Expected<System> system_for(const std::optional<Fields>& own, const SourceLocation& where) {
    auto system = read_system(own ? *own : *dataset_.study.system, dataset_.machine);
    if (!system && system.error().where.is_field) return blamed_on(where, system.error());
    return system;
  }

  static bool same_place(const Observation& a, const Observation& b) { return a.where.file == b.where.file && a.where.line == b.where.line; }

  const Dataset& dataset_;
  std::vector<Job>& jobs_;
  std::vector<ValidatedCase>& results_;
};

Expected<ValidatedRow> predicted_row(const Observation& observation, const System& system, const PredictOptions& options) {
  const auto time = predict(observation, system, options);
  if (!time) return time.error().where.file.empty() ? blamed_on(observation.where, time.error()) : time.error();
  return ValidatedRow{observation, *time, time->count() / observation.time.count() - 1};
}

Status carry_out(Job& job) {
  Machine machine = job.fit_system.machine;
  if (!job.fit.empty()) {
    auto calibration = calibrate(job.fit, job.fit_system, job.options);
    if (!calibration && calibration.error().where.file.empty()) return blamed_on(job.where, calibration.error());
    if (!calibration) return calibration.error();
    machine = std::move(calibration->machine);
  }
  for (System& system : job.systems) {
    auto fitted = with_machine(system, machine);
    if (!fitted) return fitted.error();
    system = *std::move(fitted);
  }
  for (const Target& target : job.targets) {
    auto row = predicted_row(target.observation, job.systems[target.system], job.options.predict);
    if (!row) return row.error();
    job.rows.push_back(*std::move(row));
  }
  return success();
}

void conclude(ValidatedCase& found) {
  std::vector<double> errors;
  for (const ValidatedRow& row : found.rows) errors.push_back(row.error);
  found.errors = summary_of(errors);
  found.ok = !found.bound || (found.errors.median <= found.bound->median && found.errors.p95 <= found.bound->p95);
}

}  // namespace

bool is_known(const Observation& observation) {
  if (observation.op == ObservedOp::matmul || observation.op == ObservedOp::hbm_copy || observation.op == ObservedOp::permute) return true;
  return observation.schedule != ObservedSchedule::unknown;
}

bool DatasetValidation::ok() const {
  return std::all_of(cases.begin(), cases.end(), [](const ValidatedCase& one) { return one.ok; });
}

std::vector<double> counted_errors(const DatasetValidation& validation, std::optional<Tier> tier) {
  std::vector<double> errors;
  std::map<Tier, std::set<std::pair<std::string, int>>> seen;  // where rows stand
  for (const ValidatedCase& found : validation.cases) {
    if (!found.counted || (tier && found.tier != *tier)) continue;
    auto& before = seen[found.tier];
    std::set<std::pair<std::string, int>> here;
    for (const ValidatedRow& row : found.rows) {
      const std::pair place{row.observation.where.file, row.observation.where.line};
      if (before.contains(place)) continue;
      errors.push_back(row.error);
      here.insert(place);
    }
    before.insert(here.begin(), here.end());
  }
  return errors;
}

Expected<std::vector<DatasetValidation>> validate(const std::vector<Dataset>& datasets, const ValidateControl& control) {
  std::vector<Job> jobs;
  std::vector<ValidatedCase> results;
  std::vector<std::size_t> first;  // result of each dataset
  for (const Dataset& dataset : datasets) {
    first.push_back(results.size());
    if (auto ok = Planner{dataset, jobs, results}.plan(); !ok) return ok.error();
  }
  first.push_back(results.size());

  std::vector<std::optional<Diagnostic>> problems(jobs.size());
  std::mutex mutex;
  std::size_t finished = 0;
  const auto stopped = [&] { return control.stop.requested(); };
  ThreadPool pool{control.threads};
  pool.for_each(jobs.size(), [&](std::size_t j, std::size_t) {
    if (stopped()) return;
    jobs[j].options.stop = control.stop;
    if (auto ok = carry_out(jobs[j]); !ok) problems[j] = ok.error();
    const std::lock_guard lock{mutex};
    ++finished;
    if (control.done) control.done(finished, jobs.size());
  });
  if (stopped()) return cancelled_work();
  for (const auto& problem : problems)
    if (problem) return *problem;

  for (Job& job : jobs) {
    auto& rows = results[job.result].rows;
    rows.insert(rows.end(), std::make_move_iterator(job.rows.begin()), std::make_move_iterator(job.rows.end()));
  }
  std::vector<DatasetValidation> validations;
  for (std::size_t d = 0; d < datasets.size(); ++d) {
    DatasetValidation validation{datasets[d].name, {}};
    for (std::size_t r = first[d]; r < first[d + 1]; ++r) {
      std::stable_sort(results[r].rows.begin(), results[r].rows.end(), [](const ValidatedRow& a, const ValidatedRow& b) {
        return std::tie(a.observation.where.file, a.observation.where.line) < std::tie(b.observation.where.file, b.observation.where.line);
      });
      conclude(results[r]);
      validation.cases.push_back(std::move(results[r]));
    }
    validations.push_back(std::move(validation));
  }
  return validations;
}

Expected<ValidatedCase> validate_on(const std::vector<Observation>& observations, const System& system, std::optional<ErrorBound> bound) {
  ValidatedCase found;
  found.name = "the machine as it stands";
  found.bound = bound;
  for (const Observation& observation : observations) {
    auto row = predicted_row(observation, system, {});
    if (!row) return row.error();
    found.rows.push_back(*std::move(row));
  }
  conclude(found);
  return found;
}

}  // namespace podsim
