#include "sim/config/machine_config.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "sim/base/invariant.hpp"
#include "sim/base/units.hpp"
#include "sim/config/machine.pb.h"
#include "sim/config/message_file.hpp"
#include "sim/machine/machine_fields.hpp"

namespace podsim {
namespace {

namespace pb = google::protobuf;
using Value = proto::Machine::Value;

constexpr FileFormat machine_format{"a machine", 0, machine_format_version};
constexpr std::int64_t most_chips = std::int64_t{1} << 24;
constexpr int most_cores = 16;
constexpr double largest_error = 1e6;
constexpr std::array<std::string_view, 6> where_devices_differ{"x", "y", "z", "w", "core", "slice"};

constexpr const char* slices_path = "slices";
constexpr const char* slice_copies_path = "slice_copies";
constexpr const char* interconnect_path = "interconnect";
constexpr const char* routes_path = "routes";
constexpr const char* not_stated = "not stated";  // the source of what has none

/// Where a field of the table stands in the message: group and value, both found by name.
struct ValueField {
  const pb::FieldDescriptor* group;
  const pb::FieldDescriptor* value;
};

ValueField value_field(const MachineField& field) {
  const pb::FieldDescriptor* group = proto::Machine::descriptor()->FindFieldByName(std::string(field.group));
  PODSIM_ASSERT(group != nullptr);
  const pb::FieldDescriptor* value = group->message_type()->FindFieldByName(std::string(field.name));
  PODSIM_ASSERT(value != nullptr && value->message_type() == Value::descriptor() && value->is_repeated() == (field.index != FieldIndex::none));
  return {group, value};
}

std::string text_of(const std::vector<int>& extents) { return fmt::format("{}", fmt::join(extents, "x")); }

/// "16x16x16". Errors: not 1 to 4 extents of at least 1, more than 2^24 chips.
Expected<std::vector<int>> parse_extents(std::string_view text, const SourceLocation& where) {
  std::vector<int> extents;
  std::int64_t chips = 1;
  for (std::string_view rest = text; extents.size() <= max_dimensions;) {
    const std::size_t end = std::min(rest.find('x'), rest.size());
    const Expected<std::int64_t> extent = parse_integer(rest.substr(0, end), 1, most_chips, where);
    if (!extent) return Diagnostic{where, fmt::format("expected extents like \"4x4x8\", got {}", quoted(text))};
    extents.push_back(static_cast<int>(*extent));
    chips = std::min(chips * *extent, most_chips + 1);
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  if (extents.size() > max_dimensions) return Diagnostic{where, fmt::format("expected at most {} extents, got {}", max_dimensions, quoted(text))};
  if (chips > most_chips) return Diagnostic{where, fmt::format("expected at most {} chips, got {}", most_chips, quoted(text))};
  return extents;
}

// ---- Reading --------------------------------------------------------------------------------------------------------------------------

class MachineReader {
 public:
  MachineReader(const std::string& file, MachineValues values) : file_{machine_format, file, message_}, values_{values} {}

  Expected<Machine> read(std::string_view text) {
    if (!file_.parse(text)) return file_.error();
    const Place root;
    machine_.name = message_.name();
    machine_.description = message_.description();
    if (machine_.name.empty()) file_.problem(root.at("name"), "name is empty");
    for (const MachineField& field : machine_fields()) read_values(field);
    read_choice(interconnect_path, interconnect_count, message_.has_interconnect(), message_.interconnect(), machine_.interconnect);
    if (message_.has_routes()) read_choice(routes_path, routes_count, true, message_.routes(), machine_.routes);
    read_slices(root.at("slices"));
    read_trust(root.at("trust"));
    machine_.slice_copies = message_.slice_copies().value();
    note_source(slice_copies_path, message_.slice_copies().source(), root.at("slice_copies"));
    if (!file_.ok()) return file_.error();
    if (values_ == MachineValues::spec) machine_.name += ":spec", machine_.trust = {};
    return std::move(machine_);
  }

 private:
  void note_source(const char* path, const std::string& source, const Place& place) {
    if (source.empty()) file_.problem(place.at("source"), fmt::format("{} has an empty source", path));
    machine_.sources[path] = source;
  }

  /// All values of one field: first those for every entry, then those for one.
  void read_values(const MachineField& field) {
    const auto [group, value] = value_field(field);
    const Place root;
    const Place group_place = root.at(group->name().c_str());
    const pb::Message& group_message = message_.GetReflection()->GetMessage(message_, group);
    const pb::Reflection& reflection = *group_message.GetReflection();
    const bool repeated = value->is_repeated();
    const int count = repeated ? reflection.FieldSize(group_message, value) : reflection.HasField(group_message, value) ? 1 : 0;
    std::set<std::string> seen;   // values of `of`, empty for the general value
    std::set<std::string> given;  // entries that have a value, good or bad
    for (const bool of_one : {false, true}) {
      for (int i = 0; i < count; ++i) {
        const pb::Message& entry = repeated ? reflection.GetRepeatedMessage(group_message, value, i) : reflection.GetMessage(group_message, value);
        const Value& v = dynamic_cast<const Value&>(entry);
        if (v.has_of() == of_one) read_value(field, v, group_place.at(value->name().c_str(), repeated ? i : -1), seen, given);
      }
    }
    std::vector<std::string> missing;
    const std::vector<std::string> names = index_names(field.index);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (given.contains(names[i])) continue;
      if (field.is_optional(static_cast<int>(i)))
        machine_.sources[path_of(field, names[i])] = not_stated;
      else
        missing.push_back(names[i]);
    }
    if (missing.empty()) return;
    const bool all = given.empty();
    file_.problem(group_place, fmt::format("{} is missing{}{} ({})", path_of(field, ""), all ? "" : " for ",
                                           all ? "" : fmt::format("{}", fmt::join(missing, ", ")), field.meaning));
  }

  void read_value(const MachineField& field, const Value& value, const Place& place, std::set<std::string>& seen, std::set<std::string>& given) {
    const std::vector<std::string> names = index_names(field.index);
    const std::string path = path_of(field, value.of());
    const bool no_such_entry =
        value.has_of() && (field.index == FieldIndex::none || std::find(names.begin(), names.end(), value.of()) == names.end());
    if (no_such_entry) {
      const std::string expected = field.index == FieldIndex::none ? "it has no entries" : fmt::format("expected one of {}", fmt::join(names, ", "));
      file_.problem(place.at("of"), fmt::format("unknown entry {} of {}, {}", quoted(value.of()), path_of(field, ""), expected));
      if (field.index == FieldIndex::none) given.insert("");  // it is there, if wrong
      return;
    }
    if (!seen.insert(value.of()).second) {
      file_.problem(place, fmt::format("{} is given twice", path));
      return;
    }
    if (value.has_of()) {
      given.insert(value.of());
    } else {
      given.insert(names.begin(), names.end());
    }
    if (value.source().empty()) file_.problem(place.at("source"), fmt::format("{} has an empty source", path));
    if (value.has_spec()) {  // both are checked, whichever is taken
      Machine other = machine_;
      const bool takes_spec = values_ == MachineValues::spec;
      if (const Status unused = set_machine_value(other, path, takes_spec ? value.value() : value.spec(), value.source(), {}); !unused)
        file_.problem(place.at(takes_spec ? "value" : "spec"), unused.error().message);
      if (takes_spec) {
        if (const Status taken = set_machine_value(machine_, path, value.spec(), "data sheet, or without any loss", {}); !taken) file_.problem(place.at("spec"), taken.error().message);
        return;
      }
    }
    const Status outcome = set_machine_value(machine_, path, value.value(), value.source(), {});
    if (!outcome) file_.problem(place.at("value"), outcome.error().message);
    for (auto& [entry, doubt] : machine_.doubtful.by_path)
      if (doubt.where == SourceLocation{}) doubt.where = file_.where(place.at("value"));
  }

  /// A value of an enum whose names are name_of()'s. Where it is left out the first one holds.
  template <class Enum>
  void read_choice(const char* path, int count, bool given, const proto::Machine::Choice& choice, Enum& into) {
    const Place root, place = root.at(path);
    if (!given) {
      machine_.sources[path] = not_stated;
      return;
    }
    note_source(path, choice.source(), place);
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.emplace_back(name_of(static_cast<Enum>(i)));
    const auto name = std::find(names.begin(), names.end(), choice.value());
    if (name == names.end())
      file_.problem(place.at("value"), fmt::format("the {} must be {}, got {}", path, fmt::join(names, " or "), quoted(choice.value())));
    else
      into = static_cast<Enum>(name - names.begin());
  }

  void read_trust(const Place& place) {
    if (!message_.has_trust()) return;
    const proto::Machine::Trust& trust = message_.trust();
    std::vector<std::string> names;
    names.reserve(trust_level_count);
    for (int i = 0; i < trust_level_count; ++i) names.emplace_back(name_of(static_cast<TrustLevel>(i)));
    const auto name = std::find(names.begin(), names.end(), trust.level());
    if (name == names.end()) {
      file_.problem(place.at("level"), fmt::format("the level of trust must be {}, got {}", fmt::join(names, " or "), quoted(trust.level())));
      return;
    }
    machine_.trust.level = static_cast<TrustLevel>(name - names.begin());
    machine_.trust.dataset = trust.dataset();
    if (machine_.trust.level == TrustLevel::fitted && trust.dataset().empty()) file_.problem(place, "a fitted machine names its dataset");
    for (int i = 0; i < trust.covers_size(); ++i) read_coverage(trust.covers(i), place.at("covers", i));
    if (!trust.has_error()) return;
    machine_.trust.error = trust.error();
    if (!(trust.error() >= 0 && trust.error() <= largest_error))
      file_.problem(place.at("error"), fmt::format("the median relative error must be in [0, {}], got {}", largest_error, trust.error()));
  }

  void read_coverage(const proto::Machine::Coverage& message, const Place& place) {
    Coverage coverage;
    std::vector<std::string> names;
    for (int i = 0; i < cost_kind_count; ++i) names.emplace_back(name_of(static_cast<CostKind>(i)));
    const auto name = std::find(names.begin(), names.end(), message.operation());
    if (name == names.end())
      file_.problem(place.at("operation"), fmt::format("expected one of {}, got {}", fmt::join(names, ", "), quoted(message.operation())));
    else
      coverage.operation = static_cast<CostKind>(name - names.begin());
    coverage.devices = message.devices();
    if (coverage.devices < 1 || coverage.devices > most_chips)
      file_.problem(place.at("devices"), fmt::format("devices must be in [1, {}], got {}", most_chips, coverage.devices));
    coverage.along = message.along();
    for (std::string_view rest = coverage.along; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      if (std::find(where_devices_differ.begin(), where_devices_differ.end(), word) != where_devices_differ.end()) continue;
      file_.problem(place.at("along"), fmt::format("expected {}, separated by commas, got {}", fmt::join(where_devices_differ, ", "), quoted(word)));
    }
    coverage.bytes = range(message.bytes(), place.at("bytes"));
    coverage.m = range(message.m(), place.at("m"));
    coverage.n = range(message.n(), place.at("n"));
    coverage.k = range(message.k(), place.at("k"));
    machine_.trust.covers.push_back(std::move(coverage));
  }

  SizeRange range(const proto::Machine::Range& message, const Place& place) {
    if (message.least() < 0 || message.least() > message.most())
      file_.problem(place, fmt::format("expected a range from 0 or more upwards, got {} to {}", message.least(), message.most()));
    return {message.least(), message.most()};
  }

  void read_slices(const Place& place) {
    const proto::Machine::Slices& slices = message_.slices();
    SliceRules& rules = machine_.slices;
    note_source(slices_path, slices.source(), place);
    rules.any_shape = slices.any_shape();
    if (rules.any_shape) {
      if (slices.has_cube() || slices.has_largest() || slices.open_size() > 0)
        file_.problem(place, "slices of any shape have no cube, largest or open");
      if (slices.has_host() || slices.has_cores_per_chip() || slices.has_name_prefix())
        file_.problem(place, "slices of any shape have no host, cores_per_chip or name_prefix");
      return;
    }
    if (!slices.has_largest()) {
      file_.problem(place, "slices need the largest, or any_shape: true");
      return;
    }
    rules.largest = extents(slices.largest(), place.at("largest"));
    rules.cube = slices.cube();
    if (slices.has_cube()) check_cube(place.at("cube"));
    if (machine_.interconnect == Interconnect::rail && (rules.largest.size() != 2 || slices.has_cube() || slices.open_size() > 0))
      file_.problem(place, "slices of a rail interconnect have a largest of two extents, nodes and GPUs of a node, and no cube or open");
    read_host_and_names(place);
    for (int i = 0; i < slices.open_size(); ++i) {
      const Place open_place = place.at("open", i);
      const std::vector<int> open = extents(slices.open(i), open_place);
      if (open.empty() || rules.largest.empty()) continue;
      if (open.size() != rules.largest.size() || !fits(open, rules.largest))
        file_.problem(open_place, fmt::format("the open slice {} does not fit the largest, {}", text_of(open), text_of(rules.largest)));
      if (std::find(rules.open.begin(), rules.open.end(), open) != rules.open.end())
        file_.problem(open_place, fmt::format("the open slice {} is given twice", text_of(open)));
      rules.open.push_back(open);
    }
  }

  void read_host_and_names(const Place& place) {
    const proto::Machine::Slices& slices = message_.slices();
    SliceRules& rules = machine_.slices;
    if (slices.has_host()) {
      rules.host = extents(slices.host(), place.at("host"));
      if (!rules.host.empty() && !rules.largest.empty() && (rules.host.size() != rules.largest.size() || !fits(rules.host, rules.largest)))
        file_.problem(place.at("host"), fmt::format("the host {} does not fit the largest slice, {}", text_of(rules.host), text_of(rules.largest)));
    }
    if (slices.has_cores_per_chip()) rules.cores_per_chip = slices.cores_per_chip();
    if (rules.cores_per_chip < 1 || rules.cores_per_chip > most_cores)
      file_.problem(place.at("cores_per_chip"), fmt::format("cores_per_chip must be in [1, {}], got {}", most_cores, rules.cores_per_chip));
    rules.name_prefix = slices.name_prefix();
    const auto plain = [](unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    if (slices.has_name_prefix() && (rules.name_prefix.empty() || !std::all_of(rules.name_prefix.begin(), rules.name_prefix.end(), plain)))
      file_.problem(place.at("name_prefix"),
                    fmt::format("a name_prefix is made of lower-case letters and digits, got {}", quoted(rules.name_prefix)));
  }

  void check_cube(const Place& place) {
    const SliceRules& rules = machine_.slices;
    if (rules.cube < 1) {
      file_.problem(place, fmt::format("the cube must be at least 1, got {}", rules.cube));
    } else if (std::any_of(rules.largest.begin(), rules.largest.end(), [&](int extent) { return extent % rules.cube != 0; })) {
      file_.problem(place, fmt::format("the largest slice {} is not made of cubes of {}", text_of(rules.largest), rules.cube));
    }
  }

  /// Empty after a problem.
  std::vector<int> extents(const std::string& text, const Place& place) {
    Expected<std::vector<int>> parsed = parse_extents(text, {});
    if (parsed) return *std::move(parsed);
    file_.problem(place, parsed.error().message);
    return {};
  }

  static bool fits(const std::vector<int>& small, const std::vector<int>& large) {
    return std::equal(small.begin(), small.end(), large.begin(), large.end(), [](int a, int b) { return a <= b; });
  }

  proto::Machine message_;
  MessageFile file_;
  MachineValues values_;
  Machine machine_;
};

// ---- Writing --------------------------------------------------------------------------------------------------------------------------

std::string source_of(const Machine& machine, const std::string& path) {
  const auto found = machine.sources.find(path);
  return found == machine.sources.end() || found->second.empty() ? not_stated : found->second;
}

/// One value for all entries where they agree, then the others: the general value is the most frequent one.
void write_values(const MachineField& field, const Machine& machine, proto::Machine& message) {
  const auto [group, value] = value_field(field);
  pb::Message* group_message = message.GetReflection()->MutableMessage(&message, group);
  const auto add = [&, value = value](const std::string& of, const std::pair<std::string, std::string>& text_and_source) {
    const pb::Reflection& reflection = *group_message->GetReflection();
    pb::Message* added = value->is_repeated() ? reflection.AddMessage(group_message, value) : reflection.MutableMessage(group_message, value);
    Value& v = dynamic_cast<Value&>(*added);
    if (!of.empty()) v.set_of(of);
    v.set_value(text_and_source.first);
    v.set_source(text_and_source.second);
  };

  const std::vector<std::string> names = index_names(field.index);
  std::vector<std::pair<std::string, std::string>> values;
  std::map<std::pair<std::string, std::string>, int> uses;
  for (int entry = 0; entry < static_cast<int>(names.size()); ++entry) {
    values.emplace_back(value_text(field, machine, entry), source_of(machine, path_of(field, names[static_cast<std::size_t>(entry)])));
    ++uses[values.back()];
  }
  const auto general = std::max_element(values.begin(), values.end(), [&](const auto& a, const auto& b) { return uses[a] < uses[b]; });
  const bool shared = (uses[*general] > 1 && general->first != "derived") || names.size() == 1;  // "derived" is said of one entry
  if (shared) add("", *general);
  for (std::size_t entry = 0; entry < names.size(); ++entry)
    if (!shared || values[entry] != *general) add(names[entry], values[entry]);
}

void write_coverage(const Coverage& coverage, proto::Machine::Coverage& message) {
  message.set_operation(std::string(name_of(coverage.operation)));
  message.set_devices(coverage.devices);
  if (!coverage.along.empty()) message.set_along(coverage.along);
  const auto write = [](const SizeRange& range, auto mutable_range) {
    if (range == SizeRange{}) return;
    proto::Machine::Range& written = *mutable_range();
    written.set_least(range.least);
    written.set_most(range.most);
  };
  write(coverage.bytes, [&] { return message.mutable_bytes(); });
  write(coverage.m, [&] { return message.mutable_m(); });
  write(coverage.n, [&] { return message.mutable_n(); });
  write(coverage.k, [&] { return message.mutable_k(); });
}

}  // namespace

Expected<Machine> read_machine(std::string_view text, const std::string& file, MachineValues values) { return MachineReader{file, values}.read(text); }

std::string write_machine(const Machine& machine) {
  proto::Machine message;
  message.set_format_version(machine_format.version);
  message.set_name(machine.name);
  if (!machine.description.empty()) message.set_description(machine.description);
  for (const MachineField& field : machine_fields()) write_values(field, machine, message);

  message.mutable_interconnect()->set_value(std::string(name_of(machine.interconnect)));
  message.mutable_interconnect()->set_source(source_of(machine, interconnect_path));
  if (machine.routes != Routes::sign) {
    message.mutable_routes()->set_value(std::string(name_of(machine.routes)));
    message.mutable_routes()->set_source(source_of(machine, routes_path));
  }
  proto::Machine::Slices& slices = *message.mutable_slices();
  const SliceRules& rules = machine.slices;
  if (rules.any_shape) slices.set_any_shape(true);
  if (rules.cube != 0) slices.set_cube(rules.cube);
  if (!rules.largest.empty()) slices.set_largest(text_of(rules.largest));
  for (const std::vector<int>& open : rules.open) slices.add_open(text_of(open));
  if (!rules.host.empty()) slices.set_host(text_of(rules.host));
  if (rules.cores_per_chip != 1) slices.set_cores_per_chip(rules.cores_per_chip);
  if (!rules.name_prefix.empty()) slices.set_name_prefix(rules.name_prefix);
  slices.set_source(source_of(machine, slices_path));
  message.mutable_slice_copies()->set_value(machine.slice_copies);
  message.mutable_slice_copies()->set_source(source_of(machine, slice_copies_path));
  if (machine.trust != Trust{}) {
    message.mutable_trust()->set_level(std::string(name_of(machine.trust.level)));
    if (!machine.trust.dataset.empty()) message.mutable_trust()->set_dataset(machine.trust.dataset);
    if (machine.trust.error) message.mutable_trust()->set_error(*machine.trust.error);
    for (const Coverage& coverage : machine.trust.covers) write_coverage(coverage, *message.mutable_trust()->add_covers());
  }
  return to_textproto(message);
}

}  // namespace podsim
