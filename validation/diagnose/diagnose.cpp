#include "validation/diagnose/diagnose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <tuple>

#include "sim/base/minimum.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "validation/calibration/fit/predict.hpp"
#include "validation/diagnose/hypotheses.hpp"
#include "workloads/scenario/collective_candidates.hpp"
#include "workloads/scenario/collective_choice.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_rows = 24;      // of one operation
constexpr double no_difference = 0.002;    // of two predictions
constexpr double tells_apart = 0.05;
constexpr double equally_well = 0.01;      // of two errors
constexpr double of_noise = 0.02;          // by so much less may be a chance fit to a healthy system's noise
constexpr std::size_t most_told_apart = 4;  // hypotheses
constexpr std::size_t most_refined = 3;     // sorts of slow cables

/// Predicts under hypotheses. What the library chooses on the healthy system is found once for each operation and size.
class PredictedRows {
 public:
  explicit PredictedRows(const System& healthy, Cancellation stop) : healthy_{healthy} { options_.control.stop = std::move(stop); }

  Expected<Seconds> of(const Observation& row, const MachineHypothesis& hypothesis) {
    switch (hypothesis.rule) {
      case AlgorithmRule::again: {
        const auto best = fastest(row, hypothesis.system);
        return best ? Expected<Seconds>{best->second} : Expected<Seconds>{best.error()};
      }
      case AlgorithmRule::named:
      case AlgorithmRule::worst: return by_algorithm(row, hypothesis);
      case AlgorithmRule::healthy: break;
    }
    const auto chosen = choice(row);
    if (!chosen) return chosen.error();
    return by_name(row, hypothesis.system, chosen->first);
  }

 private:
  using Choice = std::pair<std::string, Seconds>;  // name of an algorithm; empty: the only way

  static Expected<Seconds> by_name(const Observation& row, const System& system, const std::string& name) {
    PredictOptions options;
    if (const auto kind = collective_kind_named(name_of(row.op))) options.algorithm.at(static_cast<std::size_t>(*kind)) = name;
    return predict(row, system, options);
  }

  Expected<Choice> choice(const Observation& row) {
    const std::tuple key{row.op, row.bytes.count(), row.in_place};
    if (const auto known = chosen_.find(key); known != chosen_.end()) return known->second;
    auto best = fastest(row, healthy_);
    if (best) chosen_.emplace(key, *best);
    return best;
  }

  [[nodiscard]] Expected<Choice> fastest(const Observation& row, const System& system) const {
    const auto schedule = schedule_of(row, system);
    if (!schedule) return schedule.error();
    if (row.op == ObservedOp::permute) {
      const auto time = predict(row, system);
      return time ? Expected<Choice>{Choice{"", *time}} : Expected<Choice>{time.error()};
    }
    const auto best = fastest_within(Picoseconds{std::numeric_limits<std::int64_t>::max()}, system, *schedule, {std::string{auto_name}}, options_);
    if (!best) return best.error();
    if (!*best) return Diagnostic{row.where, fmt::format("no algorithm of {} applies here", name_of(row.op))};
    const auto time = by_name(row, system, (*best)->name);
    return time ? Expected<Choice>{Choice{(*best)->name, *time}} : Expected<Choice>{time.error()};
  }

  /// In every order of axes, and with several numbers of chunks.
  static Expected<Seconds> by_algorithm(const Observation& row, const MachineHypothesis& hypothesis) {
    constexpr std::array<int, 6> chunks_to_try{4, 8, 16, 32, 64, 128};
    const auto schedule = schedule_of(row, hypothesis.system);
    if (!schedule) return schedule.error();
    const auto* collective = std::get_if<Collective>(&schedule->computes);
    std::optional<Seconds> found;
    const bool worst = hypothesis.rule == AlgorithmRule::worst;
    if (collective != nullptr && collective->kind != CollectiveKind::permute)
      for (const Lowering& lowering : candidates(schedule->mesh, *collective)) {
        if (lowering.algorithm->name != hypothesis.algorithm || !has_its_switches(lowering, hypothesis.system, schedule->mesh, *collective)) continue;
        std::vector<Lowering> tried{lowering};
        if (!worst && takes_chunks(*lowering.algorithm, collective->kind))
          for (const int chunks : chunks_to_try) tried.push_back(lowering), tried.back().chunks = chunks;
        for (const Lowering& one : tried)
          if (const auto time = by_name(row, hypothesis.system, name_of(one, schedule->mesh, *collective)); time && (!found || (worst ? *time > *found : *time < *found))) found = *time;
      }
    if (!found) return Diagnostic{row.where, fmt::format("{} does not apply here", quoted(hypothesis.algorithm))};
    return *found;
  }

