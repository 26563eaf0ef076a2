#include "sim/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <set>

#include "sim/base/rng.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::part;

Mesh mesh_of(std::vector<MeshAxis> axes) { return *Mesh::make(std::move(axes)); }

// ---- Affine functions -----------------------------------------------------------------------------------------------------------------

TEST(Affine, AddsWeightedCoordinatesAndAConstant) {
  const Mesh mesh = mesh_of({{"row", 4, true}, {"col", 8, true}});
  const Affine affine{{{mesh.whole(0), 3}, {mesh.whole(1), -2}}, 5};
  EXPECT_EQ(evaluate(affine, {0, 0}), 5);
  EXPECT_EQ(evaluate(affine, {3, 0}), 14);
  EXPECT_EQ(evaluate(affine, {0, 7}), -9);
  EXPECT_EQ(evaluate(affine, {3, 7}), 0);
  EXPECT_EQ(evaluate(Affine{7}, {2, 2}), 7);
}

TEST(Affine, AModulusBringsNegativeValuesIntoRange) {
  const Mesh mesh = mesh_of({{"row", 4, true}});
  const Affine affine{{{mesh.whole(0), -1}}, 0, 4};
  EXPECT_EQ(evaluate(affine, {0}), 0);
  EXPECT_EQ(evaluate(affine, {1}), 3);
  EXPECT_EQ(evaluate(affine, {3}), 1);
  EXPECT_EQ(evaluate(Affine{{}, -8, 4}, {0}), 0);
  EXPECT_EQ(evaluate(Affine{{}, -9, 4}, {0}), 3);
  EXPECT_EQ(evaluate(Affine{{}, 9, 4}, {0}), 1);
  EXPECT_EQ(evaluate(Affine{{}, -9, 0}, {0}), -9) << "modulus 0 is none";
}

TEST(Affine, OwnIsTheCoordinateModuloTheAxisUnlessToldOtherwise) {
  const AxisView row = mesh_of({{"row", 4, true}}).whole(0);
  EXPECT_EQ(evaluate(own(row, 1), {3}), 0);
  EXPECT_EQ(evaluate(own(row, -1), {0}), 3);
  EXPECT_EQ(evaluate(own(row, 1, false), {3}), 4);
  EXPECT_EQ(evaluate(own(row, -1, false), {0}), -1);
}

TEST(Affine, EachTermGoesRoundItsOwnAxis) {
  // The place of the neighbour above and to the left, in a buffer of 3 x 4 blocks.
  const Mesh mesh = mesh_of({{"row", 3, true}, {"col", 4, true}});
  const Affine affine{{{mesh.whole(0), 4, 1}, {mesh.whole(1), 1, -1}}};
  EXPECT_EQ(evaluate(affine, {0, 0}), 4 + 3);
  EXPECT_EQ(evaluate(affine, {2, 0}), 0 + 3);
  EXPECT_EQ(evaluate(affine, {2, 3}), 0 + 2);
  EXPECT_EQ(evaluate(own(mesh.whole(1), 4 * 1000 + 1), {0, 3}), 0);
  EXPECT_EQ(evaluate(own(mesh.whole(1), -4 * 1000 - 1), {0, 0}), 3);
  EXPECT_EQ(evaluate(own(mesh.factor(1, {2, 2}, 0), 1), {0, 2}), 0) << "round the view, not the axis";
}

TEST(Affine, AFactorViewIsADigitOfTheCoordinate) {
  const Mesh mesh = mesh_of({{"row", 8, true}, {"col", 3, true}});
  const AxisView high = mesh.factor(0, {2, 2, 2}, 0), middle = mesh.factor(0, {2, 2, 2}, 1), low = mesh.factor(0, {2, 2, 2}, 2);
  for (int c = 0; c < 8; ++c) {
    const Coordinates at{c, 2};
    EXPECT_EQ(evaluate(own(high), at), c / 4);
    EXPECT_EQ(evaluate(own(middle), at), c / 2 % 2);
    EXPECT_EQ(evaluate(own(low), at), c % 2);
    EXPECT_EQ(evaluate(Affine{{{high, 4}, {middle, 2}, {low, 1}}}, at), c);
  }
  const AxisView six = mesh_of({{"x", 6, true}}).factor(0, {2, 3}, 1);  // coordinate modulo 3
  EXPECT_EQ(evaluate(own(six), {5}), 2);
}

