#include "validation/calibration/importers/profile_operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "validation/calibration/importers/step_category.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Event {
  int device;
  double begin, duration;  // us
  std::string name{}, text{}, args{};
};

/// Two TPUs; on each the lines Steps (2) and XLA Ops (3).
std::string trace(const std::vector<Event>& events, const std::vector<Event>& steps = {}) {
  std::string text = R"({"traceEvents":[)";
  for (const int pid : {1, 2}) {
    text += fmt::format(R"({{"ph":"M","pid":{0},"name":"process_name","args":{{"name":"/device:TPU:{0}"}}}},)", pid);
    text += fmt::format(R"({{"ph":"M","pid":{0},"tid":2,"name":"thread_name","args":{{"name":"Steps"}}}},)", pid);
    text += fmt::format(R"({{"ph":"M","pid":{0},"tid":3,"name":"thread_name","args":{{"name":"XLA Ops"}}}},)", pid);
  }
  for (const auto* line : {&events, &steps})
    for (const Event& e : *line)
      text += fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}","args":{{"long_name":"{}"{}}}}},)", e.device,
                          line == &steps ? 2 : 3, e.begin, e.duration, e.name, e.text, e.args);
  return text + "{}]}";
}

ProfiledOperations profiled(const std::string& text, const ProfileOptions& options = {}, std::string_view form = "trace-json") {
  const auto found = profile_operations_in(form, text, "p", options);
  if (!found) return ADD_FAILURE() << to_text(found.error()), ProfiledOperations{};
  return *found;
}

std::string refusal_of(const std::string& text, const ProfileOptions& options = {}, std::string_view form = "trace-json") {
  const auto found = profile_operations_in(form, text, "p", options);
  return found ? "no error" : to_text(found.error());
}

const ProfiledOperation& named(const ProfiledOperations& found, const std::string& name) {
  for (const ProfiledOperation& operation : found.operations)
    if (operation.name == name) return operation;
  ADD_FAILURE() << "no operation " << name;
  static const ProfiledOperation none;
  return none;
}

const std::string gather = "%all-gather.1 = bf16[2048,8192]{1,0} all-gather(bf16[512,8192]{1,0} %p), replica_groups=[8,4]<=[32], dimensions={0}";
const std::string start =
    "%all-gather-start.5 = (bf16[512,8192]{1,0}, bf16[2048,8192]{1,0}) all-gather-start(bf16[512,8192]{1,0} %p), replica_groups=[8,4]<=[32], "
    "dimensions={0}";
const std::string finish =
    "%all-gather-done.9 = bf16[2048,8192]{1,0} all-gather-done((bf16[512,8192]{1,0}, bf16[2048,8192]{1,0}) %all-gather-start.5)";
const std::string loop = "%while.1 = (s32[], bf16[8]) while((s32[], bf16[8]) %t), condition=%c, body=%b";
const std::string fusion = "%fusion.7 = bf16[2048,2048]{1,0} fusion(bf16[8] %a), kind=kOutput, calls=%c";

TEST(ProfileOperations, ALoopsTimeIsThatOfItsBodyAndOfItselfApart) {
  const auto found = profiled(trace({{1, 0, 100, "while.1", loop, ""},
                                 {1, 10, 30, "all-gather.1", gather, ""},
                                 {1, 50, 20, "fusion.7", fusion, ""},
                                 {1, 100, 5, "fusion.7", fusion, ""}}));
  EXPECT_DOUBLE_EQ(named(found, "while.1").self.count(), 50e-6);
  EXPECT_EQ(named(found, "while.1").category, "control");
  EXPECT_DOUBLE_EQ(named(found, "fusion.7").self.count(), 25e-6);
  EXPECT_EQ(named(found, "fusion.7").occurrences, 2);
  EXPECT_DOUBLE_EQ(found.time.count(), 105e-6);
}

