#include "topologies/machines.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "sim/config/machine_config.hpp"
#include "topologies/embedded_machines.hpp"

namespace podsim {

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_machines()) names.emplace_back(file.name);
  return names;
}

Expected<Machine> find_machine(std::string_view name_or_file) {
  const auto shipped = embedded_machines();
  const auto found = std::find_if(shipped.begin(), shipped.end(), [&](const EmbeddedFile& file) { return file.name == name_or_file; });
  if (found != shipped.end()) return read_machine(found->text, fmt::format("topologies/machines/{}.textproto", found->name));

  const std::string path{name_or_file};
  if (const std::optional<std::string> text = contents_of(path)) return read_machine(*text, path);
  const bool is_path = path.find('/') != std::string::npos || path.ends_with(".textproto");
  if (is_path) return Diagnostic{{path, 0, 0}, "cannot be read, expected a machine file"};
  const std::vector<std::string> names = shipped_machines();
  const std::string near = did_you_mean(name_or_file, names);
  return Diagnostic{{},
                    fmt::format("unknown machine {}{}", quoted(name_or_file),
                                near.empty() ? fmt::format(", expected one of {} or a file", fmt::join(names, ", ")) : near)};
}

}  // namespace podsim
