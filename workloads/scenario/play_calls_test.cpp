// A call that is played as one task takes the time, and has the figures, of the tasks that it stands for.
#include "workloads/scenario/play_calls.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/analysis/operations.hpp"
#include "sim/analysis/peak_memory.hpp"
#include "sim/analysis/step_split.hpp"
#include "sim/base/rng.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/program_builder.hpp"
#include "sim/schedule/testing.hpp"
#include "sim/schedule/validate.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {
namespace {

using testing::texts;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A training step in small: stages in a pipeline, microbatches one after the other, weights gathered over fsdp and sums over col in every layer.
struct Step {
  int stages = 2, fsdp = 2, columns = 2, layers = 2, microbatches = 3;
  std::int64_t tokens = 64, width = 128;
  bool early_gather = false;  // a gather of the program beside its calls, on their links
  bool late_device = false;   // a product before the first call, on the first devices along fsdp alone
  bool recompute = false;     // the forward again before each backward, a product again in it; copies and an optimiser, too
};

Step random_step(std::uint64_t seed) {
  Rng rng{seed, stream_of("steps")};
  Step step;
  step.stages = rng.between(2, 4);
  step.fsdp = rng.between(1, 4);
  step.columns = rng.between(1, 4);
  step.layers = rng.between(1, 3);
  step.microbatches = rng.between(1, 4);
  step.tokens = 16 * rng.between(1, 16);
  step.width = 12 * 8 * rng.between(1, 8);
  return step;
}

class StepWriter {
 public:
  StepWriter(const Step& step, const Mesh& mesh) : step_{step}, mesh_{mesh}, fsdp_{mesh.whole(1)}, columns_{mesh.whole(2)} {}

  Schedule write() {
    Schedule schedule{"step", mesh_, {}, {}, {forward(), backward()}};
    for (int s = 0; s < step_.stages; ++s) schedule.programs.push_back(stage(s));
    return schedule;
  }

 private:
  Buffer buffer(std::string name, std::int64_t rows, std::int64_t columns) const {
    return {std::move(name), {rows, columns}, DType::bf16, Role::scratch, {}, {}};
  }
  Collective collective(CollectiveKind kind, const AxisView& axis, const Region& input, const Region& output) const {
    Collective op;
    op.kind = kind;
    op.axes = {axis};
    op.input = input;
    op.output = output;
    return op;
  }

  /// (x, weights shard, y)
  Function forward() const {
    ProgramBuilder body{mesh_, DeviceSet{}};
    const std::int64_t t = step_.tokens, w = step_.width;
    const BufferId x = body.add_buffer(buffer("x", t, w)), shard = body.add_buffer(buffer("shard", w / fsdp_.size, w)), y = body.add_buffer(buffer("y", t, w));
    const Region weights = body.scratch("weights", {w, w}, DType::bf16), partial = body.scratch("partial", {t, w}, DType::bf16);
    Edges ready = body.step("gather", collective(CollectiveKind::all_gather, fsdp_, body.whole(shard), weights), {});
    ready = body.step("product", Matmul{body.whole(x), weights, partial}, ready);
    body.step("sum", collective(CollectiveKind::all_reduce, columns_, partial, body.whole(y)), ready);
    return {"forward", 3, std::move(body).finish()};
  }

  /// (x, weights shard, dy, dx, gradient shard)
  Function backward() const {
    ProgramBuilder body{mesh_, DeviceSet{}};
    const std::int64_t t = step_.tokens, w = step_.width;
    const BufferId x = body.add_buffer(buffer("x", t, w)), shard = body.add_buffer(buffer("shard", w / fsdp_.size, w)),
                   dy = body.add_buffer(buffer("dy", t, w)), dx = body.add_buffer(buffer("dx", t, w)),
                   gradient = body.add_buffer(buffer("gradient", w / fsdp_.size, w));
    const Region weights = body.scratch("weights", {w, w}, DType::bf16), whole = body.scratch("whole gradient", {w, w}, DType::bf16);
    const Edges gathered = body.step("gather", collective(CollectiveKind::all_gather, fsdp_, body.whole(shard), weights), {});
    const Edges product = body.step("gradient", Matmul{body.whole(x), body.whole(dy), whole, 1, 1, 1, true, false}, {});
    body.step("scatter", collective(CollectiveKind::reduce_scatter, fsdp_, whole, body.whole(gradient)), product);
    Edges after = gathered;
    if (step_.recompute) {
      body.recompute(true);
      after = body.step("y again", Matmul{body.whole(x), weights, body.scratch("y", {t, w}, DType::bf16)}, gathered);
      body.recompute(false);
    }
    body.step("dx", Matmul{body.whole(dy), weights, body.whole(dx), 1, 1, 1, false, true}, after);
    return {"backward", 5, std::move(body).finish()};
  }

