// The buffers of a module and when they are live, instructions in the order of the text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim::hlo_buffers {

/// Bytes by memory space.
enum Space : std::uint8_t { hbm, vmem, cmem, host, spaces };
using Sizes = std::array<std::int64_t, spaces>;
Sizes sizes_of(const HloShape& leaf);

/// A buffer and the steps in which it is live, first and last one included. Steps count the instructions, those of computations that control flow
/// runs in the place of the instruction that runs them.
struct Interval {
  Sizes sizes{};
  std::int64_t begin = 0, end = 0;
  bool remote = false;  // other devices write it: the result of a collective other than an all-reduce
};

/// The place of a donated parameter of the entry, and the steps, first and last, in which the parameter or the output that lies there is live. In between
/// it is free, where the compiler makes the output elsewhere and copies it into the place.
struct Donated {
  Sizes sizes{};
  std::vector<std::pair<std::int64_t, std::int64_t>> live{};
};

/// What a computation needs beside its parameters, and where it is called beside its results.
struct Need {
  std::vector<Interval> intervals{};
  std::int64_t steps = 1;
  std::vector<bool> unchanged{};  // of a loop's body: leaves of its tuple that it hands on as they are
  std::vector<Donated> donated{};  // of the entry
};

/// Of the entry, with its results but without its parameters. nullopt: more than 2^24 values, or 2^40 steps.
std::optional<Need> need_of_entry(const HloModule& module);

}  // namespace podsim::hlo_buffers
