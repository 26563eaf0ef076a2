// Collectives of some groups of devices only: what they deliver, when, and in which order on an axis.
#include <gmock/gmock.h>

#include <bit>
#include <map>

#include "algorithms/collectives/testing.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/model/costed_graph.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::small_system;
using testing::SmallSystem;

struct Asked {
  CollectiveKind kind = CollectiveKind::all_gather;
  std::vector<std::string> axes;
  DType dtype = DType::f32;
  Guard where{};
};

/// Collectives one after the other in the program, each on buffers of its own, none waiting for another.
Schedule schedule_of(const SmallSystem& pod, const std::vector<Asked>& all) {
  Schedule schedule{"guarded", pod.mesh, {Program{every_device(pod.mesh), {}, {}}}, {}};
  Program& program = schedule.programs.front();
  for (const Asked& asked : all) {
    std::int64_t group = 1;
    for (const AxisView& axis : testing::axes_of(pod.mesh, asked.axes)) group *= axis.size;
    CollectiveDetails details{group - 1, shift_pairs(static_cast<int>(group), 1)};
    const auto one = collective_schedule(pod.mesh, asked.kind, testing::axes_of(pod.mesh, asked.axes), Bytes{group * 24}, asked.dtype, details);
    EXPECT_TRUE(one) << to_text(one.error());
    const auto first = static_cast<int>(program.buffers.size());
    for (Buffer buffer : one->programs[0].buffers) {
      buffer.name += std::to_string(first);
      if (!buffer.tensor.empty()) buffer.tensor += std::to_string(first);
      program.buffers.push_back(std::move(buffer));
    }
    Task task = one->programs[0].tasks[0];
    auto& collective = std::get<Collective>(task.op);
    collective.input.buffer.value += first, collective.output.buffer.value += first;
    task.where = asked.where;
    program.tasks.push_back(std::move(task));
  }
  return schedule;
}

std::vector<std::uint32_t> bits(const std::vector<float>& words) {
  std::vector<std::uint32_t> result;
  for (const float word : words) result.push_back(std::bit_cast<std::uint32_t>(word));
  return result;
}

/// Outputs are those without guards on the devices where a guard holds, and never written on the others.
void expect_delivered(const Schedule& lowered, const Schedule& everywhere, const std::vector<Asked>& all) {
  for (const Filling filling : {Filling::integers, Filling::uniform}) {
    NumericOptions options;
    options.filling = filling;
    const auto some = make_numeric_engine(options)->run(lowered), every = make_numeric_engine(options)->run(everywhere);
    ASSERT_TRUE(some && every);
    for (int d = 0; d < lowered.mesh.devices(); ++d)
      for (std::size_t b = 0; b < 2 * all.size(); ++b) {
        const auto& found = some->values[static_cast<std::size_t>(d)][b];
        if (holds(all[b / 2].where, lowered.mesh.coordinates(DeviceId{d})) || b % 2 == 0) {
          ASSERT_EQ(bits(found), bits(every->values[static_cast<std::size_t>(d)][b])) << d << " " << b;
        } else {
          ASSERT_THAT(bits(found), ::testing::Each(0x7fc00000U)) << "device " << d << " has no part in it";
        }
      }
  }
}

Schedule without_guards(Schedule schedule) {
  for (Task& task : schedule.programs[0].tasks) task.where.clear();
  return schedule;
}

TEST(GuardedCollectives, ByEveryAlgorithmAreDoneByTheirGroupsAlone) {
  int cases = 0;
  Rng rng{7};
  testing::Agreement agreement;
  testing::Folds folds;
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms())
    for (int k = 0; k < 2 * collective_kind_count; ++k) {
      const SmallSystem pod = small_system(testing::overhead_machine(), {4, 3}, k % 2 == 0);
      const AxisView other = *pod.mesh.axis("col");
      const DType dtype = std::array{DType::f32, DType::c64, DType::s32}[rng.below(3)];
      const std::vector<Asked> all{{static_cast<CollectiveKind>(k / 2), {"row"}, dtype, {{own(other, 0, false), 1, 2}}}};
      const Schedule schedule = schedule_of(pod, all);
      const auto everywhere = lower(without_guards(schedule), *always(entry.name));
      if (!everywhere) continue;  // does not apply
      SCOPED_TRACE(std::string{entry.name} + " " + std::string{name_of(static_cast<CollectiveKind>(k / 2))} + " of " + std::string{name_of(dtype)});
      const auto lowered = lower(schedule, *always(entry.name));
      ASSERT_TRUE(lowered) << to_text(lowered.error());
      ASSERT_TRUE(validate(*lowered).ok()) << to_text(validate(*lowered).all());
      expect_delivered(*lowered, *everywhere, all);
      const auto model = make_model(*lowered, pod.machine, pod.grid, pod.placement);
      if (!model) continue;  // needs a switch
      ASSERT_TRUE(testing::engines_agree(*model, 1e-6, agreement));
      ASSERT_TRUE(testing::folding_changes_nothing(*lowered, testing::world_of(pod), folds));
      ++cases;
    }
  EXPECT_GT(cases, 40);
}

