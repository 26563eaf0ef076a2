// What a Reference holds: expected arrays, where devices hold them, and how they are judged.
#pragma once

#include <functional>
#include <vector>

#include "sim/engine/numeric/judged_outputs.hpp"
#include "sim/engine/numeric/layout.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/reference_evaluator.hpp"

namespace podsim {

struct Reference::Contents {
  /// A box of a device's buffer that should equal a box of an array.
  struct Part {
    DeviceId device;
    BufferId buffer;
    DType dtype = DType::f32;
    Layout in_buffer, in_array;  // of words
    std::size_t array = 0;
    std::vector<DeviceId> addends{};  // devices whose equal boxes are added to it first
  };
  std::vector<std::vector<double>> arrays;
  std::vector<Part> parts;
  // Per array:
  std::vector<double> largest{};    // |element| of the result it belongs to, of those that are numbers
  std::vector<double> tolerance{};  // of the largest element
  std::vector<bool> exact{};        // integers must give the same bits
  std::vector<bool> is_judged{};
  std::vector<bool> follows{};      // computed from judged ones; empty: none is

  std::vector<JudgedOutputs> judged{};
  /// The arrays of all outputs, then those of the operands of `judged`, computed from these of judged nodes. None: nothing follows from judged nodes.
  std::function<Expected<std::vector<std::vector<double>>>(const GivenArrays&)> follow{};
  Cancellation stop;
};

}  // namespace podsim
