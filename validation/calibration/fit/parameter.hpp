// One unknown of a calibration.
#pragma once

#include <string>
#include <vector>

#include "sim/machine/machine_fields.hpp"

namespace podsim {

/// One unknown. Predictions are linear, or nearly linear, in x: a time, or the inverse of a rate or efficiency, over `unit`.
struct Parameter {
  enum class Kind { time, rate, efficiency, share };
  std::string path, at{};
  Kind kind = Kind::time;
  const MachineField* field = nullptr;
  std::vector<int> entries{};  // of the field
  int point = -1;              // of a curve or table
  double unit = 1, low = 0, high = 0;
  bool last = false;  // fitted last: the highest point of a curve is identifiable only through the scale of the bandwidth
  double rate = 0;    // if `last`: the bandwidth reached there; of several, the fastest is fitted last
  bool smooth = false;  // a point of a dense curve, which its neighbours determine where the observations do not
};

double physical(const Parameter& parameter, double x);
double from_physical(const Parameter& parameter, double value);

}  // namespace podsim
