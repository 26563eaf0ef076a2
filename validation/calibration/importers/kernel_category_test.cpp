#include "validation/calibration/importers/kernel_category.hpp"

#include <gtest/gtest.h>

namespace podsim {
namespace {

TEST(KernelCategory, KernelsOfNcclAreTheirCollectives) {
  EXPECT_EQ(kernel_category("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", ""), "all-reduce");
  EXPECT_EQ(kernel_category("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", ""), "reduce-scatter");
  EXPECT_EQ(kernel_category("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", ""), "all-gather");
  EXPECT_EQ(kernel_category("ncclDevKernel_Broadcast_RING_LL", ""), "broadcast");
  EXPECT_EQ(kernel_category("ncclDevKernel_Reduce_Sum_f32_RING_LL", ""), "reduce");
  EXPECT_EQ(kernel_category("ncclDevKernel_SendRecv", ""), "permute");
  EXPECT_EQ(kernel_category("ncclDevKernel_SendRecv", "nccl:all_to_all"), "all-to-all");
  EXPECT_EQ(kernel_category("ncclDevKernel_SendRecv", "collective-permute-start.1"), "permute");
  EXPECT_EQ(kernel_category("AllReduceKernelImpl", "all-reduce.3"), "all-reduce") << "XLA's own kernel";
}

TEST(KernelCategory, OthersAreToldByTheirNamesOrTheirOperators) {
  EXPECT_EQ(kernel_category("nvjet_sm90_tst_128x160_64x5_2x1_v_bz_NNT", ""), "matmul");
  EXPECT_EQ(kernel_category("gemm_fusion_dot_33", ""), "matmul");
  EXPECT_EQ(kernel_category("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", ""), "attention");
  EXPECT_EQ(kernel_category("Memset 0", "aten::mm"), "copy") << "the kernel's own name comes first";
  EXPECT_EQ(kernel_category("void at::native::multi_tensor_apply_kernel<int>(int)", "aten::_fused_adamw_"), "optimiser");
  EXPECT_EQ(kernel_category("loop_add_fusion_4", ""), "elementwise");
  EXPECT_EQ(kernel_category("", ""), "elementwise");
}

TEST(KernelCategory, ShortNamesHaveNeitherScopesNorArguments) {
  EXPECT_EQ(short_kernel_name("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int, float*)"), "vectorized_elementwise_kernel");
  EXPECT_EQ(short_kernel_name("void cudnn::fusion::fmha_reduce_head<true>(void const*, bool)"), "fmha_reduce_head");
  EXPECT_EQ(short_kernel_name("void (anonymous namespace)::elementwise_kernel_with_index<int>(int)"), "elementwise_kernel_with_index");
  EXPECT_EQ(short_kernel_name("loop_add_fusion_4"), "loop_add_fusion_4");
  EXPECT_EQ(short_kernel_name("Memset (Device)"), "Memset");
  for (const char* odd : {"", "(", "void ", "<>", "a::"}) EXPECT_FALSE(short_kernel_name(odd).empty() && odd[0] != '\0') << odd;
}

}  // namespace
}  // namespace podsim
