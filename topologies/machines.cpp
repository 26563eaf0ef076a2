#include "topologies/machines.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/config/machine_config.hpp"
#include "topologies/embedded_machines.hpp"
#include "topologies/cloud_names.hpp"
#include "topologies/slice.hpp"

namespace podsim {

namespace {

/// What people call a machine: without the vendor's words, case or separators. tpu_v5p, TPU-v5p and v5p are one; so are dgx_h100 and H100, gb200_nvl72 and gb200.
std::string called(std::string_view name) {
  std::string word = plain_spelling(name);
  for (const std::string_view vendor : {"tpu", "dgx", "nvidia"})
    if (word.starts_with(vendor)) word.erase(0, vendor.size());
  constexpr std::string_view rack = "nvl72";
  if (word.ends_with(rack)) word.erase(word.size() - rack.size());
  return word;
}

Expected<Machine> shipped(const EmbeddedFile& file, MachineValues values) { return read_machine(file.text, fmt::format("topologies/machines/{}.textproto", file.name), values); }

constexpr std::string_view spec_suffix = ":spec";

}  // namespace

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_machines()) names.emplace_back(file.name);
  return names;
}

Expected<Machine> find_machine(std::string_view name_or_file) {
  MachineValues values = MachineValues::measured;
  if (name_or_file.ends_with(spec_suffix)) {
    values = MachineValues::spec;
    name_or_file.remove_suffix(spec_suffix.size());
  }
  const auto all = embedded_machines();
  const auto found = std::find_if(all.begin(), all.end(), [&](const EmbeddedFile& file) { return file.name == name_or_file; });
  if (found != all.end()) return shipped(*found, values);

  const std::string path{name_or_file};
  std::error_code none;
  const bool is_path = path.find('/') != std::string::npos || path.ends_with(".textproto");
  if (is_path || std::filesystem::is_regular_file(path, none)) {
    const auto text = read_file(path, config_limit);
    if (!text) return text.error();
    return read_machine(*text, path, values);
  }
  const std::string word = called(name_or_file);
  const auto meant = std::find_if(all.begin(), all.end(), [&](const EmbeddedFile& file) { return called(file.name) == word; });
  if (meant != all.end()) return shipped(*meant, values);
  const std::vector<std::string> names = shipped_machines();
  const std::string near = did_you_mean(name_or_file, names);
  return Diagnostic{{},
                    fmt::format("unknown machine {}{}", quoted(name_or_file),
                                near.empty() ? fmt::format(", expected one of {} or a file", fmt::join(names, ", ")) : near)};
}

std::optional<MachineAndSlice> machine_and_slice(const std::string& text) {
  std::error_code none;
  if (std::filesystem::exists(text, none)) return std::nullopt;
  if (const std::size_t colon = text.rfind(':'); colon != std::string::npos) {
    MachineAndSlice parts{text.substr(0, colon), text.substr(colon + 1)};
    const auto machine = find_machine(parts.machine);
    if (!machine || parts.slice.find_first_not_of("0123456789x") != std::string::npos) return std::nullopt;
    if (const auto chips = parse_integer(parts.slice, 1, std::int64_t{1} << 24, {}); chips && machine->slices.largest.size() > 1)
      if (const auto offered = offered_slices(*machine, *chips); !offered.empty()) parts.slice = to_text(offered.front());
    return parts;
  }
  const std::string slice = without_cloud_name(text);
  for (const std::string& name : shipped_machines())
    if (const auto machine = find_machine(name); machine && !machine->slices.name_prefix.empty() && slice.starts_with(machine->slices.name_prefix + "-")) return MachineAndSlice{name, slice};
  return std::nullopt;
}

}  // namespace podsim
