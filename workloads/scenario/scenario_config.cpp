#include "workloads/scenario/scenario_config.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "sim/base/invariant.hpp"
#include "sim/config/files.hpp"
#include "workloads/scenario/scenario_message.hpp"

namespace podsim {

namespace {

namespace pb = google::protobuf;

constexpr FileFormat scenario_format{"a scenario", 0, 1};

const pb::FieldDescriptor& descriptor_of(const FieldKind& field) {
  const pb::FieldDescriptor* found = proto::Scenario::descriptor()->FindFieldByName(std::string{field.name});
  PODSIM_ASSERT(found != nullptr);
  return *found;
}

/// "set", whose values stand in messages of their own.
bool is_set(const FieldKind& field) { return field.name == "set"; }

}  // namespace

std::vector<std::string> values_of(const proto::Scenario& message, const FieldKind& field) {
  const pb::FieldDescriptor& descriptor = descriptor_of(field);
  const pb::Reflection& reflection = *message.GetReflection();
  std::vector<std::string> values;
  for (int i = 0; i < reflection.FieldSize(message, &descriptor); ++i) switch (descriptor.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_BOOL: values.emplace_back(reflection.GetRepeatedBool(message, &descriptor, i) ? "true" : ""); break;
      case pb::FieldDescriptor::CPPTYPE_INT64: values.push_back(std::to_string(reflection.GetRepeatedInt64(message, &descriptor, i))); break;
      default: values.push_back(reflection.GetRepeatedString(message, &descriptor, i));
    }
  return values;
}

Fields read_fields(const proto::Scenario& message, MessageFile& file, const Place& root) {
  Fields fields;
  if (message.case__size() > 0) file.problem(root.at("case", 0), "a case belongs to a sweep (podsim sweep)");
  for (int s = 0; s < message.set_size(); ++s) {
    const proto::Scenario::Set& set = message.set(s);
    const Place place = root.at("set", s);
    if (set.value_size() != 1)
      file.problem(place, "expected one value of " + set.path() + ", found " + std::to_string(set.value_size()) + (set.value_size() > 1 ? ", which is a sweep (podsim sweep)" : ""));
    else if (!set.value(0).empty())
      fields.add("set", set.path() + "=" + set.value(0), file.where(place));
  }
  for (const FieldKind& field : scenario_fields()) {
    if (is_set(field)) continue;
    const std::vector<std::string> values = values_of(message, field);
    const std::string name{field.name};
    if (values.size() > 1)
      file.problem(root.at(name.c_str(), 0), "expected one value of " + name + ", found " + std::to_string(values.size()) + ", which is a sweep (podsim sweep)");
    else if (values.size() == 1)
      fields.add_value(name, values.front(), file.where(root.at(name.c_str(), 0)));
  }
  return fields;
}

void write_fields(const Fields& fields, proto::Scenario& message) {
  const pb::Reflection& reflection = *message.GetReflection();
  for (const FieldKind* field : fields.given()) {
    const pb::FieldDescriptor& descriptor = descriptor_of(*field);
    std::string listed;
    for (const FieldText& given : fields.texts(field->name)) {
      if (is_set(*field)) {
        const std::size_t equals = given.text.find('=');
        proto::Scenario::Set& set = *message.add_set();
        set.set_path(given.text.substr(0, equals));
        set.add_value(equals == std::string::npos ? "" : given.text.substr(equals + 1));
      }
      listed += (listed.empty() ? "" : "; ") + given.text;
    }
    if (is_set(*field)) continue;
    switch (descriptor.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_BOOL: reflection.AddBool(&message, &descriptor, true); break;
      case pb::FieldDescriptor::CPPTYPE_INT64: reflection.AddInt64(&message, &descriptor, std::stoll(listed)); break;
      default: reflection.AddString(&message, &descriptor, listed);
    }
  }
}

Expected<Fields> read_scenario(std::string_view text, const std::string& file_name) {
  proto::ScenarioFile message;
  MessageFile file{scenario_format, file_name, message};
  if (!file.parse(text)) return file.error();
  const Place root;
  Fields fields = read_fields(message.scenario(), file, root.at("scenario"));
  if (!file.ok()) return file.error();
  return fields;
}

std::string write_scenario(const Fields& fields) {
  proto::ScenarioFile message;
  message.set_format_version(scenario_format.version);
  write_fields(fields, *message.mutable_scenario());
  return to_textproto(message);
}

Expected<Fields> load_scenario(const std::string& path) {
  const auto text = read_file(path, config_limit);
  if (!text) return text.error();
  return read_scenario(*text, path);
}

}  // namespace podsim
