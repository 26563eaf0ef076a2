#include "tools/sweep/content_key.hpp"

#include <array>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <type_traits>

#include "sim/config/files.hpp"
#include "sim/config/machine_config.hpp"
#include "sim/config/schedule_config.hpp"
#include "topologies/machines.hpp"
#include "workloads/chakra/trace.hpp"

namespace podsim {

namespace {

/// The bytes of plain numbers: what is hashed stays on this kind of computer.
template <class T>
void append(std::string& bytes, const T& value) {
  static_assert(std::is_arithmetic_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string values_of(Machine machine) {
  machine.sources.clear();
  machine.description.clear();
  return write_machine(machine);
}

std::string links_of(const Topology& topology) {
  std::string bytes;
  append(bytes, topology.chips());
  append(bytes, topology.nodes());
  append(bytes, topology.link_slots());
  for (int node = 0; node < topology.nodes(); ++node)
    for (const OutLink& out : topology.out_links(ChipId{node})) {
      const LinkParameters link = topology.link(out.link);
      append(bytes, node);
      append(bytes, out.link.value);
      append(bytes, out.to.value);
      append(bytes, link.bandwidth.count());
      append(bytes, link.latency.count());
    }
  return bytes;
}

std::string text_of(const SystemChanges& changes) {
  std::string text = changes.topology + '\n' + std::to_string(changes.slices) + '\n';
  for (const auto* cables : {&changes.broken, &changes.slowed}) {
    for (const std::string& cable : *cables) text += cable + ';';
    text += '\n';
  }
  return text;
}

std::string wrap_of(const Wrap& wrap) {
  std::string bytes;
  append(bytes, static_cast<int>(wrap.rule));
  for (const int dimension : wrap.dimensions) append(bytes, dimension);
  return bytes;
}

}  // namespace

std::string content_key(const std::vector<std::string_view>& parts) {
  static const boost::uuids::name_generator_sha1 name{boost::uuids::ns::oid()};
  if (parts.size() == 1) return to_string(name(parts[0].data(), parts[0].size()));
  std::string names;
  for (const std::string_view part : parts) names += to_string(name(part.data(), part.size()));
  return to_string(name(names.data(), names.size()));
}

std::string key_of_hardware(const System& system) {
  return content_key({values_of(system.machine), to_text(system.slice), system.hypothetical ? "hypothetical" : "", wrap_of(system.wrap),
                      text_of(changes_of(system)), links_of(*system.topology)});
}

std::string key_of_placement(const Placement& placement) {
  std::string chips, cores, speeds;
  for (const ChipId chip : placement.chip_of) append(chips, chip.value);
  for (const int core : placement.core_of) append(cores, core);
  for (const double speed : placement.speed) append(speeds, speed);
  return content_key({chips, cores, speeds});
}

std::string key_of_schedule(const Schedule& lowered) { return content_key({write_schedule(lowered, Encoding::binary)}); }

const std::string& InputKeys::contents(const std::string& field, const std::string& text) {
  const auto [entry, is_new] = contents_.try_emplace(field + '=' + text);
  if (!is_new) return entry->second;
  if (field == "machine") {
    const auto machine = find_machine(text);  // a shipped one may be another in the next build
    entry->second = content_key({machine ? write_machine(*machine) : to_text(machine.error())});
  } else if (const auto bytes = read_file(text, schedule_limit)) {
    entry->second = content_key({*bytes});
  }
  return entry->second;
}

std::string InputKeys::operator()(const PointInputs& inputs) {
  std::string text = version_;
  for (const std::string& argument : arguments_of(inputs)) text += '\0' + argument;
  const Fields fields = fields_of(inputs);
  for (const FieldKind* field : fields.given())
    for (const FieldText& given : names_files(field->form) && field->name != "chakra" ? fields.texts(field->name) : std::vector<FieldText>{})
      text += '\0' + contents(std::string{field->name}, field->form == Form::named_files ? given.text.substr(given.text.find('=') + 1) : given.text);
  if (const std::string& prefix = inputs.text("chakra"); !prefix.empty()) {
    text += '\0' + contents("chakra_groups", chakra_groups_file(prefix));
    for (int rank = 0; rank < chakra_ranks(prefix); ++rank) text += '\0' + contents("chakra", chakra_file(prefix, rank));
  }
  return content_key({text});
}

}  // namespace podsim
