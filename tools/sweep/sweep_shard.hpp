// Shards of a sweep: which of its points each of several processes runs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

/// Shard `index` of `count`, counted from 1: "3/8".
struct SweepShard {
  std::size_t index = 1, count = 1;
  friend bool operator==(const SweepShard&, const SweepShard&) = default;
};

/// Errors, at `where`: what is no "I/N" with I from 1 to N and N at most most_shards.
inline constexpr std::size_t most_shards = 1'000'000;
Expected<SweepShard> parse_shard(std::string_view text, const SourceLocation& where);
std::string to_text(const SweepShard& shard);

/// The positions of its points, ascending, of so many points in all: one of every `count` that follow each other, chosen by a hash of where they stand.
/// Contiguous ranges would give one shard all points of the largest slice, since the first fields vary slowest; every count-th point would give one shard
/// all points of one engine or slice count wherever the last axis has as many values as there are shards. Sizes differ by at most one. The same for all
/// hosts and builds. README.md has the balance of the three.
///   cost   O(points)
std::vector<std::size_t> positions_of(const SweepShard& shard, std::size_t points);

}  // namespace podsim
