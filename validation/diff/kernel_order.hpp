// Which instruction of a module a kernel in a command buffer is: XLA launches them as CUDA graphs, of which a profile tells the kernels' names and order alone.
#pragma once

#include <cstddef>
#include <vector>

#include "validation/diff/step_diff.hpp"

namespace podsim {

/// Instructions of one name, in as many trips as they have, and the kernels that they are.
struct KernelPair {
  std::vector<std::size_t> predicted, measured;  // positions in their lists
};

/// Aligns both lists in their order, such that the sum of these is largest. Only operations that occur equally often may be one:
///   8  the kernel has the instruction's name, whose dots are underscores: `loop_add_fusion_4` of loop_add_fusion.4
///   4  the same without its number: XLA runs equal fusions by one kernel, `wrapped_convert_4` for wrapped_convert.8
///   3  a custom-call or a product and a library's kernel of one category, matmul or attention, whose names say nothing of each other
/// Kernels of a library beside one that has an instruction, of the same category and as often or a multiple of that, belong to it too: attention runs several. Measured operations that are no
/// such kernels (StepOperation::is_kernel) are left out.
///   cost    O(p * m) for p instructions and m kernels; beyond 10^8 nothing is aligned
std::vector<KernelPair> kernels_in_order(const std::vector<StepOperation>& predicted, const std::vector<StepOperation>& measured);

}  // namespace podsim