TEST(ProfileOperations, TimesAreMeansOverDevicesAndStepsThoseOfTheirLine) {
  const auto found = profiled(trace(
      {{1, 1000, 30, "all-gather.1", gather, ""}, {2, 1000, 10, "all-gather.1", gather, ""}, {1, 1040, 10, "x", "", ""}, {2, 1040, 20, "x", "", ""}},
      {{1, 1000, 25, "1", "", ""}, {1, 1025, 25, "2", "", ""}}));
  const ProfiledOperation& one = named(found, "all-gather.1");
  EXPECT_DOUBLE_EQ(one.self.count(), 20e-6);
  EXPECT_EQ(one.category, "all-gather");
  EXPECT_EQ(one.bytes, Bytes{512 * 8192 * 2});
  EXPECT_EQ(one.group, 4);
  EXPECT_EQ(one.occurrences, 1);
  EXPECT_DOUBLE_EQ(found.time.count(), 55e-6);
  EXPECT_EQ(found.steps, 2);
  EXPECT_THAT(found.notes.at(0), HasSubstr("2 steps: the events on the line Steps of /device:TPU:1"));
  const std::string twice = trace({{1, 0, 1, "x", "", ""}, {1, 2, 1, "x", "", ""}}, {{1, 0, 4}});
  const ProfiledOperations told = profiled(twice, {.steps = 2});
  EXPECT_EQ(told.steps, 2);
  EXPECT_THAT(told.warnings, ElementsAre("`steps` 2 divides the profile by 2, but it has 1 step: the events on the line Steps of /device:TPU:1"));
  EXPECT_TRUE(profiled(twice, {.steps = 1}).warnings.empty());
  EXPECT_THAT(refusal_of(twice, {.steps = 3}), HasSubstr("p: expected `steps` up to 2, as often as x occurs, which no operation exceeds, found 3. The profile has 1 step"));
}

TEST(ProfileOperations, AnAsynchronousOperationIsItsStartAndItsDone) {
  std::vector<Event> events;
  for (const double at : {0, 1000}) {
    events.push_back({1, at, 2, "all-gather-start.5", start, ""});
    events.push_back({1, at + 2, 90, "fusion.7", fusion, R"(,"hlo_category":"convolution fusion","model_flops":"1000")"});
    events.push_back({1, at + 92, 8, "all-gather-done.9", finish, ""});
  }
  const auto found = profiled(trace(events), {.cores = 2});
  ASSERT_EQ(found.operations.size(), 2U);
  const ProfiledOperation& one = named(found, "all-gather.5");
  EXPECT_EQ(one.category, "all-gather");
  EXPECT_EQ(one.occurrences, 2);
  EXPECT_DOUBLE_EQ(one.self.count(), 20e-6);
  EXPECT_DOUBLE_EQ(one.beside.count(), 180e-6);
  EXPECT_EQ(one.bytes, Bytes{512 * 8192 * 2});
  EXPECT_EQ(one.group, 4);
  EXPECT_EQ(named(found, "fusion.7").flops, Flops{2000});
  EXPECT_EQ(named(found, "fusion.7").category, "matmul");
  EXPECT_EQ(found.steps, 2);
  EXPECT_THAT(found.notes.at(0), HasSubstr("2 steps: the number of occurrences that most operations have"));
  const auto of_two_layers = profiled(trace(events), {.layers = 2}), of_three = profiled(trace(events), {.layers = 3});
  EXPECT_EQ(of_two_layers.steps, 1);
  EXPECT_THAT(of_two_layers.notes.at(0), HasSubstr("1 step: most operations occur 2 times, once per layer"));
  EXPECT_EQ(of_three.steps, 2) << "written out, each layer's operations have their own names";
}

