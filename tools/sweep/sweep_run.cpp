#include "tools/sweep/sweep_run.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>
#include <unordered_map>

#include "sim/base/thread_pool.hpp"
#include "tools/sweep/content_key.hpp"
#include "tools/sweep/point_run.hpp"

namespace podsim {

namespace {

/// Which contents are known, being simulated or nobody's yet, so that none is simulated twice.
class Claims {
 public:
  explicit Claims(const std::vector<std::string>& known) {
    for (const std::string& key : known) contents_[key].state = Content::State::known;
  }

  /// Whether the caller is to simulate it. Otherwise the point is answered now, or by whoever simulates it.
  bool claim(const PointOutcome& point, Recorder& recorder) {
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
      if (!content.reason.empty()) answer = {point.position, "", content.reason, "", "", std::nullopt, 0};
    }
    recorder.add({std::nullopt, {std::move(answer)}});
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
      for (PointOutcome& point : points) point = {point.position, "", reason, "", "", std::nullopt, 0};
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

bool stopped(const SweepOptions& options) { return options.stop.requested(); }

/// SimGrid's runs are children of this process, and must not be forked from among threads.
bool forks(const PointInputs& inputs) { return inputs.text("engine") == "simgrid"; }

/// The points that the computer failed to run.
class Failures {
 public:
  void add(const std::vector<PointOutcome>& points, const std::string& why) {
    const std::scoped_lock lock{mutex_};
    count_ += points.size();
    for (const PointOutcome& point : points) first_.emplace(point.position, why);
    while (first_.size() > most_failures_told) first_.erase(std::prev(first_.end()));
  }
  void tell(SweepEnd& end) const { end.count.failed = count_, end.failures = first_; }

 private:
  std::mutex mutex_;
  std::size_t count_ = 0;
  std::map<std::size_t, std::string> first_;
};

class SweepRunner {
 public:
  SweepRunner(const SweepText& sweep, const Points& points, const SweepOptions& options, std::size_t systems, const std::vector<std::string>& known,
              Failures& failures)
      : sweep_{sweep}, points_{points}, options_{options}, systems_{systems}, claims_{known}, failures_{failures} {}

  /// One point, from any thread.
  void run(std::size_t position, Recorder& recorder) {
    if (stopped(options_) || recorder.failed()) return;
    std::string claimed;
    const Status ended = run_as_memory_lasts(position, claimed, recorder);
    if (ended) return;
    const Diagnostic& why = ended.error();
    if (why.cause == Cause::input) {
      const std::string reason = to_text(why);
      recorder.add({std::nullopt, claimed.empty() ? std::vector{PointOutcome{position, "", reason, "", "", std::nullopt, 0}}
                                                  : claims_.settle(claimed, reason)});
      return;
    }
    const std::vector<PointOutcome> points = claimed.empty() ? std::vector{PointOutcome{position, "", "", "", "", std::nullopt, 0}}
                                                             : claims_.abandon(claimed);
    if (why.cause == Cause::environment) failures_.add(points, to_text(why));
  }

 private:
  /// `claimed` becomes the key of the run, if it is this point's to simulate.
  Status simulate_or_wait(std::size_t position, std::string& claimed, Recorder& recorder) {
    auto ready = make_ready(points_.inputs(position), systems_, sweep_.version, options_.stop);
    if (!ready) return ready.error();
    const std::string key = ready->key;
    const ProblemSummary& summary = ready->lowered.problem.summary;
    if (!claims_.claim({position, key, "", summary.algorithm, summary.dataflow, summary.slice_count, summary.padding}, recorder)) return success();
    claimed = key;
    const auto run = simulate(*std::move(ready));
    if (!run) return run.error();
    if (run->timeline.interrupted) return cancelled_work();
    recorder.add({StoredRun{key, run->row.result, run->row.over_hbm, run->row.rings}, claims_.settle(key, "")});
    return success();
  }

  Status run_as_memory_lasts(std::size_t position, std::string& claimed, Recorder& recorder) {
    try {
      return simulate_or_wait(position, claimed, recorder);
    } catch (const std::bad_alloc&) {
      return Diagnostic{{}, "there is not enough memory", Cause::environment};
    }
  }

  const SweepText& sweep_;
  const Points& points_;
  const SweepOptions& options_;
  RecentSystems systems_;
  Claims claims_;
  Failures& failures_;
};

}  // namespace

Expected<SweepEnd> run_sweep(const SweepText& sweep, const Points& points, SweepStore& store, const SweepOptions& options) {
  InputKeys key_of{sweep.version};
  std::vector<std::string> input_keys;
  for (std::size_t p = 0; p < points.size(); ++p) input_keys.push_back(key_of(points.inputs(p)));
  const auto known = store.begin(sweep, points, input_keys);
  if (!known) return known.error();
  const auto runs = store.run_keys();
  if (!runs) return runs.error();
  std::vector<std::size_t> threaded, one_by_one;
  for (std::size_t p = 0; p < points.size(); ++p)
    if (!(*known)[p]) (forks(points.inputs(p)) ? one_by_one : threaded).push_back(p);
  SweepEnd end;
  SweepCount& count = end.count;
  count.points = points.size();
  count.known = points.size() - threaded.size() - one_by_one.size();

  WrittenWork written;
  Failures failures;
  for (const bool own_thread : {true, false}) {
    const std::vector<std::size_t>& positions = own_thread ? threaded : one_by_one;
    Recorder recorder{store, sweep.version, own_thread, written, [&](const WrittenWork& so_far) {
                        count.finished = so_far.points, count.skipped = so_far.skipped, count.simulated = so_far.runs;
                        if (options.progress) options.progress(count);
                      }};
    ThreadPool pool{own_thread ? options.threads : 1};
    SweepRunner runner{sweep, points, options, 4 * pool.threads(), *runs, failures};
    pool.for_each(positions.size(), [&](std::size_t i, std::size_t) { runner.run(positions[i], recorder); });
    const auto all = recorder.finish();
    if (!all) return all.error();
    written = *all;
  }
  count.finished = written.points, count.skipped = written.skipped, count.simulated = written.runs;
  failures.tell(end);
  if (auto ok = store.close(written.points, written.runs); !ok) return ok.error();
  return end;
}

}  // namespace podsim
