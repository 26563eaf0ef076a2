// Every algorithm on every kind that it does, on all sorts of meshes: the postcondition holds, in every order.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "algorithms/collectives/testing.hpp"
#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::ideal_machine;
using testing::small_system;
using testing::SmallSystem;

struct DeliveryCase {
  SmallSystem pod;
  CollectiveKind kind;
  std::vector<std::string> axes;
  Bytes bytes;
  DType dtype;
  CollectiveDetails details;
  int chunks;
  int group;
};

DeliveryCase random_case(std::uint64_t seed) {
  Rng rng{seed};
  static const std::vector<std::vector<int>> shapes{{3, 5}, {6, 4}, {2, 3, 2}, {4, 2, 3}, {3, 3}, {1, 4}, {4, 1}, {2, 2, 2}};
  std::vector<int> extents = shapes[rng.below(shapes.size())];
  if (rng.below(2) == 0) extents = {rng.between(1, 8)};
  std::vector<std::pair<std::string, int>> sizes;  // of every other mesh with dimensions: axes that fold or split them
  if (extents.size() > 1 && rng.below(2) == 0) {
    const int devices = std::accumulate(extents.begin(), extents.end(), 1, std::multiplies{});
    int last = rng.between(1, devices);
    while (devices % last != 0) --last;
    sizes = {{"x", devices / last}, {"y", last}};
  }
  const SmallSystem pod = small_system(ideal_machine(), extents, rng.below(2) == 0, sizes);
  std::vector<std::string> axes;
  for (const MeshAxis& axis : pod.mesh.axes()) axes.insert(axes.begin() + rng.between(0, static_cast<int>(axes.size())), axis.name);
  axes.resize(static_cast<std::size_t>(rng.between(1, static_cast<int>(axes.size()))));
  int group = 1;
  for (const std::string& name : axes) group *= pod.mesh.axis(name)->size;
  const auto kind = static_cast<CollectiveKind>(rng.below(collective_kind_count));
  const DType dtype = rng.below(2) == 0 ? DType::f32 : DType::bf16;
  const bool blocks = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_to_all;
  const Bytes bytes = rng.between(1, 9) * (blocks ? group : 1) * size_of(dtype);
  CollectiveDetails details{rng.between(0, group - 1), {}};
  if (rng.below(2) == 0) {
    details.pairs = shift_pairs(group, rng.between(-group, group));
  } else {
    for (std::int64_t from = 0; from < group; ++from)
      if (rng.below(3) > 0) details.pairs.push_back({from, (from * (group % 2 == 0 ? group - 1 : 2) + 1) % group});
    if (details.pairs.empty()) details.pairs.push_back({0, group - 1});
  }
  return {pod, kind, axes, bytes, dtype, details, rng.between(1, 12), group};
}

std::string describe(std::uint64_t seed, const DeliveryCase& c, std::string_view algorithm) {
  std::string text = "seed " + std::to_string(seed) + " " + std::string{algorithm} + " " + std::string{name_of(c.kind)} + " on " + to_text(c.pod.mesh) + " over";
  for (const std::string& axis : c.axes) text += " " + axis + (c.pod.mesh.wraps(*c.pod.mesh.axis(axis)) ? "" : "(open)");
  return text + " " + std::to_string(c.bytes.count()) + " B";
}

std::vector<CollectiveAxis> along(const DeliveryCase& c) {
  std::vector<CollectiveAxis> axes;
  for (const std::string& name : c.axes) {
    const AxisView axis = *c.pod.mesh.axis(name);
    axes.push_back({axis.size, c.pod.mesh.wraps(axis) ? AxisLinks::ring : AxisLinks::line, true});
  }
  return axes;
}

/// applies() looks at axes, not at the dimensions under them.
bool folds(const DeliveryCase& c) {
  return std::ranges::any_of(c.pod.mesh.axes(), [](const MeshAxis& axis) { return !axis.factors.empty(); });
}

