// The points of a sweep's record for other programs.
#pragma once

#include <string>

#include "tools/page/record.hpp"

namespace podsim {

/// A row per point under the names of all columns; RFC 4180. The record must be of a sweep.
std::string points_csv(const Record& record);

/// A chart for Vega-Lite 5 with the points that are done in it: the time of the step over what was swept with the most values, marks coloured by what else was swept. Sizes and counts that go over more than a
/// factor of 8 have axes of powers of 2, names have a place each.
std::string points_vega_lite(const Record& record);

}  // namespace podsim
