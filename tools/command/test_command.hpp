// Command lines in tests: what they return, print and write.
#pragma once

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/test_files.hpp"
#include "tools/command/command.hpp"

namespace podsim::test {

struct Outcome {
  int status = 0;
  std::string out, err;
  [[nodiscard]] nlohmann::ordered_json json() const { return nlohmann::ordered_json::parse(out); }
};

inline Outcome run_words(const std::vector<std::string>& words, bool terminal = false) {
  std::ostringstream out, err;
  Console console{out, err, terminal};
  const int status = run_command(words, console);
  return {status, out.str(), err.str()};
}

/// What a run printed, without the line that tells how long podsim itself took.
inline std::string without_wall_time(std::string text) {
  const std::size_t begin = text.find("simulated in ");
  if (begin != std::string::npos) text.erase(begin, text.find('\n', begin) - begin);
  return text;
}

/// What standard error has beside the lines of work that takes over ten seconds, as it may in a sanitized build.
inline std::string without_progress(const std::string& text) { return std::regex_replace(text, std::regex{"podsim: [^\n]*, [0-9]+ s\n"}, ""); }

/// The words of a command line without its `podsim`, split at spaces; 'a word in quotes' may hold some.
inline std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  bool quoted = false, inside = false;
  for (const char c : line) {
    if (c == '\'') quoted = !quoted;
    const bool separates = !quoted && (c == ' ' || c == '\n' || c == '\t');
    if (!separates && !inside) words.emplace_back();
    inside = !separates;
    if (!separates && c != '\'') words.back() += c;
  }
  return words;
}
inline Outcome podsim(const std::string& line) { return run_words(words_of(line)); }

/// The JSON of a line that must succeed and say nothing on standard error.
inline nlohmann::ordered_json json_of(const std::string& line) {
  const Outcome outcome = podsim(line + " --format json");
  EXPECT_EQ(outcome.status, exit_done) << line << "\n" << outcome.err;
  EXPECT_EQ(without_progress(outcome.err), "") << line;
  return outcome.status == exit_done ? outcome.json() : nlohmann::ordered_json::object();
}

inline std::vector<std::string> keys(const nlohmann::ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

}  // namespace podsim::test
