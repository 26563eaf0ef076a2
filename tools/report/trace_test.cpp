// What stands in the file of a run.
#include "tools/report/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/testing.hpp"
#include "tools/report/testing.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::copy;
using ::testing::ElementsAre;
using testing::events_of_phase;
using ::testing::IsEmpty;
using ParsedJson = nlohmann::ordered_json;
using testing::neighbour;
using testing::part;
using testing::shift;
using testing::trace_json;
using testing::Writer;

/// Without the bars above the tasks.
std::vector<ParsedJson> tasks_of(const ParsedJson& trace) {
  std::vector<ParsedJson> events = events_of_phase(trace, "X");
  std::erase_if(events, [](const ParsedJson& event) { return !event.at("args").contains("op"); });
  return events;
}

/// On a ring of two: everybody cuts (4 ns), passes it on (4 ns), device 0 keeps a copy aside on the dma unit meanwhile (2 ns).
Schedule cut_and_pass() {
  Writer w({{"x", 2, true}});
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4});
  const TaskId cut = w.add(R"(cut "A" s0)", copy(part(a, 0, 4), part(b, 0, 4)));
  w.add("pass s1", shift(w.axis(0), 1, part(b, 0, 4), part(a, 0, 4)), {after(cut)});
  w.add("keep", copy(part(b, 0, 2), part(a, 0, 2), Unit::dma), {after(cut)}, between(w.axis(0), 0, 1));
  return w.schedule;
}

/// Written with ' for ", as a raw string cannot hold )".
std::string with_quotes(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  return text;
}

testing::SmallSystem line_of(int devices) { return testing::small_system(testing::plain_machine(), {devices}, true, {{"x", devices}}); }

