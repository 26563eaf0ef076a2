#include "tools/sweep/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "sim/base/output_file.hpp"
#include "sim/base/text.hpp"
#include "tools/sweep/merge_checks.hpp"
#include "tools/sweep/store.hpp"
#include "tools/sweep/store_schema.hpp"

namespace podsim {

namespace {

/// Copies the points of the attached part that are new, and what came of those that were there, but remained. Without such `known` ones SQLite copies
/// rows as they are: half the time.
std::string copy_points(bool known) {
  if (!known) return "INSERT INTO main.points SELECT * FROM part.points";
  std::string filled;
  for (const std::string& column : outcome_columns_of_points()) filled += fmt::format("{}{} = excluded.{}", filled.empty() ? "" : ", ", column, column);
  return "INSERT INTO main.points SELECT * FROM part.points WHERE true ORDER BY position ON CONFLICT (position) DO UPDATE SET " + filled +
         " WHERE points.key IS NULL AND points.reason IS NULL";
}

/// Copies the runs that are new. In the order of their keys, for the sake of their index.
std::string copy_runs() {
  std::string columns = "key, version";
  for (const RunColumn& column : run_columns()) columns += fmt::format(", \"{}\"", column.name);
  return fmt::format("INSERT INTO main.runs ({0}) SELECT {0} FROM part.runs WHERE true ORDER BY key ON CONFLICT (key) DO NOTHING", columns);
}

class Merger {
 public:
  Merger(Database database, std::vector<MergePart> parts) : database_{std::move(database)}, parts_{std::move(parts)} {}

  Expected<MergeEnd> run() {
    std::vector<std::string> setup = statements_of_new_store();
    setup.push_back(create_points());
    setup.push_back(create_results_view());
    if (auto ok = database_.run_all(setup); !ok) return ok.error();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (auto ok = database_.attach(parts_[i].state.file, "part"); !ok) return ok.error();
      if (auto ok = copy(i); !ok) return ok.error();
      if (auto ok = database_.detach("part"); !ok) return ok.error();
    }
    return finish();
  }

 private:
  Status copy(std::size_t i) {
    PartState& part = parts_[i].state;
    // One transaction: what a part's own process adds meanwhile is all there or not at all.
    if (auto ok = database_.run("BEGIN"); !ok) return ok;
    const auto known_points = database_.number("SELECT count(*) FROM part.points p CROSS JOIN main.points m USING (position)");
    if (!known_points) return known_points.error();
    if (auto ok = database_.run(copy_points(*known_points > 0)); !ok) return ok;
    if (auto ok = database_.run(copy_runs()); !ok) return ok;
    const std::int64_t new_runs = database_.changes();
    const auto points = database_.number("SELECT count(*) FROM part.points"), runs = database_.number("SELECT count(*) FROM part.runs"),
               remaining = database_.number("SELECT count(*) FROM part.points WHERE key IS NULL AND reason IS NULL");
    for (const auto& counted : {points, runs, remaining})
      if (!counted) return counted.error();
    part.points = static_cast<std::size_t>(*points), part.remaining = static_cast<std::size_t>(*remaining);
    if (auto ok = database_.run_all({"INSERT INTO main.sessions SELECT * FROM part.sessions", "COMMIT"}); !ok) return ok;
    // Whatever was there already must be the same; mostly nothing was.
    if (*known_points > 0)
      if (auto ok = same_points(database_, parts_, i); !ok) return ok;
    if (new_runs != *runs)
      if (auto ok = same_runs(database_, parts_, i); !ok) return ok;
    return success();
  }

  Expected<MergeEnd> finish() {
    // A session that several parts have (a part, and a store that it was merged into before) is one, as it was told last. Nobody works on this store.
    if (auto ok = database_.run_all({"BEGIN",
                                     "CREATE TEMP TABLE all_sessions AS SELECT started_s, max(updated_s) AS updated_s, max(finished) AS finished, "
                                     "max(simulated) AS simulated FROM main.sessions GROUP BY started_s",
                                     "DELETE FROM main.sessions",
                                     "INSERT INTO main.sessions SELECT started_s, updated_s, 1, finished, simulated FROM all_sessions ORDER BY started_s"});
        !ok)
      return ok.error();
    const auto points = database_.number("SELECT count(*) FROM main.points"),
               remaining = database_.number("SELECT count(*) FROM main.points WHERE key IS NULL AND reason IS NULL");
    if (!points) return points.error();
    if (!remaining) return remaining.error();
    MergeEnd end;
    end.points = parts_.front().sweep_points;
    end.remaining = end.points - static_cast<std::size_t>(*points) + static_cast<std::size_t>(*remaining);
    for (const MergePart& part : parts_)
      if (part.state.remaining > 0 && !part.is_target) end.unfinished.push_back(part.state);
    const bool whole = static_cast<std::size_t>(*points) == end.points;
    if (!whole) end.missing_shards = missing_shards(parts_);
    if (auto ok = set_meta(database_, parts_, whole); !ok) return ok.error();
    if (auto ok = database_.run("COMMIT"); !ok) return ok.error();
    return end;
  }

  Database database_;
  std::vector<MergePart> parts_;
};

}  // namespace

Expected<MergeEnd> merge_stores(const std::vector<std::string>& files, const std::string& store, Cancellation stop) {
  std::vector<MergePart> parts;
  std::vector<PartState> empty;
  for (const std::string& file : files) {
    auto part = read_part(file, stop);
    if (!part) return part.error();
    *part ? parts.push_back(**std::move(part)) : empty.push_back({file, 0, 0});
  }
  if (parts.empty()) return Diagnostic{{files.front(), 0, 0}, "expected the store of a sweep, found nothing in it"};
  auto output = OutputFile::open(store);
  if (!output) return output.error();
  if (output->part_path().empty()) return Diagnostic{{store, 0, 0}, "expected a file that can be replaced"};
  const auto replaced = open_store_to_replace(store);  // nobody writes to it until it is replaced
  if (!replaced) return replaced.error();
  if (*replaced) {
    auto part = read_part(store, stop);
    if (!part) return part.error();
    (*part)->is_target = true;
    parts.insert(parts.begin(), **std::move(part));
  }
  if (auto ok = same_sweep(parts); !ok) return ok.error();
  auto database = Database::open(output->part_path(), Database::Mode::build);
  if (!database) return database.error();
  database->end_on(stop);
  auto end = [&] { return Merger{*std::move(database), std::move(parts)}.run(); }();  // closed behind it
  if (!end) return end.error().where.file == output->part_path() ? Diagnostic{{store, 0, 0}, end.error().message, end.error().cause} : end.error();
  if (auto ok = output->close(); !ok) return ok.error();
  end->unfinished.insert(end->unfinished.end(), empty.begin(), empty.end());
  return end;
}

}  // namespace podsim
