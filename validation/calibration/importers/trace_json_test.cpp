#include "validation/calibration/importers/trace_json.hpp"

#include <gtest/gtest.h>

#include "validation/calibration/importers/import.hpp"
#include "validation/calibration/importers/json_elements.hpp"
#include "validation/calibration/importers/testing.hpp"

namespace podsim {
namespace {

using testing::error_of;
using testing::notes_say;

Expected<Imported> read(const std::string& text, const ImportOptions& options = {}) { return import_observations("trace-json", text, "t.json", options); }

/// Two TPUs with one line of operations each, and a host.
std::string trace(const std::string& events) {
  std::string text = R"({"displayTimeUnit":"ns","metadata":{"highres-ticks":true,"traceEvents":[1]},"traceEvents":[)";
  for (const char* pid : {"1", "2"})
    text += std::string{R"({"ph":"M","pid":)"} + pid + R"(,"name":"process_name","args":{"name":"/device:TPU:)" + pid + R"("}},
{"ph":"M","pid":)" + pid + R"(,"tid":3,"name":"thread_name","args":{"name":"XLA Ops"}},
)";
  text += R"({"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},)" + events + "{}]}\n";
  return text;
}

const std::string gather_text = R"("%all-gather.1 = bf16[2048,8192]{1,0} all-gather(bf16[512,8192]{1,0} %p), replica_groups=[8,4]<=[32], dimensions={0}")";
const std::string fusion_text = R"("%fusion.7 = (bf16[1,2048,2048]{1,2,0}) fusion(bf16[8] %a), kind=kOutput, calls=%c")";

std::string event(int pid, double ts, double dur, const std::string& name, const std::string& text, const std::string& more = "") {
  return R"({"ph":"X","pid":)" + std::to_string(pid) + R"(,"tid":3,"ts":)" + std::to_string(ts) + R"(,"dur":)" + std::to_string(dur) + R"(,"name":")" + name +
         R"(","args":{"long_name":)" + text + more + "}},\n";
}

TEST(TraceJson, ATimeIsTheMinimumOverDevicesOfEachOccurrenceAndOfThoseTheMedian) {
  // Occurrences: min(400, 377) = 377, min(500, 600) = 500, min(410, 390) = 390, however the events are ordered in the file.
  const auto result = read(trace(event(1, 900, 500, "all-gather.1", gather_text) + event(1, 10, 400, "all-gather.1", gather_text) + event(2, 11, 377, "all-gather.1", gather_text) +
                                 event(2, 905, 600, "all-gather.1", gather_text) + event(1, 2000, 410, "all-gather.1", gather_text) +
                                 event(2, 2000, 390, "all-gather.1", gather_text)));
  ASSERT_TRUE(result) << to_text(result.error());
  ASSERT_EQ(result->observations.size(), 1U);
  const Observation& row = result->observations[0];
  EXPECT_EQ(row.op, ObservedOp::all_gather);
  EXPECT_EQ(row.devices, 4);
  EXPECT_EQ(row.bytes, Bytes{512 * 8192 * 2});
  EXPECT_EQ(row.array_dim, 0);
  EXPECT_DOUBLE_EQ(row.time.count(), 390e-6);
  EXPECT_EQ(row.source, "all-gather.1, 3 occurrences");
  EXPECT_TRUE(notes_say(*result, "durations are the minimum over 2 devices of each occurrence"));
}

TEST(TraceJson, AMatmulFusionIsAMatmulAndItsDeviceTimeCounts) {
  const std::string more = R"(,"hlo_category":"convolution fusion","model_flops":"60129542144","device_duration_ps":"155000000")";
  const auto result = read(trace(event(1, 0, 200, "fusion.7", fusion_text, more)));
  ASSERT_TRUE(result) << to_text(result.error());
  ASSERT_EQ(result->observations.size(), 1U);
  const Observation& row = result->observations[0];
  EXPECT_EQ(row.op, ObservedOp::matmul);
  EXPECT_EQ((std::array{row.m, row.n, row.k}), (std::array<std::int64_t, 3>{2048, 2048, 7168}));
  EXPECT_DOUBLE_EQ(row.time.count(), 155e-6);
}

TEST(TraceJson, WhatIsNoOperationOfATpuIsLeftOutAndAsynchronousEndsAreNoted) {
  std::string elsewhere = event(701, 0, 1, "all-gather.1", gather_text) + event(1, 0, 7, "all-gather-start.2", gather_text) + event(1, 0, 5, "all-gather.1", gather_text);
  elsewhere += R"({"ph":"X","pid":1,"tid":2,"ts":0,"dur":3,"name":"all-gather.1","args":{"long_name":)" + gather_text + "}},";  // a line without a name
  const auto result = read(trace(elsewhere));
  ASSERT_TRUE(result) << to_text(result.error());
  ASSERT_EQ(result->observations.size(), 1U);
  EXPECT_DOUBLE_EQ(result->observations[0].time.count(), 5e-6);
  EXPECT_TRUE(notes_say(*result, "1 event skipped: starts and ends of asynchronous"));
}

