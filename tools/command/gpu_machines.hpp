// Shipped machines by the name of their GPU.
#pragma once

#include <string_view>

namespace podsim {

/// Of "NVIDIA A100-SXM4-40GB": dgx_a100. Empty: no shipped machine has such GPUs, of AMD or of another generation, or joins them so: cards of PCIe, H100 NVL.
std::string_view machine_with_gpu(std::string_view gpu);

}  // namespace podsim
