// The oracle itself: definitions of products and collectives, what they ask of the buffers, and the count behind the bf16 tolerance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "sim/engine/numeric/collective_reference.hpp"
#include "sim/engine/numeric/hand_built_test.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/schedule/source_module.hpp"

namespace podsim {
namespace {

using namespace hand_built;
using Arrays = std::vector<std::vector<double>>;

/// One device that multiplies whole tensors as `product` says.
Schedule direct_product(const Product& product) {
  Schedule schedule{"direct", Mesh{}, {}, Products{product}};
  const auto stored = [](bool transposed, std::int64_t rows, std::int64_t cols) {
    return transposed ? std::vector<std::int64_t>{cols, rows} : std::vector<std::int64_t>{rows, cols};
  };
  Program program{
      every_device(schedule.mesh),
      {input(product.left, stored(product.transpose_left, product.m, product.k), {{}, {}}),
       input(product.right, stored(product.transpose_right, product.k, product.n), {{}, {}}), output(product.out, {product.m, product.n}, {{}, {}})},
      {}};
  add(program, "product",
      Matmul{whole(program, 0), whole(program, 1), whole(program, 2), 1, 1, 1, product.transpose_left, product.transpose_right, false});
  schedule.programs.push_back(program);
  return schedule;
}

std::string error_of(const Schedule& schedule, const NumericOptions& options = {}) {
  const Expected<Reference> reference = Reference::make(schedule, options);
  return reference ? "none" : to_text(reference.error());
}

TEST(Reference, KnowsTransposedProductsOnAnyNumberOfThreads) {
  for (const bool left : {false, true})
    for (const bool right : {false, true})
      for (const int threads : {1, 3}) {
        const Schedule schedule = direct_product({"Y", "A", "B", 7, 5, 11, left, right});
        const Expected<Tensors> tensors = make_numeric_engine({})->run(schedule);
        ASSERT_TRUE(tensors);
        EXPECT_TRUE(Reference::make(schedule, {.threads = threads})->compare(*tensors).bit_equal) << left << right;
      }
}

TEST(Reference, FindsTheWorstElement) {
  const Schedule schedule = direct_product({"Y", "X", "W", 3, 4, 5, false, false});
  Tensors tensors = *make_numeric_engine({})->run(schedule);
  const Expected<Reference> reference = Reference::make(schedule, {});
  const float right = tensors.values[0][2][7];
  tensors.values[0][2][6] += 1;
  tensors.values[0][2][7] += 2;
  const Comparison comparison = reference->compare(tensors);
  EXPECT_FALSE(comparison.bit_equal);
  EXPECT_EQ(comparison.max_abs_error, 2);
  double largest = 0;
  tensors.values[0][2][6] -= 1, tensors.values[0][2][7] -= 2;
  for (const float value : tensors.values[0][2]) largest = std::max(largest, std::abs(static_cast<double>(value)));
  EXPECT_DOUBLE_EQ(comparison.max_rel_error, 2 / largest);
  ASSERT_TRUE(comparison.worst);
  EXPECT_EQ(comparison.worst->index, 7);
  EXPECT_EQ(comparison.worst->expected, static_cast<double>(right));
}

TEST(Reference, MeasuresEachOfSeveralProductsByItself) {
  Schedule schedule = direct_product({"Y", "X", "W", 3, 4, 5, false, false});
  Program& program = schedule.programs[0];
  program.buffers.push_back(output("Z", {1, 1}, {{}, {}}));
  program.buffers.push_back(input("V", {1, 1}, {{}, {}}));
  std::get<Products>(schedule.computes).push_back({"Z", "V", "V", 1, 1, 1, false, false});
  Tensors tensors = *make_numeric_engine({})->run(schedule);
  const double v = static_cast<double>(tensors.values[0][4][0]);
  tensors.values[0][3][0] = static_cast<float>(v * v) + 1;
  const Comparison comparison = Reference::make(schedule, {})->compare(tensors);
  EXPECT_EQ(comparison.max_abs_error, 1);
  EXPECT_DOUBLE_EQ(comparison.max_rel_error, 1 / (v * v)) << "however large Y is";
  ASSERT_TRUE(comparison.worst);
  EXPECT_EQ(comparison.worst->buffer, BufferId{3});
}

TEST(Reference, NamesWhatIsMissing) {
  Schedule schedule = direct_product({"Y", "X", "W", 3, 4, 5, false, false});
  schedule.computes = {};
  EXPECT_EQ(error_of(schedule), "the schedule does not say what it computes");
  schedule.computes = Products{{"Y", "X", "V", 3, 4, 5, false, false}};
  EXPECT_EQ(error_of(schedule), "no input buffer holds \"V\", the right operand of the product");
  schedule.computes = Products{{"Z", "X", "W", 3, 4, 5, false, false}};
  EXPECT_EQ(error_of(schedule), "no output buffer holds \"Z\", the result of the product");
  schedule.computes = Products{{"Y", "X", "W", 3, 4, 6, false, false}};
  EXPECT_EQ(error_of(schedule), "buffer \"X\" shards a tensor of 15 elements; the left operand of the product has 18");
  schedule.computes = Products{{"Y", "X", "W", 3, 4, 5, false, false}};
  EXPECT_EQ(error_of(schedule), "none");
  EXPECT_EQ(error_of(schedule, {.max_bytes = Bytes{100}}), "the reference result needs 376 B of memory; the limit is 100 B");
}

TEST(Reference, AsksForTheWholeResult) {
  // Two devices shard Y, only one of them runs.
  Schedule schedule{"half", mesh_of({{"x", 2, true}}), {}, Products{{"Y", "X", "W", 4, 1, 1, false, false}}};
  const AxisView x = schedule.mesh.whole(0);
  Program program{{{{1, 2}}}, {input("X", {4, 1}, {{}, {}}), input("W", {1, 1}, {{}, {}}), output("Y", {2, 1}, {{x}, {}})}, {}};
  schedule.programs.push_back(program);
  EXPECT_EQ(error_of(schedule), "no device holds element 0 of the result \"Y\"");
}

TEST(Reference, CollectivesReadInputsAndWriteWhatIsKept) {
  Schedule schedule = ring_all_gather(3, 2);
  schedule.programs[0].buffers[1] = scratch("Y", {6, 3});
  EXPECT_EQ(error_of(schedule), "the collective's output \"Y\" is a scratch buffer");
  schedule = ring_all_gather(3, 2);
  schedule.programs[0].buffers[0].role = Role::output;
  EXPECT_EQ(error_of(schedule), "the collective's input \"X\" is not an input buffer");
}

TEST(Reference, CollectivesGroupDevicesAlongTheirAxesFirstMostSignificant) {
  // Over (c, r) of a 2x3 mesh all devices are one group, in column-major order; over r there are three groups.
  Schedule schedule{"gather", mesh_of({{"r", 2, true}, {"c", 3, true}}), {}, {}};
  const AxisView r = schedule.mesh.whole(0), c = schedule.mesh.whole(1);
  Program program{every_device(schedule.mesh), {input("X", {1}, {{r, c}}), output("Y", {6}, {{}}), output("Z", {2}, {{}})}, {}};
  schedule.programs.push_back(program);
  for (const bool both : {true, false}) {
    const int buffer = both ? 1 : 2;
    schedule.computes =
        Collective{CollectiveKind::all_gather, both ? std::vector{c, r} : std::vector{r}, whole(program, 0), whole(program, buffer), 0, 0, 0};
    Tensors tensors = *make_numeric_engine({.filling = Filling::uniform})->run(schedule);
    for (std::size_t d = 0; d < 6; ++d)
      for (std::size_t i = 0; i < (both ? 6U : 2U); ++i)
        tensors.values[d][static_cast<std::size_t>(buffer)][i] = tensors.values[both ? 3 * (i % 2) + i / 2 : 3 * i + d % 3][0][0];
    const Expected<Reference> reference = Reference::make(schedule, {.filling = Filling::uniform});
    ASSERT_TRUE(reference) << to_text(reference.error());
    EXPECT_TRUE(reference->compare(tensors).bit_equal) << both;
  }
}

/// A collective of 2 positions on regions of these lengths.
Collective on_two(CollectiveKind kind, std::vector<std::int64_t> in, std::vector<std::int64_t> out, int dim = 0, int split_dim = 0,
                  std::int64_t root = 0) {
  Collective collective{kind, {}, {}, {}, dim, split_dim, root};
  for (const std::int64_t length : in) collective.input.dims.push_back(all(length));
  for (const std::int64_t length : out) collective.output.dims.push_back(all(length));
  return collective;
}

TEST(CollectiveDefinition, AllGatherConcatenatesAlongItsDimension) {
  const Arrays inputs{{1, 2, 3, 4}, {5, 6, 7, 8}};
  EXPECT_EQ(outputs_of(on_two(CollectiveKind::all_gather, {2, 2}, {4, 2}, 0), inputs)->arrays, (Arrays{{1, 2, 3, 4, 5, 6, 7, 8}}));
  EXPECT_EQ(outputs_of(on_two(CollectiveKind::all_gather, {2, 2}, {2, 4}, 1), inputs)->arrays, (Arrays{{1, 2, 5, 6, 3, 4, 7, 8}}));
}

TEST(CollectiveDefinition, ReduceScatterGivesEachItsBlockOfTheSum) {
  const Arrays inputs{{1, 2, 3, 4}, {10, 20, 30, 40}};
  EXPECT_EQ(outputs_of(on_two(CollectiveKind::reduce_scatter, {2, 2}, {1, 2}, 0), inputs)->arrays, (Arrays{{11, 22}, {33, 44}}));
  EXPECT_EQ(outputs_of(on_two(CollectiveKind::reduce_scatter, {2, 2}, {2}, 1), inputs)->arrays, (Arrays{{11, 33}, {22, 44}}));
}

TEST(CollectiveDefinition, AllToAllTransposesBlocks) {
  const Arrays inputs{{1, 2, 3, 4}, {5, 6, 7, 8}};
  EXPECT_EQ(outputs_of(on_two(CollectiveKind::all_to_all, {4}, {4}), inputs)->arrays, (Arrays{{1, 2, 5, 6}, {3, 4, 7, 8}}));
  EXPECT_EQ(outputs_of(on_two(CollectiveKind::all_to_all, {2, 2}, {2, 2}, 0, 1), inputs)->arrays, (Arrays{{1, 3, 5, 7}, {2, 4, 6, 8}}));
  EXPECT_EQ(to_text(outputs_of(on_two(CollectiveKind::all_to_all, {3}, {3}), inputs).error()),
            "all-to-all: dimension 0 of the input does not divide into 2 blocks");
}

TEST(CollectiveDefinition, RootedAndReducingKinds) {
  const Arrays inputs{{1, 2}, {10, 20}};
  EXPECT_EQ(outputs_of(on_two(CollectiveKind::all_reduce, {2}, {2}), inputs)->arrays, (Arrays{{11, 22}}));
  EXPECT_EQ(outputs_of(on_two(CollectiveKind::broadcast, {2}, {2}, 0, 0, 1), inputs)->arrays, (Arrays{{10, 20}}));
  const Expected<CollectiveOutputs> reduced = outputs_of(on_two(CollectiveKind::reduce, {2}, {2}, 0, 0, 1), inputs);
  EXPECT_EQ(reduced->arrays, (Arrays{{11, 22}}));
  EXPECT_FALSE(reduced->array_of[0]) << "only the root has a result";
  EXPECT_EQ(reduced->array_of[1], 0U);
}

TEST(CollectiveDefinition, PermuteFollowsItsPairs) {
  Collective collective = on_two(CollectiveKind::permute, {2}, {2});
  collective.pairs = {{1, 0}};
  const Expected<CollectiveOutputs> permuted = outputs_of(collective, {{1, 2}, {10, 20}});
  EXPECT_EQ(permuted->arrays, (Arrays{{10, 20}}));
  EXPECT_EQ(permuted->array_of[0], 0U);
  EXPECT_FALSE(permuted->array_of[1]) << "nobody sends to it";
}

TEST(StoresOfPartialSums, CountsRoundingsAlongTheWay) {
  EXPECT_EQ(stores_of_partial_sums(ring_all_gather(5, 2)), 0) << "copies are exact";
  EXPECT_EQ(stores_of_partial_sums(ring_reduce_scatter(5, 2)), 4) << "each block is added to on 4 devices, though every buffer 4 times as well";
  EXPECT_EQ(stores_of_partial_sums(sliced_product(2, {4, 4, 24}, 3, 2)), 3);
  // A buffer that is used again starts again where a store covers it.
  Schedule schedule = direct_product({"Y", "X", "W", 2, 2, 2, false, false});
  Program& program = schedule.programs[0];
  add(program, "product again", program.tasks[0].op, {0});
  add(program, "scale in place", Local{LocalKind::scale, {whole(program, 2)}, {whole(program, 2)}, 1, Unit::core}, {1});
  const int again = add(program, "and again", program.tasks[0].op, {2});
  add(program, "scale again", program.tasks[2].op, {again});
  EXPECT_EQ(stores_of_partial_sums(schedule), 2);
}

/// A module whose result is a number, or another one where roundings are.
class OfTwoResults final : public SourceModule {
 public:
  OfTwoResults(double value, double rounded) : value_{value}, rounded_{rounded} {}
  Status execute(int, DeviceId, std::span<const Values>, std::span<Values>) const override { return success(); }
  Expected<Results> results(const std::vector<std::vector<Values>>& inputs, std::optional<Roundings> roundings, Cancellation) const override {
    return Results{std::vector<std::vector<Values>>(inputs.size(), {{8, roundings ? rounded_ : value_}}), false};
  }

