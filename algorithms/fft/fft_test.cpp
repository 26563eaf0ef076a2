// Distributed FFTs as schedules: their order is proven for every execution, their all-to-alls counted, and bad problems named.
#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/fft/testing.hpp"
#include "sim/base/rng.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::fft_case;
using testing::fft_mesh;
using testing::FftCase;
using testing::lowered_fft;

/// The Collectives of a kind in the first program of a schedule that is not lowered.
int count_of(const Schedule& schedule, CollectiveKind kind) {
  return static_cast<int>(std::count_if(schedule.programs[0].tasks.begin(), schedule.programs[0].tasks.end(), [&](const Task& task) {
    const auto* collective = std::get_if<Collective>(&task.op);
    return collective != nullptr && collective->kind == kind;
  }));
}
int count_of(const Schedule& schedule, LocalKind kind) {
  return static_cast<int>(std::count_if(schedule.programs[0].tasks.begin(), schedule.programs[0].tasks.end(), [&](const Task& task) {
    const auto* local = std::get_if<Local>(&task.op);
    return local != nullptr && local->kind == kind;
  }));
}

TEST(Fft, IsMatchedAndRaceFreeInEveryForm) {
  for (const FftCase& c : testing::all_fft_cases()) {
    SCOPED_TRACE(c.name);
    const auto schedule = make_fft(c.method, c.mesh, c.problem);
    ASSERT_TRUE(schedule) << to_text(schedule.error());
    const auto lowered = lower(*schedule, ring_or_line());
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    const Validation validation = validate(*lowered);
    ASSERT_TRUE(validation.ok()) << to_text(validation.all());
    EXPECT_EQ(count_of(*schedule, CollectiveKind::all_gather), c.method == FftMethod::naive ? 1 : 0);
  }
}

TEST(Fft, HasOneAllToAllForEachDividedDimensionAndAsManyBack) {
  const auto exchanges = [](FftMethod method, const std::string& mesh, const std::string& spec, Extents extents, FftOrder order) {
    FftCase c = fft_case(method, mesh, spec, std::move(extents));
    c.problem.order = order;
    const auto schedule = make_fft(method, c.mesh, c.problem);
    EXPECT_TRUE(schedule) << to_text(schedule.error());
    return schedule ? count_of(*schedule, CollectiveKind::all_to_all) : -1;
  };
  for (const FftOrder order : {FftOrder::transposed, FftOrder::natural}) {
    const int ways = order == FftOrder::natural ? 2 : 1;
    EXPECT_EQ(exchanges(FftMethod::pencil, "x=4,y=2", "x,y,-", {64, 64, 64}, order), 2 * ways);
    EXPECT_EQ(exchanges(FftMethod::pencil, "x=8,y=1", "x,y,-", {64, 64, 64}, order), ways);
    EXPECT_EQ(exchanges(FftMethod::pencil, "x=1,y=8", "x,y,-", {64, 64, 64}, order), ways);
    EXPECT_EQ(exchanges(FftMethod::pencil, "x=2,y=2,z=2", "x+y,z,-", {64, 64, 64}, order), 2 * ways);
    EXPECT_EQ(exchanges(FftMethod::pencil, "x=2,y=2,z=2", "x,y,z,-", {8, 8, 8, 8}, order), 3 * ways);
    EXPECT_EQ(exchanges(FftMethod::slab, "x=8", "x,-,-", {64, 64, 64}, order), ways);
    EXPECT_EQ(exchanges(FftMethod::slab, "x=8", "x,-", {96, 64}, order), ways);
    EXPECT_EQ(exchanges(FftMethod::slab, "x=8", "-,-", {96, 64}, order), 0);
    EXPECT_EQ(exchanges(FftMethod::four_step, "x=8", "x", {1 << 15}, order), 1 + ways);
    EXPECT_EQ(exchanges(FftMethod::four_step, "x=1", "x", {1 << 15}, order), 0);
    EXPECT_EQ(exchanges(FftMethod::naive, "x=4,y=2", "x,y,-", {64, 64, 64}, order), 0);
  }
}

