// Kernels run on several streams of a GPU at once: which of them a moment of the step belongs to.
#pragma once

#include <cstdint>
#include <vector>

namespace podsim {

/// What a moment counts to first: arithmetic hides copies, and both hide communication.
enum class KernelRank : std::uint8_t { arithmetic, copy, communication };

struct StreamSpan {
  std::int64_t begin_ps = 0, end_ps = 0;
  KernelRank rank = KernelRank::arithmetic;
};

/// For each span the time that belongs to it: of the spans that run at a moment the one of the first rank; of one rank the one that began first; ties: the first of the list. So the times sum to
/// the time in which any span runs, and those of communication are what is exposed.
///   cost    O(n log n) for n spans
std::vector<std::int64_t> own_times(const std::vector<StreamSpan>& spans);

}  // namespace podsim
