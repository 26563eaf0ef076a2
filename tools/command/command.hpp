// The `podsim` command: `podsim VERB [OPTION...]`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/console/console.hpp"

namespace podsim {

/// Runs one command line (without the program's name) and returns the exit status.
int run_command(const std::vector<std::string>& arguments, Console& console);

/// A verb: what `podsim help` says about it, and what it does.
struct Verb {
  std::string_view name, summary;
  int (*run)(const std::vector<std::string>& arguments, Console& console);
};
std::span<const Verb> verbs();
/// The same of the words that may follow `show`.
std::span<const Verb> show_targets();
/// Those that programs use and `podsim help` does not list.
std::span<const Verb> hidden_verbs();

int run_verb(const std::vector<std::string>& arguments, Console& console);
int check_verb(const std::vector<std::string>& arguments, Console& console);
int calibrate_verb(const std::vector<std::string>& arguments, Console& console);
int validate_verb(const std::vector<std::string>& arguments, Console& console);
int diagnose_verb(const std::vector<std::string>& arguments, Console& console);
int compare_verb(const std::vector<std::string>& arguments, Console& console);
int diff_verb(const std::vector<std::string>& arguments, Console& console);
int tune_verb(const std::vector<std::string>& arguments, Console& console);
int sweep_verb(const std::vector<std::string>& arguments, Console& console);
int report_verb(const std::vector<std::string>& arguments, Console& console);
int show_verb(const std::vector<std::string>& arguments, Console& console);
int complete_verb(const std::vector<std::string>& arguments, Console& console);
int man_pages_verb(const std::vector<std::string>& arguments, Console& console);

}  // namespace podsim