  Peer neighbour(int by) const {
    Peer peer;
    for (int a = 0; a < 3; ++a) peer.push_back(own(mesh_.whole(a), a == 0 ? by : 0, false));
    return peer;
  }

  Program stage(int s) {
    const int each = mesh_.devices() / step_.stages;
    ProgramBuilder program{mesh_, {{{s * each, (s + 1) * each}}}};
    const std::int64_t t = step_.tokens, w = step_.width;
    std::vector<BufferId> weights, gradients;
    for (int l = 0; l < step_.layers; ++l) {
      weights.push_back(program.add_buffer(buffer(fmt::format("weights {}", l), w / fsdp_.size, w)));
      gradients.push_back(program.add_buffer(buffer(fmt::format("gradients {}", l), w / fsdp_.size, w)));
    }
    std::vector<std::vector<BufferId>> x(static_cast<std::size_t>(step_.microbatches));
    Edges before, sent, received;
    if (step_.late_device) {
      const Region square = program.scratch("late", {w, w}, DType::bf16), product = program.scratch("late product", {w, w}, DType::bf16);
      before = program.step("late", Matmul{square, square, product}, Edges{}, Guard{{own(fsdp_, 0, false), 0, 1}});
    }
    for (int m = 0; m < step_.microbatches; ++m) {
      auto& own_x = x[static_cast<std::size_t>(m)];
      for (int l = 0; l <= step_.layers; ++l) own_x.push_back(program.add_buffer(buffer(fmt::format("x {} {}", m, l), t, w)));
      Edges ready = before;
      if (s > 0) {
        received = program.step(fmt::format("recv {}", m), Recv{0, neighbour(-1), program.whole(own_x.front()), Combine::replace}, received);
        ready = join(ready, received);
      }
      for (std::size_t l = 0; l < weights.size(); ++l) ready = program.step(fmt::format("fwd {} {}", m, l), Call{0, {own_x[l], weights[l], own_x[l + 1]}}, ready);
      before = ready;
      if (s + 1 < step_.stages) sent = program.step(fmt::format("send {}", m), Send{0, neighbour(1), program.whole(own_x.back()), {}}, join(ready, sent));
    }
    Edges sent_back, received_back;
    for (int m = 0; m < step_.microbatches; ++m) {
      BufferId dy = program.add_buffer(buffer(fmt::format("dy {}", m), t, w));
      Edges ready = before;
      if (s + 1 < step_.stages) {
        received_back = program.step(fmt::format("recv back {}", m), Recv{1, neighbour(1), program.whole(dy), Combine::replace}, received_back);
        ready = join(ready, received_back);
      }
      for (std::size_t l = weights.size(); l-- > 0;) {
        const BufferId dx = program.add_buffer(buffer(fmt::format("dx {} {}", m, l), t, w));
        if (step_.recompute) {
          const BufferId again = program.add_buffer(buffer(fmt::format("y again {} {}", m, l), t, w));
          program.recompute(true);
          ready = program.step(fmt::format("again {} {}", m, l), Call{0, {x[static_cast<std::size_t>(m)][l], weights[l], again}}, ready);
          program.recompute(false);
          ready = program.step(fmt::format("copy {} {}", m, l), Local{LocalKind::copy, {program.whole(again)}, {program.whole(again)}}, ready);
        }
        ready = program.step(fmt::format("bwd {} {}", m, l), Call{1, {x[static_cast<std::size_t>(m)][l], weights[l], dy, dx, gradients[l]}}, ready);
        dy = dx;
      }
      before = ready;
      if (s > 0) sent_back = program.step(fmt::format("send back {}", m), Send{1, neighbour(-1), program.whole(dy), {}}, join(ready, sent_back));
    }
    for (std::size_t l = 0; step_.recompute && l < weights.size(); ++l) {
      Local update{LocalKind::sgd, {program.whole(weights[l]), program.whole(gradients[l])}, {program.whole(weights[l])}};
      update.optimiser.learning_rate = 0.1;
      before = program.step(fmt::format("update {}", l), std::move(update), before);
    }
    if (step_.early_gather) {
      const Region all = program.scratch("early", {w, w}, DType::bf16);
      program.add("early gather", collective(CollectiveKind::all_gather, fsdp_, program.whole(weights.front()), all), Edges{});
    }
    return std::move(program).finish();
  }