  const System& healthy_;
  RunOptions options_;
  std::map<std::tuple<ObservedOp, std::int64_t, bool>, Choice> chosen_;
};

/// Rows of collectives of all devices, evenly among many.
std::vector<Observation> rows_to_predict(const std::vector<Observation>& observations, const System& healthy, std::vector<std::string>& notes) {
  std::map<ObservedOp, std::vector<Observation>> by_op;
  std::size_t others = 0;
  for (const Observation& row : observations) {
    const bool whole = row.devices == healthy.mesh.devices() && row.groups == 1 && slice_of(row, healthy).empty();
    if (!collective_kind_named(name_of(row.op)) || row.m > 0 || !whole)
      ++others;
    else
      by_op[row.op].push_back(row);
  }
  if (others > 0) notes.push_back(fmt::format("{} left out: only collectives of all {} devices are diagnosed", counted(static_cast<std::int64_t>(others), "row"), healthy.mesh.devices()));
  std::vector<Observation> rows;
  for (auto& [op, all] : by_op) {
    const std::size_t count = std::min(all.size(), most_rows);
    if (count < all.size()) notes.push_back(fmt::format("of {} rows of {} every {:.2g}th is taken", all.size(), name_of(op), static_cast<double>(all.size()) / static_cast<double>(count)));
    for (std::size_t i = 0; i < count; ++i) rows.push_back(all[count == 1 ? 0 : i * (all.size() - 1) / (count - 1)]);
  }
  return rows;
}

HypothesisFit fit_of(const MachineHypothesis& hypothesis, std::vector<Seconds> predicted, const std::vector<Observation>& rows) {
  HypothesisFit fit{hypothesis.name, hypothesis.option, std::move(predicted), 0, 0};
  double squares = 0, furthest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double ratio = fit.predicted[i].count() / rows[i].time.count(), log = std::log(ratio);
    squares += log * log;
    if (std::abs(log) >= furthest) furthest = std::abs(log), fit.largest = ratio - 1;
  }
  fit.error = std::exp(std::sqrt(squares / static_cast<double>(rows.size()))) - 1;
  return fit;
}

bool same_times(const std::vector<Seconds>& a, const std::vector<Seconds>& b) {
  return std::ranges::equal(a, b, [](Seconds x, Seconds y) { return std::abs(x.count() / y.count() - 1) < no_difference; });
}

/// The system's devices but those of the first coordinate along the first dimension, on a mesh like the slice's. Errors: there is no such part.
Expected<System> without_first(const System& system) {
  const std::vector<int>& extents = system.slice.extents;
  const std::vector<MeshAxis>& axes = system.mesh.axes();
  const auto as_slice = std::ranges::equal(axes, extents, {}, &MeshAxis::size);
  if (extents.size() < 2 || extents.front() < 3 || !as_slice || system.slices > 1 || !system.devices.empty()) return Diagnostic{{}, "no part of the slice"};
  SystemSpec spec;
  spec.machine = system.machine, spec.slice = system.slice, spec.wrap = system.wrap, spec.topology = system.joined_by, spec.faults = system.faults;
  for (const MeshAxis& axis : axes) spec.mesh.emplace_back(axis.name, &axis == &axes.front() ? axis.size - 1 : axis.size);
  const int all = system.mesh.devices();
  for (int device = all / extents.front(); device < all; ++device) spec.devices.push_back(device);
  return make_system(spec);
}

/// The collective, of those that nccl-tests measure, whose times differ most.
class Measurements {
 public:
  Measurements(const MachineHypothesis& first, const MachineHypothesis& second, const ValidateControl& control) : first_{first}, second_{second}, control_{control} {}

