// Scenarios in files: one list of fields, and what is wrong with others.
#include "workloads/scenario/scenario_config.hpp"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "workloads/scenario/read_scenario.hpp"
#include "workloads/scenario/scenario.pb.h"

namespace podsim {
namespace {

std::string error_of(const std::string& text) {
  const auto fields = read_scenario(text, "s");
  return fields ? "none" : to_text(fields.error());
}

TEST(ScenarioFile, HasTheFieldsOfScenariosInTheirOrder) {
  const google::protobuf::Descriptor& message = *proto::Scenario::descriptor();
  std::size_t f = 0;
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    if (field.name() == "case") continue;
    ASSERT_LT(f, scenario_fields().size()) << field.name();
    const FieldKind& kind = scenario_fields()[f++];
    EXPECT_EQ(kind.name, field.name());
    EXPECT_EQ(kind.form == Form::flag, field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_BOOL) << field.name();
    EXPECT_TRUE(kind.form != Form::count || field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT64) << field.name();
  }
  EXPECT_EQ(f, scenario_fields().size()) << "missing in scenario.proto: " << scenario_fields()[f].name;
}

TEST(ScenarioFile, SaysWhatToRunAndWhereItSaysSo) {
  const std::string text = R"(format_version: 1
scenario {
  machine: "tpu_v4" set { path: "link.bandwidth" value: "40 GB/s" } slice: "4x4x4" strict_slice: false allow_split_axes: true
  fail: "0.0.0-0.0.1; 1.0.0-1.0.1 " degrade: "" pods: 2
  collective: "all-reduce" axis: "row" bytes: "1MiB"
}
)";
  const auto fields = read_scenario(text, "s");
  ASSERT_TRUE(fields) << to_text(fields.error());
  EXPECT_EQ(fields->text("machine"), "tpu_v4");
  EXPECT_EQ(fields->text("set"), "link.bandwidth=40 GB/s");
  EXPECT_FALSE(fields->flag("strict_slice"));
  EXPECT_TRUE(fields->flag("allow_split_axes"));
  EXPECT_FALSE(fields->has("degrade"));
  EXPECT_EQ(fields->text("pods"), "2");
  ASSERT_EQ(fields->texts("fail").size(), 2U);
  EXPECT_EQ(fields->texts("fail")[1].text, "1.0.0-1.0.1");
  EXPECT_EQ(fields->where("fail"), (SourceLocation{"s", 4, 3}));
  EXPECT_EQ(fields->where("axis"), (SourceLocation{"s", 5, 28}));
}

TEST(ScenarioFile, ThatIsWrittenIsReadAgain) {
  Fields fields;
  for (const FieldKind& field : scenario_fields())
    for (const char* text : {"1", "2"}) {
      const bool several = field.repeated;
      if (several || !fields.has(field.name)) fields.add(field.name, field.form == Form::flag ? "true" : field.name == "set" ? std::string{"p="} + text : text, {});
    }
  const auto again = read_scenario(write_scenario(fields), "s");
  ASSERT_TRUE(again) << to_text(again.error());
  for (const FieldKind& field : scenario_fields()) {
    ASSERT_EQ(again->texts(field.name).size(), fields.texts(field.name).size()) << field.name;
    for (std::size_t i = 0; i < fields.texts(field.name).size(); ++i) EXPECT_EQ(again->texts(field.name)[i].text, fields.texts(field.name)[i].text) << field.name;
  }
}

TEST(ScenarioFile, IsOneAndNoSweep) {
  EXPECT_EQ(error_of("format_version: 1\nscenario { slice: ['a', 'b'] }"), "s:2:12: expected one value of slice, found 2, which is a sweep (podsim sweep)");
  EXPECT_EQ(error_of("format_version: 1\nscenario {\n\t\tslice: ['a', 'b'] }").substr(0, 7), "s:3:3: ") << "a tab is a byte";
  EXPECT_EQ(error_of("format_version: 1\nscenario {\n\tslics: 'a' }").substr(0, 7), "s:3:2: ");
  EXPECT_EQ(error_of("format_version: 1\nscenario { case { slice: 'a' } }"), "s:2:12: a case belongs to a sweep (podsim sweep)");
  EXPECT_EQ(error_of("format_version: 1\nscenario { set { path: 'p' value: ['1', '2'] } }"),
            "s:2:12: expected one value of p, found 2, which is a sweep (podsim sweep)");
  EXPECT_EQ(error_of("format_version: 1\nscenario { set { path: 'p' } }"), "s:2:12: expected one value of p, found 0");
  EXPECT_EQ(error_of("format_version: 1\nscenario { slices: 'a' }").substr(0, 30), "s:2:12: unknown field \"slices\"");
  EXPECT_EQ(error_of("format_version: 1"), "s: scenario is missing");
}

TEST(Fields, ThatAreCompletedKeepTheirOwn) {
  Fields own, rest;
  own.add("slice", "8", {});
  own.add("set", "link.latency=2us", {});
  rest.add("slice", "4", {});
  rest.add("machine", "ideal", {});
  rest.add("set", "link.latency=1us", {});
  Fields completed = own;
  completed.complete(rest);
  EXPECT_EQ(completed.text("slice"), "8");
  EXPECT_EQ(completed.text("machine"), "ideal");
  ASSERT_EQ(completed.texts("set").size(), 2U);
  EXPECT_EQ(completed.texts("set").back().text, "link.latency=2us") << "what is set here counts last";
  own.add("machine", "tpu_v4", {});
  own.complete(rest);
  EXPECT_EQ(own.texts("set").size(), 1U) << "of another machine";
}

}  // namespace
}  // namespace podsim
