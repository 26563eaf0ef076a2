// Command lines that a shell takes.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace podsim {

/// The word, quoted where a shell would take it apart.
inline std::string shell_word(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view{"_-+=./:,@%"}.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return quoted + "'";
}

}  // namespace podsim
