#include "tools/sweep/point_runner.hpp"

#include <iterator>
#include <new>
#include <unordered_map>

#include "sim/base/thread_pool.hpp"
#include "tools/sweep/store_schema.hpp"

namespace podsim {

namespace {

bool forks(const PointInputs& inputs) { return inputs.text("engine") == "simgrid"; }

PointOutcome skipped(std::size_t position, std::string reason) { return {position, "", std::move(reason), "", "", std::nullopt, 0}; }

}  // namespace

void PointFailures::add(std::size_t position, const std::string& why) {
  ++count;
  first.emplace(position, why);
  if (first.size() > most_failures_told) first.erase(std::prev(first.end()));
}

Phases phases_of(const PointsToRun& points) {
  Phases phases{{{}, points.inputs}, {{}, points.inputs}};
  for (const std::size_t position : points.positions)
    (forks(points.inputs(position)) ? phases.one_by_one : phases.threaded).positions.push_back(position);
  return phases;
}

/// Which contents are known, being simulated or nobody's yet, so that none is simulated twice.
class PointRunner::Claims {
 public:
  explicit Claims(const std::vector<std::string>& known) {
    for (const std::string& key : known) contents_[key].state = Content::State::known;
  }

  /// Whether the caller is to simulate it. Otherwise the point is answered now, or by whoever simulates it.
  bool claim(const PointOutcome& point, const WorkSink& sink) {
    PointOutcome answer = point;
    {
      const std::scoped_lock lock{mutex_};
      const auto [entry, is_new] = contents_.try_emplace(point.key);
      Content& content = entry->second;
      if (is_new) {
        content.waiting.push_back(point);
        return true;
      }
      if (content.state == Content::State::running) {
        content.waiting.push_back(point);
        return false;
      }
      if (!content.reason.empty()) answer = skipped(point.position, content.reason);
    }
    sink.add({std::nullopt, {std::move(answer)}});
    return false;
  }

  /// It has been simulated, or cannot be: the points that wait for it.
  std::vector<PointOutcome> settle(const std::string& key, const std::string& reason) {
    const std::scoped_lock lock{mutex_};
    Content& content = contents_[key];
    content.state = Content::State::known;
    content.reason = reason;
    std::vector<PointOutcome> points = std::exchange(content.waiting, {});
    if (!reason.empty())
      for (PointOutcome& point : points) point = skipped(point.position, reason);
    return points;
  }

  /// It has not been simulated, and is nobody's again: the points that wait for it.
  std::vector<PointOutcome> abandon(const std::string& key) {
    const std::scoped_lock lock{mutex_};
    const auto content = contents_.extract(key);
    return content ? content.mapped().waiting : std::vector<PointOutcome>{};
  }

 private:
  struct Content {
    enum class State { running, known } state = State::running;
    std::string reason;                 // why it cannot be simulated
    std::vector<PointOutcome> waiting;  // for its end
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Content> contents_;
};

PointRunner::PointRunner(std::string version, const std::vector<std::string>& known, Cancellation stop)
    : version_{std::move(version)}, stop_{stop}, claims_{std::make_unique<Claims>(known)} {}

PointRunner::~PointRunner() = default;

void PointRunner::run(const PointsToRun& points, int threads, const WorkSink& sink) {
  ThreadPool pool{threads};
  RecentSystems systems{4 * pool.threads()};
  pool.for_each(points.positions.size(), [&](std::size_t i, std::size_t) {
    if (!stop_.requested() && !sink.closed()) run_point(points.positions[i], points.inputs(points.positions[i]), systems, sink);
  });
}

void PointRunner::run_point(std::size_t position, const PointInputs& inputs, RecentSystems& systems, const WorkSink& sink) {
  std::string claimed;
  const Status ended = run_as_memory_lasts(position, inputs, systems, claimed, sink);
  if (ended) return;
  const Diagnostic& why = ended.error();
  if (is_of_input(why.cause)) {
    const std::string reason = to_text(why);
    sink.add({std::nullopt, claimed.empty() ? std::vector{skipped(position, reason)} : claims_->settle(claimed, reason)});
    return;
  }
  const std::vector<PointOutcome> points = claimed.empty() ? std::vector{skipped(position, "")} : claims_->abandon(claimed);
  if (why.cause != Cause::environment) return;
  const std::scoped_lock lock{mutex_};
  for (const PointOutcome& point : points) failures_.add(point.position, to_text(why));
}

/// `claimed` becomes the key of the run, if it is this point's to simulate.
Status PointRunner::simulate_or_wait(std::size_t position, const PointInputs& inputs, RecentSystems& systems, std::string& claimed,
                                     const WorkSink& sink) {
  auto ready = make_ready(inputs, systems, version_, stop_);
  if (!ready) return ready.error();
  const std::string key = ready->key;
  const ProblemSummary& summary = ready->lowered.problem.summary;
  if (!claims_->claim({position, key, "", summary.algorithm, summary.dataflow, summary.slice_count, summary.padding}, sink)) return success();
  claimed = key;
  const auto run = simulate(*std::move(ready));
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();
  sink.add({stored_run(key, run->row), claims_->settle(key, "")});
  return success();
}

Status PointRunner::run_as_memory_lasts(std::size_t position, const PointInputs& inputs, RecentSystems& systems, std::string& claimed,
                                        const WorkSink& sink) {
  try {
    return simulate_or_wait(position, inputs, systems, claimed, sink);
  } catch (const std::bad_alloc&) {
    return Diagnostic{{}, "there is not enough memory", Cause::environment};
  }
}

}  // namespace podsim
