// GEMMs on parts of a mesh: two of them by different algorithms beside each other in one schedule, each on its half.
#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {
namespace {

using testing::small_system;
using testing::SmallSystem;

/// Rows 0..3 or 4..7 of row=8,col=4.
Submesh half_of(const Mesh& mesh, int half) {
  const AxisView rows = mesh.factor(0, {2, 4}, 1), which = mesh.factor(0, {2, 4}, 0);
  const auto submesh = submesh_of(mesh, rows, mesh.whole(1), devices_where(mesh, {{own(which), half, half + 1}}));
  EXPECT_TRUE(submesh) << to_text(submesh.error());
  return *submesh;
}

struct Product {
  std::string_view algorithm;
  Dataflow dataflow;
};

/// The product on a submesh (of several axes, a one-axis algorithm takes the columns), its tensors called X0, W0, Y0 or X1, W1, Y1.
Expected<Schedule> on(const Submesh& submesh, const Product& product, int number) {
  const GemmAlgorithmEntry& entry = **gemm_algorithm(product.algorithm);
  Submesh used = submesh;
  if (entry.mesh != MeshUse::row_col) used.rows = one_device;
  GemmOptions options;
  if (entry.needs_slice_count) options.slice_count = 2;
  options.block = 2;
  const auto multiples = required_multiples(entry, used, product.dataflow, options);
  if (!multiples) return multiples.error();
  const GemmProblem problem{multiples->m * (2 + number), multiples->n * 3, multiples->k * 2, DType::f32, product.dataflow};
  const std::string suffix = std::to_string(number);
  return make_layer(entry, used, problem, Pass::forward, options, {"X" + suffix, "W" + suffix, "Y" + suffix});
}

Schedule lowered_in_two(const Expected<Schedule>& schedule) {
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  const auto result = lower(*schedule, ring_or_line(in_chunks(2)));
  EXPECT_TRUE(result) << to_text(result.error());
  return *result;
}

/// Every algorithm beside the next one of the list, in dataflows that differ.
std::vector<std::pair<Product, Product>> pairs_of(const std::vector<std::string_view>& names) {
  std::vector<std::pair<Product, Product>> pairs;
  const auto dataflow_of = [](std::string_view name, std::size_t i) {
    return (*gemm_algorithm(name))->only.value_or(all_dataflows[i % all_dataflows.size()]);
  };
  for (std::size_t flow = 0; flow < all_dataflows.size(); ++flow)
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string_view next = names[(i + 1) % names.size()];
      pairs.push_back({{names[i], dataflow_of(names[i], flow + i)}, {next, dataflow_of(next, flow + i + 1)}});
    }
  return pairs;
}

/// Proven by the numeric engine, timed by all others, folded and not.
void expect_right_and_agreed(const SmallSystem& pod, const std::vector<std::string_view>& names) {
  testing::Agreement agreement;
  testing::Folds folds;
  for (const auto& [first, second] : pairs_of(names)) {
    SCOPED_TRACE(std::string{first.algorithm} + " " + std::string{name_of(first.dataflow)} + " beside " + std::string{second.algorithm} + " " +
                 std::string{name_of(second.dataflow)});
    const auto zero = on(half_of(pod.mesh, 0), first, 0), one = on(half_of(pod.mesh, 1), second, 1);
    ASSERT_TRUE(zero) << to_text(zero.error());
    ASSERT_TRUE(one) << to_text(one.error());
    const Schedule both = lowered_in_two(side_by_side("two halves", {*zero, *one}));
    ASSERT_EQ(both.programs.size(), 2u);
    const auto report = check(both, {});
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok && report->bit_equal) << to_text(report->problems);

    const auto model = testing::model_of(pod, both);
    ASSERT_TRUE(model) << to_text(model.error());
    ASSERT_TRUE(testing::engines_agree(*model, 1e-6, agreement));
    ASSERT_TRUE(testing::folding_changes_nothing(both, testing::world_of(pod), folds));
    const auto des = testing::run(pod, both, "des"), analytic = testing::run(pod, both, "analytic");
    ASSERT_TRUE(des && analytic);
    EXPECT_LE(analytic->makespan, des->makespan);
  }
  EXPECT_EQ(agreement.compared, static_cast<int>(3 * names.size()));
}

// Half of a torus is open along the axis that is halved: collectives there run as lines, and what goes round goes back over the half.
TEST(GemmOnSubmesh, HalvesOfATorusComputeTwoProductsAtOnce) {
  expect_right_and_agreed(small_system(testing::overhead_machine(), {8, 4}),
                          {"collective", "meshslice", "summa", "1d-fsdp", "1d-os", "wang", "cannon", "jax-rs-bidirectional"});
}

// Rows fold two dimensions, 2 x 4: each half is a 4x4 torus, where every algorithm applies.
TEST(GemmOnSubmesh, HalvesThatAreToriComputeTwoProductsAtOnce) {
  expect_right_and_agreed(small_system(testing::overhead_machine(), {2, 4, 4}, true, {{"row", 8}, {"col", 4}}),
                          {"cannon", "wang", "meshslice", "summa", "collective", "jax-rs-bidirectional", "tp-ag-overlapped", "1d-megatron"});
}

