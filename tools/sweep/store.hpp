// The store of a sweep: one SQLite file with what every point asks and what came of it.
//
//   points    one row per point of the sweep, in its order: what it asks, the key of its run or the reason why it does not apply
//   runs      one row per simulation, by its key: the figures; points that ask for the same run share it
//   results   a view: both joined, for people
//   meta      the sweep's text and file, the program's version; `points`, how many the sweep has in all; `shards`, where the store asks only for the
//             points of some: "3/8"; `contents`, the keys of the files that they name (JSON)
//   sessions  one row per process that worked on it: when, how much
//
// A row of `points` is filled in together with the row of `runs` that it names, in one transaction, so whatever kills the process loses only what had
// not been committed. One process writes at a time, and keeps SQLite's write lock from beginning to end; others may read meanwhile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/sweep/asked_points.hpp"
#include "sim/config/database.hpp"

namespace podsim {

/// The newest store that is understood. Stores of format 1 may call points skipped that had only been interrupted, or whose child process of SimGrid had
/// died: SweepStore::open() forgets these reasons.
inline constexpr int store_format_version = 2;

/// One simulation: its figures in the order of run_columns() (store_schema.hpp).
struct StoredRun {
  std::string key;
  std::vector<StoreValue> values;
  friend bool operator==(const StoredRun&, const StoredRun&) = default;
};

/// What came of a point: the key of its run with what the run calls itself, or the reason why it does not apply.
struct PointOutcome {
  std::size_t position = 0;
  std::string key, reason;  // one of them
  std::string algorithm, dataflow;
  std::optional<std::int64_t> slice_count;
  double padding = 0;
  friend bool operator==(const PointOutcome&, const PointOutcome&) = default;
};

/// A run with the points that it answers, or points alone: of a run that is known already, or that do not apply.
struct FinishedWork {
  std::optional<StoredRun> run;
  std::vector<PointOutcome> points;
};

/// What has been written, and had not been known.
struct WrittenWork {
  std::size_t points = 0, skipped = 0, runs = 0;
};

class SweepStore {
 public:
  /// A new or known store, for this process alone. Errors: no such store (another program's, damaged, of a newer format), another process writes to
  /// it.
  static Expected<SweepStore> open(const std::string& file);
  SweepStore(SweepStore&&) = default;
  ~SweepStore();

  /// Makes the store that of these points: what is known of them under their input keys stays, and so do all runs. Returns of each point whether
  /// something is known. Committed. Errors: a shard is asked for, and the store is that of another one or of a whole sweep, whose points would be lost.
  Expected<std::vector<bool>> begin(const SweepText& sweep, const AskedPoints& asked);
  /// The keys of all runs.
  Expected<std::vector<std::string>> run_keys();

  /// One transaction: from now on it stays, whatever happens to the process. What is known already stays as it is. Errors: SQLite's; a run or point that
  /// is known came to something else (RunColumn::Use says in which figures that is an error). Then nothing of it is stored.
  Status write(const std::vector<FinishedWork>& work);
  /// By this process.
  [[nodiscard]] const WrittenWork& written() const { return written_; }
  /// Leaves a single file behind. Nothing may be written any more.
  Status close();

 private:
  SweepStore(Database database, std::string file) : database_{std::move(database)}, file_{std::move(file)} {}
  Status bring_up_to_date();
  Status prepare();
  Status check_shard(const std::optional<SweepShard>& asked);
  Expected<bool> is_the_same(const AskedPoints& asked);
  Status replace_points(const AskedPoints& asked);
  Status set_meta(const SweepText& sweep, const AskedPoints& asked);
  Expected<WrittenWork> add(const std::vector<FinishedWork>& work);
  Expected<bool> add(const StoredRun& run);
  Expected<bool> add(const PointOutcome& outcome);
  Status same_as_stored(const StoredRun& run);
  Status same_as_stored(const PointOutcome& outcome);
  Status note_session(bool ended);
  Status commit();
  void leave_one_file();

  Database database_;
  std::string file_, version_;
  std::optional<Statement> add_run_, set_point_, note_session_;
  WrittenWork written_;
  bool open_ = false;
};

/// A store that another file is about to replace: no other process writes to it while the result lives, and it is a single file. nullopt: there is none,
/// or nothing in it. Errors: as SweepStore::open(); another process reads it and keeps it from being a single file.
Expected<std::optional<Database>> open_store_to_replace(const std::string& file);

/// CREATE and PRAGMA statements: a new store, without its points.
std::vector<std::string> statements_of_new_store();

/// A store for reading only, also while another process writes to it. Errors: there is none; as SweepStore::open().
/// Reading ends with cancelled_work() once `stop` is requested.
Expected<Database> open_store_to_read(const std::string& file, Cancellation stop = {});
/// The same; nullopt: there is nothing in it yet.
Expected<std::optional<Database>> open_store_if_begun(const std::string& file, Cancellation stop = {});

}  // namespace podsim
