#include "sim/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace podsim {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  while (true) {
    const std::size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(blank), text.size());
  return text.substr(begin, text.find_last_not_of(blank) + 1 - begin);
}

std::string plain_spelling(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != '-' && c != '_') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return plain;
}

std::string counted(std::int64_t count, std::string_view noun) { return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with("ch") ? "es" : "s"); }

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }
std::string signed_percent(double part) { return fmt::format("{:+.1f} %", 100 * part); }
std::string rough_percent(double part) { return fmt::format("{:.2g} %", 100 * part); }

}  // namespace podsim
