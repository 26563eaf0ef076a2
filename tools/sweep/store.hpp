// The store of a sweep: one SQLite file with what every point asks and what came of it.
//
//   points    one row per point of the sweep, in its order: what it asks, the key of its run or the reason why it does not apply
//   runs      one row per simulation, by its key: the figures; points that ask for the same run share it
//   results   a view: both joined, for people
//   meta      the sweep's text and file, the program's version
//   sessions  one row per process that worked on it: when, how much
//
// A row of `points` is filled in together with the row of `runs` that it names, in one transaction, so whatever kills the process loses only what had
// not been committed. One process writes at a time, and keeps SQLite's write lock from beginning to end; others may read meanwhile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/result.hpp"
#include "tools/sweep/database.hpp"
#include "tools/sweep/points.hpp"

namespace podsim {

/// The newest store that is understood. Stores of format 1 may call points skipped that had only been interrupted, or whose child process of SimGrid had
/// died: SweepStore::open() forgets these reasons.
inline constexpr int store_format_version = 2;

/// One simulation.
struct StoredRun {
  std::string key;
  Result result;
  bool over_hbm = false;
  std::string rings;  // with broken cables: how what they cut was lowered
};

/// What came of a point: the key of its run with what the run calls itself, or the reason why it does not apply.
struct PointOutcome {
  std::size_t position = 0;
  std::string key, reason;  // one of them
  std::string algorithm, dataflow;
  std::optional<std::int64_t> slice_count;
  double padding = 0;
};

/// What a store is opened for.
struct SweepText {
  std::string text, file, version;
};

class SweepStore {
 public:
  /// A new or known store, for this process alone. Errors: no such store (another program's, damaged, of a newer format), another process writes to
  /// it.
  static Expected<SweepStore> open(const std::string& file);
  SweepStore(SweepStore&&) = default;
  ~SweepStore();

  /// Makes the store that of these points: what is known of them under their input keys stays, and so do all runs. Returns of each point whether
  /// something is known. Committed.
  Expected<std::vector<bool>> begin(const SweepText& sweep, const Points& points, const std::vector<std::string>& input_keys);
  /// The keys of all runs.
  Expected<std::vector<std::string>> run_keys();

  Status add(const StoredRun& run, const std::string& version);
  Status add(const PointOutcome& outcome);
  /// From now on what was added stays, whatever happens to the process; also when so much was finished and simulated in this session.
  Status commit(std::size_t finished, std::size_t simulated);
  /// Leaves a single file behind. Nothing may be added any more.
  Status close(std::size_t finished, std::size_t simulated);

 private:
  explicit SweepStore(Database database) : database_{std::move(database)} {}
  Status bring_up_to_date();
  Status prepare();
  Expected<bool> is_the_same(const std::vector<std::string>& input_keys);
  Status replace_points(const Points& points, const std::vector<std::string>& input_keys);
  Status note_session(std::size_t finished, std::size_t simulated, bool ended);

  Database database_;
  std::optional<Statement> add_run_, set_point_, note_session_;
  bool open_ = false;
};

/// A store for reading only, also while another process writes to it. Errors: there is none; as SweepStore::open().
/// Reading ends with cancelled_work() once `stop` is requested.
Expected<Database> open_store_to_read(const std::string& file, Cancellation stop = {});

}  // namespace podsim
