// Whether the parts of a merge go together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/config/database.hpp"
#include "tools/sweep/merge.hpp"

namespace podsim {

/// A part, and what its table `meta` says.
struct MergePart {
  PartState state;
  std::string text, sweep_file, version;
  std::size_t sweep_points = 0;
  std::vector<std::string> shards;              // none: the whole sweep
  std::map<std::string, std::string> contents;  // AskedPoints::contents
  bool is_target = false;                       // the store that all are merged into
};

/// nullopt: there is nothing in it yet. Errors: no store, damaged, of another format or build.
Expected<std::optional<MergePart>> read_part(const std::string& file, Cancellation stop);

/// Errors: two parts of different sweeps or versions, or of files that differ.
Status same_sweep(const std::vector<MergePart>& parts);

/// Whether points and runs of part `i`, which is attached as `part`, are those of the store, which the parts before have been copied into. Errors name
/// the part and the one that it differs from.
Status same_points(Database& database, const std::vector<MergePart>& parts, std::size_t i);
Status same_runs(Database& database, const std::vector<MergePart>& parts, std::size_t i);

/// "3/8" and so on, by number: in none of the parts. Empty where not all parts are shards of one count.
std::vector<std::string> missing_shards(const std::vector<MergePart>& parts);

/// Describes the merged store. `whole`: it has all points of the sweep.
Status set_meta(Database& database, const std::vector<MergePart>& parts, bool whole);

}  // namespace podsim