  Status try_all(const System& healthy, PredictedRows& predictions, std::initializer_list<ObservedOp> ops, const std::string& left_out) {
    for (const ObservedOp op : ops)
      for (const int megabytes : {1, 64, 1024}) {
        if (control_.stop.requested()) return cancelled_work();
        Observation row;
        row.op = op;
        row.devices = healthy.mesh.devices();
        row.bytes = Bytes{(std::int64_t{megabytes} << 20) / (op == ObservedOp::all_gather ? row.devices : 1)};
        row.time = Seconds{1};
        const auto one = predictions.of(row, first_), other = predictions.of(row, second_);
        if (!one || !other) continue;  // it does not run there
        const double difference = std::abs(std::log(one->count() / other->count()));
        if (difference > most_) most_ = difference, best_ = NextMeasurement{row, left_out, "", *one, *other};
      }
    return success();
  }

  /// The same on systems without their first part.
  Status try_without_first(const System& healthy) {
    const auto rest = without_first(healthy);
    auto first = without_first(first_.system), second = without_first(second_.system);
    if (!rest || !first || !second) return success();
    MachineHypothesis one = first_, other = second_;
    one.system = *std::move(first), other.system = *std::move(second);
    Measurements smaller{one, other, control_};
    PredictedRows predictions{*rest, control_.stop};
    const int left = healthy.mesh.devices() / healthy.slice.extents.front();
    const Topology& topology = *healthy.whole_slice;
    const std::string names = fmt::format("{} to {}", topology.chip_name(ChipId{0}), topology.chip_name(healthy.placement.chip_of[static_cast<std::size_t>(left) - 1]));
    if (auto ok = smaller.try_all(*rest, predictions, {ObservedOp::all_reduce, ObservedOp::all_gather}, names); !ok) return ok;
    if (smaller.most_ > most_) most_ = smaller.most_, best_ = smaller.best_;
    return success();
  }

  [[nodiscard]] const std::optional<NextMeasurement>& best() const { return best_; }

 private:
  const MachineHypothesis &first_, &second_;
  const ValidateControl& control_;
  double most_ = std::log1p(tells_apart);
  std::optional<NextMeasurement> best_;
};

using Fit = std::pair<HypothesisFit, const MachineHypothesis*>;

/// The part of a rate that fits best, near the best of those that were tried.
class Shares {
 public:
  Shares(const std::vector<Observation>& rows, const System& healthy, PredictedRows& predictions, const ValidateControl& control) : rows_{rows}, healthy_{healthy}, predictions_{predictions}, control_{control} {}

  /// nullopt: no part fits better than the one that was tried by more than noise. `fit` gets the interval either way.
  std::optional<std::pair<HypothesisFit, MachineHypothesis>> refine(Fit& fit) {
    const MachineHypothesis& tried = *fit.second;
    errors_ = {{tried.left, fit.first.error}};
    const double step = shares_tried[0] - shares_tried[1], low = std::max(least_share, tried.left - step), high = std::min(most_share, tried.left + step);
    std::optional<std::pair<HypothesisFit, MachineHypothesis>> best;
    const auto error_at = [&](double left) {
      const double share = std::round(left * 1000) / 1000;
      const auto hypothesis = at_share(tried, healthy_, share);
      if (!hypothesis || control_.stop.requested()) return std::numeric_limits<double>::max();
      std::vector<Seconds> predicted;
      for (const Observation& row : rows_) {
        const auto time = predictions_.of(row, *hypothesis);
        if (!time) return std::numeric_limits<double>::max();
        predicted.push_back(*time);
      }
      HypothesisFit one = fit_of(*hypothesis, std::move(predicted), rows_);
      errors_[share] = one.error;
      const double error = one.error;
      if (!best || error < best->first.error) best = {std::move(one), *hypothesis};
      return error;
    };
    find_minimum(error_at, low, high, bits, most_steps);
    const auto interval = within(std::min(best ? best->first.error : fit.first.error, fit.first.error) + of_noise);
    fit.first.share = interval;
    if (!best || best->first.error > fit.first.error - of_noise) return std::nullopt;
    best->first.share = interval;
    return best;
  }

 private:
  static constexpr double least_share = 0.02, most_share = 0.98;
  static constexpr int bits = 8;  // of the share: hundredths
  static constexpr int most_steps = 10;

