#include "validation/validate/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/blame.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/thread_pool.hpp"
#include "sim/machine/machine_fields.hpp"
#include "validation/validate/described_rows.hpp"
#include "validation/validate/run_rows.hpp"
#include "validation/validate/training_rows.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

/// A row that is predicted, and on which system.
struct Target {
  Observation observation;
  std::size_t system = 0;
};

/// A machine fitted to training steps, for all jobs that fit the same.
struct StepFit {
  std::once_flag once;
  std::optional<Expected<Calibration>> found;
};

/// One fit and what it predicts. Jobs of one case and hypothesis are the parts that are fitted in turn.
struct Job {
  std::size_t result = 0;               // of all cases under all hypotheses
  SourceLocation where;                 // of the case
  const Study* study = nullptr;         // of the dataset
  std::shared_ptr<StepFit> step_fit{};  // of a fit to training steps
  std::vector<Observation> fit;         // none: the machine as it stands
  System fit_system;
  CalibrateOptions options;
  std::vector<Target> targets;
  std::vector<System> systems;
  Seconds host;                    // in every measured time
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
    machine_ = dataset_.machine;
    for (const StudyValue& set : wanted.machine_values)
      if (auto ok = set_machine_value(machine_, set.path, set.value, set.source, set.where); !ok) return ok;
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
    job.study = &dataset_.study;
    job.options.dataset = dataset_.name;
    job.options.priors = wanted.priors;
    job.options.hold = wanted.hold;
    job.options.only = wanted.values;
    job.options.curves = wanted.values.empty();
    job.host = dataset_.study.host ? dataset_.study.host->time : Seconds{};
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
    result.pools = wanted.pools;
    job.result = results_.size();
    std::size_t fitted = 0;
    const int turns = std::max(wanted.turns, 1);
    const std::vector<int> dealt = parts_of(targets, wanted.parts);
    for (int part = 0; part < turns; ++part) {
      job.fit = fit;
      job.targets.clear();
      for (std::size_t t = 0; t < targets.size(); ++t) {
        const Target& target = targets[t];
        if (wanted.parts > 0 && dealt[t] == part)
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

  /// The part of each row: rows of an operation are dealt out in turn. In tables of several slices all rows of one size, operation, slice and groups
  /// are in one part, so that no other element type tells what is to be predicted.
  static std::vector<int> parts_of(const std::vector<Target>& targets, int parts) {
    std::vector<int> dealt(targets.size(), 0);
    if (parts == 0) return dealt;
    std::map<ObservedOp, int> seen;
    std::map<std::tuple<ObservedOp, std::string, int, int>, std::set<Bytes>> sizes;
    for (const Target& target : targets) sizes[series_of(target.observation)].insert(target.observation.bytes);
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const Observation& o = targets[t].observation;
      const std::set<Bytes>& of_series = sizes.at(series_of(o));
      const auto rank = static_cast<int>(std::distance(of_series.begin(), of_series.find(o.bytes)));
      dealt[t] = (o.slice.empty() ? seen[o.op]++ : rank) % parts;
    }
    return dealt;
  }
  static std::tuple<ObservedOp, std::string, int, int> series_of(const Observation& o) { return {o.op, o.slice, o.groups, o.devices}; }

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
    auto system = read_system(own ? *own : *dataset_.study.system, machine_);
    if (!system && system.error().where.is_field) return blamed_on(where, system.error());
    return system;
  }

  static bool same_place(const Observation& a, const Observation& b) { return a.where.file == b.where.file && a.where.line == b.where.line; }

  const Dataset& dataset_;
  Machine machine_;  // of the present case
  std::vector<Job>& jobs_;
  std::vector<ValidatedCase>& results_;
};

std::array<ErrorSummary, size_class_count> by_size_class(const std::vector<ValidatedRow>& rows) {
  std::array<std::vector<double>, size_class_count> errors;
  for (const ValidatedRow& row : rows)
    if (const auto size = size_class_of(row.observation)) errors.at(static_cast<std::size_t>(*size)).push_back(row.error);
  std::array<ErrorSummary, size_class_count> result;
  for (std::size_t c = 0; c < result.size(); ++c)
    if (!errors.at(c).empty()) result.at(c) = summary_of(errors.at(c));
  return result;
}

Expected<ValidatedRow> predicted_row(const Observation& observation, const System& system, const PredictOptions& options, Seconds host = {}) {
  const auto time = predict(observation, system, options);
  if (!time) return time.error().where.file.empty() ? blamed_on(observation.where, time.error()) : time.error();
  const Seconds whole = *time + host;
  return ValidatedRow{observation, whole, whole.count() / observation.time.count() - 1};
}