  const Step& step_;
  const Mesh& mesh_;
  AxisView fsdp_, columns_;
};

System system_of(const Step& step, Machine machine) {
  SystemSpec spec;
  spec.machine = std::move(machine);
  spec.slice = Slice{{step.stages, step.fsdp, step.columns}};
  spec.wrap = *parse_wrap("all", {});
  spec.mesh = {{"stage", step.stages}, {"fsdp", step.fsdp}, {"col", step.columns}};
  auto system = make_system(spec);
  EXPECT_TRUE(system) << to_text(system.error());
  return *std::move(system);
}

System system_of(const Step& step, const std::string& machine) { return system_of(step, *find_machine(machine)); }

podsim::Run run_of(const System& system, const Schedule& schedule, bool inlined, std::string_view engine = "des", double most_written_out = most_written_out_for_sharing, double most_left_out = 1e-3) {
  RunOptions options;
  options.most_left_out = most_left_out;
  options.most_written_out = most_written_out;
  options.inline_calls = inlined;
  options.engine = *timing_engine(engine);
  auto run = simulate(system, schedule, options);
  EXPECT_TRUE(run) << to_text(run.error());
  return *std::move(run);
}

TEST(PlayedCalls, TakeThePicosecondsAndBytesOfTheirTasks) {
  int beside = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Step step = random_step(seed);
    for (const std::string machine : {"ideal", "tpu_v4"}) {
      const System system = system_of(step, machine);
      const Schedule schedule = StepWriter{step, system.mesh}.write();
      const podsim::Run played = run_of(system, schedule, false), inlined = run_of(system, schedule, true);
      const CallSummary& calls = played.row.calls;
      EXPECT_GT(calls.played, 0) << step.stages << " " << step.fsdp << " " << step.columns << " " << machine << calls.why_inlined;
      EXPECT_EQ(inlined.row.calls.played, 0);
      EXPECT_EQ(calls.played + calls.inlined, 2 * step.stages * step.layers * step.microbatches);
      EXPECT_LT(played.model.schedule->programs.front().tasks.size(), inlined.model.schedule->programs.front().tasks.size());
      EXPECT_EQ(played.metrics.tasks, inlined.metrics.tasks);
      EXPECT_EQ(played.metrics.link_bytes, inlined.metrics.link_bytes);
      EXPECT_EQ(played.metrics.flops, inlined.metrics.flops);
      EXPECT_EQ(played.metrics.peak_memory, inlined.metrics.peak_memory);
      EXPECT_EQ(played.metrics.makespan, inlined.metrics.makespan);
      EXPECT_EQ(played.metrics.split, inlined.metrics.split);
      if (machine == "ideal") {
        EXPECT_EQ(calls.inlined, 0);
      } else if (calls.inlined > 0) {
        EXPECT_THAT(calls.why_inlined, HasSubstr("uses the memory of"));
        ++beside;
      }
    }
  }
  EXPECT_GT(beside, 10) << "activations pass beside calls";
}

