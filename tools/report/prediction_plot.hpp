// Predicted against measured, as an SVG picture.
#pragma once

#include <string>
#include <vector>

#include "sim/base/quantity.hpp"

namespace podsim {

struct PlottedPoint {
  Seconds measured, predicted;
  std::string what;     // shown where the pointer rests
  bool hollow = false;  // does not count
};

struct PlottedGroup {
  std::string name;  // in the legend
  std::vector<PlottedPoint> points;
};

/// Two panels over the measured time, which is logarithmic: the predicted time with the line of equality, and the signed error with a band of 10 %;
/// errors beyond 50 % stand at the edge as triangles. Groups have colours that people with colour blindness can tell apart, and repeat after eight.
/// The same input gives the same bytes. Groups without points are left out; without any point the panels are empty.
std::string prediction_svg(const std::string& title, const std::vector<PlottedGroup>& groups);

}  // namespace podsim
