// Calls of functions: what they mean, written out.
#include "sim/schedule/calls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/lower.hpp"
#include "sim/schedule/testing.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::alias;
using testing::between;
using testing::copy;
using testing::part;
using testing::ring;
using testing::shift;
using testing::texts;
using testing::Writer;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// pass(from, to): moves `from` to the next device by way of a scratch buffer, and copies it.
Function pass(const AxisView& axis) {
  Function function{"pass", 2, {}};
  for (const char* name : {"from", "to", "between"}) function.body.buffers.push_back({name, {8}, DType::f32, Role::scratch, {}, {}});
  function.body.tasks.push_back({"move", shift(axis, 1, part(BufferId{0}, 0, 8), part(BufferId{2}, 0, 8)), {}, {}, {}});
  function.body.tasks.push_back({"keep", copy(part(BufferId{2}, 0, 8), part(BufferId{1}, 0, 8)), {after(TaskId{0})}, {}, {}});
  return function;
}

struct Caller {
  Writer w{ring(4)};
  BufferId a = w.scratch("a", {8}), b = w.scratch("b", {8}), c = w.scratch("c", {8});
  Caller() { w.schedule.functions.push_back(pass(w.axis(0))); }
};

/// "label: what it waits for, ..." of the first program.
std::vector<std::string> waits(const Schedule& schedule) {
  std::vector<std::string> lines;
  const Program& program = schedule.programs.front();
  for (const Task& task : program.tasks) {
    std::string line = task.label + ":";
    for (const Edge& edge : task.after) line += " " + program.tasks[edge.task.index()].label + ",";
    if (line.back() == ',') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

TEST(InlineCalls, WritesEachCallWithItsBuffersAndItsTurnOnTheCore) {
  Caller f;
  f.w.add("fill", copy(part(f.c, 0, 8), part(f.a, 0, 8)));
  const TaskId one = f.w.add("one", Call{0, {f.a, f.b}}, {after(TaskId{0})});
  f.w.add("two", Call{0, {f.b, f.c}}, {after(one)});
  f.w.add("beside", copy(part(f.c, 0, 4), part(f.a, 0, 4), Unit::dma), {after(one)});
  f.w.add("last", copy(part(f.a, 4, 4), part(f.a, 0, 4)));
  const Schedule inlined = inline_calls(f.w.schedule);
  EXPECT_THAT(waits(inlined),
              ElementsAre("fill:", "one begin: fill", "one move: one begin", "one keep: one move", "one end: one keep",
                          "two begin: one end", "two move: two begin", "two keep: two move", "two end: two keep",
                          "beside: one end", "last: two end"));
  const Program& program = inlined.programs.front();
  EXPECT_EQ(tasks_written_out(f.w.schedule), static_cast<double>(program.tasks.size()));
  const Mesh& mesh = inlined.mesh;
  EXPECT_EQ(to_text(mesh, program, std::get<Shift>(program.tasks[2].op).target), "one between[:]");
  EXPECT_EQ(to_text(mesh, program, std::get<Local>(program.tasks[3].op).writes.front()), "b[:]");
  EXPECT_EQ(to_text(mesh, program, std::get<Shift>(program.tasks[6].op).source), "b[:]");
  EXPECT_EQ(to_text(mesh, program, std::get<Local>(program.tasks[7].op).reads.front()), "two between[:]");
  EXPECT_FALSE(has_calls(inlined));
}

TEST(InlineCalls, WaitsForEveryCoreTaskThatMayBeTheLast) {
  Caller f;
  f.w.add("always", copy(part(f.c, 0, 4), part(f.a, 0, 4)));
  f.w.add("some", copy(part(f.c, 4, 4), part(f.a, 4, 4)), {}, between(f.w.axis(0), 0, 2));
  f.w.add("call", Call{0, {f.a, f.b}});
  f.w.add("few", copy(part(f.c, 0, 4), part(f.a, 0, 4)), {}, between(f.w.axis(0), 2, 4));
  f.w.add("all", copy(part(f.b, 0, 4), part(f.c, 0, 4)));
  f.w.add("later", copy(part(f.b, 0, 4), part(f.c, 4, 4)));
  EXPECT_THAT(waits(inline_calls(f.w.schedule)),
              ElementsAre("always:", "some:", "call begin: always, some", "call move: call begin", "call keep: call move", "call end: call keep",
                          "few: call end", "all: call end", "later:"));
}

/// A task that waits with one half only, or for a guarded task, may otherwise begin before the call.
TEST(InlineCalls, LetsNoTaskBeginBeforeTheCall) {
  Caller f;
  Program& body = f.w.schedule.functions.front().body;
  body.tasks.push_back({"slot", shift(f.w.axis(0), 1, part(BufferId{1}, 0, 1), part(BufferId{2}, 0, 1)), {{TaskId{1}, Half::both, Half::receive}}, {}, {}});
  body.tasks.push_back({"there", copy(part(BufferId{0}, 0, 1), part(BufferId{1}, 1, 1)), {after(TaskId{1})}, between(f.w.axis(0), 0, 1), {}});
  body.tasks.push_back({"behind", copy(part(BufferId{0}, 0, 1), part(BufferId{1}, 2, 1)), {after(TaskId{3})}, {}, {}});
  f.w.add("call", Call{0, {f.a, f.b}});
  EXPECT_THAT(waits(inline_calls(f.w.schedule)),
              ElementsAre("call begin:", "call move: call begin", "call keep: call move", "call slot: call keep, call begin",
                          "call there: call keep, call begin", "call behind: call there, call begin",
                          "call end: call keep, call slot, call behind"));
}

TEST(InlineCalls, CountsLoweredCollectivesOn) {
  Caller f;
  Program& body = f.w.schedule.functions.front().body;
  body.tasks[0].origin = Origin{0, CollectiveKind::permute, f.w.axis(0), Bytes{32}, {}};
  f.w.add("own", shift(f.w.axis(0), 1, part(f.c, 0, 1), part(f.c, 1, 1)));
  f.w.now().tasks.back().origin = Origin{0, CollectiveKind::permute, f.w.axis(0), Bytes{4}, {}};
  f.w.add("one", Call{0, {f.a, f.b}});
  f.w.add("two", Call{0, {f.b, f.c}});
  const Schedule inlined = inline_calls(f.w.schedule);
  std::vector<int> numbers;
  for (const Task& task : inlined.programs.front().tasks)
    if (task.origin) numbers.push_back(task.origin->collective);
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2));
}

