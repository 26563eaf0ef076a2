// What could be wrong with a machine on which collectives take another time than predicted.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "topologies/system.hpp"
#include "validation/calibration/observations.hpp"

namespace podsim {

/// How the collectives are run.
enum class AlgorithmRule {
  healthy,  // as on the healthy system: a library chooses by what the machine should be
  again,    // the fastest on the system of the hypothesis
  named,    // one algorithm at every size, in its fastest order of axes and number of chunks
  worst     // the same in its slowest order of axes
};

struct MachineHypothesis {
  std::string sort;    // hypotheses of one sort differ in how much: the best of them stands for all; "one cable of link[x]"
  std::string name;    // "one network interface at half its rate"
  std::string option;  // what `podsim run` takes for it: "--degrade '0.0-rail 0=0.5'"; empty: healthy
  System system;
  AlgorithmRule rule = AlgorithmRule::healthy;
  std::string algorithm{};  // of the rules `named` and `worst`: a name of collective_algorithms()
  // Of slow and broken cables:
  std::vector<CableEnds> cables{};
  std::string part{};  // as --degrade names them
  double left = 1;     // of their rate
};

/// Parts of a rate that hypotheses_of() tries, beside 0; at_share() is for those between.
inline constexpr std::array<double, 3> shares_tried{0.75, 0.5, 0.25};

/// The same cables at another part of their rate, 0 < `left` < 1. Errors: those of making the system.
Expected<MachineHypothesis> at_share(const MachineHypothesis& slow, const System& healthy, double left);

/// The healthy system first, then, where the system has such parts:
///   one cable of each dimension, and all cables of the switch at its end, at 3/4, 1/2, 1/4 of their rate or cut off
///   all links of a dimension at half their rate; no sums in its switches
///   a device at half its speed
///   collectives by each algorithm at every size: of GPUs those that NCCL has, as NCCL_ALGO names them, elsewhere all that `auto` would try. Not NCCL's trees: `tree` takes twice the
///   time of `channels` on several nodes, where NCCL counts on 0.92 of its rings' bandwidth (NVIDIA/nccl @5067397c, src/graph/tuning.cc)
///   a ring through the devices in its worst order: of several nodes one that crosses them at every step
///   NCCL's protocol LL at every size (of GPUs): the least of the machine's efficiencies
/// Parts that are alike have one hypothesis: the first of them. Errors: those of making the systems.
Expected<std::vector<MachineHypothesis>> hypotheses_of(const std::vector<Observation>& observations, const System& healthy);

}  // namespace podsim
