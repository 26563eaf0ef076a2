// Stores of a sweep's parts as one store.
#pragma once

#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"

namespace podsim {

/// What a part holds: nothing at all before its sweep has begun.
struct PartState {
  std::string file;
  std::size_t points = 0, remaining = 0;
};

struct MergeEnd {
  std::size_t points = 0, remaining = 0;    // of the sweep; those that no part has an outcome of
  std::vector<PartState> unfinished;        // parts of which points remain
  std::vector<std::string> missing_shards;  // "3/8": in none of the parts, where all parts are shards of one count
};

/// Makes the store `store` that of all points that its parts ask for, with what came of them; a store that is there already is one of the parts. Parts
/// are shards (`sweep --shard`), or whole sweeps that were interrupted; they are only read, also while their sweeps run. A point or run that several
/// parts have is one, and keeps the wall times of the first. The result appears when it is complete: whatever ends the merge before leaves the store as
/// it was, and merging again as parts finish adds what is new. When no point remains, the store exports the bytes of a sweep on one computer.
/// Errors, with the file: no store, or an empty `store` of another program; part of another sweep (its text says something else, comments apart) or version;
/// a file that points name had other contents; a run or point came to another result than in another part (both are named, with the point).
///   cost   three times the bytes of the parts, read and written once; README.md has figures
Expected<MergeEnd> merge_stores(const std::vector<std::string>& parts, const std::string& store, Cancellation stop = {});

}  // namespace podsim