/// Every moment of every device, so that whatever is split or attributed is the same.
TEST(PlayedCalls, SplitAStepAsTheirTasksDo) {
  int bubbles = 0, axes = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Step step = random_step(seed);
    step.recompute = true;
    for (const std::string machine : {"ideal", "tpu_v4"}) {
      const System system = system_of(step, machine);
      const Schedule schedule = StepWriter{step, system.mesh}.write();
      const podsim::Run played = run_of(system, schedule, false), inlined = run_of(system, schedule, true);
      ASSERT_EQ(played.row.calls.played + played.row.calls.inlined, 3 * step.stages * step.layers * step.microbatches);
      EXPECT_EQ(played.metrics.busiest, inlined.metrics.busiest);
      EXPECT_EQ(played.metrics.split, inlined.metrics.split);
      EXPECT_EQ(played.metrics.axes, inlined.metrics.axes);
      for (int d = 0; d < system.mesh.devices(); ++d) {
        const StepSplit split = split_step(played.model, played.timeline, DeviceId{d});
        ASSERT_EQ(split, split_step(inlined.model, inlined.timeline, DeviceId{d})) << d;
        ASSERT_EQ(total(split), played.metrics.makespan);
        // Of each layer's products one is the forward's, two are the backward's and two are made again; with shapes of equal cost.
        if (machine == "ideal") {
          ASSERT_EQ(3 * split.core.recompute.count(), 2 * split.core.compute.count());
        }
        ASSERT_GT(split.core.recompute, Picoseconds{});
        ASSERT_EQ(machine == "ideal", split.core.optimiser == Picoseconds{} && split.core.copies == Picoseconds{} && split.core.launch == Picoseconds{});
        bubbles += split.bubble > Picoseconds{} ? 1 : 0;
        axes += split.exposed.size() > 2 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(bubbles, 100);
  EXPECT_GT(axes, 100);
}

TEST(PlayedCalls, OfRanksHaveTheFiguresOfTheirTasks) {
  Step step = random_step(5);
  step.recompute = true;
  const System system = system_of(step, "ideal");
  const Schedule schedule = StepWriter{step, system.mesh}.write();
  const podsim::Run played = run_of(system, schedule, false), inlined = run_of(system, schedule, true);
  const auto ranks = measure_programs(played.model, played.timeline), flat = measure_programs(inlined.model, inlined.timeline);
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(step.stages));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    EXPECT_EQ(ranks[r].busiest, flat[r].busiest);
    EXPECT_EQ(ranks[r].split, flat[r].split);
    EXPECT_EQ(ranks[r].peak_memory, flat[r].peak_memory);
    Bytes live, scratch;
    for (const LiveBuffer& buffer : live_at_peak(played.model, played.timeline, ranks[r].busiest)) {
      live += buffer.size;
      if (!buffer.buffer) scratch += buffer.size;
    }
    EXPECT_EQ(live, ranks[r].peak_memory);
    EXPECT_GT(scratch, Bytes{}) << "some call is at the peak";
  }
}

TEST(PlayedCalls, AreRightAndTakeTheSameTimeOnSimgrid) {
  for (std::uint64_t seed = 0; seed < 40; seed += 8) {
    SCOPED_TRACE(seed);
    const Step step = random_step(seed);
    const System system = system_of(step, "tpu_v4");
    const Schedule schedule = StepWriter{step, system.mesh}.write();
    const podsim::Run des = run_of(system, schedule, true), simgrid = run_of(system, schedule, false, "simgrid");
    EXPECT_EQ(simgrid.row.calls.played, 0);
    EXPECT_NEAR(simgrid.row.result.makespan_s / des.row.result.makespan_s, 1, 1e-6);
    EXPECT_THAT(texts(validate(*des.lowered).all()), IsEmpty());
  }
}

TEST(PlayedCalls, AreInlinedWhereSomethingElseUsesTheirLinks) {
  Step step;
  step.fsdp = 4;
  step.tokens = 2048;
  const System system = system_of(step, "ideal");
  const Schedule apart = StepWriter{step, system.mesh}.write();
  EXPECT_EQ(run_of(system, apart, false).row.calls.why_inlined, "");
  step.early_gather = true;
  const Schedule beside = StepWriter{step, system.mesh}.write();
  const podsim::Run run = run_of(system, beside, false);
  EXPECT_GT(run.row.calls.inlined, 0);
  EXPECT_THAT(run.row.calls.why_inlined, HasSubstr("uses links of"));
  EXPECT_EQ(run.metrics.makespan, run_of(system, beside, true).metrics.makespan);
  EXPECT_GT(run.metrics.makespan, run_of(system, apart, true).metrics.makespan) << "or the conflict would be harmless";
}

/// A call is posed for devices that begin it together; those of its collectives that wait for the last one wait within the call.
TEST(PlayedCalls, AreInlinedWhereDevicesBeginThemAtDifferentTimes) {
  Step step;
  step.fsdp = 4;
  step.stages = 1;
  step.late_device = true;
  const System system = system_of(step, "ideal");
  const Schedule schedule = StepWriter{step, system.mesh}.write();
  const podsim::Run run = run_of(system, schedule, false);
  EXPECT_THAT(run.row.calls.why_inlined, HasSubstr("at different times"));
  EXPECT_EQ(run.metrics.makespan, run_of(system, schedule, true).metrics.makespan);
  EXPECT_EQ(run.metrics.split, run_of(system, schedule, true).metrics.split);
}

