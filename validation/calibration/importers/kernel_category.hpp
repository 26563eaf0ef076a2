// What a kernel of a GPU computes, told by its name: profiles of GPUs state no hlo_category.
#pragma once

#include <string>
#include <string_view>

namespace podsim {

/// A category of step_category.hpp. A kernel of NCCL or RCCL is its collective: `ncclDevKernel_AllReduce_Sum_bf16_RING_LL` an all-reduce; one that only sends and receives is what `operation`
/// says, else permute. Else an operation that names a collective is that one. Else the first row of a table of words that the kernel's or the operation's name contains; else elementwise.
///
/// `operation`: the HLO operation or the operator of PyTorch that launched it ("all-to-all.3", "aten::mm"); may be empty.
std::string kernel_category(std::string_view kernel, std::string_view operation);

/// A collective, by its category: what the cores of other devices take part in.
bool is_collective_category(std::string_view category);

/// "vectorized_elementwise_kernel" of "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int, float*)".
std::string short_kernel_name(std::string_view kernel);

}  // namespace podsim