struct Span {
  Picoseconds first = Picoseconds{std::numeric_limits<std::int64_t>::max()}, last{};
};

/// When each device is busy with each collective.
std::map<std::pair<int, int>, Span> spans_of(const Schedule& lowered, const CostedGraph& costs, const Timeline& timeline) {
  std::map<std::pair<int, int>, Span> spans;
  for (std::size_t a = 0; a < costs.graph.activities.size(); ++a) {
    const Activity& activity = costs.graph.activities[a];
    const auto note = [&](DeviceId device, Picoseconds end) {
      Span& span = spans[{device.value, lowered.programs[0].tasks[activity.task.index()].origin->collective}];
      span.first = std::min(span.first, timeline.at(a).start), span.last = std::max(span.last, end);
    };
    note(activity.device, timeline.at(a).sent);
    if (activity.kind == Activity::Kind::transfer) note(activity.receiver, timeline.at(a).received);
  }
  return spans;
}

TEST(GuardedCollectives, OnAnAxisFollowEachOtherInProgramOrderOnEveryDevice) {
  int followed = 0;
  testing::Agreement agreement;
  testing::Folds folds;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng{seed, stream_of("guarded")};
    const SmallSystem pod = small_system(testing::costly_machine(rng), {rng.between(2, 4), rng.between(2, 3)}, rng.below(2) == 0);
    std::vector<Asked> all;
    for (int i = 0, count = rng.between(2, 5); i < count; ++i) {
      Asked asked{static_cast<CollectiveKind>(rng.below(4)), {rng.below(3) > 0 ? "row" : "col"}, std::array{DType::f32, DType::c64, DType::s32}[rng.below(3)]};
      const AxisView other = *pod.mesh.axis(asked.axes[0] == "row" ? "col" : "row");
      const int low = rng.between(0, other.size - 1);
      if (rng.below(3) > 0) asked.where = {{own(other, 0, false), low, rng.between(low + 1, other.size)}};
      all.push_back(asked);
    }
    const Schedule schedule = schedule_of(pod, all);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    const auto lowered = lower(schedule, ring_or_line()), everywhere = lower(without_guards(schedule), ring_or_line());
    ASSERT_TRUE(lowered && everywhere);
    ASSERT_TRUE(validate(*lowered).ok()) << to_text(validate(*lowered).all());
    expect_delivered(*lowered, *everywhere, all);
    const auto model = make_model(*lowered, pod.machine, pod.grid, pod.placement);
    ASSERT_TRUE(model) << to_text(model.error());
    ASSERT_TRUE(testing::engines_agree(*model, 1e-6, agreement));
    ASSERT_TRUE(testing::folding_changes_nothing(*lowered, testing::world_of(pod), folds));

    const auto costs = testing::cost(*lowered, pod.machine, pod.grid, pod.placement);
    ASSERT_TRUE(costs);
    for (const std::string_view engine : {"des", "analytic"}) {
      const auto timeline = testing::run(pod, *lowered, engine);
      ASSERT_TRUE(timeline);
      const auto spans = spans_of(*lowered, *costs, *timeline);
      for (const auto& [at, span] : spans) {
        const auto& [device, collective] = at;
        EXPECT_TRUE(holds(all[static_cast<std::size_t>(collective)].where, pod.mesh.coordinates(DeviceId{device})));
        for (int before = 0; before < collective; ++before) {
          if (all[static_cast<std::size_t>(before)].axes != all[static_cast<std::size_t>(collective)].axes) continue;
          const auto earlier = spans.find({device, before});
          if (earlier == spans.end()) continue;
          EXPECT_GE(span.first, earlier->second.last) << engine << ": collective " << collective << " on device " << device;
          ++followed;
        }
      }
    }
  }
  EXPECT_GT(followed, 300);
}

TEST(GuardedCollectives, AGuardOnTheirOwnAxisIsRefused) {
  const SmallSystem pod = small_system(testing::ideal_machine(), {4, 2}, true);
  Schedule schedule = schedule_of(pod, {{CollectiveKind::all_reduce, {"row"}, DType::f32, {{own(*pod.mesh.axis("row"), 0, false), 0, 2}}}});
  const auto lowered = lower(schedule, ring_or_line());
  ASSERT_FALSE(lowered);
  EXPECT_THAT(to_text(lowered.error()), ::testing::HasSubstr("mentions its own mesh axis row; expected one that holds for all devices along it or for none"));
}

}  // namespace
}  // namespace podsim
