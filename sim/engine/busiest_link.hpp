// What the busiest link says of a run before it is played.
#pragma once

#include "sim/model/model.hpp"

namespace podsim {

/// How long the busiest link carries what all its flows bring: no run ends earlier. Rounded down, and for flows whose end is rounded to a picosecond. What works draw from
/// memories is not counted.
///   cost     the links of each transfer's path
///   example  three flows of 1 GB over one link of 1 GB/s: 3 s, whenever they start
Picoseconds time_of_busiest_link(const Model& model);

}  // namespace podsim
