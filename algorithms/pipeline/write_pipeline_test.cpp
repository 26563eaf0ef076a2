// Pipelines as schedules: their times on engines, their numbers against one device, and mistakes made on purpose.
#include "algorithms/pipeline/write_pipeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "algorithms/pipeline/pipeline_times.hpp"
#include "algorithms/pipeline/testing.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/step_split.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/schedule/reference_builder.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::small_system;
using testing::SmallSystem;
using Kind = PipelineCommand::Kind;
using Value = PipelineValue::Kind;
using ::testing::HasSubstr;

PipelineStep step_of(const PipelineSpec& spec, bool fused) {
  const auto lists = executed_lists(spec, fused);
  EXPECT_TRUE(lists) << to_text(lists.error());
  auto step = pipeline_step(*lists, spec.stages);
  EXPECT_TRUE(step) << to_text(step.error());
  return *std::move(step);
}

SmallSystem row_of(const Machine& machine, int ranks) { return small_system(machine, {ranks}, true, {{"stage", ranks}}); }

/// As many products of one size as the task has units; values have one element.
PipelineWork units_of_work(std::int64_t n) {
  const auto buffer = [](const PipelineValue& value) -> std::optional<Buffer> {
    if (value.kind == Value::loss) return std::nullopt;
    return Buffer{name_of(value), {1}, DType::bf16, Role::scratch, {}, {}};
  };
  const auto write = [n](PipelineProgram& program, const PipelineCommand& command, const Edges& after) -> Edges {
    if (command.kind != Kind::execute) return after;
    Edges ready = after;
    for (int unit = 0; unit < units_of(command.task.kind); ++unit) {
      const std::string name = name_of(command.task) + " " + std::to_string(unit);
      const Region a = program.builder.scratch(name + " a", {n, n}, DType::bf16), b = program.builder.scratch(name + " b", {n, n}, DType::bf16);
      ready = program.builder.step(name, Matmul{a, a, b}, ready);
    }
    return ready;
  };
  return {buffer, write};
}

TEST(WritePipeline, TakesTheUnitsOfItsListsOnEveryEngine) {
  std::ifstream file{PODSIM_SOURCE_DIR "/algorithms/pipeline/testdata/jaxpp_schedules.json"};
  const auto data = nlohmann::json::parse(file);
  Machine machine = testing::ideal_machine();
  for (LinkParameters& link : machine.link) link.bandwidth = unlimited<BytesPerSecond>;
  constexpr std::int64_t n = 100, unit = 20'000;  // 2 n^3 flops at 100 TFLOP/s, in picoseconds
  int cases = 0;
  for (const auto& entry : data.at("cases")) {
    if (entry.contains("error")) continue;
    ++cases;
    const PipelineSpec spec{*pipeline_schedule_named(entry.at("schedule").get<std::string>()), entry.at("stages"), entry.at("ranks"),
                            entry.at("microbatches"), entry.value("fuse", false)};
    SCOPED_TRACE(entry.at("schedule").get<std::string>() + " " + std::to_string(spec.stages) + " " + std::to_string(spec.ranks) + " " + std::to_string(spec.microbatches));
    const SmallSystem pod = row_of(machine, spec.ranks);
    for (const bool fused : {false, true}) {
      const PipelineStep step = step_of(spec, fused);
      const auto schedule = write_pipeline(pod.mesh, pod.mesh.whole(0), step, units_of_work(n));
      ASSERT_TRUE(schedule) << to_text(schedule.error());
      const std::int64_t units = pipeline_times(step.lists)->makespan;
      if (!fused) {
        EXPECT_EQ(units, entry.at("makespan"));
      }
      for (const char* engine : {"des", "simgrid"}) {
        const auto timeline = testing::run(pod, *schedule, engine);
        ASSERT_TRUE(timeline) << to_text(timeline.error());
        EXPECT_EQ(timeline->makespan.count(), units * unit) << engine << (fused ? ", fused" : "");
      }
    }
  }
  EXPECT_EQ(cases, 59);
}

