// What is written into a store while its sweep runs.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text.hpp"
#include "sim/schedule/schedule.hpp"
#include "tools/sweep/seconds_now.hpp"
#include "tools/sweep/store.hpp"
#include "tools/sweep/store_schema.hpp"

namespace podsim {

namespace {

std::string cell_text(const StoreValue& value) {
  return std::visit(Overloaded{[](std::monostate) { return std::string{"nothing"}; }, [](const std::string& text) { return quoted(text); },
                               [](const auto& number) { return fmt::format("{}", number); }},
                    value);
}

std::string outcome_text(const std::string& key, const std::string& reason) { return key.empty() ? "the reason " + quoted(reason) : "the run " + key; }

}  // namespace

Status SweepStore::same_as_stored(const StoredRun& run) {
  std::string columns;
  for (const RunColumn& column : run_columns()) columns += fmt::format("{}\"{}\"", columns.empty() ? "" : ", ", column.name);
  auto stored = database_.prepare("SELECT " + columns + " FROM runs WHERE key = ?");
  if (!stored) return stored.error();
  stored->bind(0, run.key);
  if (const auto row = stored->step(); !row) return row.error();
  for (std::size_t c = 0; c < run_columns().size(); ++c) {
    const StoreValue found = stored->value(static_cast<int>(c));
    if (run_columns()[c].use != RunColumn::Use::result || found == run.values[c]) continue;
    return Diagnostic{{file_, 0, 0},
                      fmt::format("the run {} came to another result than is stored: {} is {}, stored {}", run.key, run_columns()[c].name,
                                  cell_text(run.values[c]), cell_text(found))};
  }
  return success();
}

Status SweepStore::same_as_stored(const PointOutcome& outcome) {
  auto stored = database_.prepare("SELECT key, reason FROM points WHERE position = ?");
  if (!stored) return stored.error();
  stored->bind(0, static_cast<std::int64_t>(outcome.position));
  const auto row = stored->step();
  if (!row) return row.error();
  if (!*row) return Diagnostic{{file_, 0, 0}, fmt::format("point {} is none of those that the store is for", outcome.position + 1)};
  const std::string key = stored->text(0), reason = stored->text(1);
  if (key == outcome.key && reason == outcome.reason) return success();
  return Diagnostic{{file_, 0, 0}, fmt::format("point {} came to {}, stored is {}", outcome.position + 1, outcome_text(outcome.key, outcome.reason),
                                               outcome_text(key, reason))};
}

Expected<bool> SweepStore::add(const StoredRun& run) {
  add_run_->bind(0, run.key);
  add_run_->bind(1, version_);
  for (std::size_t c = 0; c < run.values.size(); ++c) add_run_->bind_value(static_cast<int>(c) + 2, run.values[c]);
  if (auto ok = add_run_->run(); !ok) return ok.error();
  if (database_.changes() > 0) return true;
  if (auto ok = same_as_stored(run); !ok) return ok.error();
  return false;
}

Expected<bool> SweepStore::add(const PointOutcome& outcome) {
  const bool ran = outcome.reason.empty();
  const auto bind = [&](int parameter, bool there, const auto& value) {
    there ? set_point_->bind(parameter, value) : set_point_->bind_null(parameter);
  };
  bind(0, ran, outcome.key);
  bind(1, !ran, outcome.reason);
  bind(2, ran, outcome.algorithm);
  bind(3, ran, outcome.dataflow);
  bind(4, ran, outcome.slice_count);
  bind(5, ran, outcome.padding);
  set_point_->bind(6, static_cast<std::int64_t>(outcome.position));
  if (auto ok = set_point_->run(); !ok) return ok.error();
  if (database_.changes() > 0) return true;
  if (auto ok = same_as_stored(outcome); !ok) return ok.error();
  return false;
}

Expected<WrittenWork> SweepStore::add(const std::vector<FinishedWork>& all) {
  WrittenWork added;
  for (const FinishedWork& work : all) {
    if (work.run) {
      const auto is_new = add(*work.run);
      if (!is_new) return is_new.error();
      if (*is_new) ++added.runs;
    }
    for (const PointOutcome& point : work.points) {
      const auto is_new = add(point);
      if (!is_new) return is_new.error();
      if (!*is_new) continue;
      ++added.points;
      if (!point.reason.empty()) ++added.skipped;
    }
  }
  return added;
}

Status SweepStore::write(const std::vector<FinishedWork>& work) {
  const WrittenWork before = written_;
  const Status ok = [&]() -> Status {
    const auto added = add(work);
    if (!added) return added.error();
    written_ = {before.points + added->points, before.skipped + added->skipped, before.runs + added->runs};
    return commit();
  }();
  if (ok) return ok;
  written_ = before;
  static_cast<void>(database_.run_all({"ROLLBACK", "BEGIN IMMEDIATE"}));  // if SQLite has not done it; the first error counts
  return ok;
}

Status SweepStore::note_session(bool ended) {
  note_session_->bind(0, seconds_now());
  note_session_->bind(1, std::int64_t{ended});
  note_session_->bind(2, static_cast<std::int64_t>(written_.points));
  note_session_->bind(3, static_cast<std::int64_t>(written_.runs));
  return note_session_->run();
}

Status SweepStore::commit() {
  if (auto ok = note_session(false); !ok) return ok;
  // Another process that tries in between these two gets the lock, and this one the error.
  return database_.run_all({"COMMIT", "BEGIN IMMEDIATE"});
}

Status SweepStore::close() {
  if (!open_) return success();
  open_ = false;
  if (auto ok = note_session(true); !ok) return ok;
  add_run_.reset();
  set_point_.reset();
  note_session_.reset();
  if (auto ok = database_.run("COMMIT"); !ok) return ok;
  leave_one_file();
  return success();
}

void SweepStore::leave_one_file() {
  // Not while somebody reads; the file is right either way.
  database_.wait(0);
  static_cast<void>(database_.run("PRAGMA journal_mode = DELETE"));
}

}  // namespace podsim