TEST(InlineCalls, OfOneCallIsTheFunctionOnItsCallersDevices) {
  Caller f;
  f.w.program(0, 4);
  f.w.add("one", Call{0, {f.a, f.b}});
  const Schedule alone = schedule_of_call(f.w.schedule, 0, 0);
  EXPECT_THAT(waits(alone), ElementsAre("move:", "keep: move"));
  EXPECT_EQ(alone.programs.front().devices, f.w.schedule.programs.front().devices);
  EXPECT_EQ(caller_of(f.w.schedule, 0), 0U);
}

/// Calls whose argument another one still reads race, as the tasks themselves do.
TEST(InlineCalls, AreProvenAsWhatTheyStandFor) {
  for (const bool ordered : {true, false}) {
    Caller f;
    f.w.add("one", Call{0, {f.a, f.b}});
    f.w.add("beside", copy(part(f.c, 0, 8), part(f.a, 0, 8), Unit::dma), ordered ? std::vector<Edge>{after(TaskId{0})} : std::vector<Edge>{});
    const Validation validation = validate(inline_calls(f.w.schedule));
    if (ordered)
      EXPECT_THAT(texts(validation.all()), IsEmpty());
    else
      EXPECT_THAT(texts(validation.races), Contains(AllOf(HasSubstr("beside"), HasSubstr("one move"))));
  }
}

TEST(Lower, LowersAFunctionOnceForAllItsCalls) {
  Caller f;
  Collective gather;
  gather.axes = {f.w.axis(0)};
  gather.input = part(BufferId{0}, 0, 2);
  gather.output = part(BufferId{2}, 0, 8);
  f.w.schedule.functions.front().body.tasks[0].op = gather;
  f.w.add("one", Call{0, {f.a, f.b}});
  f.w.add("two", Call{0, {f.b, f.c}});
  int asked = 0;
  const auto lowered = lower(f.w.schedule, [&](const Schedule&, const Program& body, const Collective&) -> Expected<CollectiveAlgorithm> {
    ++asked;
    EXPECT_EQ(body.buffers.size(), 3U);
    return CollectiveAlgorithm{[&](const Mesh&, const Program&, const Collective&) -> Expected<Expansion> {
      return Expansion{{{"step", alias(part(BufferId{0}, 0, 2), part(BufferId{3}, 0, 2)), {}, {}, {}}}, {{"own", {2}, DType::f32, Role::scratch, {}, {}}}};
    }};
  });
  ASSERT_TRUE(lowered);
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(waits(*lowered),
              ElementsAre("one begin:", "one move launch: one begin", "one move step: one move launch", "one keep: one move step", "one end: one keep",
                          "two begin: one end", "two move launch: two begin", "two move step: two move launch", "two keep: two move step",
                          "two end: two keep"));
}