TEST(Trace, Golden) {
  const testing::SmallSystem pod = line_of(2);
  const Schedule schedule = cut_and_pass();
  const auto model = testing::model_of(pod, schedule);
  ASSERT_TRUE(model);
  const auto timeline = (*timing_engine("des"))->run(*model, {});
  ASSERT_TRUE(timeline);
  testing::TextSink sink;
  const auto devices = testing::devices_below(2);
  ASSERT_TRUE(write_trace(*model, *timeline, devices, {{"machine", "\"plain\""}, {"makespan_us", microseconds(timeline->makespan)}}, sink));
  EXPECT_EQ(sink.text, with_quotes(R"({'displayTimeUnit':'ns','metadata':{'highres-ticks':true,'machine':'\'plain\'','makespan_us':'0.008000'},'traceEvents':[
{'ph':'M','pid':1,'name':'process_name','args':{'name':'device 0 (x=0)'}},
{'ph':'M','pid':1,'name':'process_sort_index','args':{'sort_index':1}},
{'ph':'M','pid':1,'tid':3,'name':'thread_name','args':{'name':'step'}},
{'ph':'M','pid':1,'tid':3,'name':'thread_sort_index','args':{'sort_index':1}},
{'ph':'X','pid':1,'tid':3,'ts':0.000000,'dur':0.008000,'name':'step','args':{'level':'step'}},
{'ph':'M','pid':1,'tid':4,'name':'thread_name','args':{'name':'compute'}},
{'ph':'M','pid':1,'tid':4,'name':'thread_sort_index','args':{'sort_index':2}},
{'ph':'M','pid':1,'tid':5,'name':'thread_name','args':{'name':'dma'}},
{'ph':'M','pid':1,'tid':5,'name':'thread_sort_index','args':{'sort_index':3}},
{'ph':'M','pid':1,'tid':6,'name':'thread_name','args':{'name':'x + send'}},
{'ph':'M','pid':1,'tid':6,'name':'thread_sort_index','args':{'sort_index':4}},
{'ph':'M','pid':1,'tid':7,'name':'thread_name','args':{'name':'x + receive'}},
{'ph':'M','pid':1,'tid':7,'name':'thread_sort_index','args':{'sort_index':5}},
{'ph':'X','pid':1,'tid':4,'ts':0.000000,'dur':0.004000,'name':'cut \'A\' s0','args':{'bytes':'16','op':'copy','slice':'0'}},
{'ph':'X','pid':1,'tid':5,'ts':0.004000,'dur':0.002000,'name':'keep','args':{'bytes':'8','op':'copy'}},
{'ph':'X','pid':1,'tid':6,'ts':0.004000,'dur':0.004000,'name':'pass s1','args':{'axis':'x','bytes':'16','direction':'+','half':'send','hops':'1','op':'shift','peer':'1','slice':'1'}},
{'ph':'s','pid':1,'tid':6,'ts':0.004000,'id':3,'cat':'transfer','name':'transfer'},
{'ph':'X','pid':1,'tid':7,'ts':0.004000,'dur':0.004000,'name':'pass s1','args':{'axis':'x','bytes':'16','direction':'+','half':'receive','hops':'1','op':'shift','peer':'1','slice':'1'}},
{'ph':'f','bp':'e','pid':1,'tid':7,'ts':0.006000,'id':4,'cat':'transfer','name':'transfer'},
{'ph':'C','pid':1,'ts':0.004000,'name':'x + send','args':{'bytes_in_flight':16,'bytes_per_second':4000000000,'utilisation':1.000000}},
{'ph':'C','pid':1,'ts':0.008000,'name':'x + send','args':{'bytes_in_flight':0,'bytes_per_second':0,'utilisation':0.000000}},
{'ph':'C','pid':1,'ts':0.004000,'name':'x','args':{'bytes_per_second':4000000000}},
{'ph':'C','pid':1,'ts':0.008000,'name':'x','args':{'bytes_per_second':0}},
{'ph':'C','pid':1,'ts':0.000000,'name':'memory','args':{'bytes':16}},
{'ph':'C','pid':1,'ts':0.004000,'name':'memory','args':{'bytes':32}},
{'ph':'C','pid':1,'ts':0.008000,'name':'memory','args':{'bytes':0}},
{'ph':'M','pid':2,'name':'process_name','args':{'name':'device 1 (x=1)'}},
{'ph':'M','pid':2,'name':'process_sort_index','args':{'sort_index':2}},
{'ph':'M','pid':2,'tid':8,'name':'thread_name','args':{'name':'step'}},
{'ph':'M','pid':2,'tid':8,'name':'thread_sort_index','args':{'sort_index':1}},
{'ph':'X','pid':2,'tid':8,'ts':0.000000,'dur':0.008000,'name':'step','args':{'level':'step'}},
{'ph':'M','pid':2,'tid':9,'name':'thread_name','args':{'name':'compute'}},
{'ph':'M','pid':2,'tid':9,'name':'thread_sort_index','args':{'sort_index':2}},
{'ph':'M','pid':2,'tid':10,'name':'thread_name','args':{'name':'x + send'}},
{'ph':'M','pid':2,'tid':10,'name':'thread_sort_index','args':{'sort_index':3}},
{'ph':'M','pid':2,'tid':11,'name':'thread_name','args':{'name':'x + receive'}},
{'ph':'M','pid':2,'tid':11,'name':'thread_sort_index','args':{'sort_index':4}},
{'ph':'X','pid':2,'tid':9,'ts':0.000000,'dur':0.004000,'name':'cut \'A\' s0','args':{'bytes':'16','op':'copy','slice':'0'}},
{'ph':'X','pid':2,'tid':10,'ts':0.004000,'dur':0.004000,'name':'pass s1','args':{'axis':'x','bytes':'16','direction':'+','half':'send','hops':'1','op':'shift','peer':'0','slice':'1'}},
{'ph':'s','pid':2,'tid':10,'ts':0.004000,'id':4,'cat':'transfer','name':'transfer'},
{'ph':'X','pid':2,'tid':11,'ts':0.004000,'dur':0.004000,'name':'pass s1','args':{'axis':'x','bytes':'16','direction':'+','half':'receive','hops':'1','op':'shift','peer':'0','slice':'1'}},
{'ph':'f','bp':'e','pid':2,'tid':11,'ts':0.006000,'id':3,'cat':'transfer','name':'transfer'},
{'ph':'C','pid':2,'ts':0.004000,'name':'x + send','args':{'bytes_in_flight':16,'bytes_per_second':4000000000,'utilisation':1.000000}},
{'ph':'C','pid':2,'ts':0.008000,'name':'x + send','args':{'bytes_in_flight':0,'bytes_per_second':0,'utilisation':0.000000}},
{'ph':'C','pid':2,'ts':0.004000,'name':'x','args':{'bytes_per_second':4000000000}},
{'ph':'C','pid':2,'ts':0.008000,'name':'x','args':{'bytes_per_second':0}},
{'ph':'C','pid':2,'ts':0.000000,'name':'memory','args':{'bytes':16}},
{'ph':'C','pid':2,'ts':0.004000,'name':'memory','args':{'bytes':32}},
{'ph':'C','pid':2,'ts':0.008000,'name':'memory','args':{'bytes':0}}
]}
)"));
}

TEST(Trace, MicrosecondsAreExact) {
  EXPECT_EQ(microseconds(Picoseconds{0}), "0.000000");
  EXPECT_EQ(microseconds(Picoseconds{1}), "0.000001");
  EXPECT_EQ(microseconds(Picoseconds{12'000'345}), "12.000345");
  EXPECT_EQ(microseconds(end_of_clock), "9223372036854.775807");
}

TEST(Trace, TheSliceIsTheFirstWordOfAnSAndANumber) {
  EXPECT_EQ(slice_in("gather X s3"), "3");
  EXPECT_EQ(slice_in("gather X s3 launch"), "3");
  EXPECT_EQ(slice_in("s12"), "12");
  EXPECT_EQ(slice_in("dX gather s0 s1"), "0");
  for (const std::string label : {"", " ", "s", "gather X", "sums 3", "pass s", "s3x", "gathers3", "s-1", "S3"})
    EXPECT_EQ(slice_in(label), std::nullopt) << label;
}

