// The attributes that say where elements are taken from: windows, dim_labels, slices, paddings. Internal to the reader (read_hlo.hpp).
#pragma once

#include <optional>
#include <vector>

#include "sim/base/expected.hpp"
#include "workloads/hlo/hlo_cursor.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

Status read_window(HloCursor& cursor, std::vector<HloWindowDimension>& window);             // {size=3x3 stride=2x2 pad=1_1x1_1}
Status read_dim_labels(HloCursor& cursor, std::optional<HloConvolutionDims>& convolution);  // b01f_01io->b01f
Status read_slice(HloCursor& cursor, std::vector<HloSliceExtent>& slice);                   // {[0:8:2], [3:5]}
Status read_padding(HloCursor& cursor, std::vector<HloPadding>& padding);                   // 0_1x2_0_1

}  // namespace podsim
