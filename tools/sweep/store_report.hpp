// What a store is asked: its rows, a query, how far it is.
#pragma once

#include <string>

#include "tools/report/table.hpp"
#include "sim/config/database.hpp"

namespace podsim {

/// Every finished or skipped point in order, as csv or json, without what differs from one run of a sweep to the next (wall times, versions) and
/// without the options that no point has. A machine value that the sweep sets has a column of its own, by its path.
Expected<std::string> export_results(Database& database, Format format);

/// One statement that only reads (`results` is the view to begin with): a table for people, csv, or json {columns, rows}. Errors: what SQLite finds
/// wrong, a statement that would write.
Expected<std::string> query_results(Database& database, const std::string& sql, Format format);

/// Points done, skipped and remaining, the most frequent reasons, the rate of a process that works on it, the size of the files.
Expected<std::string> store_status(Database& database, const std::string& file, Format format);

}  // namespace podsim
