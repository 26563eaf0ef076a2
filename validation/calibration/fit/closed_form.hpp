// The time of an observed operation as a formula of the machine's values, if there is one. A fit evaluates it thousands of times.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "validation/calibration/fit/predict.hpp"

namespace podsim {

/// A step that is repeated `times` times, sequentially.
struct CostStep {
  double times = 0;
  int dimension = 0;  // the dimension whose link carries the data
  std::array<double, max_dimensions> hops{};
  double link_bytes = 0;  // over one direction of the busiest link
  double injected = 0;    // by one device into its router, and from the router into one device
  double reduced = 0;     // bytes added at the receiver
  bool in_switch = false; // the link reaches in_switch_efficiency of its bandwidth
};

/// A formula that is linear in latencies, overheads and inverse rates, apart from the max:
///   collective   launch[kind] (+ in_switch_launch) + own block / own_block_bandwidth + sum of steps: times * (per_message + hops * latency
///                             + max(link_bytes / bandwidth, injected / injection, injected / ejection) / efficiency + reduced / reduce_bandwidth)
///   others       matmul_time() or local_time() of the one task
struct ClosedForm {
  CostKind kind = CostKind::matmul;
  Bytes input;        // for the efficiency curve
  Bytes own_block{};  // copied beside the launch
  bool in_switch = false;  // with in_switch_launch
  std::vector<CostStep> steps;
  int links_out = 2;  // of a device per dimension, and as many in
  std::shared_ptr<const Schedule> one_task{};  // matmul, hbm_copy
};

/// The formula of what predict() simulates; nullopt if there is none. There is one for matmul, hbm_copy, and permutes and collectives whose algorithm
/// has a complete closed form (algorithms/collectives/closed_form.hpp) without contention on links other than those to a switch. The axes must each
/// lie along one dimension, wherever the mesh has that, on chips of one device. Broadcast and reduce have none and are simulated. Tests compare it to des, within
/// three picoseconds per step; halving an odd number of elements under an injection limit adds up to the time of one element.
std::optional<ClosedForm> closed_form(const Observation& observation, const System& system, const PredictOptions& options = {});

/// Whether the memory of every device has room for all that its links can carry at once. Elsewhere transfers share it, which the formula leaves out.
/// Not sharp: all links of the dimensions in use, both ways, and adds to all that arrives.
bool has_memory_to_spare(const ClosedForm& form, const Machine& machine);

/// What des gives on a machine with memory to spare.
Seconds evaluate(const ClosedForm& form, const Machine& machine);

}  // namespace podsim
