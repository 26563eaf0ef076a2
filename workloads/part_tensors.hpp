// The tensors of a part as matrices: what each of them is, and how it is stored and divided. They are the inputs and outputs of part_schedule(), so
// that nothing here can differ from what the engines see.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/part.hpp"

namespace podsim {

enum class TensorRole { weight, weight_gradient, activation, activation_gradient, statistic };  // statistic: the sums of a norm, per token
std::string_view name_of(TensorRole role);                                                      // "weight gradient"

/// An input or output of a part. Dimensions of a buffer that view a part of a matrix's rows or columns (slices, heads) are joined.
struct PartTensor {
  std::string tensor;  // in the part's schedule
  std::string name;    // the same, but what a residual adds up in the backward pass is called dY, dskip, dX
  TensorRole role = TensorRole::activation;
  DType dtype = DType::bf16;
  bool transposed = false;                          // stored [features, tokens]; of weights [outputs, inputs]
  std::array<std::int64_t, 2> extents{};            // rows and columns as stored, of the whole tensor
  std::array<std::vector<AxisView>, 2> sharding{};  // the axes that divide them, first most significant; axes of size 1 are left out
  friend bool operator==(const PartTensor&, const PartTensor&) = default;
};

/// In the order of the schedule's buffers. `schedule` must be the part's: an assert.
std::vector<PartTensor> tensors_of(const WorkloadPart& part, const Schedule& schedule);

}  // namespace podsim