// ---- Regions and boxes ----------------------------------------------------------------------------------------------------------------

TEST(Region, BeginsAtOffsetPlusIndexTimesStride) {
  const AxisView row = mesh_of({{"row", 4, true}}).whole(0);
  const Region region{BufferId{3}, {{own(row, 1), 10, 2, 5}, all(6), span(4, 2), block(own(row), 3), {own(row), -2, 9, 1}}};
  EXPECT_EQ(evaluate(region, {2}), (Box{BufferId{3}, {32, 0, 4, 6, 5}, {5, 6, 2, 3, 1}}));
  EXPECT_EQ(evaluate(region, {3}), (Box{BufferId{3}, {2, 0, 4, 9, 3}, {5, 6, 2, 3, 1}}));
  EXPECT_EQ(elements_of(region), 5 * 6 * 2 * 3);
  EXPECT_EQ(elements_of(Region{BufferId{0}, {}}), 1) << "a buffer without dimensions holds one element";
}

TEST(Box, OverlapNeedsACommonElementInEveryDimension) {
  const auto box = [](std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height, int buffer = 0) {
    return Box{BufferId{buffer}, {x, y}, {width, height}};
  };
  EXPECT_TRUE(overlap(box(0, 0, 4, 4), box(3, 3, 4, 4)));
  EXPECT_TRUE(overlap(box(3, 3, 4, 4), box(0, 0, 4, 4)));
  EXPECT_FALSE(overlap(box(0, 0, 4, 4), box(4, 0, 4, 4))) << "side by side";
  EXPECT_FALSE(overlap(box(0, 4, 4, 4), box(0, 0, 4, 4)));
  EXPECT_FALSE(overlap(box(0, 0, 4, 4), box(0, 0, 4, 4, 1))) << "another buffer";
  EXPECT_TRUE(overlap(box(0, 0, 9, 9), box(4, 4, 1, 1)));
}

TEST(Box, OverlapAndContainsAgreeWithElementByElement) {
  Rng rng{1};
  const auto random_box = [&] { return Box{BufferId{0}, {rng.between(0, 4), rng.between(0, 4)}, {rng.between(1, 3), rng.between(1, 3)}}; };
  const auto has = [](const Box& box, int x, int y) {
    return box.begin[0] <= x && x < box.begin[0] + box.length[0] && box.begin[1] <= y && y < box.begin[1] + box.length[1];
  };
  for (int i = 0; i < 500; ++i) {
    const Box a = random_box(), b = random_box();
    int both = 0, only_b = 0;
    for (int x = 0; x < 8; ++x)
      for (int y = 0; y < 8; ++y) both += has(a, x, y) && has(b, x, y), only_b += !has(a, x, y) && has(b, x, y);
    EXPECT_EQ(overlap(a, b), both > 0);
    EXPECT_EQ(contains(a, b), only_b == 0);
  }
  EXPECT_FALSE(contains(Box{BufferId{0}, {0}, {9}}, Box{BufferId{1}, {0}, {1}})) << "another buffer";
}

// ---- Guards ---------------------------------------------------------------------------------------------------------------------------

TEST(Guard, IsAConjunctionOfHalfOpenRanges) {
  const Mesh mesh = mesh_of({{"row", 4, true}, {"col", 4, true}});
  const Guard guard{{own(mesh.whole(0), 0, false), 1, 3}, {own(mesh.whole(1), 1), 0, 2}};  // row in {1, 2}, col + 1 modulo 4 in {0, 1}
  for (int row = 0; row < 4; ++row)
    for (int col = 0; col < 4; ++col) EXPECT_EQ(holds(guard, {row, col}), (row == 1 || row == 2) && (col == 3 || col == 0)) << row << "," << col;
  EXPECT_TRUE(holds({}, {0, 0})) << "no condition: always";
  EXPECT_FALSE(holds({{Affine{3}, 4, 4}}, {0, 0})) << "an empty range: never";
  EXPECT_FALSE(holds({{Affine{3}, 5, 1}}, {0, 0}));
}

