#include "tools/sweep/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "sim/base/invariant.hpp"
#include "tools/sweep/batch_messages.hpp"
#include "tools/sweep/content_key.hpp"

namespace podsim {

Expected<std::string> run_batch(std::string_view message, const std::string& version, int threads, Cancellation stop) {
  const auto begin = std::chrono::steady_clock::now();
  const auto asked = read_batch(message, version);
  if (!asked) return asked.error();
  InputKeys key_of{version};
  std::map<std::size_t, PointInputs> inputs;
  PointsToRun points{{}, [&](std::size_t position) { return inputs.at(position); }};
  for (const BatchPoint& point : *asked) {
    if (key_of(point.inputs) != point.input_key)
      return Diagnostic{{}, fmt::format("point {}: a file that it names has other contents on this computer than where the sweep was opened: {}",
                                        point.position + 1, command_of(point.inputs))};
    if (inputs.emplace(point.position, point.inputs).second) points.positions.push_back(point.position);
  }
  BatchResults results;
  std::mutex mutex;
  PointRunner runner{version, {}, stop};
  const WorkSink sink{[&](FinishedWork work) {
    const std::scoped_lock lock{mutex};
    results.work.push_back(std::move(work));
  }};
  const Phases phases = phases_of(points);
  runner.run(phases.threaded, threads, sink);
  runner.run(phases.one_by_one, 1, sink);
  results.failures = runner.failures();
  results.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return write_results(results, version);
}

Expected<BatchedSweep> BatchedSweep::open(SweepText sweep, const std::string& store_file) {
  auto blocks = read_sweep(sweep.text, sweep.file);
  if (!blocks) return blocks.error();
  auto expanded = checked_points(*std::move(blocks));
  if (!expanded) return expanded.error();
  auto store = SweepStore::open(store_file);
  if (!store) return store.error();
  auto points = std::make_unique<const Points>(*std::move(expanded));
  AskedPoints asked = asked_points(sweep, *points);
  const auto remaining = begin_sweep(sweep, asked, *store);
  if (!remaining) return remaining.error();
  return BatchedSweep{std::move(sweep), std::move(points), std::move(asked), *std::move(store), *remaining};
}

BatchedSweep::BatchedSweep(SweepText sweep, std::unique_ptr<const Points> points, AskedPoints asked, SweepStore store,
                           const std::vector<std::size_t>& remaining)
    : sweep_{std::move(sweep)},
      points_{std::move(points)},
      asked_{std::move(asked)},
      store_{std::move(store)},
      known_(asked_.positions.size(), true),
      waiting_{remaining.begin(), remaining.end()},
      known_before_{asked_.positions.size() - remaining.size()} {
  for (const std::size_t position : remaining) known_[index_of(position)] = false;
}

std::size_t BatchedSweep::index_of(std::size_t position) const {
  const auto found = std::lower_bound(asked_.positions.begin(), asked_.positions.end(), position);
  PODSIM_ASSERT(found != asked_.positions.end() && *found == position);
  return static_cast<std::size_t>(found - asked_.positions.begin());
}

std::size_t BatchedSweep::points_in(double seconds) const {
  constexpr std::size_t first = 16;
  constexpr double growth = 4;  // what follows may be slower than what was
  if (last_points_ == 0) return first;
  const double by_rate = seconds / std::max(seconds_per_point_, 1e-9);
  return static_cast<std::size_t>(std::clamp(std::floor(by_rate), 1.0, growth * static_cast<double>(last_points_)));
}

Batch BatchedSweep::next(std::size_t most) {
  std::vector<BatchPoint> given;
  Batch batch;
  while (!waiting_.empty() && given.size() < most) {
    const std::size_t position = waiting_.front(), index = index_of(position);
    waiting_.pop_front();
    if (known_[index]) continue;
    given.push_back({position, asked_.input_keys[index], points_->inputs(position)});
    batch.positions.push_back(position);
  }
  batch.message = write_batch(given, sweep_.version);
  return batch;
}

void BatchedSweep::give_back(const std::vector<std::size_t>& positions) { waiting_.insert(waiting_.begin(), positions.begin(), positions.end()); }

Status BatchedSweep::add(std::string_view message) {
  const auto results = read_results(message, sweep_.version);
  if (!results) return results.error();
  if (auto ok = store_.write(results->work); !ok) return ok;
  std::size_t points = results->failures.count;
  for (const FinishedWork& work : results->work)
    for (const PointOutcome& point : work.points) known_[index_of(point.position)] = true, ++points;
  for (const auto& [position, why] : results->failures.first) failures_.add(position, why);
  failures_.count += results->failures.count - results->failures.first.size();
  if (points == 0) return success();
  const double taken = results->seconds / static_cast<double>(points);
  constexpr double weight = 0.5;  // of the last batch
  seconds_per_point_ = last_points_ == 0 ? taken : weight * taken + (1 - weight) * seconds_per_point_;
  last_points_ = points;
  return success();
}

SweepEnd BatchedSweep::end() const {
  const WrittenWork& written = store_.written();
  return {{asked_.positions.size(), known_before_, written.points, written.skipped, written.runs, failures_.count}, failures_.first};
}

}  // namespace podsim