/// The next target of the job, a training step. One that several tables have, on as many slices of the same shape, is simulated once.
Expected<ValidatedRow> predicted_step(const Job& job, const Target& target) {
  const Observation& row = target.observation;
  Expected<Seconds> time = Seconds{};
  const auto same = std::find_if(job.targets.begin(), job.targets.begin() + static_cast<std::ptrdiff_t>(job.rows.size()), [&](const Target& other) {
    return other.system == target.system && other.observation.step == row.step && other.observation.slice == row.slice && other.observation.pods == row.pods &&
           other.observation.devices == row.devices;
  });
  if (const auto known = static_cast<std::size_t>(same - job.targets.begin()); known < job.rows.size()) time = job.rows[known].predicted;
  else time = predict_step(row, *job.study, job.systems[target.system], job.options.stop);
  if (!time) return time.error();
  return ValidatedRow{row, *time, time->count() / row.time.count() - 1};
}

Expected<ValidatedRow> predicted_run(const Observation& row, const Study& study, const Machine& machine, Cancellation stop) {
  const auto time = predict_run(row, study, machine, stop);
  if (!time) return time.error();
  return ValidatedRow{row, *time, time->count() / row.time.count() - 1};
}

/// What is left of measured times for the devices. Errors: nothing.
Status take_out(Seconds host, std::vector<Observation>& rows) {
  for (Observation& row : rows) {
    if (!(row.time > host))
      return Diagnostic{row.where, fmt::format("this row took {} s, of which the host's {} s would leave nothing", row.time.count(), host.count())};
    row.time = row.time - host;
  }
  return success();
}

/// Gives jobs that fit the same values to the same training steps or runs one fit: each takes seconds.
void share_step_fits(std::vector<Job>& jobs) {
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    Job& job = jobs[j];
    if (job.fit.empty() || !is_described(job.fit.front())) continue;
    const auto same = std::find_if(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(j), [&](const Job& other) {
      return other.step_fit != nullptr && other.study == job.study && other.options.only == job.options.only &&
             other.fit_system.machine == job.fit_system.machine &&
             std::ranges::equal(other.fit, job.fit, {}, &Observation::where, &Observation::where);
    });
    job.step_fit = &*same == &job ? std::make_shared<StepFit>() : same->step_fit;
  }
}

Status carry_out(Job& job) {
  Machine machine = job.fit_system.machine;
  if (!job.fit.empty() && is_described(job.fit.front())) {
    job.options.described_time = described_time(*job.study, job.fit_system);
    std::call_once(job.step_fit->once, [&] { job.step_fit->found = calibrate(job.fit, job.fit_system, job.options); });
    const Expected<Calibration>& fitted = *job.step_fit->found;
    if (!fitted && fitted.error().where.file.empty()) return blamed_on(job.where, fitted.error());
    if (!fitted) return fitted.error();
    machine = fitted->machine;
  } else if (!job.fit.empty()) {
    if (auto ok = take_out(job.host, job.fit); !ok) return ok;
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
    auto row = is_run(target.observation) ? predicted_run(target.observation, *job.study, machine, job.options.stop)
               : is_training_step(target.observation) ? predicted_step(job, target)
                                                      : predicted_row(target.observation, job.systems[target.system], job.options.predict, job.host);
    if (!row) return row.error();
    job.rows.push_back(*std::move(row));
  }
  return success();
}

/// Of the rows that were repeated.
std::optional<double> median_spread(const std::vector<ValidatedRow>& rows) {
  std::vector<double> spreads;
  for (const ValidatedRow& row : rows)
    if (row.observation.spread) spreads.push_back(*row.observation.spread);
  return spreads.empty() ? std::nullopt : std::optional{median(std::move(spreads))};
}

void conclude(ValidatedCase& found) {
  std::vector<double> errors;
  for (const ValidatedRow& row : found.rows) errors.push_back(row.error);
  found.errors = summary_of(errors);
  found.by_size = by_size_class(found.rows);
  found.spread = median_spread(found.rows);
  found.ok = !found.bound || (found.errors.median <= found.bound->median && found.errors.p95 <= found.bound->p95);
}

}  // namespace

std::string_view name_of(SizeClass size) {
  switch (size) {
    case SizeClass::small: return "below 1 MiB";
    case SizeClass::medium: return "to 64 MiB";
    case SizeClass::large: return "above 64 MiB";
  }
  return {};
}