// ---- Matmul ---------------------------------------------------------------------------------------------------------------------------

/// A region of zeros' places with these lengths; buffers do not matter here.
Region shaped(std::initializer_list<std::int64_t> lengths) {
  Region region{BufferId{0}, {}};
  for (const std::int64_t length : lengths) region.dims.push_back(all(length));
  return region;
}

TEST(Shift, WhoSendsToTheReceiverIsTheSender) {
  const Mesh mesh = *Mesh::make({{"x", 12, false, {{4, true}, {3, false}}}, {"y", 5, true}});
  std::vector<Shift> shifts;
  for (int by = -11; by < 12; ++by) {
    shifts.push_back(testing::shift(mesh.whole(0), by, {}, {}));
    shifts.push_back(shifts.back());
    shifts.back().by_dimension = true;
    shifts.push_back(testing::shift(mesh.factors(0)[1], {{{mesh.whole(1), 2}}, by}, {}, {}));  // as a coordinate on another axis says
  }
  for (const Shift& shift : shifts)
    for (int d = 0; d < mesh.devices(); ++d) EXPECT_EQ(sender_of(mesh, shift, receiver_of(mesh, shift, DeviceId{d})), DeviceId{d});
  const Shift turn{mesh.whole(0), 7, {}, {}, Combine::replace, {}, InSwitch::none, true};  // (2,1)
  EXPECT_EQ(receiver_of(mesh, turn, mesh.device({8, 3})), mesh.device({0, 3})) << "(2,2) + (2,1): both dimensions come round to 0";
}

TEST(Shift, GoesOffAnOpenAxisUnlessItGoesByDimension) {
  const Mesh mesh = *Mesh::make({{"x", 12, false, {{4, true}, {3, false}}}});
  Shift shift = testing::shift(mesh.whole(0), 2, {}, {});
  EXPECT_FALSE(leaves_axis(mesh, shift, {9}));
  EXPECT_TRUE(leaves_axis(mesh, shift, {10}));
  EXPECT_FALSE(leaves_axis(mesh, testing::shift(mesh.whole(0), 24, {}, {}), {10})) << "nothing moves";
  shift.by_dimension = true;
  EXPECT_FALSE(leaves_axis(mesh, shift, {10}));
}

TEST(Matmul, ExtentsComeFromTheGroupsOfOutAndLeft) {
  // m = 2*3 = 6, n = 5, k = 7*11 = 77.
  const Matmul plain{shaped({2, 3, 7, 11}), shaped({7, 11, 5}), shaped({2, 3, 5}), 2, 2, 2, false, false, false};
  EXPECT_EQ(extents_of(plain), (MatmulExtents{6, 5, 77}));
  const Matmul left_transposed{shaped({7, 11, 2, 3}), shaped({77, 5}), shaped({6, 5}), 2, 1, 1, true, false, false};
  EXPECT_EQ(extents_of(left_transposed), (MatmulExtents{6, 5, 77}));
  const Matmul right_transposed{shaped({6, 7, 11}), shaped({5, 77}), shaped({6, 5}), 1, 1, 1, false, true, false};
  EXPECT_EQ(extents_of(right_transposed), (MatmulExtents{6, 5, 77}));
  const Matmul both_transposed{shaped({77, 2, 3}), shaped({5, 7, 11}), shaped({2, 3, 5, 1}), 1, 1, 2, true, true, true};
  EXPECT_EQ(extents_of(both_transposed), (MatmulExtents{6, 5, 77}));
}

TEST(Matmul, AnEmptyGroupCountsOne) {
  const Matmul inner{shaped({9}), shaped({9}), shaped({}), 0, 1, 0, false, false, false};  // a dot product
  EXPECT_EQ(extents_of(inner), (MatmulExtents{1, 1, 9}));
  const Matmul outer{shaped({4}), shaped({6}), shaped({4, 6}), 1, 0, 1, false, false, false};
  EXPECT_EQ(extents_of(outer), (MatmulExtents{4, 6, 1}));
}

// ---- Tables and sizes -----------------------------------------------------------------------------------------------------------------

