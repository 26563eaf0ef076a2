#include "tools/report/colour.hpp"

#include <fmt/format.h>

namespace podsim {

Colour text_colour(Colour background) {
  const double luma = 0.299 * background.red + 0.587 * background.green + 0.114 * background.blue;
  return luma > 186 ? Colour{} : Colour{255, 255, 255};
}

std::string coloured_text(std::string_view text, Colour back) {
  const Colour letters = text_colour(back);
  return fmt::format("\x1b[38;2;{};{};{};48;2;{};{};{}m{}\x1b[0m", letters.red, letters.green, letters.blue, back.red, back.green, back.blue, text);
}

}  // namespace podsim