std::optional<SizeClass> size_class_of(const Observation& observation) {
  if (observation.op == ObservedOp::matmul || observation.op == ObservedOp::hbm_copy || is_composite(observation) || is_fft(observation) ||
      is_described(observation))
    return std::nullopt;
  const std::int64_t bytes = tensor_bytes(observation).count();
  if (bytes < (std::int64_t{1} << 20)) return SizeClass::small;
  return bytes <= (std::int64_t{1} << 26) ? SizeClass::medium : SizeClass::large;
}

bool is_known(const Observation& observation) {
  if (observation.op == ObservedOp::matmul || observation.op == ObservedOp::hbm_copy || observation.op == ObservedOp::permute ||
      is_fft(observation) || is_described(observation))
    return true;
  return observation.schedule != ObservedSchedule::unknown;
}

bool PooledErrors::misses_bar() const {
  const ErrorSummary& large = by_size.back();
  if (pool.bar_large && large.rows > 0 && large.median > *pool.bar_large) return true;
  return pool.bar && (errors.median > pool.bar->median || errors.p95 > pool.bar->p95);
}

std::vector<PooledErrors> pooled(const std::vector<DatasetValidation>& validations) {
  std::vector<PooledErrors> pools;
  for (const DatasetValidation& validation : validations)
    for (const ValidatedCase& found : validation.cases)
      for (const Pool& pool : found.pools) {
        auto at = std::find_if(pools.begin(), pools.end(), [&](const PooledErrors& p) { return p.pool.name == pool.name; });
        if (at == pools.end()) at = pools.insert(pools.end(), PooledErrors{pool, 0, {}, {}, {}});
        ++at->cases;
        for (const ValidatedRow& row : found.rows) at->rows.emplace_back(validation.dataset, &row);
      }
  for (PooledErrors& pool : pools) {
    std::vector<ValidatedRow> rows;
    std::vector<double> errors;
    for (const auto& [dataset, row] : pool.rows) rows.push_back(*row), errors.push_back(row->error);
    pool.errors = summary_of(errors);
    pool.by_size = by_size_class(rows);
  }
  return pools;
}

NoiseFloor noise_floor(const std::vector<Observation>& observations, const std::string& other, const std::vector<Observation>& of_other) {
  using Key = std::tuple<ObservedOp, int, int, Bytes>;  // groups: 2 x 4 at once is not 1 x 4 alone, but close; they are kept apart
  const auto key_of = [](const Observation& o) { return Key{o.op, o.devices, o.groups, tensor_bytes(o)}; };
  std::map<Key, std::vector<double>> here, there;
  for (const Observation& o : observations) here[key_of(o)].push_back(o.time.count());
  for (const Observation& o : of_other) there[key_of(o)].push_back(o.time.count());
  std::array<std::map<ObservedOp, std::vector<double>>, size_class_count> differences;
  std::set<Key> seen;
  for (const Observation& o : observations) {
    const auto size = size_class_of(o);
    const auto found = there.find(key_of(o));
    if (!size || found == there.end() || !seen.insert(found->first).second) continue;
    const double one = median(here.at(found->first)), two = median(found->second);
    differences.at(static_cast<std::size_t>(*size))[o.op].push_back(std::max(one, two) / std::min(one, two) - 1);
  }
  NoiseFloor floor{other, {}};
  for (std::size_t c = 0; c < differences.size(); ++c)
    for (const auto& [op, values] : differences.at(c)) {
      NoiseFloor::Range& range = floor.by_size.at(c);
      const double typical = median(values);
      range.least = range.rows == 0 ? typical : std::min(range.least, typical);
      range.most = std::max(range.most, typical);
      range.rows += values.size();
    }
  return floor;
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
      if (is_fft(row.observation) || is_described(row.observation)) continue;
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

  share_step_fits(jobs);
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
    DatasetValidation validation{datasets[d].name, {}, {}};
    for (std::size_t r = first[d]; r < first[d + 1]; ++r) {
      std::stable_sort(results[r].rows.begin(), results[r].rows.end(), [](const ValidatedRow& a, const ValidatedRow& b) {
        return std::tie(a.observation.where.file, a.observation.where.line) < std::tie(b.observation.where.file, b.observation.where.line);
      });
      conclude(results[r]);
      validation.cases.push_back(std::move(results[r]));
    }
    for (const std::string& name : datasets[d].study.same_machine) {
      const auto other = find_observations(name);
      if (!other) return Diagnostic{datasets[d].study.machine_where, to_text(other.error())};
      validation.noise.push_back(noise_floor(datasets[d].observations, name, *other));
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
