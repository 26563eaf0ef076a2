// The tables of a store.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/sweep/store.hpp"

namespace podsim {

/// A figure of a run, as a column.
struct RunColumn {
  const char *name, *type;
  bool exported;  // false: differs from run to run of the same thing
  void (*bind)(Statement&, int, const StoredRun&);
};
std::span<const RunColumn> run_columns();

/// A column of `points` for a field of a sweep: its name, but for `set`, which SQL needs for itself.
std::string point_column(const FieldKind& field);

/// CREATE statements; `points` follows the fields of a sweep, so a store is told to have other ones by comparing.
std::string create_points();
std::string create_results_view();
std::vector<std::string> create_other_tables();

/// The columns of the view `results` that are the same whenever and however often a sweep was interrupted, in order; instead of `sets` one column
/// per path is exported.
std::vector<std::string> exported_columns();

}  // namespace podsim