TEST(TraceJson, AnAsynchronousCollectiveThatTheCoreWaitsForIsAnObservation) {
  const std::string start =
      R"("%all-gather-start.5 = (bf16[512,8192]{1,0}, bf16[2048,8192]{1,0}) all-gather-start(bf16[512,8192]{1,0} %p), replica_groups=[8,4]<=[32], dimensions={0}")";
  const std::string finish =
      R"x("%all-gather-done.9 = bf16[2048,8192]{1,0} all-gather-done((bf16[512,8192]{1,0}, bf16[2048,8192]{1,0}) %all-gather-start.5)")x";
  std::string events;
  for (const auto& [ts, waits] : {std::pair{0, 40}, {1000, 60}, {2000, 1}})  // the last one was over when the core came for it
    events += event(1, ts, 2, "all-gather-start.5", start) + event(1, ts + 90, waits, "all-gather-done.9", finish);
  const auto result = read(trace(events));
  ASSERT_TRUE(result) << to_text(result.error());
  ASSERT_EQ(result->observations.size(), 1U);
  const Observation& row = result->observations[0];
  EXPECT_EQ(row.op, ObservedOp::all_gather);
  EXPECT_EQ(row.schedule, ObservedSchedule::overlapped);
  EXPECT_EQ(row.devices, 4);
  EXPECT_EQ(row.bytes, Bytes{512 * 8192 * 2});
  EXPECT_DOUBLE_EQ(row.time.count(), 140e-6) << "the median of 130 and 150";
  EXPECT_EQ(row.source, "all-gather-start.5, 2 occurrences");
  EXPECT_TRUE(notes_say(*result, "2 events skipped: starts and ends of asynchronous"));
}

TEST(TraceJson, BadJsonIsToldWithItsPlace) {
  EXPECT_EQ(error_of(read("")), "t.json:1:1: the file is empty");
  EXPECT_EQ(error_of(read("hello")), "t.json:1:1: JSON must begin with { or [, got \"h\"");
  EXPECT_EQ(error_of(read("{\"a\":[1,2}")), "t.json:1:10: this bracket closes none, got \"}\"");
  EXPECT_EQ(error_of(read("{}\n{}")), "t.json:2:1: nothing may follow the end of the JSON, got \"{\"");
  EXPECT_EQ(error_of(read("{\"a\":[]}")), "t.json: there is no array traceEvents");
  EXPECT_EQ(error_of(read("{\"traceEvents\":[\n 5]}")), "t.json:2:2: every element must be an object, got \"5\"");
  EXPECT_EQ(error_of(read("{\"traceEvents\":[{},\n  {\"ph\":1}]}")).substr(0, 48), "t.json:2:3: this event cannot be read: its field");
  EXPECT_EQ(error_of(read("{\"traceEvents\":[{},\n  {\"ph\" \"X\"}]}")).substr(0, 38), "t.json:2:3: this event cannot be read:");
  EXPECT_EQ(error_of(read("{\"a\":" + std::string(1000, '['))), "t.json:1:517: brackets are nested deeper than 512");
  EXPECT_EQ(error_of(read("[]")), "t.json: no collective and no matmul on the lines of operations of 0 TPUs");
}

TEST(TraceJson, AnyFrontOfATraceIsAnError) {
  const std::string text = trace(event(1, 0, 5, "all-gather.1", gather_text));
  ASSERT_TRUE(read(text));
  for (std::size_t length = 0; length + 2 < text.size(); ++length) EXPECT_FALSE(read(text.substr(0, length))) << length;
}

TEST(JsonElements, ElementsAreFoundWhereverTheBuffersEnd) {
  // Longer than a buffer each, with brackets and quotes in strings.
  std::string text = R"({"traceEvents" : [ )";
  std::vector<std::string> elements;
  for (int i = 0; i < 5; ++i) {
    elements.push_back(R"({"name":"]}\"\\)" + std::string(static_cast<std::size_t>(40000 * i + 1), 'x') + R"(","args":{"a":[{}]}})");
    text += elements.back() + (i < 4 ? " ,\n" : "");
  }
  text += R"( ], "more":[{}] })";
  JsonElements reader{source_of(text, "f"), "f", "traceEvents"};
  std::string element;
  for (const std::string& expected : elements) {
    const auto more = reader.next(element);
    ASSERT_TRUE(more && *more);
    EXPECT_EQ(element, expected);
  }
  EXPECT_EQ(reader.where().line, 5);
  const auto end = reader.next(element);
  ASSERT_TRUE(end) << to_text(end.error());
  EXPECT_FALSE(*end);
}

}  // namespace
}  // namespace podsim
