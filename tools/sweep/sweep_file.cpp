#include "tools/sweep/sweep_file.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>

#include "sim/base/invariant.hpp"
#include "sim/config/message_file.hpp"
#include "tools/sweep/sweep.pb.h"
#include "tools/sweep/value_places.hpp"
#include "workloads/scenario/scenario_message.hpp"

namespace podsim {

namespace {

constexpr FileFormat sweep_format{"a sweep", 0, 1};

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
  void add(const proto::Scenario& message, const PlacedMessage& places, std::vector<SweepAxis> around) {
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

  std::vector<SweepAxis> axes_of(const proto::Scenario& message, const PlacedMessage& places) {
    std::vector<SweepAxis> axes;
    for (std::size_t f = 0; f < scenario_fields().size(); ++f) {
      const FieldKind& field = scenario_fields()[f];
      if (f == sweep_field("set")) {
        for (int i = 0; i < message.set_size(); ++i) add_set(message.set(i), places.messages.find("set")->second[static_cast<std::size_t>(i)], axes);
        continue;
      }
      std::vector<std::string> values = values_of(message, field);
      if (values.empty()) continue;
      SweepAxis axis{f, "", {}};
      const auto& where = places.values.find(field.name)->second;
      for (std::size_t i = 0; i < values.size(); ++i) add_value(axis, std::move(values[i]), where[i]);
      axes.push_back(std::move(axis));
    }
    return axes;
  }

  void add_set(const proto::Scenario::Set& set, const PlacedMessage& places, std::vector<SweepAxis>& axes) {
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

  static std::string name_of(const SweepAxis& axis) { return axis.path.empty() ? std::string{scenario_fields()[axis.field].name} : "a set of " + quoted(axis.path); }

  void problem(const SourceLocation& where, std::string message) { file_.problem(Diagnostic{where, std::move(message)}); }

  proto::SweepFile message_;
  MessageFile file_;
  const std::string& name_;
  std::vector<SweepBlock> blocks_;
};

}  // namespace

std::size_t sweep_field(std::string_view name) {
  const FieldKind* field = scenario_field(name);
  PODSIM_ASSERT(field != nullptr);
  return static_cast<std::size_t>(field - scenario_fields().data());
}

const SweepAxis* SweepBlock::axis(std::string_view field) const {
  const auto found = std::find_if(axes.begin(), axes.end(), [&, f = sweep_field(field)](const SweepAxis& axis) { return axis.field == f; });
  return found == axes.end() ? nullptr : &*found;
}

std::string_view form_in_file(const std::string& field) {
  const auto* const found = proto::Scenario::descriptor()->FindFieldByName(field);
  if (found == nullptr) return {};
  using Type = google::protobuf::FieldDescriptor;
  return found->cpp_type() == Type::CPPTYPE_BOOL ? "flag" : found->cpp_type() == Type::CPPTYPE_STRING ? "text" : "number";
}

bool ask_the_same(const std::string& text, const std::string& other) {
  if (text == other) return true;
  class Silent : public google::protobuf::io::ErrorCollector {
    void AddError(int, int, const std::string&) override {}
  } silent;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  proto::SweepFile one, two;
  return parser.ParseFromString(text, &one) && parser.ParseFromString(other, &two) && google::protobuf::util::MessageDifferencer::Equals(one, two);
}

Expected<std::vector<SweepBlock>> read_sweep(std::string_view text, const std::string& file) { return SweepReader{file}.read(text); }

}  // namespace podsim
