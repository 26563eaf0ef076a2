// The simulated time of a measured training step or run near a machine, as a linear form of the values that are fitted.
#pragma once

#include <vector>

#include "validation/calibration/fit/calibrate.hpp"
#include "validation/calibration/fit/parameter.hpp"

namespace podsim {

/// A fit moves through hundreds of values and a step takes up to a second to simulate, so a fit moves along the tangent, which is laid anew where the
/// simulated time is another than the tangent's: by more than 0.05 %, below the digits of published times.
///   cost    at(): a sum. touch(): one simulation, and one for each value where a tangent is laid
class StepTime {
 public:
  StepTime(const Observation& observation, DescribedTime predict) : observation_{&observation}, predict_{std::move(predict)} {}

  Expected<Seconds> simulated(const Machine& machine, Cancellation stop) const { return predict_(*observation_, machine, stop); }
  /// Simulates on this machine and lays the tangent along these values through that time. Returns how far the tangent before was from it, as a share of
  /// the time; 0 where it was near enough to be kept.
  Expected<double> touch(const Machine& machine, const std::vector<Parameter>& along, Cancellation stop);
  /// By the tangent of the last touch(); infinite without one.
  [[nodiscard]] Seconds at(const Machine& machine) const;

 private:
  struct Direction {
    Parameter parameter;
    double where = 0, slope = 0;  // in x
  };
  [[nodiscard]] bool is_along(const std::vector<Parameter>& parameters) const;

  const Observation* observation_;
  DescribedTime predict_;
  bool laid_ = false;
  std::vector<Direction> directions_;
  Seconds time_;
};

}  // namespace podsim