TEST(LocalTable, HasEveryKindAtItsOwnPlace) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < local_table.size(); ++i) {
    const LocalTraits& traits = local_table[i];
    EXPECT_EQ(static_cast<std::size_t>(traits.kind), i);
    EXPECT_EQ(&traits_of(traits.kind), &traits);
    names.insert(traits.name);
  }
  EXPECT_EQ(names.size(), local_table.size());
  EXPECT_EQ(traits_of(LocalKind::alias).cost, LocalCost::free);
  EXPECT_EQ(traits_of(LocalKind::join).cost, LocalCost::free);
}

/// [sequences, sequence, groups, heads, head], or rotated.
Region attention_shaped(std::int64_t heads, bool features_first) {
  return features_first ? shaped({3, heads, 16, 2, 8}) : shaped({2, 8, 3, heads, 16});
}

TEST(FlopsOf, AttentionAreTwoProductsPerScoreAndFiveInTheGradient) {
  constexpr double heads = 2 * 3 * 4, squares = 8 * 8, triangles = 8 * 9 / 2, head = 16;
  for (const bool features_first : {false, true})
    for (const bool causal : {false, true}) {
      const Region qkv = attention_shaped(6, features_first), o = attention_shaped(4, features_first);
      const double scores = heads * (causal ? triangles : squares);
      const LocalFlops forward = flops_of({LocalKind::attention, {qkv}, {o}, 1, Unit::core, features_first, causal});
      EXPECT_EQ(forward.matrix, Flops{2 * 2 * scores * head});
      EXPECT_EQ(forward.vector, Flops{6 * scores});
      const LocalFlops backward = flops_of({LocalKind::attention_grad, {o, qkv}, {qkv}, 1, Unit::core, features_first, causal});
      EXPECT_EQ(backward.matrix, Flops{5 * 2 * scores * head});
      EXPECT_EQ(backward.vector, Flops{11 * scores});
    }
}

TEST(FlopsOf, LargeAttentionDoesNotOverflow) {
  constexpr std::int64_t sequence = std::int64_t{1} << 40;
  const Region qkv = shaped({1, sequence, 1, 3, 128}), o = shaped({1, sequence, 1, 1, 128});
  EXPECT_EQ(flops_of({LocalKind::attention, {qkv}, {o}}).matrix, Flops{0x1p80 * 4 * 128});
}

TEST(FlopsOf, EverythingElseCountsTheElementsOfItsFirstRegion) {
  const Region x = shaped({4, 6}), sums = shaped({4, 2});
  const auto vector = [](LocalKind kind, std::vector<Region> reads, std::vector<Region> writes) {
    const LocalFlops flops = flops_of({kind, std::move(reads), std::move(writes), 6});
    EXPECT_EQ(flops.matrix, Flops{});
    return flops.vector.count();
  };
  EXPECT_EQ(vector(LocalKind::copy, {x}, {x}), 0);
  EXPECT_EQ(vector(LocalKind::add, {x, x}, {x}), 24);
  EXPECT_EQ(vector(LocalKind::launch, {}, {}), 0);
  EXPECT_EQ(vector(LocalKind::transpose, {x}, {shaped({6, 4})}), 0);
  EXPECT_EQ(vector(LocalKind::norm_sums, {x}, {sums}), 3 * 24) << "of x, not of the sums: two additions, a product";
  EXPECT_EQ(vector(LocalKind::norm, {x, sums}, {x}), 2 * 24);
  EXPECT_EQ(vector(LocalKind::norm_grad_sums, {x, x, sums}, {sums}), 5 * 24);
  EXPECT_EQ(vector(LocalKind::norm_grad, {x, x, sums, sums}, {x}), 6 * 24);
  EXPECT_EQ(vector(LocalKind::gelu, {x}, {x}), 9 * 24);
  EXPECT_EQ(vector(LocalKind::gelu_grad, {x, x}, {x}), 18 * 24);
  EXPECT_EQ(vector(LocalKind::swiglu, {x, x}, {x}), 5 * 24);
  EXPECT_EQ(vector(LocalKind::swiglu_grad, {x, x, x}, {x, x}), 11 * 24);
}

