// The tables of a store.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/sweep/store.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// A figure of a run, as a column.
struct RunColumn {
  enum class Use {
    result,  // exported; equal in all runs of the same key
    effort,  // exported; what the engine did for it, which another build may do in another way
    host,    // neither: wall times
  };
  const char *name, *type;
  Use use;
  StoreValue (*value)(const Row&);
};
std::span<const RunColumn> run_columns();

/// A run as the store holds it.
StoredRun stored_run(std::string key, const Row& row);

/// A column of `points` for a field of a sweep: its name, but for `set`, which SQL needs for itself.
std::string point_column(const FieldKind& field);

/// The columns of `points` that say what came of one: key, reason, ...
std::vector<std::string> outcome_columns_of_points();

/// CREATE statements; `points` follows the fields of a sweep, so a store is told to have other ones by comparing.
std::string create_points();
std::string create_results_view();
std::vector<std::string> create_other_tables();

/// The columns of the view `results` that are the same whenever and however often a sweep was interrupted, in order; instead of `sets` one column
/// per path is exported.
std::vector<std::string> exported_columns();

}  // namespace podsim