/// What transfers of a call take of the core they take within the call, what others take beside calls stands between calls.
TEST(PlayedCalls, TakeThePicosecondsOfTheirTasksWhereTransfersTakeTimeOfTheCore) {
  int slower = 0, some_inlined = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Step step = random_step(seed);
    step.recompute = true;
    for (const std::string machine : {"ideal", "tpu_v4"}) {
      System system = system_of(step, machine);
      const Schedule schedule = StepWriter{step, system.mesh}.write();
      const podsim::Run without = run_of(system, schedule, false);
      Rng rng{seed, stream_of("core shares")};
      for (double& share : system.machine.software.core_share) share = rng.uniform();
      const podsim::Run played = run_of(system, schedule, false), inlined = run_of(system, schedule, true);
      EXPECT_GT(played.row.calls.played, 0) << played.row.calls.why_inlined;
      some_inlined += played.row.calls.inlined > 0 ? 1 : 0;
      EXPECT_EQ(played.metrics.makespan, inlined.metrics.makespan);
      EXPECT_EQ(played.metrics.peak_memory, inlined.metrics.peak_memory);
      for (int d = 0; d < system.mesh.devices(); ++d)
        ASSERT_EQ(split_step(played.model, played.timeline, DeviceId{d}), split_step(inlined.model, inlined.timeline, DeviceId{d})) << d;
      slower += played.metrics.makespan > without.metrics.makespan ? 1 : 0;
    }
  }
  EXPECT_GT(slower, 70);
  EXPECT_GT(some_inlined, 0);
}

/// Calls beside which memory is shared: written out where that is few tasks. Else only those that may wait longest are, until the others may wait for less than `most_left_out` of the time;
/// those are played, and what is left out is less than the run says.
TEST(PlayedCalls, OfLargeModelsArePlayedWhereWaitsForMemoryAreLessThanAThousandth) {
  int played = 0, waited = 0, some_played = 0;
  double most = 0;  // that was left out, of what the run says
  for (const double memory : {1e9, 5e9, 20e9, 200e9, 600e9})
    for (const double share : {0.001, 0.01, 0.02, 0.05, 0.3, 0.6}) {  // at the last a transfer and a product together draw more than the memory has
      SCOPED_TRACE(fmt::format("memory of {} B/s, links of {} of it", memory, share));
      Step step;
      step.stages = 2, step.layers = 40, step.microbatches = 4, step.fsdp = 1, step.columns = 1;
      Machine machine = *find_machine("tpu_v4");
      machine.chip.hbm_bandwidth = BytesPerSecond{memory};
      for (auto& link : machine.link) link.bandwidth = BytesPerSecond{share * memory};
      const System system = system_of(step, std::move(machine));
      const Schedule schedule = StepWriter{step, system.mesh}.write();
      const podsim::Run inlined = run_of(system, schedule, true), few = run_of(system, schedule, false, "des", 1e9);
      EXPECT_EQ(few.row.calls.beside, 0);
      EXPECT_EQ(few.metrics.makespan, inlined.metrics.makespan);
      for (const double most_left_out : {1e-3, 1.0}) {
        const podsim::Run many = run_of(system, schedule, false, "des", 1, most_left_out);
        const CallSummary& calls = many.row.calls;
        EXPECT_EQ(calls.beside_at_most_s.has_value(), calls.beside > 0);
        const double time = to_seconds(many.metrics.makespan).count(), more = to_seconds(inlined.metrics.makespan).count() - time, bound = calls.beside_at_most_s.value_or(0);
        EXPECT_LE(bound, most_left_out * time);
        EXPECT_GE(more, -2e-12) << "but for what the ends of products that share the memory are rounded by";
        EXPECT_LE(more, bound);
        if (bound > 0) most = std::max(most, more / bound);
        played += calls.beside > 0 && most_left_out < 1;
        waited += calls.beside == 0 && few.row.calls.inlined > 0 && most_left_out < 1;
        some_played += calls.beside > 0 && calls.inlined > 0;
        if (calls.beside > 0) { EXPECT_LT(calls.inlined, few.row.calls.inlined); }
      }
    }
  EXPECT_GT(played, 0) << "or nothing would be left out";
  EXPECT_GT(waited, 0) << "or nothing would be written out as transfers may wait, too";
  EXPECT_GT(some_played, 0) << "or those that wait longest would not be told from the others";
  EXPECT_GT(most, 0) << "or the bound would not be tried";
}