TEST(GemmOnSubmesh, AHalfThatIsATorusTakesTheTimeOfATorusOfItsOwn) {
  const SmallSystem pod = small_system(testing::overhead_machine(), {2, 4, 4}, true, {{"row", 8}, {"col", 4}}),
            own = small_system(testing::overhead_machine(), {4, 4});
  const Submesh whole = *submesh_of(own.mesh, own.mesh.whole(0), own.mesh.whole(1));
  for (const Dataflow dataflow : all_dataflows)
    for (const std::string_view name : {"collective", "meshslice", "summa", "cannon", "wang"}) {
      const Product product{name, dataflow}, other{"collective", Dataflow::os};
      const auto time = [](const SmallSystem& where, const Schedule& schedule) { return testing::run(where, schedule, "des")->makespan; };
      const auto uncontended = time(own, lowered_in_two(on(whole, product, 1)));
      EXPECT_EQ(time(pod, lowered_in_two(on(half_of(pod.mesh, 1), product, 1))), uncontended) << name;
      const auto beside = time(own, lowered_in_two(on(whole, other, 0)));
      EXPECT_EQ(time(pod, lowered_in_two(side_by_side("", {*on(half_of(pod.mesh, 0), other, 0), *on(half_of(pod.mesh, 1), product, 1)}))),
                std::max(uncontended, beside))
          << name;
    }
}

// Without the devices of one half, both halves compute the same product, each by itself.
TEST(GemmOnSubmesh, AllGroupsComputeTheSame) {
  const SmallSystem pod = small_system(testing::ideal_machine(), {2, 4, 4}, true, {{"row", 8}, {"col", 4}});
  const auto both = submesh_of(pod.mesh, pod.mesh.factor(0, {2, 4}, 1), pod.mesh.whole(1));
  ASSERT_TRUE(both);
  EXPECT_EQ(to_text(*both), "row/1:4=4,col=4 of row=8,col=4");
  for (const Dataflow dataflow : all_dataflows) {
    const Schedule schedule = lowered_in_two(on(*both, {"wang", dataflow}, 0)), half = lowered_in_two(on(half_of(pod.mesh, 0), {"wang", dataflow}, 0));
    const auto report = check(schedule, {});
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok) << to_text(report->problems);
    EXPECT_EQ(testing::run(pod, schedule, "des")->makespan, testing::run(pod, half, "des")->makespan);
  }
}

// Axes in any order and of any name: rows along the last axis of three, columns along the first.
TEST(GemmOnSubmesh, RowsAndColumnsAreAnyAxes) {
  const SmallSystem pod = small_system(testing::ideal_machine(), {3, 2, 4}, true, {{"u", 3}, {"v", 2}, {"w", 4}}),
            own = small_system(testing::ideal_machine(), {4, 3});
  const Submesh any = *submesh_of(pod.mesh, *pod.mesh.axis("w"), *pod.mesh.axis("u"));
  const Submesh whole = *submesh_of(own.mesh, own.mesh.whole(0), own.mesh.whole(1));
  for (const Dataflow dataflow : all_dataflows)
    for (const std::string_view name : {"collective", "meshslice", "summa", "wang"}) {
      const Schedule schedule = lowered_in_two(on(any, {name, dataflow}, 0));
      const auto report = check(schedule, {});
      ASSERT_TRUE(report) << to_text(report.error());
      EXPECT_TRUE(report->ok) << name << to_text(report->problems);
      EXPECT_EQ(testing::run(pod, schedule, "des")->makespan, testing::run(own, lowered_in_two(on(whole, {name, dataflow}, 0)), "des")->makespan) << name;
    }
}

TEST(GemmOnSubmesh, SaysWhatIsNoSubmesh) {
  const Mesh mesh = *Mesh::make({{"row", 8, true}, {"col", 4, true}});
  const auto error = [](const auto& result) { return result ? std::string{"none"} : to_text(result.error()); };
  EXPECT_EQ(error(submesh_of(mesh, mesh.whole(0), mesh.factor(0, {2, 4}, 1))), "rows row and columns row/1:4 share a coordinate");
  EXPECT_EQ(error(submesh_of(mesh, mesh.whole(0), {2, 1, 4})), "axis 2 with stride 1 and size 4 is no view of the mesh row=8,col=4");
  EXPECT_EQ(error(submesh_of(mesh, mesh.whole(0), mesh.whole(1), DeviceSet{{{0, 16}}})),
            "device 12 (row=3,col=0) is to work with device 16 (row=4,col=0), which is not among the devices");
  EXPECT_EQ(error(submesh_of(mesh, mesh.whole(0), mesh.whole(1), DeviceSet{})), "no devices");
  EXPECT_EQ(error(make_gemm(**gemm_algorithm("collective"), half_of(mesh, 0), {63, 64, 64}, {})),
            "m must be a positive multiple of 4 (collective os on row/1:4=4,col=4 of row=8,col=4), found 63; `pad` rounds it up");
  const Schedule zero = *on(half_of(mesh, 0), {"collective", Dataflow::os}, 0), again = *on(half_of(mesh, 0), {"collective", Dataflow::os}, 1),
                 same = *on(half_of(mesh, 1), {"collective", Dataflow::os}, 0);
  EXPECT_EQ(error(side_by_side("", {zero, again})), "\"collective os\": device 0 is busy already");
  EXPECT_EQ(error(side_by_side("", {zero, same})), "\"collective os\": there is a tensor W0 already");
  EXPECT_EQ(error(side_by_side("", {zero, *on(*submesh_of(*Mesh::make({{"row", 4}}), {0, 1, 4}, one_device), {"collective", Dataflow::os}, 1)})),
            "\"collective os\" is of the mesh row=4, not row=8,col=4");
}

}  // namespace
}  // namespace podsim
