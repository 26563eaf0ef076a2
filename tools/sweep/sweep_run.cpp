#include "tools/sweep/sweep_run.hpp"

#include <algorithm>
#include <mutex>
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

 private:
  struct Content {
    enum class State { running, known } state = State::running;
    std::string reason;                 // why it cannot be simulated
    std::vector<PointOutcome> waiting;  // for its end
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Content> contents_;
};

bool stopped(const SweepManner& manner) { return manner.stop != nullptr && *manner.stop; }

/// SimGrid's runs are children of this process, and must not be forked from among threads.
bool forks(const PointInputs& inputs) { return inputs.text("engine") == "simgrid"; }

class SweepRunner {
 public:
  SweepRunner(const SweepText& sweep, const Points& points, const SweepManner& manner, std::size_t pods, const std::vector<std::string>& known)
      : sweep_{sweep}, points_{points}, manner_{manner}, described_{point_options()}, pods_{pods}, claims_{known} {}

  /// One point, from any thread.
  void run(std::size_t position, Recorder& recorder) {
    if (stopped(manner_) || recorder.failed()) return;
    const auto skip = [&](const Diagnostic& why) { recorder.add({std::nullopt, {{position, "", to_text(why), "", "", std::nullopt, 0}}}); };
    auto ready = make_ready(points_.inputs(position), described_, pods_, sweep_.version, manner_.stop);
    if (!ready) return skip(ready.error());
    const std::string key = ready->key;
    if (!claims_.claim({position, key, "", ready->problem.algorithm, ready->problem.dataflow, ready->problem.slice_count, ready->problem.padding},
                       recorder))
      return;
    const auto run = simulate(*std::move(ready));
    if (!run) return recorder.add({std::nullopt, claims_.settle(key, to_text(run.error()))});
    if (run->timeline.interrupted) return;  // whoever waits for it remains to be done as well
    recorder.add({StoredRun{key, run->row.result, run->row.over_hbm, run->row.rings}, claims_.settle(key, "")});
  }

 private:
  const SweepText& sweep_;
  const Points& points_;
  const SweepManner& manner_;
  const po::options_description described_;
  RecentPods pods_;
  Claims claims_;
};

}  // namespace

Expected<SweepCount> run_sweep(const SweepText& sweep, const Points& points, SweepStore& store, const SweepManner& manner) {
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
  SweepCount count;
  count.points = points.size();
  count.known = points.size() - threaded.size() - one_by_one.size();

  WrittenWork written;
  for (const bool own_thread : {true, false}) {
    const std::vector<std::size_t>& positions = own_thread ? threaded : one_by_one;
    Recorder recorder{store, sweep.version, own_thread, written, [&](const WrittenWork& so_far) {
                        count.finished = so_far.points, count.skipped = so_far.skipped, count.simulated = so_far.runs;
                        if (manner.progress) manner.progress(count);
                      }};
    ThreadPool pool{own_thread ? manner.threads : 1};
    SweepRunner runner{sweep, points, manner, 4 * pool.threads(), *runs};
    pool.for_each(positions.size(), [&](std::size_t i, std::size_t) { runner.run(positions[i], recorder); });
    const auto all = recorder.finish();
    if (!all) return all.error();
    written = *all;
  }
  count.finished = written.points, count.skipped = written.skipped, count.simulated = written.runs;
  if (auto ok = store.close(written.points, written.runs); !ok) return ok.error();
  return count;
}

}  // namespace podsim
