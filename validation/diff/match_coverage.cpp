#include "validation/diff/match_coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/units.hpp"

namespace podsim {

namespace {

constexpr double next_to_nothing = 0.1;
constexpr std::size_t most_pairs = 3;

double size_of(const StepOperation& operation) {
  return operation.flops.count() > 0 ? operation.flops.count() : static_cast<double>(operation.bytes.count());
}

/// How far apart two sizes are, as a ratio; without one as far as can be.
double apart(const StepOperation& a, const StepOperation& b) {
  if (!(size_of(a) > 0 && size_of(b) > 0)) return std::numeric_limits<double>::infinity();
  return std::abs(std::log(size_of(a) / size_of(b)));
}

/// `candidates` is not empty, the longest come first.
const StepOperation& most_like(const StepOperation& operation, const std::vector<const StepOperation*>& candidates) {
  std::vector<const StepOperation*> same;
  std::ranges::copy_if(candidates, std::back_inserter(same), [&](const StepOperation* one) { return one->category == operation.category; });
  const auto by_size = std::ranges::min_element(same, {}, [&](const StepOperation* one) { return apart(operation, *one); });
  if (by_size != same.end() && std::isfinite(apart(operation, **by_size))) return **by_size;
  const std::vector<const StepOperation*>& among = same.empty() ? candidates : same;
  std::vector<std::string> names;
  for (const StepOperation* one : among) names.push_back(one->name);
  const std::vector<std::string> near = nearest(operation.name, names, 1);
  return near.empty() ? *among.front() : *among[static_cast<std::size_t>(std::ranges::find(names, near.front()) - names.begin())];
}

std::string described(const StepOperation& operation) {
  std::string text = fmt::format("{} ({}", quoted(operation.name), operation.category);
  if (operation.flops.count() > 0)
    text += ", " + to_text(operation.flops);
  else if (operation.bytes.count() > 0)
    text += ", " + to_text(operation.bytes);
  return text + ")";
}

std::string percent_text(const MatchCoverage::Side& side) { return fmt::format("{:.0f} %", std::floor(100 * side.share() + 1e-9)); }

void add(MatchCoverage::Side& side, const MatchCoverage::Side& other) {
  side.matched += other.matched, side.all += other.all;
  side.matched_time += other.matched_time, side.time += other.time;
}

}  // namespace

double MatchCoverage::Side::share() const {
  if (all == 0) return 1;
  return time > Seconds{} ? std::min(1.0, matched_time.count() / time.count()) : static_cast<double>(matched) / static_cast<double>(all);
}

MatchCoverage& MatchCoverage::operator+=(const MatchCoverage& other) {
  add(predicted, other.predicted);
  add(measured, other.measured);
  if (nearest.empty()) nearest = other.nearest;
  return *this;
}

MatchCoverage coverage_of(const StepDiff& diff) {
  MatchCoverage coverage;
  for (const DiffRow& row : diff.operations)
    for (const auto& [side, from] : {std::pair{&coverage.predicted, &row.predicted}, {&coverage.measured, &row.measured}})
      add(*side, {from->of.size(), from->of.size(), from->time, from->time});
  std::vector<const StepOperation*> predicted, measured;
  for (const UnmatchedOperation& one : diff.unmatched) {
    add(one.measured ? coverage.measured : coverage.predicted, {0, 1, {}, one.operation.time});
    (one.measured ? measured : predicted).push_back(&one.operation);
  }
  if (measured.empty()) return coverage;
  for (std::size_t p = 0; p < std::min(predicted.size(), most_pairs); ++p)
    coverage.nearest.push_back({*predicted[p], most_like(*predicted[p], measured)});
  return coverage;
}

std::string to_text(const MatchCoverage& coverage) {
  return fmt::format("matched {} of {} predicted operations ({} of their time) and {} of {} measured ones ({})", coverage.predicted.matched,
                     coverage.predicted.all, percent_text(coverage.predicted), coverage.measured.matched, coverage.measured.all, percent_text(coverage.measured));
}

std::string warning_of(const MatchCoverage& coverage) {
  if (coverage.predicted.share() >= next_to_nothing && coverage.measured.share() >= next_to_nothing) return {};
  std::string text = to_text(coverage) + ": the profile may be of another program or of other sizes";
  for (const MatchCoverage::Pair& pair : coverage.nearest)
    text += fmt::format("{}predicted {} is nearest to measured {}", &pair == &coverage.nearest.front() ? ". Unmatched: " : "; ", described(pair.predicted),
                        described(pair.measured));
  return text;
}

}  // namespace podsim
