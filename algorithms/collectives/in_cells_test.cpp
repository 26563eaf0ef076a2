// Algorithms along the dimensions under an axis that is laid over them in another order.
#include <numeric>

#include "algorithms/collectives/axis_cells.hpp"
#include "algorithms/collectives/testing.hpp"
#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/schedule/text.hpp"

namespace podsim::in_cells_tests {
namespace {

using enum CollectiveKind;
using testing::SmallSystem;

CollectiveChooser rotated_in(const AxisCells& cells) {
  return [cells](const Schedule& schedule, const Program& program, const Collective& collective) -> Expected<CollectiveAlgorithm> {
    const auto rotations = (*always("rotations"))(schedule, program, collective);
    if (!rotations) return rotations.error();
    return CollectiveAlgorithm{[cells, algorithm = *rotations](const Mesh& mesh, const Program& of, const Collective& one) { return in_cells(mesh, of, one, cells, algorithm); }};
  };
}

int devices_of(const AxisCells& cells) {
  return std::accumulate(cells.dimensions.begin(), cells.dimensions.end(), 1, [](int product, const MeshFactor& factor) { return product * factor.size; });
}

AxisCells shuffled(Rng& rng, std::vector<MeshFactor> dimensions) {
  AxisCells cells{std::move(dimensions), {}};
  cells.cell.resize(static_cast<std::size_t>(devices_of(cells)));
  std::iota(cells.cell.begin(), cells.cell.end(), 0);
  for (std::size_t c = cells.cell.size(); c-- > 1;) std::swap(cells.cell[c], cells.cell[rng.below(c + 1)]);
  return cells;
}

TEST(InCells, DeliversWithoutRacesInEveryOrderOfDevices) {
  const std::vector<std::vector<MeshFactor>> boxes{{{2, true}, {2, true}}, {{2, true}, {4, false}}, {{3, true}, {4, true}}, {{4, false}, {4, false}}, {{2, true}, {2, true}, {3, false}}};
  for (std::uint64_t seed = 0; seed < test::cases(60U, 15U); ++seed) {
    Rng rng{seed};
    const AxisCells cells = shuffled(rng, boxes[rng.below(boxes.size())]);
    const int P = devices_of(cells);
    std::vector<MeshAxis> axes{{"x", P, rng.below(2) == 0}};
    if (rng.below(2) == 0) axes.insert(axes.begin() + rng.between(0, 1), MeshAxis{"y", 2, true});
    const Mesh mesh = *Mesh::make(axes);
    const CollectiveKind kind = std::vector{all_gather, reduce_scatter, all_reduce, all_to_all}[rng.below(4)];
    const DType dtype = rng.below(2) == 0 ? DType::f32 : DType::bf16;
    const auto schedule = collective_schedule(mesh, kind, {*mesh.axis("x")}, rng.between(1, 9) * P * size_of(dtype), dtype);
    ASSERT_TRUE(schedule) << to_text(schedule.error());
    const auto lowered = lower(*schedule, rotated_in(cells));
    SCOPED_TRACE("seed " + std::to_string(seed) + " " + std::string{name_of(kind)} + " on " + to_text(mesh));
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    CheckOptions options;
    options.threads = 1;
    const auto report = check(*lowered, options);
    ASSERT_TRUE(report) << to_text(report.error());
    ASSERT_TRUE(report->ok && report->matched && report->race_free && report->deadlock_free) << to_text(report->problems) << to_text(*lowered);
  }
}

/// The ring that JAX lays through 4x4 chips, as cells of rows of four.
const std::vector<int> ring_of_16{0, 4, 8, 12, 13, 9, 5, 6, 10, 14, 15, 11, 7, 3, 2, 1};

TEST(InCells, IsAsFastAsOnTheFoldedAxisWhateverTheOrder) {
  for (const bool wraps : {false, true}) {
    const SmallSystem folded = testing::small_system(testing::overhead_machine(), {4, 4}, wraps, {{"x", 16}});
    ASSERT_EQ(folded.mesh.factors(0).size(), 2U);
    const AxisCells cells{folded.mesh.axes().front().factors, ring_of_16};
    SmallSystem laid = folded;
    laid.mesh = *Mesh::make({{"x", 16, true}});
    for (std::size_t c = 0; c < 16; ++c) laid.placement.chip_of[c] = ChipId{ring_of_16[c]};
    for (const CollectiveKind kind : {all_gather, reduce_scatter, all_reduce, all_to_all}) {
      const Bytes bytes{16 * 1024 * 4};
      const Schedule row_major = testing::lowered_collective(folded, kind, {"x"}, bytes, "rotations");
      const auto renamed = lower(*collective_schedule(laid.mesh, kind, {laid.mesh.whole(0)}, bytes, DType::f32), rotated_in(cells));
      ASSERT_TRUE(renamed) << to_text(renamed.error());
      for (const std::string_view engine : {"des", "simgrid"})
        EXPECT_NEAR(testing::seconds_of(laid, *renamed, engine), testing::seconds_of(folded, row_major, engine), 1e-10) << name_of(kind) << (wraps ? "" : " (open) ") << engine;
    }
  }
}

TEST(InCells, RefusesWhatItCannotRename) {
  const Mesh mesh = *Mesh::make({{"x", 4, true}, {"y", 4, true}});
  const AxisCells cells{{{2, true}, {2, true}}, {0, 1, 3, 2}};
  const auto refusal = [&](CollectiveKind kind, const std::vector<AxisView>& axes) {
    const auto lowered = lower(*collective_schedule(mesh, kind, axes, Bytes{16 * 4}, DType::f32), rotated_in(cells));
    return lowered ? std::string{} : lowered.error().message;
  };
  EXPECT_EQ(refusal(all_reduce, {mesh.whole(0)}), "");
  EXPECT_EQ(refusal(broadcast, {mesh.whole(0)}), "task 0 \"broadcast\": `an algorithm in cells` does all-gather, reduce-scatter, all-reduce and all-to-all, not broadcast");
  EXPECT_NE(refusal(all_reduce, {mesh.whole(0), mesh.whole(1)}), "");
  EXPECT_EQ(refusal(all_reduce, {mesh.factor(0, {2, 2}, 0)}), "task 0 \"all-reduce\": expected the whole of an axis of 4 devices, found x/2:2");
}

}  // namespace
}  // namespace podsim::in_cells_tests
