#include "tools/command/described_command.hpp"

#include <sstream>

#include "tools/command/command.hpp"
#include "tools/console/caller.hpp"

namespace podsim {

std::vector<CommandName> command_names() {
  std::vector<CommandName> names;
  for (const Verb& verb : verbs())
    if (verb.run != &show_verb) names.push_back({{std::string{verb.name}}, verb.summary});
  for (const Verb& target : show_targets()) names.push_back({{"show", std::string{target.name}}, target.summary});
  return names;
}

std::optional<DescribedCommand> described_command(const std::vector<std::string>& words) {
  DescribedCommand described;
  std::ostringstream out;
  Caller caller;
  caller.described = &described;
  Console console{out, out};
  console.caller = &caller;
  for (const Verb& verb : verbs())
    if (!words.empty() && words.front() == verb.name) verb.run({words.begin() + 1, words.end()}, console);
  if (described.options.empty()) return std::nullopt;
  return described;
}

}  // namespace podsim