  /// Between the shares that were looked at the error is taken to be linear.
  [[nodiscard]] std::pair<double, double> within(double most) const {
    const auto best = std::ranges::min_element(errors_, {}, [](const auto& at) { return at.second; });
    const auto crossing = [&](auto from, auto to) { return from->first + (to->first - from->first) * (most - from->second) / (to->second - from->second); };
    double low = errors_.begin()->first, high = errors_.rbegin()->first;
    for (auto at = best; at != errors_.begin(); --at)
      if (const auto before = std::prev(at); before->second > most) {
        low = crossing(at, before);
        break;
      }
    for (auto at = best; std::next(at) != errors_.end(); ++at)
      if (const auto behind = std::next(at); behind->second > most) {
        high = crossing(at, behind);
        break;
      }
    return {low, high};
  }

  const std::vector<Observation>& rows_;
  const System& healthy_;
  PredictedRows& predictions_;
  const ValidateControl& control_;
  std::map<double, double> errors_;  // by share
};

}  // namespace

Expected<Diagnosis> diagnose(const std::vector<Observation>& observations, const System& healthy, const ValidateControl& control) {
  Diagnosis diagnosis;
  diagnosis.observations = rows_to_predict(observations, healthy, diagnosis.notes);
  const std::vector<Observation>& rows = diagnosis.observations;
  if (rows.empty())
    return Diagnostic{observations.empty() ? SourceLocation{} : observations.front().where, fmt::format("expected a row of a collective of all {} devices of the slice, found none", healthy.mesh.devices())};
  const auto hypotheses = hypotheses_of(rows, healthy);
  if (!hypotheses) return hypotheses.error();
  PredictedRows predictions{healthy, control.stop};
  std::vector<Fit> fits;
  for (std::size_t h = 0; h < hypotheses->size(); ++h) {
    if (control.done) control.done(h, hypotheses->size());
    const MachineHypothesis& hypothesis = (*hypotheses)[h];
    std::vector<Seconds> predicted;
    for (const Observation& row : rows) {
      if (control.stop.requested()) return cancelled_work();
      const auto time = predictions.of(row, hypothesis);
      if (!time && h == 0) return time.error();
      if (!time) break;  // a cable without which devices are cut off, an algorithm that does not apply
      predicted.push_back(*time);
    }
    if (predicted.size() < rows.size()) continue;
    if (h > 0 && same_times(predicted, fits.front().first.predicted)) {
      diagnosis.without_effect.push_back(hypothesis.name);
      continue;
    }
    HypothesisFit fit = fit_of(hypothesis, std::move(predicted), rows);
    const auto alike = std::ranges::find_if(fits, [&](const auto& other) { return !hypothesis.sort.empty() && other.second->sort == hypothesis.sort; });
    if (alike == fits.end())
      fits.emplace_back(std::move(fit), &hypothesis);
    else if (fit.error < alike->first.error)
      *alike = {std::move(fit), &hypothesis};
  }
  const auto by_error = [](const Fit& fit) { return std::floor(fit.first.error / equally_well); };
  std::ranges::stable_sort(fits, {}, by_error);
  std::list<MachineHypothesis> between;  // at shares that were not tried
  std::size_t refined = 0;
  Shares shares{rows, healthy, predictions, control};
  for (Fit& fit : fits) {
    if (fit.second->cables.empty() || refined == most_refined) continue;
    ++refined;
    auto better = shares.refine(fit);
    if (control.stop.requested()) return cancelled_work();
    if (!better) continue;
    between.push_back(std::move(better->second));
    fit = {std::move(better->first), &between.back()};
  }
  std::ranges::stable_sort(fits, {}, by_error);
  const auto well = std::ranges::find(fits, &hypotheses->front(), [](const auto& fit) { return fit.second; });
  if (well->first.error <= fits.front().first.error + of_noise) std::rotate(fits.begin(), well, well + 1);
  for (std::size_t other = 1; other < std::min(fits.size(), most_told_apart) && !diagnosis.next; ++other) {
    Measurements measurements{*fits[0].second, *fits[other].second, control};
    auto tried = measurements.try_all(healthy, predictions, {ObservedOp::all_reduce, ObservedOp::reduce_scatter, ObservedOp::all_gather, ObservedOp::broadcast, ObservedOp::all_to_all, ObservedOp::permute}, "");
    if (tried) tried = measurements.try_without_first(healthy);
    if (!tried) return tried.error();
    diagnosis.next = measurements.best();
    if (diagnosis.next) diagnosis.next->other = fits[other].first.name;
  }
  for (auto& [fit, hypothesis] : fits) diagnosis.fits.push_back(std::move(fit));
  return diagnosis;
}

}  // namespace podsim
