// Pictures of boxes and texts, as SVG and PNG.
#pragma once

#include <string>
#include <vector>

#include "sim/base/expected.hpp"
#include "tools/report/colour.hpp"

namespace podsim {

/// Of the font DejaVu Sans: the width of a digit, as a share of its size.
inline constexpr double letter_width = 0.64;

struct PictureBox {
  double x = 0, y = 0, width = 0, height = 0;
  Colour fill;
  bool framed = false;
};

struct PictureText {
  double x = 0, y = 0, size = 0;  // y of the middle of its letters
  double anchor = 0;              // 0: begins at x, 0.5: is centred there, 1: ends there
  Colour colour;
  std::string text;
};

/// On white.
struct BoxPicture {
  double width = 0, height = 0;
  std::vector<PictureBox> boxes{};
  std::vector<PictureText> texts{};
};

/// Equal pictures give equal bytes.
std::string svg_of(const BoxPicture& picture);
/// The same picture, twice as many pixels on each side. Its letters are those of the font DejaVu Sans where it is installed. Errors
/// (Cause::environment): no memory, or no cairo, which is loaded for the first picture.
Expected<std::string> png_of(const BoxPicture& picture);

}  // namespace podsim
