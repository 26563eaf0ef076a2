// The time of an observed operation as a formula of the machine's values, where there is one: what a fit evaluates thousands of times.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "validation/calibration/fit/predict.hpp"

namespace podsim {

/// A step that is taken `times` times, one after the other.
struct CostStep {
  double times = 0;
  int dimension = 0;  // whose link carries the data
  std::array<double, max_dimensions> hops{};
  double link_bytes = 0;  // over one direction of the busiest link
  double injected = 0;    // from one device into its router, and from there into one device
  double reduced = 0;     // added up at the receiver
};

/// A formula, linear in latencies, overheads and 1 / rates but for the max:
///   collective   launch[kind] + sum of steps: times * (per_message + hops * latency
///                             + max(link_bytes / bandwidth, injected / injection, injected / ejection) / efficiency + reduced / reduce_bandwidth)
///   others       matmul_time() or local_time() of the one task
struct ClosedForm {
  CostKind kind = CostKind::matmul;
  Bytes input;  // for the efficiency curve
  std::vector<CostStep> steps;
  std::shared_ptr<const Schedule> one_task{};  // matmul, hbm_copy
};

/// The formula of what predict() simulates, or nothing where none is known. There is one for: matmul, hbm_copy; permutes and collectives whose algorithm
/// has a closed form (algorithms/collectives/closed_form.hpp) that counts everything, without flows that meet on links other than those to a switch;
/// along one axis or several, one after the other, each of them laid over one dimension, row-major, on chips of one device. Broadcast and reduce are
/// simulated. Tests hold it to des within three picoseconds per step; an odd number of elements that is halved under an injection limit adds up to the
/// time of one element.
std::optional<ClosedForm> closed_form(const Observation& observation, const System& system, const PredictOptions& options = {});

Seconds evaluate(const ClosedForm& form, const Machine& machine);

}  // namespace podsim
