#include "validation/calibration/fit/coverage.hpp"

#include <algorithm>
#include <tuple>

#include "workloads/scenario/coverage.hpp"

namespace podsim {

Expected<std::vector<Coverage>> coverage_of(const std::vector<Observation>& observations, const System& system, const PredictOptions& options) {
  std::vector<Coverage> covered;
  Systems systems{system};
  for (const Observation& observation : observations) {
    if (is_described(observation)) continue;  // covers no operation by itself
    const auto own = systems.of(observation);
    if (!own) return own.error();
    const auto schedule = schedule_of(observation, **own, options.unknown_matmul);
    if (!schedule) return schedule.error();
    std::vector<Coverage> operations = operations_in(*schedule, **own);
    if (observation.m == 0)  // bytes as they were measured, and rounded up to what divides
      for (Coverage& operation : operations) widen(operation.bytes, {observation.bytes.count(), observation.bytes.count()});
    merge(covered, operations);
  }
  std::sort(covered.begin(), covered.end(), [](const Coverage& a, const Coverage& b) {
    return std::tie(a.operation, a.devices, a.along) < std::tie(b.operation, b.devices, b.along);
  });
  return covered;
}

}  // namespace podsim
