// Predicted against measured, as an SVG picture.
#pragma once

#include <string>
#include <vector>

#include "sim/base/quantity.hpp"

namespace podsim {

struct PlottedPoint {
  Seconds measured, predicted;
  std::string what;     // the tooltip
  bool hollow = false;  // does not count in the aggregate error
};

struct PlottedGroup {
  std::string name;  // for the legend
  std::vector<PlottedPoint> points;
};

/// Two panels over the measured time on a logarithmic axis: the predicted time with the line of equality, and the signed error with a band of 10 %.
/// Errors beyond 50 % are triangles at the edge. Group colours are distinguishable with colour blindness and repeat after eight. Equal inputs give
/// equal bytes. More than 1000 points are dots without tooltips, and those that do not count are pale. Groups without points are left out; without any point the panels are empty.
std::string prediction_svg(const std::string& title, const std::vector<PlottedGroup>& groups);

}  // namespace podsim