/// R ranks of a stage each are busy for 3 units a microbatch, and wait 3 (R - 1) units for the pipeline to fill and to drain.
TEST(WritePipeline, RanksHaveTheBubbleOfTheClosedForm) {
  Machine machine = testing::ideal_machine();
  for (LinkParameters& link : machine.link) link.bandwidth = unlimited<BytesPerSecond>;
  constexpr std::int64_t unit = 20'000;
  for (const PipelineSchedule kind : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
    for (const int ranks : {2, 4}) {
      const SmallSystem pod = row_of(machine, ranks);
      const auto schedule = write_pipeline(pod.mesh, pod.mesh.whole(0), step_of({kind, ranks, ranks, 8}, false), units_of_work(100));
      ASSERT_TRUE(schedule);
      const auto model = testing::model_of(pod, *schedule);
      const auto timeline = testing::run(pod, *schedule, "des");
      ASSERT_TRUE(model && timeline);
      const auto programs = measure_programs(*model, *timeline);
      const auto devices = measure_devices(*model, *timeline);
      ASSERT_EQ(programs.size(), static_cast<std::size_t>(ranks));
      for (std::size_t r = 0; r < programs.size(); ++r) {
        const StepSplit& split = programs[r].split;
        EXPECT_EQ(programs[r].busiest, DeviceId{r});
        EXPECT_EQ(split.core.compute.count(), 3 * 8 * unit);
        EXPECT_EQ(split.bubble.count(), 3 * (ranks - 1) * unit) << name_of(kind) << " rank " << r;
        EXPECT_EQ(total(split), total(split.core) + split.bubble);
        EXPECT_EQ(programs[r].peak_memory, devices[r].peak_memory);
      }
    }
}

/// Transfers of one pair of ranks and direction would share the link, and the first would arrive with the last.
TEST(WritePipeline, SendsInOrder) {
  const PipelineSpec spec{PipelineSchedule::gpipe, 4, 4, 8};
  Machine machine = testing::ideal_machine();
  for (LinkParameters& link : machine.link) link.bandwidth = BytesPerSecond{2.0 / 40'000e-12};  // a value takes two units
  const SmallSystem pod = row_of(machine, spec.ranks);
  const auto schedule = write_pipeline(pod.mesh, pod.mesh.whole(0), step_of(spec, true), units_of_work(100));
  ASSERT_TRUE(schedule);
  const auto timeline = testing::run(pod, *schedule, "des");
  ASSERT_TRUE(timeline);
  // In units: microbatch k reaches stage 1 at 2 k + 3, each further stage takes a forward and a transfer, 3, so the last forward ends at 24. Its backwards
  // end at 26, 28, ..; each stage before takes a transfer and a backward, 4: the last one ends at 24 + 16 + 3 * 4.
  EXPECT_EQ(timeline->makespan.count(), 52 * 20'000);
  Schedule unordered = *schedule;
  for (Program& program : unordered.programs)
    for (Task& task : program.tasks)
      if (std::holds_alternative<Send>(task.op))
        std::erase_if(task.after, [&](const Edge& edge) { return std::holds_alternative<Send>(program.tasks[edge.task.index()].op); });
  const auto shared = testing::run(pod, unordered, "des");
  ASSERT_TRUE(shared);
  EXPECT_GT(shared->makespan, timeline->makespan);
}

TEST(WritePipeline, NeedsARankPerCoordinate) {
  const SmallSystem pod = row_of(testing::ideal_machine(), 3);
  const auto schedule = write_pipeline(pod.mesh, pod.mesh.whole(0), step_of({PipelineSchedule::gpipe, 4, 4, 8}, true), units_of_work(1));
  ASSERT_FALSE(schedule);
  EXPECT_THAT(to_text(schedule.error()), HasSubstr("axis stage has size 3; expected 4, one for each rank"));
}

// ---- Numbers --------------------------------------------------------------------------------------------------------------------------

constexpr std::int64_t tokens = 6, width = 4;  // of a microbatch, over all devices of the axis `data`

/// Stages h = x @ W, a mean square loss, gradients of every W. Microbatches are tensors of their own, their rows sharded over `data`.
class LinearStages {
 public:
  LinearStages(const Mesh& mesh, const PipelineSpec& spec) : mesh_{mesh}, spec_{spec}, data_{mesh.whole(1)} {}

  PipelineWork work() {
    return {[this](const PipelineValue& value) { return buffer(value); },
            [this](PipelineProgram& program, const PipelineCommand& command, const Edges& after) { return write(program, command, after); }};
  }

  ReferenceProgram claim() const {
    ReferenceBuilder graph;
    std::vector<int> weights, sums(static_cast<std::size_t>(spec_.stages), -1);
    for (int s = 0; s < spec_.stages; ++s) weights.push_back(graph.input("W" + std::to_string(s), {width, width}));
    for (int k = 0; k < spec_.microbatches; ++k) {
      std::vector<int> x{graph.input(name_of(PipelineValue{Value::inputs, 0, k}), {tokens, width})};
      for (const int w : weights) x.push_back(graph.product(x.back(), w));
      const int target = graph.input(name_of(PipelineValue{Value::targets, 0, k}), {tokens, width});
      int dy = graph.mean_square(x.back(), target, tokens * width).gradient;
      for (int s = spec_.stages; s-- > 0;) {
        int& sum = sums[static_cast<std::size_t>(s)];
        const int one = graph.product(x[static_cast<std::size_t>(s)], dy, true, false);
        sum = sum < 0 ? one : graph.elementwise(ReferenceKind::add, sum, one);
        dy = graph.product(dy, weights[static_cast<std::size_t>(s)], false, true);
      }
    }
    for (int s = 0; s < spec_.stages; ++s) graph.output(name_of(PipelineValue{Value::gradients, s, 0}), sums[static_cast<std::size_t>(s)]);
    return std::move(graph).finish("gradients of one device");
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> rows() const { return {tokens / data_.size, width}; }

  std::optional<Buffer> buffer(const PipelineValue& value) const {
    const std::string name = name_of(value);
    switch (value.kind) {
      case Value::inputs:
      case Value::targets: return Buffer{name, rows(), DType::f32, Role::input, name, {{data_}, {}}};
      case Value::gradients: {
        Buffer gradients{name, {width, width}, DType::f32, Role::output, name, {{}, {}}};
        if (data_.size > 1) gradients.unreduced = {data_};
        return gradients;
      }
      case Value::loss: return std::nullopt;
      default: return Buffer{name, rows(), DType::f32, Role::scratch, {}, {}};
    }
  }

  BufferId weights(PipelineProgram& program, int stage) {
    const auto [known, added] = weights_.try_emplace({&program, stage});
    const std::string name = "W" + std::to_string(stage);
    if (added) known->second = program.builder.add_buffer({name, {width, width}, DType::f32, Role::input, name, {{}, {}}});
    return known->second;
  }

  Edges write(PipelineProgram& program, const PipelineCommand& command, const Edges& after) {
    if (command.kind != Kind::execute) return {};
    const auto [kind, s, k] = command.task;
    ProgramBuilder& builder = program.builder;
    const std::string name = name_of(command.task);
    const bool last = s + 1 == spec_.stages;
    const Region x = program.whole(s == 0 ? PipelineValue{Value::inputs, 0, k} : PipelineValue{Value::activation, s - 1, k});
    const Region w = builder.whole(weights(program, s));
    if (kind == PipelineTaskKind::forward) {
      if (!last) return builder.step(name, Matmul{x, w, program.whole({Value::activation, s, k})}, after);
      // Of the last stage the residual is the gradient of its output.
      const Region y = builder.scratch(name + " y", rows(), DType::f32), dy = program.whole({Value::residuals, s, k});
      const Edges product = builder.step(name, Matmul{x, w, y}, after);
      return builder.step(name + " loss", Local{LocalKind::mean_square_grad, {y, program.whole({Value::targets, 0, k})}, {dy}, tokens * width}, product);
    }
    const Region dy = last ? program.whole({Value::residuals, s, k}) : program.whole({Value::activation_gradient, s, k});
    Edges ends;
    if (kind != PipelineTaskKind::backward_inputs)
      ends = builder.step(name + " dW", Matmul{x, dy, program.whole({Value::gradients, s, 0}), 1, 1, 1, true, false, !first_.insert(s).second}, after);
    if (kind != PipelineTaskKind::backward_weights && s > 0)
      ends = join(builder.step(name + " dx", Matmul{dy, w, program.whole({Value::activation_gradient, s - 1, k}), 1, 1, 1, false, true}, after), ends);
    return ends;
  }

  const Mesh& mesh_;
  PipelineSpec spec_;
  AxisView data_;
  std::map<std::pair<const PipelineProgram*, int>, BufferId> weights_;
  std::set<int> first_;  // stages whose gradients have a first addend
};

struct LinearCase {
  PipelineSpec spec;
  int data = 1;
};

Schedule linear(const LinearCase& of, bool fused) {
  const SmallSystem pod = small_system(testing::ideal_machine(), {of.spec.ranks, of.data}, true, {{"stage", of.spec.ranks}, {"data", of.data}});
  LinearStages stages{pod.mesh, of.spec};
  auto schedule = write_pipeline(pod.mesh, pod.mesh.whole(0), step_of(of.spec, fused), stages.work());
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  schedule->computes = stages.claim();
  return *std::move(schedule);
}

CheckReport checked(const Schedule& schedule) {
  const auto report = check(schedule, {});
  EXPECT_TRUE(report) << to_text(report.error());
  return report ? *report : CheckReport{};
}

std::vector<LinearCase> every_schedule() {
  return {{{PipelineSchedule::gpipe, 2, 2, 4}, 2},       {{PipelineSchedule::one_f_one_b, 4, 4, 8}, 1},      {{PipelineSchedule::one_f_one_b, 2, 2, 4}, 2},
          {{PipelineSchedule::eager_one_f_one_b, 4, 4, 4}, 1}, {{PipelineSchedule::interleaved, 4, 2, 4}, 2}, {{PipelineSchedule::interleaved, 4, 2, 4, true}, 1},
          {{PipelineSchedule::kimi_k2, 4, 2, 4}, 1},     {{PipelineSchedule::zero_bubble, 4, 4, 8}, 1},      {{PipelineSchedule::zero_bubble, 2, 2, 4}, 2},
          {{PipelineSchedule::dual_pipe_v, 4, 2, 4}, 2}, {{PipelineSchedule::dual_pipe_v, 4, 2, 8}, 1}};
}

TEST(WritePipeline, GradientsAreThoseOfOneDeviceBySevenSchedules) {
  for (const LinearCase& of : every_schedule())
    for (const bool fused : {false, true}) {
      SCOPED_TRACE(std::string{name_of(of.spec.schedule)} + (fused ? " fused" : ""));
      const CheckReport report = checked(linear(of, fused));
      EXPECT_TRUE(report.ok) << to_text(report.problems);
      EXPECT_TRUE(report.bit_equal);
      EXPECT_LE(report.max_rel_error, 1e-5);
    }
}

TEST(WritePipeline, MistakesAreFound) {
  const LinearCase of{{PipelineSchedule::one_f_one_b, 2, 2, 4}, 1};
  const auto broken = [&](const std::string& label, const std::function<void(Program&, Task&)>& change) {
    Schedule schedule = linear(of, false);
    for (Program& program : schedule.programs)
      for (Task& task : program.tasks)
        if (task.label == label) {
          change(program, task);
          return checked(schedule);
        }
    ADD_FAILURE() << "no task " << label;
    return CheckReport{};
  };
  // A gradient added twice.
  EXPECT_FALSE(broken("bwd_0__1 dW", [](Program& program, Task& task) {
                 Task again = task;
                 again.after = {Edge{TaskId{program.tasks.size() - 1}}, Edge{TaskId{static_cast<std::size_t>(&task - program.tasks.data())}}};
                 program.tasks.push_back(std::move(again));
               }).ok);
  // A transfer that is missing, at one end or at both.
  EXPECT_FALSE(broken("send act_0__2 to 1", [](Program&, Task& task) { task.op = Local{LocalKind::join, {}, {}, 1, Unit::dma}; }).ok);
  // Microbatches in another order on one side.
  EXPECT_FALSE(broken("send act_0__1 to 1", [](Program& program, Task& task) {
                 for (Task& other : program.tasks)
                   if (other.label == "send act_0__2 to 1") std::swap(std::get<Send>(task.op).source, std::get<Send>(other.op).source);
               }).ok);
  // A backward that does not wait for its gradient.
  EXPECT_FALSE(broken("bwd_0__3 dW", [](Program&, Task& task) { task.after.clear(); }).ok);
}

/// Each live forward holds its input (and the last stage its gradient, too) until its backward has ended.
TEST(WritePipeline, MemoryIsThatOfLiveForwards) {
  const PipelineSpec spec{PipelineSchedule::one_f_one_b, 4, 4, 8};
  constexpr std::int64_t n = 100;
  PipelineWork work = units_of_work(n);
  // Only residuals take memory to speak of: n^2 elements.
  work.buffer = [](const PipelineValue& value) -> std::optional<Buffer> {
    if (value.kind == Value::loss) return std::nullopt;
    const std::int64_t extent = value.kind == Value::residuals ? 1'000'000 : 1;
    return Buffer{name_of(value), {extent}, DType::bf16, Role::scratch, {}, {}};
  };
  const auto write = work.write;
  work.write = [write](PipelineProgram& program, const PipelineCommand& command, const Edges& after) -> Edges {
    if (command.kind != Kind::execute) return after;
    const auto [kind, s, k] = command.task;
    const Region residuals = program.whole({Value::residuals, s, k});
    const Region one{residuals.buffer, {span(0, 1)}}, another{residuals.buffer, {span(1, 1)}};
    const Edges ready = kind == PipelineTaskKind::forward ? program.builder.step("keep", Local{LocalKind::copy, {another}, {one}}, after) : after;
    const Edges done = write(program, command, ready);
    return kind == PipelineTaskKind::forward ? done : program.builder.step("use", Local{LocalKind::copy, {one}, {another}}, done);
  };
  const SmallSystem pod = row_of(testing::ideal_machine(), spec.ranks);
  const PipelineStep step = step_of(spec, false);
  const auto schedule = write_pipeline(pod.mesh, pod.mesh.whole(0), step, work);
  ASSERT_TRUE(schedule);
  const auto model = testing::model_of(pod, *schedule);
  ASSERT_TRUE(model);
  const auto timeline = (*timing_engine("des"))->run(*model, {});
  ASSERT_TRUE(timeline);
  const std::vector<int> live = pipeline_times(step.lists)->peak_live_forwards;
  const auto devices = measure_devices(*model, *timeline);
  for (std::size_t rank = 0; rank < live.size(); ++rank) {
    const auto held = static_cast<double>(devices[rank].peak_memory.count()) / 2e6;
    EXPECT_GE(held, live[rank]) << rank;
    EXPECT_LT(held, live[rank] + 0.1) << rank;
  }
}

}  // namespace
}  // namespace podsim
