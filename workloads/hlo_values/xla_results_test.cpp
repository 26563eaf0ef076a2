// The interpreter gives the results that XLA's own reference evaluator is tested for.
// Source of inputs and results: openxla/xla xla/hlo/evaluator/hlo_evaluator_test.cc at 001918b7024cf5f020051a9d25d2dd57a5896aaa, as facts; each case
// names its test there. The modules are written anew.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "workloads/hlo_values/test_run.hpp"

namespace podsim {
namespace {

using test::array;
using test::counted;
using test::result_of;

struct XlaCase {
  std::string test;
  HloArrays parameters;
  std::string line;
  HloArray result;
};

const std::string scalar_functions =
    "larger { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\n"
    "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
    "whole_sum { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] add(a, b) }\n"
    "whole_product { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] multiply(a, b) }\n"
    "second { a = s32[] parameter(0)\n ROOT b = s32[] parameter(1) }\n";

void expect_results(const std::vector<XlaCase>& cases) {
  for (const XlaCase& each : cases) {
    SCOPED_TRACE(each.test);
    EXPECT_EQ(result_of(each.parameters, "ROOT r = " + short_text(each.result) + " " + each.line, scalar_functions), each.result);
  }
}

TEST(HloAsXla, Convolutions) {
  const HloArray square = counted("f32[1,1,4,4]"), kernel = array("f32[1,1,2,2]", {5, 6, 7, 8});
  const HloArray input = counted("f32[2,3,1,4]"), weight = array("f32[1,3,2,3]", {1, 7, 13, 4, 10, 16, 2, 8, 14, 5, 11, 17, 3, 9, 15, 6, 12, 18});
  expect_results({
      {"Simple4x4Conv2DWith2x2Kernel",
       {square, kernel},
       "convolution(p0, p1), window={size=2x2 pad=0_1x0_1}, dim_labels=bf01_oi01->bf01",
       array("f32[1,1,4,4]", {100, 126, 152, 76, 204, 230, 256, 124, 308, 334, 360, 172, 149, 160, 171, 80})},
      {"Conv2DGeneralDimensions",
       {input, weight},
       "convolution(p0, p1), window={size=3x3}, dim_labels=f0b1_o1i0->f0b1",
       array("f32[1,1,1,2]", {2514, 2685})},
      {"DilatedBaseConv2DWithHighPadding",
       {square, kernel},
       "convolution(p0, p1), window={size=2x2 pad=0_1x0_1 lhs_dilate=2x2}, dim_labels=bf01_oi01->bf01",
       array("f32[1,1,7,7]", {5,  12, 10, 18, 15, 24, 20, 35, 48, 42, 56, 49,  64, 56,  25,  36,  30,  42, 35, 48, 40, 63, 80, 70, 88,
                              77, 96, 84, 45, 60, 50, 66, 55, 72, 60, 91, 112, 98, 120, 105, 128, 112, 65, 84, 70, 90, 75, 96, 80})},
      {"DilatedBaseConv2DWithLowAndHighPadding",
       {square, kernel},
       "convolution(p0, p1), window={size=2x2 pad=1_1x1_1 lhs_dilate=2x2}, dim_labels=bf01_oi01->bf01",
       array("f32[1,1,8,8]",
             {8,  7,  16, 14, 24, 21, 32, 28, 6,  5,  12, 10, 18, 15, 24, 20, 40,  35, 48,  42, 56,  49,  64,  56,  30, 25, 36, 30, 42, 35, 48, 40,
              72, 63, 80, 70, 88, 77, 96, 84, 54, 45, 60, 50, 66, 55, 72, 60, 104, 91, 112, 98, 120, 105, 128, 112, 78, 65, 84, 70, 90, 75, 96, 80})},
      {"DilatedWindowAndBaseConv2DWithDifferentLowAndHighPaddingAndStrides",
       {square, array("f32[1,1,2,3]", {5, 6, 7, 8, 9, 10})},
       "convolution(p0, p1), window={size=2x3 stride=1x3 pad=2_2x2_-1 lhs_dilate=2x3 rhs_dilate=2x1}, dim_labels=bf01_oi01->bf01",
       array("f32[1,1,9,3]", {10, 20, 30, 0, 0, 0, 57, 74, 91, 0, 0, 0, 125, 142, 159, 0, 0, 0, 193, 210, 227, 0, 0, 0, 91, 98, 105})},
  });
  // Conv2DGeneralDimensionsReversed: a reversed kernel under a reversed window.
  EXPECT_EQ(result_of({input, weight},
                      "w = f32[1,3,2,3] reverse(p1), dimensions={3,1}\n"
                      "ROOT r = f32[1,1,1,2] convolution(p0, w), window={size=3x3 rhs_reversal=1x1}, dim_labels=f0b1_o1i0->f0b1"),
            array("f32[1,1,1,2]", {2514, 2685}));
}

TEST(HloAsXla, GroupedConvolution) {
  HloArray input = zeros(HloType::f32, {1, 2, 2, 4}), filter = zeros(HloType::f32, {2, 2, 2, 8});
  for (std::size_t i = 0; i < input.reals.size(); ++i) input.reals[i] = static_cast<double>(i) - 7;
  for (std::size_t i = 0; i < filter.reals.size(); ++i) filter.reals[i] = static_cast<double>(i) - 31;
  expect_results({{"Conv2DGroupedConvolution",
                   {input, filter},
                   "convolution(p0, p1), window={size=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=2",
                   array("f32[1,1,1,8]", {668, 664, 660, 656, 668, 680, 692, 704})}});
}

TEST(HloAsXla, ReductionsOverWindows) {
  const HloArray x = array("f32[2,3]", {1, 2, 3, 5, 6, 7}), zero = array("f32[]", {0});
  HloArray iota = counted("f32[4,4]");
  for (double& value : iota.reals) value -= 1;
  const auto window = [](const std::string& text, const std::string& function) {
    return "reduce-window(p0, p1), window={" + text + "}, to_apply=" + function;
  };
  expect_results({
      {"ReduceAdd", {x, zero}, "reduce(p0, p1), dimensions={1}, to_apply=sum", array("f32[2]", {6, 18})},
      {"ReduceWindowMax", {x, zero}, window("size=2x2", "larger"), array("f32[1,2]", {6, 7})},
      {"ReduceWindowAdd", {x, zero}, window("size=1x2 pad=0_0x1_0", "sum"), array("f32[2,3]", {1, 3, 5, 5, 11, 13})},
      {"ReduceWindowMaxIotaWindowDilation", {iota, zero}, window("size=2x2 rhs_dilate=2x2", "larger"), array("f32[2,2]", {10, 11, 14, 15})},
      {"ReduceWindowMaxIotaStrideWindowDilation", {iota, zero}, window("size=2x2 stride=2x2 rhs_dilate=2x2", "larger"), array("f32[1,1]", {10})},
      {"ReduceWindowMaxIotaBaseDilation",
       {iota, zero},
       window("size=2x2 lhs_dilate=2x2", "larger"),
       array("f32[6,6]", {0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 6, 7, 4, 5, 5, 6, 6, 7, 8, 9, 9, 10, 10, 11, 8, 9, 9, 10, 10, 11, 12, 13, 13, 14, 14, 15})},
      {"ReduceWindowMaxIotaStrideBaseDilation",
       {iota, zero},
       window("size=2x2 stride=2x2 lhs_dilate=2x2", "larger"),
       array("f32[3,3]", {0, 1, 2, 4, 5, 6, 8, 9, 10})},
      {"ReduceWindowMaxIotaStrideBothDilation",
       {iota, zero},
       window("size=2x2 stride=2x2 lhs_dilate=2x2 rhs_dilate=2x2", "larger"),
       array("f32[3,3]", {5, 6, 7, 9, 10, 11, 13, 14, 15})},
      {"ReduceWindowMaxIotaPaddingStrideBaseDilation",
       {iota, zero},
       window("size=3x3 stride=3x3 pad=1_1x1_1 lhs_dilate=2x2", "larger"),
       array("f32[3,3]", {0, 2, 3, 8, 10, 11, 12, 14, 15})},
      {"StridedSlice",
       {array("f32[3,5]", {1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 17, 18, 19, 20, 21})},
       "slice(p0), slice={[0:3:2], [2:5:3]}",
       array("f32[2,1]", {3, 19})},
  });
}

TEST(HloAsXla, Gathers) {
  const HloArray nine = counted("s32[3,3]"), pairs = array("s32[3,3,2]", {-1, 1, -2, 2, -3, 3, -4, 4, -5, 5, -6, 6, -7, 7, -8, 8, -9, 9});
  expect_results({
      {"TensorFlowGatherV1",
       {nine, array("s32[2]", {0, 2})},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
       array("s32[2,3]", {1, 2, 3, 7, 8, 9})},
      {"TensorFlowGatherV2",
       {nine, array("s32[2]", {0, 2})},
       "gather(p0, p1), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={3,1}",
       array("s32[3,2]", {1, 3, 4, 6, 7, 9})},
      {"TensorFlowGatherMultipleBatchDims",
       {nine, array("s32[2,2]", {0, 2, 2, 1})},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=2, slice_sizes={3,1}",
       array("s32[2,3,2]", {1, 3, 4, 6, 7, 9, 3, 2, 6, 5, 9, 8})},
      {"TensorFlowGatherNd",
       {pairs, array("s32[2,2]", {0, 0, 1, 0})},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1,2}",
       array("s32[2,2]", {-1, 1, -4, 4})},
      {"TensorFlowGatherNdNonDefaultIndexVectorDim",
       {pairs, array("s32[2,2]", {0, 0, 1, 0})},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=0, slice_sizes={1,1,2}",
       array("s32[2,2]", {-2, 2, -1, 1})},
      {"BatchDynamicSlice",
       {nine, array("s32[2,2]", {2, 1, 1, 1})},
       "gather(p0, p1), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=0, slice_sizes={1,1}",
       array("s32[2,1,1]", {8, 5})},
      {"ZeroDimBounds",
       {array("s32[3,0]", {}), array("s32[2]", {0, 2})},
       "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,0}",
       array("s32[2,0]", {})},
      {"NoOutputWindowDims",
       {array("s32[3]", {0, 1, 2}), array("s32[2,2,1]", {0, 1, 2, 1})},
       "gather(p0, p1), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1}",
       array("s32[2,2]", {0, 1, 2, 1})},
  });
}

TEST(HloAsXla, Scatters) {
  const HloArray nine = counted("s32[3,3]"), pairs = array("s32[3,3,2]", {-1, 1, -2, 2, -3, 3, -4, 4, -5, 5, -6, 6, -7, 7, -8, 8, -9, 9});
  const HloArray rows = array("s32[2,3]", {10, 20, 30, 70, 80, 90});
  const std::string of_rows =
      "scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=";
  expect_results({
      {"TensorFlowScatterV1_Update", {nine, array("s32[2]", {0, 2}), rows}, of_rows + "second", array("s32[3,3]", {10, 20, 30, 4, 5, 6, 70, 80, 90})},
      {"TensorFlowScatter_Add", {nine, array("s32[2]", {0, 2}), rows}, of_rows + "whole_sum", array("s32[3,3]", {11, 22, 33, 4, 5, 6, 77, 88, 99})},
      {"TensorFlowScatter_Mul",
       {nine, array("s32[2]", {0, 2}), rows},
       of_rows + "whole_product",
       array("s32[3,3]", {10, 40, 90, 4, 5, 6, 490, 640, 810})},
      {"TensorFlowScatter_RepeatedIndices",
       {nine, array("s32[2]", {1, 1}), rows},
       of_rows + "whole_sum",
       array("s32[3,3]", {1, 2, 3, 84, 105, 126, 7, 8, 9})},
      {"NegativeIndices", {nine, array("s32[2]", {-1, 2}), rows}, of_rows + "whole_sum", array("s32[3,3]", {1, 2, 3, 4, 5, 6, 77, 88, 99})},
      {"TensorFlowScatterV2_Update",
       {nine, array("s32[2]", {0, 2}), array("s32[3,2]", {10, 30, 40, 60, 70, 90})},
       "scatter(p0, p1, p2), update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=second",
       array("s32[3,3]", {10, 2, 30, 40, 5, 60, 70, 8, 90})},
      {"TensorFlowScatter_MultipleBatchDims",
       {nine, array("s32[2,2]", {0, 2, 2, 1}), array("s32[2,3,2]", {10, 30, 40, 60, 70, 90, 5, 5, 5, 5, 5, 5})},
       "scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=2, "
       "to_apply=whole_sum",
       array("s32[3,3]", {11, 7, 38, 44, 10, 71, 77, 13, 104})},
      {"TensorFlowScatterNd_NonDefaultIndexVectorDim",
       {pairs, array("s32[2,2]", {0, 0, 1, 0}), array("s32[2,2]", {-10, 10, -20, 20})},
       "scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, "
       "to_apply=second",
       array("s32[3,3,2]", {-20, 20, -10, 10, -3, 3, -4, 4, -5, 5, -6, 6, -7, 7, -8, 8, -9, 9})},
      {"BatchDynamicUpdateSlice",
       {nine, array("s32[2,2]", {2, 1, 1, 1}), array("s32[2,1,1]", {10, 20})},
       "scatter(p0, p1, p2), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, "
       "to_apply=second",
       array("s32[3,3]", {1, 2, 3, 4, 20, 6, 7, 10, 9})},
      {"NoUpdateWindowDims",
       {array("s32[3]", {0, 1, 2}), array("s32[2,2,1]", {0, 1, 2, 1}), array("s32[2,2]", {10, 20, 30, 40})},
       "scatter(p0, p1, p2), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, "
       "to_apply=whole_sum",
       array("s32[3]", {10, 61, 32})},
      {"OobIndices",
       {nine, array("s32[6,2]", {2, 7, 2, 1, 1, 1, 5, 1, 2147483647, 1, 1, 2}), array("s32[6,1,1]", {10, 20, 30, 40, 50, 60})},
       "scatter(p0, p1, p2), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, "
       "to_apply=second",
       array("s32[3,3]", {1, 2, 3, 4, 30, 60, 7, 20, 9})},
      {"OobUpdateWindow",
       {pairs, array("s32[1,2]", {0, 2}), array("s32[1,2,2]", {-10, 10, -40, 40})},
       "scatter(p0, p1, p2), update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, "
       "to_apply=second",
       pairs},
  });
}

}  // namespace
}  // namespace podsim