TEST(Trace, EveryArgumentIsAStringAndKeysAreSorted) {
  for (const ParsedJson& event : events_of_phase(trace_json(line_of(2), cut_and_pass()), "X")) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : event.at("args").items()) {
      EXPECT_TRUE(value.is_string()) << event;
      keys.push_back(key);
    }
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end())) << event;
  }
}

TEST(Trace, AMatmulTellsItsFlops) {
  Writer w({{"x", 1, true}});
  w.add("matmul", testing::product(w.scratch("a", {3, 7}), w.scratch("b", {7, 5}), w.scratch("c", {3, 5}), 3, 5, 7));
  const auto events = tasks_of(trace_json(line_of(1), w.schedule));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].at("args").dump(), R"({"flops":"210","op":"matmul"})");
}

TEST(Trace, HalvesOfAChannelNameTheirPeersAndMeet) {
  // Device 0 sends 8 bytes to the last one, past device 1, which idles.
  Writer w({{"x", 4, false}});
  w.program(0, 1);
  w.add("out", Send{5, {Affine{3}}, part(w.scratch("a", {2}), 0, 2), {}});
  w.program(3, 4);
  const BufferId b = w.scratch("b", {2});
  w.add("wait", copy(part(b, 0, 1), part(b, 1, 1)));
  w.add("in", Recv{5, {Affine{0}}, part(b, 0, 2), Combine::replace});
  const ParsedJson trace = trace_json(testing::small_system(testing::plain_machine(), {4}, false, {{"x", 4}}), w.schedule);
  std::vector<std::string> names;
  for (const ParsedJson& event : events_of_phase(trace, "M")) {
    const ParsedJson& name = event.at("args").value("name", ParsedJson{});
    if (!name.is_null()) names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("device 0 (x=0)", "step", "channel send", "device 1 (x=1)", "device 2 (x=2)", "device 3 (x=3)", "step", "compute",
                                 "channel receive"));
  const auto halves = tasks_of(trace);
  ASSERT_EQ(halves.size(), 3u);
  EXPECT_EQ(halves[0].at("args").dump(), R"({"bytes":"8","channel":"5","half":"send","hops":"3","op":"send","peer":"3"})");
  EXPECT_EQ(halves[2].at("args").dump(), R"({"bytes":"8","channel":"5","half":"receive","hops":"3","op":"receive","peer":"0"})");
  EXPECT_EQ(halves[2].at("dur"), 0.002);
  const auto starts = events_of_phase(trace, "s"), ends = events_of_phase(trace, "f");
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(starts[0].at("id"), ends[0].at("id"));
  EXPECT_EQ(starts[0].at("pid"), 1);
  EXPECT_EQ(ends[0].at("pid"), 4);
  EXPECT_EQ(ends[0].at("bp"), "e");
}

TEST(Trace, ArrowsGoToDevicesOfTheTraceOnly) {
  const testing::SmallSystem pod = line_of(4);
  Writer w({{"x", 4, true}});
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4});
  w.add("pass", shift(w.axis(0), 1, part(a, 0, 4), part(b, 0, 4)));
  const auto model = testing::model_of(pod, w.schedule);
  ASSERT_TRUE(model);
  const ParsedJson some = ParsedJson::parse(testing::trace_text(*model, {DeviceId{0}, DeviceId{1}, DeviceId{3}}));
  std::vector<std::pair<int, int>> arrows;  // pids
  for (const ParsedJson& start : events_of_phase(some, "s"))
    for (const ParsedJson& end : events_of_phase(some, "f"))
      if (start.at("id") == end.at("id")) arrows.emplace_back(start.at("pid"), end.at("pid"));
  EXPECT_THAT(arrows, ::testing::UnorderedElementsAre(std::pair(1, 2), std::pair(4, 1)));
  EXPECT_EQ(events_of_phase(some, "s").size(), 2u);
  EXPECT_EQ(events_of_phase(some, "f").size(), 2u);
  const ParsedJson one = ParsedJson::parse(testing::trace_text(*model, {DeviceId{2}}));
  EXPECT_EQ(tasks_of(one).size(), 2u);
  EXPECT_THAT(events_of_phase(one, "s"), IsEmpty());
}

TEST(Trace, NoDevicesIsATraceToo) {
  const testing::SmallSystem pod = line_of(2);
  const Schedule schedule = cut_and_pass();
  const auto model = testing::model_of(pod, schedule);
  ASSERT_TRUE(model);
  EXPECT_EQ(testing::trace_text(*model, {}), "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\"traceEvents\":[\n]}\n");
}

}  // namespace
}  // namespace podsim
