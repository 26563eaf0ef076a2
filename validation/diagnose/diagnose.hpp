// Diagnoses a machine by the times of its collectives: every hypothesis simulated, ranked by how well it fits, and the next measurement that tells the first two apart.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topologies/system.hpp"
#include "validation/calibration/observations.hpp"
#include "validation/validate/validate.hpp"

namespace podsim {

struct HypothesisFit {
  std::string name, option;        // as in MachineHypothesis
  std::vector<Seconds> predicted;  // of each observation
  double error = 0;                // e^r - 1 with r the root mean square of ln(predicted / measured): 0.1 is 10 % off, one way or the other
  double largest = 0;              // predicted / measured - 1 of the row where it is furthest off
  std::optional<std::pair<double, double>> share{};  // of slow cables that were refined: from which to which part of their rate the error is within a fiftieth of the least
};

/// A collective that two hypotheses predict most differently: of all devices, or of all but the first ones along the first dimension of the slice, as the GPUs of the first node.
struct NextMeasurement {
  Observation observation;    // without a time
  std::string left_out{};     // "0.0 to 0.7"; empty: none
  std::string other{};        // the name of the second hypothesis
  Seconds first{}, second{};
};

struct Diagnosis {
  std::vector<Observation> observations;     // that were predicted
  std::vector<HypothesisFit> fits;           // best first, "healthy" among them; of one sort the best; of errors within a hundredth in the order of hypotheses_of(), simple ones first; the healthy system before those that are better by 2 % at most
  std::optional<NextMeasurement> next;       // tells the first from the next one that can be told from it, of three; nullopt: nothing that was tried does
  std::vector<std::string> without_effect;   // hypotheses under which every row takes the time that it takes on the healthy system
  std::vector<std::string> notes;
};

/// Of each row the library is taken to choose the algorithm that is fastest on the healthy system, and to keep it where a cable or device is slow. Of the three best sorts of slow cables the part of the rate
/// that fits best is looked for between those that were tried (Brent's method, sim/base/minimum.hpp); a round part stays where it fits as well. Costs: a few
/// simulations a row and hypothesis; of more than 24 rows of one operation 24 are taken. Errors: no row of a collective of all devices; those of predict().
Expected<Diagnosis> diagnose(const std::vector<Observation>& observations, const System& healthy, const ValidateControl& control = {});

}  // namespace podsim
