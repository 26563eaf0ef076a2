#include "tools/sweep/sweep_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "sim/config/message_file.hpp"
#include "tools/sweep/sweep.pb.h"
#include "tools/sweep/value_places.hpp"

namespace podsim {

namespace {

namespace pb = google::protobuf;

constexpr FileFormat sweep_format{"a sweep", 0, 1};

std::vector<SweepField> make_fields() {
  std::vector<SweepField> fields;
  const pb::Descriptor& descriptor = *proto::Sweep::descriptor();
  for (int f = 0; f < descriptor.field_count(); ++f) {
    const pb::FieldDescriptor& field = *descriptor.field(f);
    if (field.name() == "case") continue;
    std::string option = field.name();
    std::replace(option.begin(), option.end(), '_', '-');
    fields.push_back(
        {field.name(), option, field.cpp_type() == pb::FieldDescriptor::CPPTYPE_BOOL, field.cpp_type() == pb::FieldDescriptor::CPPTYPE_INT64});
  }
  return fields;
}

std::string text_of(const proto::Sweep& message, const pb::FieldDescriptor& field, int i) {
  const pb::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_BOOL: return reflection.GetRepeatedBool(message, &field, i) ? "true" : "";
    case pb::FieldDescriptor::CPPTYPE_INT64: return std::to_string(reflection.GetRepeatedInt64(message, &field, i));
    default: return reflection.GetRepeatedString(message, &field, i);
  }
}

class SweepReader {
 public:
  explicit SweepReader(const std::string& file) : file_{sweep_format, file, message_}, name_{file} {}

  Expected<std::vector<SweepBlock>> read(std::string_view text) {
    if (!file_.parse(text)) return file_.error();
    if (message_.sweep_size() == 0) return Diagnostic{{name_, 1, 1}, "expected at least one sweep { ... }, found none"};
    const PlacedMessage root = places_of(text, name_);
    const auto& places = root.messages.find("sweep")->second;
    for (int i = 0; i < message_.sweep_size(); ++i) add(message_.sweep(i), places[static_cast<std::size_t>(i)], {});
    if (!file_.ok()) return file_.error();
    return std::move(blocks_);
  }

 private:
  /// The blocks of one sweep or case, with what is given around it.
  void add(const proto::Sweep& message, const PlacedMessage& places, std::vector<SweepAxis> around) {
    std::vector<SweepAxis> axes = axes_of(message, places);
    for (const SweepAxis& axis : axes) {
      const auto same = [&](const SweepAxis& other) { return other.field == axis.field && other.path == axis.path; };
      if (std::any_of(around.begin(), around.end(), same)) problem(axis.values.front().where, name_of(axis) + " is given around this case already");
    }
    axes.insert(axes.begin(), std::make_move_iterator(around.begin()), std::make_move_iterator(around.end()));
    if (message.case__size() == 0) {
      std::stable_sort(axes.begin(), axes.end(), [](const SweepAxis& a, const SweepAxis& b) { return a.field < b.field; });
      blocks_.push_back({places.where, std::move(axes)});
      return;
    }
    const auto& cases = places.messages.find("case")->second;
    for (int i = 0; i < message.case__size(); ++i) add(message.case_(i), cases[static_cast<std::size_t>(i)], axes);
  }

  std::vector<SweepAxis> axes_of(const proto::Sweep& message, const PlacedMessage& places) {
    std::vector<SweepAxis> axes;
    for (std::size_t f = 0; f < sweep_fields().size(); ++f) {
      const std::string& name = sweep_fields()[f].name;
      if (name == "set") {
        for (int i = 0; i < message.set_size(); ++i) add_set(message.set(i), places.messages.find("set")->second[static_cast<std::size_t>(i)], axes);
        continue;
      }
      const pb::FieldDescriptor& field = *message.GetDescriptor()->FindFieldByName(name);
      const int count = message.GetReflection()->FieldSize(message, &field);
      if (count == 0) continue;
      SweepAxis axis{f, "", {}};
      const auto& where = places.values.find(name)->second;
      for (int i = 0; i < count; ++i) add_value(axis, text_of(message, field, i), where[static_cast<std::size_t>(i)]);
      axes.push_back(std::move(axis));
    }
    return axes;
  }

  void add_set(const proto::Sweep::Set& set, const PlacedMessage& places, std::vector<SweepAxis>& axes) {
    const std::size_t field = sweep_field("set");
    const auto same = [&](const SweepAxis& axis) { return axis.field == field && axis.path == set.path(); };
    if (std::any_of(axes.begin(), axes.end(), same)) problem(places.where, "there is a set of " + quoted(set.path()) + " already");
    if (set.value_size() == 0) problem(places.where, "a set needs a value");
    SweepAxis axis{field, set.path(), {}};
    for (int i = 0; i < set.value_size(); ++i) add_value(axis, set.value(i), places.values.find("value")->second[static_cast<std::size_t>(i)]);
    if (!axis.values.empty()) axes.push_back(std::move(axis));
  }

  void add_value(SweepAxis& axis, std::string text, const SourceLocation& where) {
    for (const SweepValue& value : axis.values)
      if (value.text == text) problem(where, (text.empty() ? "the value" : quoted(text)) + " is given twice");
    axis.values.push_back({std::move(text), where});
  }

  static std::string name_of(const SweepAxis& axis) { return axis.path.empty() ? sweep_fields()[axis.field].name : "a set of " + quoted(axis.path); }

  void problem(const SourceLocation& where, std::string message) { file_.problem(Diagnostic{where, std::move(message)}); }

  proto::SweepFile message_;
  MessageFile file_;
  const std::string& name_;
  std::vector<SweepBlock> blocks_;
};

}  // namespace

std::span<const SweepField> sweep_fields() {
  static const std::vector<SweepField> fields = make_fields();
  return fields;
}

std::size_t sweep_field(std::string_view name) {
  const auto fields = sweep_fields();
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const SweepField& field) { return field.name == name; });
  assert(found != fields.end());
  return static_cast<std::size_t>(found - fields.begin());
}

const SweepAxis* SweepBlock::axis(std::string_view field) const {
  const auto found = std::find_if(axes.begin(), axes.end(), [&, f = sweep_field(field)](const SweepAxis& axis) { return axis.field == f; });
  return found == axes.end() ? nullptr : &*found;
}

Expected<std::vector<SweepBlock>> read_sweep(std::string_view text, const std::string& file) { return SweepReader{file}.read(text); }

}  // namespace podsim