TEST(Fft, SaysWhereTheResultIs) {
  const FftCase pencil = fft_case(FftMethod::pencil, "x=4,y=2", "x,y,-", {48, 40, 24});
  auto result = fft_result(pencil.method, pencil.problem, pencil.mesh);
  ASSERT_TRUE(result) << to_text(result.error());
  EXPECT_EQ(*result, (FftResult{{40, 24, 48}, pencil.problem.sharding, {48, 40, 24}, {1, 2, 0}}));
  FftCase c = fft_case(FftMethod::four_step, "x=4", "x", {1 << 10});
  result = fft_result(c.method, c.problem, c.mesh);
  ASSERT_TRUE(result) << to_text(result.error());
  EXPECT_EQ(*result, (FftResult{{32, 32}, {c.problem.sharding[0], {}}, {32, 32}, {1, 0}}));
  c.problem.extents = {12 * 4};  // 4 or 12 rows: as near
  EXPECT_EQ(fft_result(c.method, c.problem, c.mesh)->extents, (Extents{4, 12}));
  c.problem.order = FftOrder::natural;
  EXPECT_EQ(*fft_result(c.method, c.problem, c.mesh), (FftResult{{48}, c.problem.sharding, {48}, {0}}));
  const FftCase naive = fft_case(FftMethod::naive, "x=4,y=2", "x,y,-", {48, 40, 24});
  EXPECT_EQ(*fft_result(naive.method, naive.problem, naive.mesh), (FftResult{{48, 40, 24}, {{}, {}, {}}, {48, 40, 24}, {0, 1, 2}}));
}

TEST(Fft, PacksWhereMachinesCopySlices) {
  FftCase c = fft_case(FftMethod::pencil, "x=4,y=2", "x,y,-", {16, 16, 16});
  const auto copies = [&] {
    const auto schedule = make_fft(c.method, c.mesh, c.problem);
    return std::pair{count_of(*schedule, LocalKind::pack_blocks), count_of(*schedule, LocalKind::unpack_blocks)};
  };
  EXPECT_EQ(copies(), (std::pair{0, 0}));
  c.problem.slice_copies = true;
  EXPECT_EQ(copies(), (std::pair{2, 1}));  // what is put together along the first dimension lies together
  c.problem.order = FftOrder::natural;
  EXPECT_EQ(copies(), (std::pair{3, 3}));
  c.problem.chunks = 2;
  EXPECT_EQ(copies(), (std::pair{6, 6}));
}

TEST(Fft, ReadsRealNumbersOnce) {
  FftCase c = fft_case(FftMethod::pencil, "x=4,y=2", "x,y,-", {16, 16, 16});
  c.problem.input = DType::f32;
  for (const FftMethod method : {FftMethod::pencil, FftMethod::naive}) {
    const auto schedule = make_fft(method, c.mesh, c.problem);
    ASSERT_TRUE(schedule);
    const auto& buffers = schedule->programs[0].buffers;
    EXPECT_EQ(std::count_if(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.dtype == DType::f32; }), method == FftMethod::naive ? 2 : 1);
  }
}

TEST(Fft, DefaultsFollowTheSharding) {
  const auto method = [](const std::string& spec, Extents extents) { return default_fft_method(fft_case(FftMethod::naive, "x=2,y=2,z=1", spec, std::move(extents)).problem); };
  EXPECT_EQ(method("x,y,-", {8, 8, 8}), FftMethod::pencil);
  EXPECT_EQ(method("x,z,-", {8, 8, 8}), FftMethod::slab);
  EXPECT_EQ(method("x+y,-,-", {8, 8, 8}), FftMethod::slab);
  EXPECT_EQ(method("-,-", {8, 8}), FftMethod::slab);
  EXPECT_EQ(method("x+y", {64}), FftMethod::four_step);
  EXPECT_EQ(method("-,y", {8, 8}), std::nullopt);
  for (const FftMethod m : fft_methods) EXPECT_EQ(fft_method_named(name_of(m)), m);
  EXPECT_EQ(fft_method_named("fourstep"), std::nullopt);
}

