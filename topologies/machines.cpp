#include "topologies/machines.hpp"

#include <algorithm>
#include <filesystem>

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
  std::error_code none;
  const bool is_path = path.find('/') != std::string::npos || path.ends_with(".textproto");
  if (is_path || std::filesystem::is_regular_file(path, none)) {
    const auto text = read_file(path, config_limit);
    if (!text) return text.error();
    return read_machine(*text, path);
  }
  const std::vector<std::string> names = shipped_machines();
  const std::string near = did_you_mean(name_or_file, names);
  return Diagnostic{{},
                    fmt::format("unknown machine {}{}", quoted(name_or_file),
                                near.empty() ? fmt::format(", expected one of {} or a file", fmt::join(names, ", ")) : near)};
}

}  // namespace podsim
