#include "tools/sweep/sweep_shard.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "sim/base/text.hpp"

namespace podsim {

namespace {

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of the result depends on every bit of the number.
std::uint64_t scattered(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15U;
  number = (number ^ (number >> 30U)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27U)) * 0x94d049bb133111ebU;
  return number ^ (number >> 31U);
}

bool read_number(std::string_view text, std::size_t& number) {
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, number);
  return status == std::errc{} && rest == end;
}

}  // namespace

Expected<SweepShard> parse_shard(std::string_view text, const SourceLocation& where) {
  const std::size_t slash = text.find('/');
  SweepShard shard;
  if (slash == std::string_view::npos || !read_number(text.substr(0, slash), shard.index) || !read_number(text.substr(slash + 1), shard.count))
    return Diagnostic{where, "expected I/N, such as 3/8, found " + quoted(text)};
  if (shard.count < 1 || shard.count > most_shards) return Diagnostic{where, fmt::format("expected 1 to {} shards, found {}", most_shards, shard.count)};
  if (shard.index < 1 || shard.index > shard.count)
    return Diagnostic{where, fmt::format("expected a shard from 1 to {}, found {}", shard.count, shard.index)};
  return shard;
}

std::string to_text(const SweepShard& shard) { return fmt::format("{}/{}", shard.index, shard.count); }

std::vector<std::size_t> positions_of(const SweepShard& shard, std::size_t points) {
  std::vector<std::size_t> positions;
  for (std::size_t group = 0; group * shard.count < points; ++group) {
    // Of a last group that is cut off, the shards that it is cut off for have no point.
    const std::size_t position = group * shard.count + (shard.index - 1 + scattered(group) % shard.count) % shard.count;
    if (position < points) positions.push_back(position);
  }
  return positions;
}

}  // namespace podsim
