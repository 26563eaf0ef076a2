// Colours of drawings and pictures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace podsim {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

/// Black or white, whichever has more contrast with it by WCAG 2.
Colour text_colour(Colour background);

/// "#d55e00", as SVG and CSS have it.
std::string hex(Colour colour);

/// `share` of the way from one to the other.
Colour mixed(Colour from, Colour to, double share);

/// For a terminal: 24-bit escape sequences around the text.
std::string coloured_text(std::string_view text, Colour background);
std::string coloured_text(std::string_view text, Colour background, Colour letters);

}  // namespace podsim