TEST(ProfileOperations, UpdatesBelongToTheirStartAndSendsHaveTheirDone) {
  const std::string update = "%all-gather-update.2 = (bf16[512,8192]{1,0}, bf16[2048,8192]{1,0}) all-gather-update((bf16[512,8192]{1,0}) %all-gather-start.5)";
  const std::string send = "%send.3 = (bf16[8]{0}, u32[], token[]) send(bf16[8]{0} %p, token[] %t), channel_id=1";
  const std::string sent = "%send-done.3 = token[] send-done((bf16[8]{0}, u32[], token[]) %send.3)";
  const auto found = profiled(trace({{1, 0, 2, "all-gather-start.5", start, ""},
                                     {1, 2, 30, "fusion.7", fusion, ""},
                                     {1, 32, 3, "all-gather-update.2", update, ""},
                                     {1, 35, 60, "fusion.7", fusion, ""},
                                     {1, 95, 5, "all-gather-done.9", finish, ""},
                                     {1, 100, 1, "send.3", send, ""},
                                     {1, 101, 20, "fusion.7", fusion, ""},
                                     {1, 121, 4, "send-done.3", sent, ""}}));
  ASSERT_EQ(found.operations.size(), 3U);
  EXPECT_DOUBLE_EQ(named(found, "all-gather.5").self.count(), 10e-6);
  EXPECT_DOUBLE_EQ(named(found, "all-gather.5").beside.count(), 90e-6);
  EXPECT_EQ(named(found, "all-gather.5").occurrences, 1);
  EXPECT_DOUBLE_EQ(named(found, "send.3").self.count(), 5e-6);
  EXPECT_DOUBLE_EQ(named(found, "send.3").beside.count(), 20e-6);
  EXPECT_EQ(named(found, "send.3").category, "send");
}

TEST(ProfileOperations, ATableOfStatisticsSumsOverDevices) {
  const std::string table =
      "category,hlo_op,occurrences,avg_self_time_us,model_GFLOPs,result_shapes_prefix\n"
      "convolution fusion,fusion.1,32,100,200000,\"bf16[2048,2048]{1,0} fusion(bf16[8] %a\"\n"
      "custom fusion,async-collective-start.3,32,10,0,\"(bf16[512,64]{1,0:T(8,128)(2,1)}, bf16[2048,64]{1,0}, s32[2]) cust\"\n"
      "custom fusion,async-collective-done.3,32,5,0,\"bf16[2048,64]{1,0}\"\n"
      "custom-call,splash_mha_fwd,32,40,1,\"(f32[512,128]\"\n";
  const auto found = profiled(table, {.steps = 4, .devices = 8}, "hlo-stats");
  EXPECT_EQ(found.operations.size(), 3U);
  EXPECT_DOUBLE_EQ(named(found, "fusion.1").self.count(), 400e-6);
  EXPECT_DOUBLE_EQ(named(found, "fusion.1").flops.count(), 2e10);
  const ProfiledOperation& one = named(found, "async-collective.3");
  EXPECT_EQ(one.category, "all-gather") << "its second result is four times its first";
  EXPECT_EQ(one.bytes, Bytes{512 * 64 * 2});
  EXPECT_EQ(one.group, 4);
  EXPECT_DOUBLE_EQ(one.self.count(), 60e-6);
  EXPECT_EQ(named(found, "splash_mha_fwd").category, "attention");
  EXPECT_DOUBLE_EQ(found.time.count(), 620e-6);
  EXPECT_EQ(profiled(table, {}, "hlo-stats").steps, 32);
  EXPECT_EQ(refusal_of(table, {.steps = 4}, "hlo-stats"), "p: a table sums over devices and steps: expected how many devices beside how many steps");
  EXPECT_EQ(refusal_of("category,hlo_op,avg_self_time_us,model_GFLOPs\n", {}, "hlo-stats"), "p:1:1: expected a column occurrences beside the times");
  EXPECT_EQ(refusal_of("category,hlo_op,avg_self_time_us,model_GFLOPs,occurrences\n", {}, "hlo-stats"),
            "p:1:1: there is no operation below this heading");
  EXPECT_EQ(refusal_of("category,hlo_op,avg_self_time_us,model_GFLOPs,occurrences\na,b,1,2,0\n", {}, "hlo-stats").substr(0, 9), "p:2:9: ex");
}

TEST(ProfileOperations, WhatIsNoProfileIsToldWithItsPlace) {
  EXPECT_THAT(refusal_of(R"({"traceEvents":[{"ph":"X")"), HasSubstr("p:1:"));
  EXPECT_EQ(refusal_of(trace({})), "p: no operation on a line \"XLA Ops\" of a TPU and no kernel on a stream of a GPU; devices with such lines: 0");
  EXPECT_EQ(refusal_of("", {}, "csv"), "\"csv\" is no form of profiles; there are xplane, trace-json, hlo-stats, nsys");
}

