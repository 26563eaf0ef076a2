// A sweep whose points are dealt out in batches, to threads, processes or other hosts: whoever deals them out (Dask, a queue of one's own) moves two texts.
//
//   BatchedSweep      opens the store, tells what it lacks, writes what comes back; one per store
//   run_batch()       runs a batch anywhere: it needs neither the sweep nor the store
//
// What is stored does not depend on the batches, their order, batches that are lost, or ones that are run twice, but for the times that runs took.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/sweep/sweep_run.hpp"

namespace podsim {

/// Points to run: what they ask.
struct Batch {
  std::vector<std::size_t> positions;
  std::string message;  // for run_batch()
};

/// Runs the points of a batch, each content once, and returns what BatchedSweep::add() takes: runs, outcomes and failures, without those that `stop`
/// interrupted. `version`: of the program. `threads`: 0: all cores. Points of SimGrid fork, so a process that runs them has no other threads. Errors: no
/// batch; one of another version; a file that a point names has other contents here than where the batch was made.
///   cost   the runs; systems are made anew in each batch
Expected<std::string> run_batch(std::string_view message, const std::string& version, int threads, Cancellation stop = {});

/// One thread at a time.
class BatchedSweep {
 public:
  /// Reads, checks and expands the sweep, and opens its store, for this process alone until close(). Errors: those of read_sweep(), check_sweep(),
  /// expand(), SweepStore::open() and SweepStore::begin().
  static Expected<BatchedSweep> open(SweepText sweep, const std::string& store);

  /// How many of the next points take about so long on a worker, by the time that the points of the batches so far took there, the last ones counting most;
  /// at least 1, at most four times as many as in the last batch. Before any batch has come back: 16.
  [[nodiscard]] std::size_t points_in(double seconds) const;
  /// The next points that are not known and not given out, at most so many. No positions: there are none.
  Batch next(std::size_t most);
  /// A batch that is lost: next() gives its points again, first. Known ones are not.
  void give_back(const std::vector<std::size_t>& positions);
  /// Stores what run_batch() returned, all of it or nothing. What is known already stays as it is: a batch that comes back twice does no harm. Errors:
  /// no such message; one of another version; SweepStore::write(): a run or point that is known came to something else.
  Status add(std::string_view results);

  /// So far. Points that failed on a worker remain; give_back() tries them again, and so does the next sweep with this store.
  [[nodiscard]] SweepEnd end() const;
  /// Leaves a single file behind.
  Status close() { return store_.close(); }

 private:
  BatchedSweep(SweepText sweep, std::unique_ptr<const Points> points, AskedPoints asked, SweepStore store, const std::vector<std::size_t>& remaining);
  [[nodiscard]] std::size_t index_of(std::size_t position) const;

  SweepText sweep_;
  std::unique_ptr<const Points> points_;
  AskedPoints asked_;
  SweepStore store_;
  std::vector<bool> known_;  // of each asked point
  std::deque<std::size_t> waiting_;
  std::size_t known_before_ = 0;
  PointFailures failures_;
  double seconds_per_point_ = 0;  // 0: no batch has come back
  std::size_t last_points_ = 0;   // in the last batch
};

}  // namespace podsim
