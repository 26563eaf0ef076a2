// Counter-based random numbers: the n-th number of a stream is a function of (seed, stream, n). Any part of a tensor or a test case can be
// generated again by itself, on any thread, in any order.
#pragma once

#include <cstdint>
#include <string_view>

namespace podsim {

/// A well-mixed 64-bit value of its three arguments (splitmix64 finaliser, applied per argument).
constexpr std::uint64_t counter_hash(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  std::uint64_t state = seed;
  for (const std::uint64_t word : {stream, counter}) {
    state += 0x9e3779b97f4a7c15ULL + word * 0xd1342543de82ef95ULL;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
    state ^= state >> 31;
  }
  return state;
}

/// A stream number for a name (FNV-1a), the same on every platform.
constexpr std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// A uniform double in [0, 1) from 53 bits of a hash.
constexpr double unit_interval(std::uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1.0p-53; }

/// A stream that keeps its own counter.
class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed, std::uint64_t stream = 0) : seed_{seed}, stream_{stream} {}
  constexpr std::uint64_t next() { return counter_hash(seed_, stream_, counter_++); }
  /// Uniform in [0, bound), bound > 0; the bias of the modulus (below bound / 2^64) does not matter here.
  constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// Uniform in [low, high].
  constexpr int between(int low, int high) { return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low) + 1)); }
  constexpr double uniform() { return unit_interval(next()); }

 private:
  std::uint64_t seed_, stream_, counter_ = 0;
};

}  // namespace podsim