ProfiledStep step_in(const std::string& text, std::optional<int> number = {}) {
  const auto found = profile_step_in("trace-json", text, "p", {}, {number, {}});
  if (!found) return ADD_FAILURE() << to_text(found.error()), ProfiledStep{};
  return *found;
}

/// "name begin-end self #occurrence", in microseconds.
std::vector<std::string> events_of(const ProfiledStep& step, std::size_t device = 0) {
  std::vector<std::string> texts;
  for (const ProfiledDeviceStep::Event& e : step.devices.at(device).events)
    texts.push_back(fmt::format("{} {}-{} {} #{}", step.names.at(e.name), e.begin_ps / 1'000'000, e.end_ps / 1'000'000, e.self_ps / 1'000'000, e.occurrence));
  return texts;
}

TEST(ProfileStep, TheMedianByTimeUnlessAStepIsAskedFor) {
  const std::string text = trace({{1, 100, 10, "copy.1", ""}, {1, 110, 20, "copy.2", ""}, {1, 140, 10, "copy.3", ""}, {2, 130, 5, "copy.4", ""}},
                                 {{1, 100, 10, "1", ""}, {1, 110, 30, "2", ""}, {1, 140, 20, "3", ""}, {2, 90, 10, "1", ""}, {2, 120, 30, "2", ""}, {2, 150, 20, "3", ""}});
  const ProfiledStep median = step_in(text);
  EXPECT_EQ(median.number, 3);
  EXPECT_EQ(median.steps, 3);
  EXPECT_THAT(events_of(median), ElementsAre("copy.3 0-10 10 #0"));
  ASSERT_EQ(median.devices.size(), 1U) << "the other device does nothing in it";
  EXPECT_THAT(median.notes, ElementsAre("1 device without an operation in step 3"));
  EXPECT_DOUBLE_EQ(median.devices[0].step.time.count(), 20e-6) << "the step's own";
  const ProfiledStep second = step_in(text, 2);
  EXPECT_THAT(events_of(second), ElementsAre("copy.2 0-20 20 #0"));
  EXPECT_THAT(events_of(second, 1), ElementsAre("copy.4 10-15 5 #0")) << "from the beginning of the device's own step";
  EXPECT_EQ(second.devices[1].device, "/device:TPU:2");
  for (const int number : {0, 4}) {
    const auto none = profile_step_in("trace-json", text, "p", {}, {number, {}});
    ASSERT_FALSE(none);
    EXPECT_EQ(to_text(none.error()), fmt::format("p: expected a step from 1 to 3, found {}", number));
  }
}

TEST(ProfileStep, WithoutStepsTheWholeProfile) {
  const ProfiledStep step = step_in(trace({{1, 100, 10, "copy.1", ""}, {1, 130, 20, "copy.1", ""}}));
  EXPECT_EQ(step.steps, 1);
  EXPECT_THAT(events_of(step), ElementsAre("copy.1 0-10 10 #0", "copy.1 30-50 20 #1"));
  EXPECT_THAT(step.notes, ElementsAre("the profile has neither Steps nor XLA Modules: all of it is taken as one step"));
}

TEST(ProfileStep, OwnTimesSumToTheOperationsAndEndsBelongToTheirOccurrence) {
  const ProfiledStep step = step_in(trace({{1, 0, 100, "while.3", "%while.3 = () while(() %a)"},
                                           {1, 10, 5, "all-gather-start.5", start},
                                           {1, 20, 30, "copy.1", ""},
                                           {1, 50, 10, "all-gather-done.9", finish},
                                           {1, 60, 5, "all-gather-start.5", start},
                                           {1, 70, 10, "all-gather-done.9", finish}}));
  EXPECT_THAT(events_of(step), ElementsAre("while.3 0-100 40 #0", "all-gather-start.5 10-15 5 #0", "copy.1 20-50 30 #0", "all-gather-done.9 50-60 10 #0", "all-gather-start.5 60-65 5 #1",
                                           "all-gather-done.9 70-80 10 #1"));
  const ProfiledDeviceStep& device = step.devices.at(0);
  std::vector<double> sums(device.step.operations.size());
  for (const ProfiledDeviceStep::Event& e : device.events) sums.at(e.operation) += static_cast<double>(e.self_ps) * 1e-12;
  for (std::size_t o = 0; o < sums.size(); ++o) EXPECT_DOUBLE_EQ(sums[o], device.step.operations[o].self.count()) << device.step.operations[o].name;
}

