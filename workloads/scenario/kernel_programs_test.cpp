// Transforms and linear systems in programs through all engines: numbers, proofs, times.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "sim/engine/numeric/check.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/schedule/lower.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/testing.hpp"
#include "workloads/sharded/testing.hpp"
#include "workloads/sharded/write.hpp"

namespace podsim::testing {
namespace {

struct KernelProgram {
  std::string mesh, text, shapes, shards;
  std::string outs{};
  KernelChoice kernels{};
};

KernelChoice by(FftMethod fft, FftOrder order = FftOrder::natural, int chunks = 1) {
  KernelChoice kernels;
  kernels.fft = fft, kernels.order = order, kernels.chunks = chunks;
  return kernels;
}
KernelChoice in_blocks(std::int64_t block, int look_ahead = 0) {
  KernelChoice kernels;
  kernels.block = block, kernels.look_ahead = look_ahead;
  return kernels;
}
KernelChoice naive() {
  KernelChoice kernels;
  kernels.fft = FftMethod::naive, kernels.lu = LuMethod::naive, kernels.solve = SolveMethod::naive;
  return kernels;
}

const std::vector<KernelProgram>& kernel_programs() {
  static const std::vector<KernelProgram> all{
      {"x=4,y=2", "Y = fft(X)", "X=8x8x12", "X=x,y,-"},
      {"x=4,y=2", "Y = fft(X); Z = ifft(Y)", "X=8x8x8,c64", "X=x,y,-", "", by(FftMethod::pencil)},
      {"x=4,y=2", "Y = fft(X)", "X=8x8x16", "X=x,y,-", "", by(FftMethod::pencil, FftOrder::transposed)},
      {"x=4,y=2", "Y = fft(X); Z = ifft(Y); W = Z + X", "X=8x8x16,c64", "X=x,y,-", "", by(FftMethod::pencil, FftOrder::transposed)},
      {"x=4,y=2", "Y = ifft(X)", "X=8x8x16,c64", "X=x,y,-", "", by(FftMethod::pencil, FftOrder::transposed, 2)},
      {"x=8", "Y = fft(X); Z = ifft(2 * Y - Y)", "X=96x64,c64", "X=x,-"},
      {"x=8", "Y = fft(X)", "X=96x64", "X=x,-", "", by(FftMethod::slab, FftOrder::transposed)},
      {"x=4", "Y = fft(X); Z = ifft(Y)", "X=256", "X=x"},
      {"x=4,y=2", "Y = fft(X); Z = sum(Y, 0)", "X=8x8x8", "X=x,y,-", "", naive()},
      {"x=4,y=2", "Y = fft(A @ B)", "A=16x8; B=8x16", "A=x,y; B=y,-", "Y=-,x"},
      {"x=2,y=2", "P, L, U = lu(A)", "A=64x64", "A=x,y", "", in_blocks(8)},
      {"x=2,y=2", "P, L, U = lu(A)", "A=64x64", "A=x,y", "L=x,y; U=-,-; P=x", in_blocks(8, 1)},
      {"x=3,y=2", "P, L, U = lu(A)", "A=64x64", "A=x,y", "", in_blocks(8)},
      {"x=4", "P, L, U = lu(A); B = A + A", "A=64x64", "A=x,-", "", in_blocks(4)},
      {"x=2,y=2", "P, L, U = lu(A)", "A=32x32", "A=x,y", "", naive()},
      {"x=2,y=2", "v = solve(A, b)", "A=64x64; b=64", "A=x,y; b=x", "", in_blocks(8)},
      {"x=2,y=2", "v = solve(A, b)", "A=64x64; b=64x6", "A=x,y", "v=x,y", in_blocks(8, 1)},
      {"x=2,y=2", "v = solve(A + A, b); w = v + b", "A=64x64; b=64", "A=x,y; b=x", "", in_blocks(8)},
      {"x=3,y=2", "P, L, U = lu(A)", "A=64x64", "A=x,y", "L=y,-; U=-,-", in_blocks(8)},
      {"x=3,y=3", "v = solve(A, b)", "A=64x64; b=64", "A=x,y", "", in_blocks(8)},
      {"x=4,y=2", "v = solve(A, b)", "A=96x96; b=96x2", "A=x,y; b=x,-", "", in_blocks(8)},
      {"x=2,y=2", "P, L, U = lu(A); Z = U / 2; v = solve(A, b); y = v + b; w = solve(A, v)", "A=64x64; b=64", "A=x,y; b=x", "", in_blocks(8)},
      {"x=2", "P, L, U = lu(A); Z = L @ U", "A=128x128", "A=x,-", "", naive()},
      {"x=2", "y = solve(A, b) + b", "A=64x64; b=64", "A=x,-", "", in_blocks(8)},
      {"x=8", "v = solve(A, b)", "A=8x16x16; b=8x16", "A=x,-,-; b=x,-"},
      {"x=8", "v = solve(A, b)", "A=16x16; b=16", "A=x,-; b=x", "", naive()},
  };
  return all;
}

class KernelProgramCases : public ::testing::TestWithParam<std::size_t> {};

TEST_P(KernelProgramCases, GiveTheRightNumbersAndEqualTimesOnAllEngines) {
  const KernelProgram& one = kernel_programs()[GetParam()];
  SCOPED_TRACE(fmt::format("mesh {}, {}; {}; {}; {}", one.mesh, one.text, one.shapes, one.shards, one.outs));
  const System system = system_with({{"machine", "tpu_v4"}, {"mesh", one.mesh}});
  ProgramText text = program_text(one.text, one.shapes, one.shards, one.outs);
  text.kernels = one.kernels;
  text.kernels.slice_copies = GetParam() % 2 == 0;
  auto program = read_program(text, system.mesh);
  ASSERT_TRUE(program) << to_text(program.error());
  const auto posed = pose(system, ProgramSpec{*std::move(program)}, {});
  ASSERT_TRUE(posed) << to_text(posed.error());
  const auto lowered = lower(posed->problem.schedule, ring_or_line());
  ASSERT_TRUE(lowered) << to_text(lowered.error());
  CheckOptions options;
  options.threads = 1;
  options.random_orders = 2;
  const auto report = check(*lowered, options);
  ASSERT_TRUE(report) << to_text(report.error());
  EXPECT_TRUE(report->ok) << to_text(report->problems);
  const auto model = make_model(*lowered, system.machine, *system.topology, system.placement);
  ASSERT_TRUE(model) << to_text(model.error());
  Agreement agreement;
  Folds folds;
  EXPECT_TRUE(engines_agree(*model, 1e-6, agreement));
  EXPECT_TRUE(folding_changes_nothing(*lowered, World{system.machine, system.topology, system.placement}, folds));
}

INSTANTIATE_TEST_SUITE_P(All, KernelProgramCases, ::testing::Range<std::size_t>(0, kernel_programs().size()));

}  // namespace
}  // namespace podsim::testing