TEST(Names, GoThereAndBack) {
  for (int d = 0; d < dtype_count; ++d) EXPECT_EQ(dtype_named(name_of(static_cast<DType>(d))), static_cast<DType>(d));
  std::string names;
  for (int d = 0; d < product_dtype_count; ++d)
    names += (d == 0 ? "" : d + 1 < product_dtype_count ? ", " : " or ") + std::string{name_of(static_cast<DType>(d))};
  EXPECT_EQ(product_dtype_names(), names);
  for (int k = 0; k < collective_kind_count; ++k)
    EXPECT_EQ(collective_kind_named(name_of(static_cast<CollectiveKind>(k))), static_cast<CollectiveKind>(k));
  EXPECT_EQ(dtype_named("fp32"), std::nullopt);
  EXPECT_EQ(collective_kind_named("all_gather"), std::nullopt);
}

TEST(Products, HaveResultsAtLeastAsWideAsTheirOperands) {
  EXPECT_EQ(product_result(DType::f32), DType::f32);
  EXPECT_EQ(product_result(DType::bf16), DType::bf16);
  EXPECT_EQ(product_result(DType::f8e4m3fn), DType::bf16);
  EXPECT_EQ(product_result(DType::f8e5m2), DType::bf16);
  EXPECT_EQ(product_result(DType::s8), DType::s32);
  for (const DType operands : {DType::f32, DType::bf16, DType::f8e4m3fn, DType::f8e5m2}) {
    EXPECT_TRUE(is_product_of(operands, operands) && is_product_of(operands, DType::f32)) << name_of(operands);
    EXPECT_FALSE(is_product_of(operands, DType::s32) || is_product_of(operands, DType::c64) || is_product_of(operands, DType::s8)) << name_of(operands);
  }
  EXPECT_FALSE(is_product_of(DType::f32, DType::bf16));
  EXPECT_FALSE(is_product_of(DType::bf16, DType::f8e4m3fn));
  EXPECT_FALSE(is_product_of(DType::s8, DType::s8)) << "sums of products leave 8 bits";
  EXPECT_FALSE(is_product_of(DType::c64, DType::c64) || is_product_of(DType::s32, DType::s32));
}

TEST(Sizes, FollowFromExtentsAndDtype) {
  testing::Writer writer{std::vector<MeshAxis>{{"x", 2, true}}};
  const BufferId f = writer.scratch("f", {10, 10}), b = writer.scratch("b", {100}, DType::bf16);
  EXPECT_EQ(size_of(writer.now().buffers[0]), Bytes{400});
  EXPECT_EQ(size_of(writer.now().buffers[1]), Bytes{200});
  EXPECT_EQ(bytes_of(writer.now(), part(b, 90, 5)), Bytes{10});
  EXPECT_EQ(bytes_of(writer.now(), {f, {all(10), span(1, 2)}}), Bytes{80});
  EXPECT_EQ(size_of(Buffer{"huge", {std::int64_t{1} << 40}, DType::f32, Role::scratch, {}, {}}), Bytes{std::int64_t{1} << 42}) << "beyond 32 bits";
}

TEST(DeviceSet, IsAListOfHalfOpenRanges) {
  const DeviceSet set{{{1, 3}, {6, 7}}};
  for (int d = 0; d < 9; ++d) EXPECT_EQ(contains(set, DeviceId{d}), d == 1 || d == 2 || d == 6) << d;
  EXPECT_EQ(size_of(set), 3);
  EXPECT_EQ(every_device(mesh_of({{"x", 3, true}, {"y", 4, true}})), (DeviceSet{{{0, 12}}}));
  EXPECT_EQ(size_of(DeviceSet{}), 0);
}

TEST(Programs, ADeviceRunsOneOrIdles) {
  testing::Writer writer{std::vector<MeshAxis>{{"x", 5, true}}};
  writer.program(0, 2);
  writer.schedule.programs.push_back({{{{3, 5}}}, {}, {}});
  EXPECT_EQ(program_of(writer.schedule, DeviceId{1}), 0u);
  EXPECT_EQ(program_of(writer.schedule, DeviceId{2}), std::nullopt);
  EXPECT_EQ(program_of(writer.schedule, DeviceId{4}), 1u);
}

}  // namespace
}  // namespace podsim
