// What may follow a command line that is being typed. Shells ask `podsim complete LINE` (tools/completion), so that names are those of the program that
// runs, and what depends on the line (the axes of --mesh, the values of --machine) is known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace podsim {

struct Completion {
  std::string word, what;  // the whole word, and a few words about it; empty: it says all
};

struct Completions {
  std::vector<Completion> words;             // that begin as the last word of the line
  std::optional<std::string> files_behind{};  // the names of files too, behind this beginning of the word
  bool open = false;                          // the words go on: no space behind them
};

/// The last word of the line is the one to be completed; behind a space it is empty. Quotes and backslashes are a shell's.
Completions completions(std::string_view line);

}  // namespace podsim
