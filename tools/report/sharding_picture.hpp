// Who holds which block of a sharded array, as a picture.
#pragma once

#include <string>

#include "sim/base/expected.hpp"
#include "tools/report/sharding_drawing.hpp"

namespace podsim {

/// Blocks as rectangles in the colours of cell_colours(), with the devices that hold them where they fit, and the indices where blocks begin. The
/// sides are those of the array, up to 4 to 1.
std::string sharding_svg(const BlockGrid& grid, const std::string& platform, const std::string& title);
/// The same picture, twice as many pixels on each side. Its letters are those of the font DejaVu Sans where it is installed. Errors: no memory.
Expected<std::string> sharding_png(const BlockGrid& grid, const std::string& platform, const std::string& title);

}  // namespace podsim