 private:
  double value_, rounded_;
};

TEST(Reference, ANumberThatRoundingsMakeANaNIsExpectedWithinNoTolerance) {
  const auto tolerance = [](double value, double rounded) {
    Schedule schedule{"module", Mesh{}, {}, SourceResults{}};
    schedule.programs.push_back({every_device(schedule.mesh), {output("Y", {2}, {{}})}, {}});
    schedule.source = std::make_shared<const OfTwoResults>(value, rounded);
    const Expected<Reference> reference = Reference::make(schedule, {});
    EXPECT_TRUE(reference) << to_text(reference.error());
    return reference ? reference->widest_tolerance() : -1;
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(tolerance(4, 4), 1e-5);
  EXPECT_EQ(tolerance(4, 4.5), 0.5) << "room for 8 times what one trial shows, of the largest value";
  EXPECT_EQ(tolerance(4, nan), infinite);
  EXPECT_EQ(tolerance(nan, 4), infinite);
  EXPECT_EQ(tolerance(infinite, nan), infinite);
  EXPECT_EQ(tolerance(4, infinite), infinite);
  EXPECT_EQ(tolerance(nan, nan), 1e-5) << "whatever the roundings";
  EXPECT_EQ(tolerance(infinite, infinite), 1e-5);
}

}  // namespace
}  // namespace podsim
