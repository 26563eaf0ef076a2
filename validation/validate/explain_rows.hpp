// Explains measured collectives on a machine: what the time should be, what bounds it, and what would give the measured time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topologies/system.hpp"
#include "validation/calibration/observations.hpp"
#include "validation/validate/validate.hpp"

namespace podsim {

struct ExplainedRow {
  Observation observation;
  Seconds expected;                                          // as predict()
  std::string bound;                                         // "link[y].bandwidth, 81 %": the cost that makes the largest part of `expected`
  std::vector<std::pair<std::string, Seconds>> algorithms;  // of collectives: all that `auto` would try, the fastest first; of both orders of axes the faster
  std::string nearest;                                       // of the algorithms, to the measured time
  std::string sentence;                                      // "as if one of eight interfaces worked"
};

/// A cost's part is what the prediction loses if that cost is nothing. Costs: about ten simulations a row. Errors: those of predict().
Expected<std::vector<ExplainedRow>> explain_rows(const std::vector<Observation>& observations, const System& system, const ValidateControl& control = {});

}  // namespace podsim