TEST(ProfileStep, DevicesWithOtherProgramsHaveTheirOwnStarts) {
  // all-gather-start.5 of the first device is another operation.
  const std::string other = "%all-gather-start.5 = (bf16[1]{0}, bf16[2]{0}) all-gather-start(bf16[1]{0} %p), replica_groups=[1,2]<=[2], dimensions={0}";
  const ProfiledStep step = step_in(trace({{1, 0, 5, "all-gather-start.5", other}, {2, 0, 5, "all-gather-start.5", start}, {2, 10, 5, "all-gather-done.9", finish}}));
  ASSERT_EQ(step.devices.size(), 2U);
  ASSERT_EQ(step.devices[1].step.operations.size(), 1U);
  EXPECT_DOUBLE_EQ(step.devices[1].step.operations[0].self.count(), 10e-6);
}

TEST(ProfileStep, OnlyOfTheDevicesThatAreTaken) {
  const std::string text = trace({{1, 0, 5, "copy.1", ""}, {2, 0, 5, "copy.1", ""}});
  const auto one = profile_step_in("trace-json", text, "p", {}, {{}, [](std::string_view device) { return device.ends_with("2"); }});
  ASSERT_TRUE(one);
  ASSERT_EQ(one->devices.size(), 1U);
  EXPECT_EQ(one->devices[0].device, "/device:TPU:2");
  const auto none = profile_step_in("trace-json", text, "p", {}, {{}, [](std::string_view) { return false; }});
  ASSERT_FALSE(none);
  EXPECT_EQ(to_text(none.error()), "p: expected one of the devices that are asked for, found /device:TPU:1 and 1 more");
}

TEST(ProfileStep, ATableHasNoTimeline) {
  const auto none = profile_step_in("hlo-stats", "Rank\n", "t.csv");
  ASSERT_FALSE(none);
  EXPECT_EQ(to_text(none.error()), "t.csv: a table of HLO statistics has no timeline; *.xplane.pb, *.trace.json and *.trace.json.gz have one");
}

TEST(StepCategory, OfWhatProfilesSay) {
  const auto category = [](const std::string& text, const std::string& hlo_category) {
    return step_category(parse_hlo_op(text).value_or(HloOp{}), text, hlo_category);
  };
  EXPECT_EQ(category(fusion, "convolution fusion"), "matmul");
  EXPECT_EQ(category(fusion, "loop fusion"), "elementwise");
  EXPECT_EQ(category(fusion, "all-reduce-scatter fusion"), "reduce-scatter");
  EXPECT_EQ(category(start, ""), "all-gather");
  EXPECT_EQ(category(finish, ""), "all-gather");
  EXPECT_EQ(category("%c.1 = f32[8] custom-call(f32[8] %a), custom_call_target=\"flash_attention\"", "custom-call"), "attention");
  EXPECT_EQ(category("%c.1 = f32[8] custom-call(f32[8] %a), custom_call_target=\"sort\"", "custom-call"), "custom-call");
  EXPECT_EQ(category("%copy-start.1 = (f32[8], f32[8], u32[]) copy-start(f32[8] %a)", "copy-start"), "copy");
  EXPECT_EQ(category("%all-reduce-start.1 = (f32[8], f32[4]) all-reduce-start(%a, %b), replica_groups={{0,1}}", ""), "all-reduce");
  EXPECT_EQ(as_synchronous(*parse_hlo_op("%all-reduce-start.1 = (f32[8], f32[4]) all-reduce-start(%a, %b), replica_groups={{0,1}}")).results.size(), 2U);
  EXPECT_EQ(category("%infeed.1 = (f32[8], token[]) infeed(token[] %t)", "infeed"), "host");
  EXPECT_EQ(category("%collective-permute-start.1 = (f32[8], f32[8]) collective-permute-start(f32[8] %a), source_target_pairs={{0,1},{1,0}}", ""),
            "permute");
}

}  // namespace
}  // namespace podsim