TEST(Collectives, DeliverTheirPostconditionWithoutRacesInEveryOrder) {
  int cases = 0;
  std::map<std::pair<std::string_view, CollectiveKind>, int> seen;
  std::set<std::string_view> several;
  for (std::uint64_t seed = 0; seed < test::cases(400U, 80U); ++seed) {
    const DeliveryCase c = random_case(seed);
    for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) {
      const auto schedule = testing::try_collective(c.pod, c.kind, c.axes, c.bytes, entry.name, c.details, in_chunks(c.chunks), c.dtype);
      EXPECT_TRUE(!schedule || folds(c) || applies(entry, c.kind, along(c))) << describe(seed, c, entry.name);
      if (!schedule) continue;  // what does not apply says so: tested elsewhere
      SCOPED_TRACE(describe(seed, c, entry.name));
      CheckOptions options;
      options.threads = 1;
      const auto report = check(*schedule, options);
      ASSERT_TRUE(report) << to_text(report.error());
      ASSERT_TRUE(report->ok) << to_text(report->problems) << to_text(*schedule);
      ASSERT_TRUE(report->matched && report->race_free && report->deadlock_free);
      for (const Program& program : schedule->programs) {  // in a printed schedule one name for two buffers looks like a race
        std::set<std::string> names;
        for (const Buffer& buffer : program.buffers) EXPECT_TRUE(names.insert(buffer.name).second) << buffer.name;
      }
      if (c.group > 1) ++seen[{entry.name, c.kind}];
      if (c.axes.size() > 1) several.insert(entry.name);
      ++cases;
    }
  }
  EXPECT_GE(cases, test::cases(300, 60));
  RecordProperty("cases", cases);
  if (test::sanitized) return;
  // Nothing is left out because it always failed to apply.
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms())
    for (int k = 0; k < collective_kind_count; ++k) {
      const auto kind = static_cast<CollectiveKind>(k);
      EXPECT_EQ((seen[{entry.name, kind}] >= 2), entry.kinds.has(kind)) << entry.name << " " << name_of(kind);
    }
  EXPECT_EQ(several.size(), collective_algorithms().size());
}

/// Collectives in the middle of a program: on blocks of wider buffers, from scratch, in place, one after the other.
TEST(Collectives, ChainedInOneProgramTheyHandDataOnInEveryOrder) {
  using enum CollectiveKind;
  for (const bool wraps : {true, false})
    for (const std::vector<int>& extents : {std::vector<int>{4}, {3, 2}, {4, 3}, {2, 2, 3}})
      for (const CollectiveKind middle : {all_reduce, all_to_all, permute}) {
        const SmallSystem pod = small_system(ideal_machine(), extents, wraps);
        std::vector<AxisView> axes;
        for (std::size_t a = 0; a < extents.size(); ++a) axes.push_back(pod.mesh.whole(static_cast<int>(a)));
        const std::int64_t P = pod.mesh.devices();
        auto schedule = *collective_schedule(pod.mesh, middle, axes, Bytes{P * 3 * 4}, DType::f32);
        Program& program = schedule.programs.front();
        // input -> permute to scratch -> the middle in place -> permute back; permutes by 1 and -1 around the devices.
        Collective forth = std::get<Collective>(program.tasks.front().op), there = forth, back = forth;
        program.buffers.push_back({"held", program.buffers[0].extents, DType::f32, Role::scratch, {}, {}});
        forth.kind = back.kind = permute;
        forth.pairs = shift_pairs(P, 1), back.pairs = shift_pairs(P, -1);
        forth.output.buffer = there.input.buffer = there.output.buffer = back.input.buffer = BufferId{2};
        program.tasks = {{"forth", forth, {}, {}, {}}, {"middle", there, {{TaskId{0}}}, {}, {}}, {"back", back, {{TaskId{1}}}, {}, {}}};
        if (middle != all_reduce) schedule.computes = std::monostate{};  // moved coordinates change what is computed; orders are compared
        const auto lowered = lower(schedule, ring_or_line());
        ASSERT_TRUE(lowered) << to_text(lowered.error());
        const auto report = check(*lowered, {});
        ASSERT_TRUE(report) << to_text(report.error());
        EXPECT_TRUE(report->race_free && report->bit_equal) << name_of(middle) << " " << to_text(pod.mesh) << to_text(report->problems) << to_text(*lowered);
      }
}

}  // namespace
}  // namespace podsim