TEST(Fft, BadProblemsSayWhatIsExpected) {
  const auto said = [](FftMethod method, const std::string& spec, Extents extents, int chunks = 1, FftOrder order = FftOrder::transposed, DType input = DType::c64) {
    FftCase c = fft_case(method, "x=4,y=2", spec, std::move(extents));
    c.problem.chunks = chunks;
    c.problem.order = order;
    c.problem.input = input;
    const auto result = fft_result(method, c.problem, c.mesh);
    const auto schedule = make_fft(method, c.mesh, c.problem);
    EXPECT_EQ(result.has_value(), schedule.has_value());
    return result ? "nothing" : to_text(result.error());
  };
  using enum FftMethod;
  EXPECT_EQ(said(pencil, "x,-,y", {8, 8, 8}), "the last dimension of x,-,y is divided, and pencil transforms along it first; expected it whole: reshard to x,y,-");
  EXPECT_EQ(said(slab, "-,x", {8, 8}), "the last dimension of -,x is divided, and slab transforms along it first; expected it whole: reshard to x,-");
  EXPECT_EQ(said(slab, "x,y", {8, 8}), "the last dimension of x,y is divided, and slab transforms along it first; expected it whole: reshard to (x+y),-");
  EXPECT_EQ(said(slab, "x", {64}), "slab leaves the last dimension whole, and x divides the only one; expected four-step or naive");
  EXPECT_EQ(said(slab, "x,y,-", {8, 8, 8}), "slab divides one dimension, x,y,- divides 2; expected pencil or naive, or reshard to (x+y),-,-");
  EXPECT_EQ(said(pencil, "x,-", {8, 8}), "pencil is for arrays of three or more dimensions, found 2; expected slab or naive");
  EXPECT_EQ(said(four_step, "x,-", {8, 8}), "four-step is for arrays of one dimension, found 2; expected pencil, slab or naive");
  EXPECT_EQ(said(pencil, "x,y,-", {10, 8, 8}), "dimension 0 has 10 elements; pencil of x,y,- needs a multiple of 4");
  EXPECT_EQ(said(pencil, "x,y,-", {8, 6, 8}), "dimension 1 has 6 elements; pencil of x,y,- needs a multiple of 4");
  EXPECT_EQ(said(pencil, "x,y,-", {8, 8, 9}), "dimension 2 has 9 elements; pencil of x,y,- needs a multiple of 2");
  EXPECT_EQ(said(pencil, "x,y,-", {8, 8, 8}, 3), "dimension 0 has 8 elements; pencil of x,y,- in 3 chunks needs a multiple of 12");
  EXPECT_EQ(said(slab, "x+y,-", {16, 16}, 4), "dimension 0 has 16 elements; slab of (x+y),- in 4 chunks needs a multiple of 32");
  EXPECT_EQ(said(four_step, "x+y", {96}), "dimension 0 has 96 elements; four-step of (x+y) needs a multiple of 64");
  EXPECT_EQ(said(four_step, "x+y", {64}, 2, FftOrder::natural), "dimension 0 has 64 elements; four-step of (x+y) in 2 chunks needs a multiple of 256");
  EXPECT_EQ(said(naive, "x,y,-", {8, 9, 8}), "dimension 1 has 9 elements; naive of x,y,- needs a multiple of 2");
  EXPECT_EQ(said(naive, "x,-,y", {8, 8, 8}), "nothing");
  EXPECT_EQ(said(pencil, "x,y,-", {8, 0, 8}), "dimension 1 has extent 0; an FFT needs at least 1");
  EXPECT_EQ(said(naive, "x,y,-", {8, 8, 8}, 0), "an FFT in 0 chunks; expected at least 1");
  EXPECT_EQ(said(pencil, "x,y,-", {8, 8, 8}, 1, FftOrder::natural, DType::bf16), "an FFT of bf16; expected c64 or f32");
  EXPECT_EQ(said(naive, "x,y", {8}), "the sharding has 2 dimensions, the array 1");
  EXPECT_EQ(said(naive, "x,x", {8, 8}), "mesh axis x divides the array twice");
  EXPECT_EQ(said(naive, "", {}), "an FFT needs at least one dimension, found a scalar");
}

TEST(Fft, MultiplesAreWhatIsAccepted) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng{seed, stream_of("fft multiples")};
    FftCase c = testing::random_fft_case(rng);
    SCOPED_TRACE("seed " + std::to_string(seed) + " " + c.name);
    const auto multiples = fft_multiples(c.method, c.problem, c.mesh);
    ASSERT_TRUE(multiples) << to_text(multiples.error());
    const std::size_t d = rng.below(c.problem.extents.size());
    for (std::size_t i = 0; i < multiples->size(); ++i) c.problem.extents[i] = (*multiples)[i];
    ASSERT_TRUE(fft_result(c.method, c.problem, c.mesh));
    const auto lowered = lower(*make_fft(c.method, c.mesh, c.problem), ring_or_line());
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    const Validation validation = validate(*lowered);
    ASSERT_TRUE(validation.ok()) << to_text(validation.all());
    c.problem.extents[d] += rng.between(1, 3);
    EXPECT_EQ(fft_result(c.method, c.problem, c.mesh).has_value(), c.problem.extents[d] % (*multiples)[d] == 0);
  }
}

}  // namespace
}  // namespace podsim
