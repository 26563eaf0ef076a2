// All-reduces of data that the devices do not divide: by every algorithm, of every size, the sums are right and every engine agrees.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "algorithms/collectives/testing.hpp"
#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/model/fold.hpp"

namespace podsim {
namespace {

using testing::small_system;
using testing::SmallSystem;

constexpr std::int64_t float_bytes = 4;

/// An all-reduce, broadcast or reduce of `elements` along all axes; nullopt: the algorithm does not take such axes.
std::optional<Schedule> of_size(const SmallSystem& pod, CollectiveKind kind, std::string_view algorithm, std::int64_t elements, int chunks) {
  std::vector<std::string> axes;
  std::vector<CollectiveAxis> along;
  for (int a = 0; a < static_cast<int>(pod.mesh.axes().size()); ++a) {
    const AxisView axis = pod.mesh.whole(a);
    axes.push_back(pod.mesh.name(axis));
    along.push_back({axis.size, pod.mesh.wraps(axis) ? AxisLinks::ring : AxisLinks::line, true});
  }
  const bool takes = applies(*collective_algorithm_named(algorithm), kind, along);
  auto schedule = testing::try_collective(pod, kind, axes, Bytes{elements * float_bytes}, algorithm, {}, in_chunks(chunks));
  if (schedule) return *std::move(schedule);
  // `rotations` and `channels` ask for more of their axes than the table says.
  const auto dividing = testing::try_collective(pod, kind, axes, Bytes{elements * float_bytes * pod.mesh.devices()}, algorithm, {}, in_chunks(chunks));
  EXPECT_FALSE(takes && dividing) << algorithm << " takes other sizes: " << to_text(schedule.error());
  return std::nullopt;
}

TEST(AnySize, OfAllReduceBroadcastAndReduceIsRightByEveryAlgorithm) {
  std::map<std::pair<std::string_view, CollectiveKind>, int> seen;
  for (const bool wraps : {true, false})
    for (const std::vector<int>& extents : {std::vector<int>{8}, {5}, {2, 4}, {3, 2}, {2, 2, 2}}) {
      const SmallSystem pod = small_system(testing::ideal_machine(), extents, wraps);
      for (std::int64_t elements = 1; elements <= 40; elements += test::cases(1, 4))
        for (const CollectiveAlgorithmEntry& entry : collective_algorithms())
          for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast, CollectiveKind::reduce}) {
            if (!entry.kinds.has(kind) || (kind != CollectiveKind::all_reduce && elements % 3 != 1)) continue;
            SCOPED_TRACE(std::string{entry.name} + " " + std::string{name_of(kind)} + " of " + std::to_string(elements) + " on " + to_text(pod.mesh));
            const auto schedule = of_size(pod, kind, entry.name, elements, 1 + static_cast<int>(elements % 4));
            if (!schedule) continue;
            CheckOptions options;
            options.threads = 1;
            options.random_orders = 1;
            const auto report = check(*schedule, options);
            ASSERT_TRUE(report) << to_text(report.error());
            ASSERT_TRUE(report->ok) << to_text(report->problems);
            ++seen[{entry.name, kind}];
          }
    }
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) {
    if (!entry.kinds.has(CollectiveKind::all_reduce)) continue;
    EXPECT_GE((seen[{entry.name, CollectiveKind::all_reduce}]), test::cases(40, 10)) << entry.name;
  }
}

TEST(AnySize, OfAllReduceTakesTheSameTimeOnEveryEngineFoldedAndNot) {
  int folded = 0;
  for (std::uint64_t seed = 0; seed < test::cases(300U, 60U); ++seed) {
    Rng rng{seed, 8};
    const std::vector<std::vector<int>> shapes{{8}, {5}, {2, 4}, {3, 2}, {4, 4}, {2, 2, 2}};
    Machine machine = testing::ideal_machine(rng.between(1, 9) * 1e9, rng.between(0, 3) * 1e-6);
    machine.chip.reduce_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e9};
    const SmallSystem pod = small_system(machine, shapes[rng.below(shapes.size())], rng.below(2) == 0);
    const CollectiveAlgorithmEntry& entry = collective_algorithms()[rng.below(collective_algorithms().size())];
    if (!entry.kinds.has(CollectiveKind::all_reduce) || entry.needs.in_switch) continue;  // a grid has no switches
    const std::int64_t elements = rng.between(1, 40);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + std::string{entry.name} + " of " + std::to_string(elements) + " on " + to_text(pod.mesh));
    const auto schedule = of_size(pod, CollectiveKind::all_reduce, entry.name, elements, rng.between(1, 5));
    if (!schedule) continue;
    const auto des = testing::run(pod, *schedule, "des"), simgrid = testing::run(pod, *schedule, "simgrid"), analytic = testing::run(pod, *schedule, "analytic");
    ASSERT_TRUE(des && simgrid && analytic);
    const auto seconds = [](const Timeline& timeline) { return to_seconds(timeline.makespan).count(); };
    EXPECT_NEAR(seconds(*des), seconds(*simgrid), 1e-6 * seconds(*des) + 1e-10);
    EXPECT_LE(seconds(*analytic), seconds(*des) * (1 + 1e-9) + 1e-10);
    const auto model = make_folded_model(*schedule, pod.machine, pod.grid, pod.placement);
    ASSERT_TRUE(model) << to_text(model.error());
    EXPECT_EQ((*timing_engine("des"))->run(*model, {})->makespan, des->makespan);
    folded += model->nodes() < static_cast<std::size_t>(pod.mesh.devices());
  }
  EXPECT_GT(folded, test::cases(30, 5));
}

