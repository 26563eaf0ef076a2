// What an interrupted search says.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "tools/command/options.hpp"

namespace podsim {

/// The JSON of a search that had not begun.
inline constexpr const char* nothing_known = "{\n  \"plans\": [],\n  \"candidates\": 0,\n  \"pruned\": 0,\n  \"simulated\": 0,\n  \"interrupted\": true\n}\n";

/// Keeps the answer so far where an end that the work does not hear of finds it (Console::known_so_far), and prints it where it does.
class AnswerSoFar {
 public:
  AnswerSoFar(const Options& options, Console& console) : options_{options}, console_{console} {}

  /// Before anything is known. `counted`: "0 parts simulated"; `json`: an answer without plans.
  void nothing(const std::string& counted, const std::string& json);
  /// The text of a better answer; made at most twice a second.
  void better(const std::function<std::string()>& text);
  /// The same where it is the last: made whatever was made before.
  void last(const std::function<std::string()>& text);
  /// Of work that has heard of its end before anything is known. Returns the exit status.
  int print_nothing(const std::string& counted, const std::string& json) const;

 private:
  [[nodiscard]] std::string out_of(const std::string& json) const;

  const Options& options_;
  Console& console_;
  std::chrono::steady_clock::time_point made_{};
};

}  // namespace podsim
