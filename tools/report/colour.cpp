#include "tools/report/colour.hpp"

#include <cmath>

#include <fmt/format.h>

namespace podsim {

Colour text_colour(Colour background) {
  const auto linear = [](std::uint8_t value) {
    const double v = value / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  const double luminance = 0.2126 * linear(background.red) + 0.7152 * linear(background.green) + 0.0722 * linear(background.blue);
  constexpr double flare = 0.05;  // WCAG: what a screen reflects
  return (luminance + flare) / flare > (1 + flare) / (luminance + flare) ? Colour{} : Colour{255, 255, 255};
}

std::string hex(Colour c) { return fmt::format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue); }

Colour mixed(Colour from, Colour to, double share) {
  const auto between = [share](std::uint8_t a, std::uint8_t b) { return static_cast<std::uint8_t>(std::lround(a + (b - a) * share)); };
  return {between(from.red, to.red), between(from.green, to.green), between(from.blue, to.blue)};
}

std::string coloured_text(std::string_view text, Colour back) { return coloured_text(text, back, text_colour(back)); }

std::string coloured_text(std::string_view text, Colour back, Colour letters) {
  return fmt::format("\x1b[38;2;{};{};{};48;2;{};{};{}m{}\x1b[0m", letters.red, letters.green, letters.blue, back.red, back.green, back.blue, text);
}

}  // namespace podsim