TEST(PlayedCalls, AreNotWrittenOutPastTheLimit) {
  Step step;
  step.stages = 2, step.layers = 4, step.microbatches = 4, step.fsdp = 1, step.columns = 1;
  Machine machine = *find_machine("tpu_v4");
  machine.chip.hbm_bandwidth = BytesPerSecond{1e9};
  for (auto& link : machine.link) link.bandwidth = BytesPerSecond{0.3e9};
  const System system = system_of(step, std::move(machine));
  const Schedule schedule = StepWriter{step, system.mesh}.write();
  RunOptions options;
  const auto whole = simulate(system, schedule, options, {});
  ASSERT_TRUE(whole) << to_text(whole.error());
  ASSERT_GT(whole->row.calls.inlined, 0) << "transfers share the memory of calls";
  options.control.limit = whole->metrics.makespan;
  const auto within = simulate(system, schedule, options, {});
  ASSERT_TRUE(within);
  EXPECT_FALSE(within->timeline.interrupted);
  EXPECT_EQ(within->metrics.makespan, whole->metrics.makespan);
  options.control.limit = Picoseconds{1};
  const auto past = simulate(system, schedule, options, {});
  ASSERT_TRUE(past);
  EXPECT_TRUE(past->timeline.interrupted);
  EXPECT_EQ(past->row.calls.inlined, 0);
}

/// What was inlined is played like the rest: only calls that something crosses are.
TEST(InlineCalls, OfSomeLeavesTheOthers) {
  const Step step = random_step(3);
  const System system = system_of(step, "ideal");
  Schedule schedule = StepWriter{step, system.mesh}.write();
  const podsim::Run whole = run_of(system, schedule, false);
  for (const std::size_t every : {2U, 3U}) {
    ChosenCalls chosen;
    std::size_t count = 0;
    for (const Program& program : schedule.programs) {
      chosen.emplace_back();
      for (const Task& task : program.tasks) chosen.back().push_back(std::holds_alternative<Call>(task.op) && ++count % every == 0);
    }
    const Schedule some = inline_calls(schedule, chosen);
    const podsim::Run run = run_of(system, some, false);
    const Schedule flat = inline_calls(*run.lowered);
    EXPECT_THAT(texts(validate(flat).all()), IsEmpty());
    EXPECT_EQ(run.row.calls.played + run.row.calls.inlined, whole.row.calls.played - static_cast<std::int64_t>(count / every));
    EXPECT_EQ(run.metrics.makespan, whole.metrics.makespan);
    EXPECT_EQ(run.metrics.split, whole.metrics.split);
    EXPECT_EQ(run.metrics.peak_memory, whole.metrics.peak_memory);
  }
}

TEST(PlayedCalls, AreInlinedWhereDevicesDiffer) {
  Step step;
  step.fsdp = 4;
  SystemSpec open;
  open.machine = *find_machine("ideal");
  open.slice = Slice{{2, 4, 2}};
  open.wrap = *parse_wrap("none", {});
  open.mesh = {{"stage", 2}, {"fsdp", 4}, {"col", 2}};
  const auto line = make_system(open);
  ASSERT_TRUE(line);
  EXPECT_THAT(run_of(*line, StepWriter{step, line->mesh}.write(), false).row.calls.why_inlined, HasSubstr("do different things in \"forward\""));
}

TEST(PlayedCalls, SumToTheOperationsOfTheDevice) {
  const Step step = random_step(3);
  const System system = system_of(step, "tpu_v4");
  const podsim::Run run = run_of(system, StepWriter{step, system.mesh}.write(), false);
  Picoseconds busy, exposed;
  std::vector<std::string> names;
  for (const OperationMetrics& operation : measure_operations(run.model, run.timeline, run.metrics.busiest)) {
    busy += operation.busy;
    exposed += operation.exposed;
    if (operation.category != "call") continue;
    names.push_back(operation.name);
    ASSERT_NE(operation.call, nullptr);
    Picoseconds busy_in_call, exposed_in_call;
    for (const OperationMetrics& in_call : operation.call->operations) {
      busy_in_call += operation.count * in_call.busy;
      exposed_in_call += operation.count * in_call.exposed;
    }
    EXPECT_EQ(busy_in_call, operation.busy) << operation.name;
    EXPECT_EQ(exposed_in_call, operation.exposed) << operation.name;
  }
  EXPECT_THAT(names, ::testing::ElementsAre("forward", "backward"));
  EXPECT_EQ(busy, run.metrics.split.compute);
  EXPECT_EQ(exposed, run.metrics.split.exposed_communication);
}

}  // namespace
}  // namespace podsim
