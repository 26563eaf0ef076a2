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

/// Black or white, whichever is easier to read on it.
Colour text_colour(Colour background);

/// For a terminal: 24-bit escape sequences around the text.
std::string coloured_text(std::string_view text, Colour background);

}  // namespace podsim
