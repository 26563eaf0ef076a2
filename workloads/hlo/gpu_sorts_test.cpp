// Sorts on GPUs: which kernels they are, what these move, and which of them are cub's.
#include "workloads/hlo/gpu_sorts.hpp"

#include <gtest/gtest.h>

#include <string>

#include "workloads/hlo/task_costs.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::module_of;

TEST(GpuSorts, EachStepThatSpansMoreThanATileIsAKernel) {
  EXPECT_EQ(sort_kernels_on_gpu(4096, 8), 1);
  EXPECT_EQ(sort_kernels_on_gpu(8192, 8), 3) << "the tiles, a step over all, the tiles again";
  EXPECT_EQ(sort_kernels_on_gpu(1 << 20, 8), 1 + (2 + 3 + 4 + 5 + 6 + 7 + 8 + 9));
  EXPECT_EQ(sort_kernels_on_gpu(4096, 16), 3) << "of four arrays of 4 bytes 2048 fit into shared memory";
}

/// What JAX compares with on an absent GPU, cut short: array 0, and of equal elements the iota.
std::string by_key(const std::string& name, int arrays) {
  const std::string between = arrays == 3 ? " v = s32[] parameter(2)\n w = s32[] parameter(3)\n" : "", i = std::to_string(2 * arrays - 2), j = std::to_string(2 * arrays - 1);
  return name + " { a = f32[] parameter(0)\n b = f32[] parameter(1)\n" + between + " i = s32[] parameter(" + i + ")\n j = s32[] parameter(" + j + ")\n lt = pred[] compare(a, b), direction=LT\n"
         " gt = pred[] compare(b, a), direction=LT\n eq = pred[] compare(lt, gt), direction=EQ\n first = pred[] compare(i, j), direction=LT\n ROOT r = pred[] select(eq, first, lt) }\n";
}

/// Of the root of an entry, on a GPU of 1 TB/s whose kernels take 2 us to launch.
HloTaskCost cost_on_gpu(const std::string& instructions) {
  Machine machine;
  machine.software.launch[static_cast<std::size_t>(CostKind::local)] = Seconds{2e-6};
  machine.chip.hbm_bandwidth = BytesPerSecond{1e12};
  const HloModule module = module_of("HloModule m, is_scheduled=true\n" + by_key("%by_key", 2) + by_key("%by_key_of_pairs", 3) +
                                     "%by_two { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n lt = pred[] compare(a, b), direction=LT\n"
                                     " first = pred[] compare(c, d), direction=LT\n ROOT r = pred[] and(lt, first) }\nENTRY e { " + instructions + " }\n");
  const HloComputation& entry = module.entry_computation();
  const auto cost = HloTaskCosts{module, {}, &machine}.of(entry, entry.root);
  EXPECT_TRUE(cost) << to_text(cost.error());
  return cost ? *cost : HloTaskCost{};
}
HloTaskCost cost_of_rows(const std::string& dims, const std::string& along = "1") {
  return cost_on_gpu("a = f32[" + dims + "] parameter(0)\n i = s32[" + dims + "] iota(), iota_dimension=" + along + "\n ROOT r = (f32[" + dims + "], s32[" + dims + "]) sort(a, i), dimensions={" + along +
                     "}, to_apply=%by_key");
}

TEST(GpuSorts, EachKernelReadsAndWritesAllAndIsLaunched) {
  const HloTaskCost sort = cost_of_rows("1,8192");
  EXPECT_EQ(sort.bytes, 3 * 4 * 32768);
  EXPECT_NEAR(sort.launch.count(), 2 * 2e-6, 1e-12) << "and the first as every kernel is";
}

