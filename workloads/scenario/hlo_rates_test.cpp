// At which rate products of modules run on shipped machines: by the types of their operands and by their precision.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>

#include "workloads/hlo/read_hlo.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using testing::system_with;

constexpr double n = 8192;

/// Of a module of one product of n x n matrices, less the launch of a kernel.
double seconds_of(const std::string& machine, const std::string& operands, const std::string& result, const std::string& attributes = "") {
  const std::string text = fmt::format(
      "HloModule m, is_scheduled=true\nENTRY e {{\n  a = {0}[8192,8192]{{1,0}} parameter(0)\n  b = {0}[8192,8192]{{1,0}} parameter(1)\n"
      "  ROOT d = {1}[8192,8192]{{1,0}} dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{2}\n}}\n",
      operands, result, attributes);
  auto module = parse_hlo(text, "m");
  EXPECT_TRUE(module) << to_text(module.error());
  const System system = system_with({{"machine", machine}, {"slice", "1x1"}, {"mesh", "x=1"}});
  const auto problem = make_problem(system, HloSpec{std::make_shared<const HloModule>(*std::move(module)), {}, {}, CollectivePolicy{}});
  EXPECT_TRUE(problem) << to_text(problem.error());
  const auto run = simulate(system, *problem, {});
  EXPECT_TRUE(run) << to_text(run.error());
  return to_seconds(run->metrics.makespan).count() - system.machine.software.launch[static_cast<std::size_t>(CostKind::matmul)].count();
}

TEST(HloRates, AreThoseOfTheOperandsTypes) {
  const double flops = 2 * n * n * n;
  const auto expect = [&](const std::string& machine, const std::string& operands, const std::string& result, double rate) {
    EXPECT_NEAR(seconds_of(machine, operands, result), flops / rate, 1e-9 * flops / rate + 1e-9) << machine << " " << operands;
  };
  expect("dgx_h100:spec", "bf16", "bf16", 989.4e12);
  expect("dgx_h100:spec", "bf16", "f32", 989.4e12);
  expect("dgx_h100:spec", "f8e4m3fn", "bf16", 1978.9e12);
  expect("dgx_h100:spec", "f8e5m2", "f32", 1978.9e12);
  expect("dgx_h100:spec", "s8", "s32", 1978.9e12);
  expect("tpu_v5e:spec", "s8", "s32", 394e12);
  expect("tpu_v5e:spec", "f8e4m3fn", "bf16", 197e12);  // no units for it
  expect("tpu_v6e:spec", "f8e5m2", "bf16", 920e12);
}

TEST(HloRates, OfFloat32FollowThePrecisionOfTheProduct) {
  const double flops = 2 * n * n * n;
  const auto expect = [&](const std::string& machine, const std::string& attributes, double rate) {
    EXPECT_NEAR(seconds_of(machine, "f32", "f32", attributes), flops / rate, 1e-9 * flops / rate + 1e-9) << machine << attributes;
  };
  expect("tpu_v5e:spec", "", 197e12);
  expect("tpu_v5e:spec", ", operand_precision={high,default}", 197e12 / 3);
  expect("tpu_v5e:spec", ", operand_precision={highest,highest}", 197e12 / 6);
  expect("dgx_h100:spec", "", 494.7e12);
  expect("dgx_h100:spec", ", operand_precision={high,high}", 494.7e12);
  expect("dgx_h100:spec", ", operand_precision={highest,highest}", 66.9e12);
  expect("dgx_h100:spec", ", algorithm=dot_bf16_bf16_f32", 989.4e12);
}

}  // namespace
}  // namespace podsim
