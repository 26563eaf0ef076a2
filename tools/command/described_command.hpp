// What there is to say: the commands and their options, for what describes them, such as completions and the manual.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/command/options.hpp"

namespace podsim {

/// A verb, or `show` with what it shows.
struct CommandName {
  std::vector<std::string> words;  // {"show", "mesh"}
  std::string_view summary;
};
/// Those that `podsim help` and `podsim show` list.
std::vector<CommandName> command_names();

/// What the command that these words begin takes; further words may change which option words without one belong to. nullopt: no command begins so.
std::optional<DescribedCommand> described_command(const std::vector<std::string>& words);

}  // namespace podsim