TEST(GpuSorts, OnesweepReadsKeysOnceMoreThanItsPasses) {
  const RadixSortCost pairs = radix_sort_cost({.length = 1000, .key_bits = 32, .value_bytes = 4}), keys = radix_sort_cost({.length = 1000, .key_bits = 16});
  EXPECT_EQ(pairs.bytes, 1000 * (4 + 4 * 2 * 8));
  EXPECT_EQ(pairs.kernels, 12);
  const RadixSortCost numbers = radix_sort_cost({.length = 1000, .key_bits = 32, .value_bytes = 4, .makes_keys = true});
  EXPECT_EQ(numbers.kernels, 13) << "as in the profiles of H100 and H200";
  EXPECT_EQ(numbers.bytes, pairs.bytes + 1000 * 2 * 4);
  EXPECT_EQ(keys.bytes, 1000 * (2 + 2 * 2 * 2));
  EXPECT_EQ(keys.kernels, 8);
  const RadixSortCost rows = radix_sort_cost({.rows = 64, .length = 1000, .key_bits = 32, .value_bytes = 4});
  EXPECT_EQ(rows.bytes, 64000.0 * 6 * (3 * 4 + 2 * 4)) << "six digits of 6 bits";
  EXPECT_EQ(rows.kernels, 6);
  EXPECT_NEAR(rows.bandwidth, pairs.bandwidth * 64 / 132, 1e-12) << "a block for each row";
  EXPECT_EQ(radix_sort_cost({.rows = 1000, .length = 1000}).bandwidth, pairs.bandwidth);
}

/// The rows that were measured on an H100 and an H200, and the kernels that the profiles name.
TEST(GpuSorts, CubSortsWhatXlaLeavesToIt) {
  EXPECT_TRUE(cost_of_rows("1,1048576").sort);
  EXPECT_TRUE(cost_of_rows("64,128256").sort);
  EXPECT_FALSE(cost_of_rows("8192,256").sort);
  EXPECT_FALSE(cost_of_rows("1024,8192").sort);
  EXPECT_FALSE(cost_of_rows("1,22000").sort);
  EXPECT_TRUE(cost_of_rows("1,22001").sort);
  EXPECT_FALSE(cost_of_rows("1048576,1", "0").sort) << "not along the last dimension";
  const auto sorted = [](const std::string& operands, const std::string& shapes, const std::string& by) {
    return cost_on_gpu("a = f32[99999] parameter(0)\n b = s32[99999] parameter(1)\n i = s32[99999] iota(), iota_dimension=0\n ROOT r = (" + shapes + ") sort(" + operands + "), dimensions={0}, to_apply=" + by).sort;
  };
  const auto indices = sorted("a, i, i", "f32[99999], s32[99999], s32[99999]", "%by_key_of_pairs");
  ASSERT_TRUE(indices) << "argsort";
  EXPECT_EQ(indices->value_bytes, 4);
  EXPECT_FALSE(sorted("a, b", "f32[99999], s32[99999]", "%by_two")) << "two keys";
}

TEST(GpuSorts, CubTakesItsLaunchesAndPartOfTheBandwidth) {
  const HloTaskCost sort = cost_of_rows("1,1048576");
  EXPECT_EQ(sort.bytes, 1048576.0 * (8 + 68));
  EXPECT_NEAR(sort.launch.count(), 12 * 2e-6, 1e-12);
  EXPECT_NEAR(sort.core.count(), 1048576.0 * (8 + 68) / (29.4e9 * 36 / 1.555), 1e-9);
  const HloTaskCost call = cost_on_gpu("k = u32[1048576] parameter(0)\n v = f32[1048576] parameter(1)\n ROOT r = (u32[1048576], f32[1048576], u8[9]) custom-call(k, v), custom_call_target=\"__cub$DeviceRadixSort\"");
  EXPECT_EQ(call.bytes, 1048576.0 * 68) << "its keys are made by another instruction";
  EXPECT_NEAR(call.launch.count(), 11 * 2e-6, 1e-12);
  EXPECT_NEAR(call.core.count(), 1048576.0 * 68 / (29.4e9 * 36 / 1.555), 1e-9);
}

}  // namespace
}  // namespace podsim
