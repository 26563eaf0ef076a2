#include "workloads/scenario/bandwidth.hpp"

namespace podsim {

namespace {

/// busbw / algbw among P devices.
double bus_factor(CollectiveKind kind, double P) {
  switch (kind) {
    case CollectiveKind::all_reduce: return 2 * (P - 1) / P;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all: return (P - 1) / P;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::permute: return 1;
  }
  return 1;
}

}  // namespace

std::optional<Bandwidths> bandwidths_of(const CollectiveSummary& collective, Seconds time) {
  if (!(time.count() > 0)) return std::nullopt;
  const auto devices = static_cast<double>(collective.devices), input = static_cast<double>(collective.input.count());
  const double size = collective.kind == CollectiveKind::all_gather ? devices * input : input;
  return Bandwidths{BytesPerSecond{size / time.count()}, BytesPerSecond{size / time.count() * bus_factor(collective.kind, devices)}};
}

}  // namespace podsim