TEST(Shapes, OfCallsAndFunctionsAreChecked) {
  const auto problems = [](auto change) {
    Caller f;
    f.w.add("one", Call{0, {f.a, f.b}});
    change(f);
    return texts(check_shapes(f.w.schedule));
  };
  const auto call = [](Caller& f) -> Call& { return std::get<Call>(f.w.now().tasks.back().op); };
  const auto body = [](Caller& f) -> Program& { return f.w.schedule.functions.front().body; };
  EXPECT_THAT(problems([](Caller&) {}), IsEmpty());
  EXPECT_THAT(problems([&](Caller& f) { call(f).function = 1; }), ElementsAre("task 0 \"one\": there is no function 1, but 1 of them"));
  EXPECT_THAT(problems([&](Caller& f) { call(f).arguments.pop_back(); }), ElementsAre("task 0 \"one\": \"pass\" takes 2 buffers, found 1"));
  EXPECT_THAT(problems([&](Caller& f) { call(f).arguments[1] = BufferId{7}; }), ElementsAre("task 0 \"one\": there is no buffer 7"));
  EXPECT_THAT(problems([&](Caller& f) { call(f).arguments[0] = f.w.scratch("wide", {9}); }),
              ElementsAre("task 0 \"one\": \"from\" of \"pass\" is f32[8], buffer \"wide\" is f32[9]"));
  EXPECT_THAT(problems([&](Caller& f) { call(f).arguments[0] = f.w.scratch("half", {8}, DType::bf16); }),
              ElementsAre("task 0 \"one\": \"from\" of \"pass\" is f32[8], buffer \"half\" is bf16[8]"));
  EXPECT_THAT(problems([&](Caller& f) { f.w.now().buffers[f.b.index()].on_host = true; }),
              ElementsAre("task 0 \"one\": \"to\" of \"pass\" is on the device, buffer \"b\" on the host"));
  EXPECT_THAT(problems([&](Caller& f) { f.w.now().tasks.back().where = between(f.w.axis(0), 0, 1); }),
              ElementsAre(HasSubstr("a Call has no guard")));
  EXPECT_THAT(problems([&](Caller& f) { f.w.schedule.functions.front().parameters = 4; }), Contains(HasSubstr("4 parameters, but 3 buffers")));
  EXPECT_THAT(problems([&](Caller& f) { body(f).tasks[1].op = Call{0, {BufferId{0}, BufferId{1}}}; }),
              ElementsAre("function \"pass\": task 1 \"keep\": a function does not call another"));
  EXPECT_THAT(problems([&](Caller& f) { body(f).tasks[1].op = Send{0, testing::neighbour(f.w.axis(0), 1), part(BufferId{0}, 0, 8), {}}; }),
              ElementsAre(HasSubstr("a function has no Send")));
  EXPECT_THAT(problems([&](Caller& f) { body(f).buffers[2].role = Role::input, body(f).buffers[2].tensor = "X", body(f).buffers[2].sharding = {{}}; }),
              ElementsAre(HasSubstr("buffer \"between\": expected scratch")));
  EXPECT_THAT(problems([&](Caller& f) { body(f).devices = every_device(f.w.schedule.mesh); }), ElementsAre(HasSubstr("no devices of its own")));
}

TEST(Text, OfFunctionsStandsBeforePrograms) {
  Caller f;
  f.w.add("one", Call{0, {f.a, f.b}});
  const std::string text = to_text(f.w.schedule);
  EXPECT_THAT(text, HasSubstr("function pass(from, to)\n  buffer from f32[8] scratch\n"));
  EXPECT_THAT(text, HasSubstr("call pass(a, b)"));
}

}  // namespace
}  // namespace podsim