TEST(AnySize, TakesAsLongAsTheNextMultiple) {
  for (const std::string algorithm : {"ring", "line", "halving-doubling", "direct"}) {
    const SmallSystem pod = small_system(testing::ideal_machine(1e9, 1e-6), {8});
    const auto seconds = [&](std::int64_t elements) {
      return testing::seconds_of(pod, testing::lowered_collective(pod, CollectiveKind::all_reduce, {"row"}, Bytes{elements * float_bytes}, algorithm), "des");
    };
    for (const std::int64_t elements : {17, 20, 23}) EXPECT_DOUBLE_EQ(seconds(elements), seconds(24)) << algorithm << " " << elements;
  }
}

TEST(AnySize, OfAnAllReduceByRotationsPlacesEachPartOnce) {
  // 64 elements on a line, in two parts: there and back each, and the padding; not one place for each of 16 blocks.
  const SmallSystem pod = small_system(testing::ideal_machine(), {4, 4});
  const Schedule padded = testing::lowered_collective(pod, CollectiveKind::all_reduce, {"row", "col"}, Bytes{63 * float_bytes}, "rotations");
  const auto places = std::ranges::count_if(padded.programs.front().tasks, [](const Task& task) {
    const auto* local = std::get_if<Local>(&task.op);
    return local != nullptr && local->kind == LocalKind::alias;
  });
  EXPECT_EQ(places, 2 + 2 * 2);
}

TEST(AnySize, ThatDividesIsAsItWas) {
  const SmallSystem pod = small_system(testing::ideal_machine(), {4});
  const Schedule divided = testing::lowered_collective(pod, CollectiveKind::all_reduce, {"row"}, Bytes{8 * float_bytes}, "ring");
  EXPECT_EQ(divided.programs.front().buffers.front().extents, (std::vector<std::int64_t>{1, 4, 2}));
  for (const Buffer& buffer : divided.programs.front().buffers) EXPECT_FALSE(buffer.name.starts_with("padded")) << buffer.name;
  const Schedule padded = testing::lowered_collective(pod, CollectiveKind::all_reduce, {"row"}, Bytes{6 * float_bytes}, "ring");
  EXPECT_EQ(padded.programs.front().buffers.front().extents, (std::vector<std::int64_t>{1, 1, 6}));
  ASSERT_EQ(padded.programs.front().buffers.size(), 3U);
  EXPECT_EQ(padded.programs.front().buffers.back().extents, (std::vector<std::int64_t>{8}));
}

/// In the middle of a program, on a part of a buffer whose rows are longer, in place.
TEST(AnySize, OfAPartOfABufferInPlaceLeavesTheRestAlone) {
  for (const bool wraps : {true, false}) {
    const SmallSystem pod = small_system(testing::ideal_machine(), {4}, wraps);
    auto schedule = *collective_schedule(pod.mesh, CollectiveKind::all_reduce, {pod.mesh.whole(0)}, Bytes{3 * 5 * float_bytes}, DType::f32);
    Program& program = schedule.programs.front();
    const Collective whole = std::get<Collective>(program.tasks.front().op);
    program.buffers.push_back({"held", {7, 9}, DType::f32, Role::scratch, {}, {}});
    Region part = whole_buffer(BufferId{2}, {7, 9});
    part.dims[0].offset = 2, part.dims[0].length = 3;
    part.dims[1].offset = 1, part.dims[1].length = 5;
    Collective middle = whole;
    middle.input = middle.output = part;
    middle.dim = 0;
    program.tasks = {{"in", Local{LocalKind::copy, {whole.input}, {part}, 1, Unit::core}, {}, {}, {}},
                     {"sum", middle, {{TaskId{0}}}, {}, {}},
                     {"out", Local{LocalKind::copy, {part}, {whole.output}, 1, Unit::core}, {{TaskId{1}}}, {}, {}}};
    const auto lowered = lower(schedule, ring_or_line());
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    const auto report = check(*lowered, {});
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok) << to_text(report->problems);
  }
}

}  // namespace
}  // namespace podsim
