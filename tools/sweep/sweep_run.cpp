#include "tools/sweep/sweep_run.hpp"

namespace podsim {

Expected<std::vector<std::size_t>> begin_sweep(const SweepText& sweep, const AskedPoints& asked, SweepStore& store) {
  const auto known = store.begin(sweep, asked);
  if (!known) return known.error();
  std::vector<std::size_t> remaining;
  for (std::size_t i = 0; i < asked.positions.size(); ++i)
    if (!(*known)[i]) remaining.push_back(asked.positions[i]);
  return remaining;
}

Expected<SweepEnd> run_sweep(const SweepText& sweep, const Points& points, SweepStore& store, const SweepOptions& options) {
  const AskedPoints asked = asked_points(sweep, points);
  const auto remaining = begin_sweep(sweep, asked, store);
  if (!remaining) return remaining.error();
  const auto runs = store.run_keys();
  if (!runs) return runs.error();
  SweepEnd end;
  SweepCount& count = end.count;
  count.points = asked.positions.size();
  count.known = count.points - remaining->size();
  const auto tell = [&](const WrittenWork& written) {
    count.finished = written.points, count.skipped = written.skipped, count.simulated = written.runs;
    if (options.progress) options.progress(count);
  };
  const Phases phases = phases_of({*remaining, [&](std::size_t position) { return points.inputs(position); }});
  PointRunner runner{sweep.version, *runs, options.stop};
  for (const bool threaded : {true, false}) {
    Recorder recorder{store, threaded, tell};
    runner.run(threaded ? phases.threaded : phases.one_by_one, threaded ? options.threads : 1,
               {[&](FinishedWork work) { recorder.add(std::move(work)); }, [&] { return recorder.failed(); }});
    if (auto ok = recorder.finish(); !ok) return ok.error();
  }
  const WrittenWork& written = store.written();
  count.finished = written.points, count.skipped = written.skipped, count.simulated = written.runs;
  count.failed = runner.failures().count;
  end.failures = runner.failures().first;
  if (auto ok = store.close(); !ok) return ok.error();
  return end;
}

}  // namespace podsim
