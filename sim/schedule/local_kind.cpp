#include "sim/schedule/local_kind.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/invariant.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

namespace {

/// `o` is o or its gradient: [sequences, sequence, groups, q, head] or [groups, q, head, sequences, sequence].
LocalFlops of_scores(const Local& local, const Region& o, double per_product, double per_score) {
  PODSIM_ASSERT(o.dims.size() == 5);
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


LocalFlops fft_flops(const Local& local) {
  const Region& x = local.reads.front();
  const auto n = static_cast<double>(x.dims[static_cast<std::size_t>(local.dims[0])].length);
  return {Flops{}, Flops{5 * std::log2(n) * static_cast<double>(elements_of(x))}};
}

LocalFlops getrf_flops(const Local& local) {
  const MatrixExtents panel = matrix_extents(local, 0);
  const auto b = static_cast<double>(panel.columns);
  double m = static_cast<double>(panel.rows);
  if (local.numbering.size() == 2) m -= static_cast<double>(local.numbering[1].first.constant - local.numbering[0].first.constant);
  return {Flops{m * b * b - b * b * b / 3}, Flops{m * b}};
}

std::int64_t pivots_of(const Local& local) {
  if (local.kind == LocalKind::getrf_panel) return matrix_extents(local, 0).columns;
  return local.kind == LocalKind::solve ? local.reads.front().dims.back().length : 0;
}

LocalFlops trsm_flops(const Local& local) {
  const auto n = static_cast<double>(matrix_extents(local, 0).rows), m = static_cast<double>(matrix_extents(local, 1).columns);
  return {Flops{n * n * m}, Flops{}};
}

LocalFlops solve_flops(const Local& local) {
  const Region& a = local.reads.front();
  const auto n = static_cast<double>(a.dims.back().length);
  const double systems = static_cast<double>(elements_of(a)) / (n * n);
  const double columns = static_cast<double>(elements_of(local.reads.back())) / (n * systems);
  return {Flops{systems * (2 * n * n * n / 3 + 2 * n * n * columns)}, Flops{}};
}

namespace {

/// `extra`: of the vector unit, besides what the statistics take.
LocalFlops with_statistics(const Local& local, double extra) {
  return {Flops{}, Flops{2.5 * static_cast<double>(elements_of(local.reads[1])) + extra}};  // a maximum and a sum of each
}

}  // namespace

LocalFlops cross_entropy_flops(const Local& local) { return with_statistics(local, 3 * static_cast<double>(elements_of(local.reads[2]))); }
LocalFlops cross_entropy_grad_flops(const Local& local) { return with_statistics(local, 3 * static_cast<double>(elements_of(local.reads[0]))); }

LocalFlops expert_gates_flops(const Local& local) {
  const Region& gates = local.kind == LocalKind::expert_gates ? local.writes.front() : local.reads.front();
  return {Flops{}, Flops{4 * static_cast<double>(elements_of(gates))}};
}
LocalFlops expert_combine_flops(const Local& local) { return {Flops{}, Flops{2 * static_cast<double>(elements_of(local.reads[0]))}}; }
LocalFlops expert_combine_grad_flops(const Local& local) { return {Flops{}, Flops{4 * static_cast<double>(elements_of(local.reads[1]))}}; }

LocalFlops opaque_flops(const Local& local) { return {local.opaque.matrix, local.opaque.vector}; }

LocalFlops one_hot_flops(const Local& local) { return {Flops{}, Flops{static_cast<double>(elements_of(local.writes.front()))}}; }

std::int64_t traffic_of_region(const Local& local, std::size_t region) {
  return elements_of(region < local.reads.size() ? local.reads[region] : local.writes[region - local.reads.size()]);
}

std::int64_t traffic_of_rows(const Local& local, std::size_t region) {
  // The first read is the array that rows are picked from or put into; the last one is the index, of which each entry moves one row.
  const bool moves_all = region + 1 == local.reads.size() || (region == 1 && local.kind == LocalKind::scatter_rows);
  const bool elsewhere = local.kind != LocalKind::gather_rows && local.reads.front() != local.writes.front();  // all other rows are copied
  if (moves_all || elsewhere) return traffic_of_region(local, region);
  const std::int64_t rows = elements_of(local.reads.back()) * (local.kind == LocalKind::swap_rows ? 2 : 1);
  if (local.kind == LocalKind::scatter_rows && region == 0) return 0;
  return std::min(rows * matrix_extents(local, region).columns, traffic_of_region(local, region));
}

std::int64_t traffic_of_targets(const Local& local, std::size_t region) {
  return region == 0 ? std::min(elements_of(local.reads[2]), traffic_of_region(local, 0)) : traffic_of_region(local, region);
}

}  // namespace podsim
