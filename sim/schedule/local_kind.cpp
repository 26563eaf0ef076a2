#include "sim/schedule/local_kind.hpp"

#include <cassert>

#include "sim/schedule/schedule.hpp"

namespace podsim {

namespace {

/// `o` is o or its gradient: [sequences, sequence, groups, q, head] or [groups, q, head, sequences, sequence].
LocalFlops of_scores(const Local& local, const Region& o, double per_product, double per_score) {
  assert(o.dims.size() == 5);
  const auto extent = [&](std::size_t i) { return static_cast<double>(o.dims[local.features_first ? (i + 3) % 5 : i].length); };
  const double sequence = extent(1), heads = extent(0) * extent(2) * extent(3), head = extent(4);
  const double scores = heads * (local.causal ? sequence * (sequence + 1) / 2 : sequence * sequence);
  return {Flops{per_product * scores * head}, Flops{per_score * scores}};
}

}  // namespace

LocalFlops flops_per_element(const Local& local, double operations) {
  return {Flops{}, Flops{local.reads.empty() ? 0 : operations * static_cast<double>(elements_of(local.reads.front()))}};
}

LocalFlops attention_flops(const Local& local) { return of_scores(local, local.writes.front(), 4, 6); }
LocalFlops attention_grad_flops(const Local& local) { return of_scores(local, local.reads.front(), 10, 11); }

}  // namespace podsim
