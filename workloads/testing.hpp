// What tests of workloads share: systems of a mesh of row and col, whole tensors of a schedule that ran on numbers. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/schedule/lower.hpp"
#include "sim/schedule/validate.hpp"
#include "topologies/system.hpp"
#include "workloads/part.hpp"
#include "workloads/test_plain.hpp"

namespace podsim::testing {

/// A mesh R x C; an axis with factors folds several dimensions.
inline Mesh mesh_of(int R, int C, bool wraps = true, std::vector<MeshFactor> row_factors = {}) {
  return *Mesh::make({{"row", R, wraps, std::move(row_factors)}, {"col", C, wraps}});
}

/// A slice of the machine, as row x col.
inline podsim::System slice_pod(const Machine& machine, const std::vector<int>& extents, int R, int C, Wrap::Rule rule = Wrap::Rule::automatic) {
  SystemSpec spec;
  spec.machine = machine;
  spec.slice = Slice{extents, false};
  spec.wrap = {rule, {}};
  spec.mesh = {{"row", R}, {"col", C}};
  return *make_system(spec);
}

/// A whole tensor, row-major.
struct Tensor {
  std::vector<std::int64_t> extents;
  std::vector<double> values;
};
using TensorsByName = std::map<std::string, Tensor>;

/// Inputs and outputs put together from the devices' shards. Every element must be there, and copies must be equal.
inline TensorsByName whole_tensors(const Schedule& schedule, const Tensors& found) {
  TensorsByName result;
  const Mesh& mesh = schedule.mesh;
  const std::vector<Buffer>& buffers = schedule.programs.front().buffers;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const Buffer& buffer = buffers[b];
    if (buffer.role == Role::scratch) continue;
    Tensor whole{buffer.extents, {}};
    std::size_t elements = 1;
    for (std::size_t d = 0; d < buffer.extents.size(); ++d) {
      for (const AxisView& axis : buffer.sharding[d]) whole.extents[d] *= axis.size;
      elements *= static_cast<std::size_t>(whole.extents[d]);
    }
    whole.values.assign(elements, std::nan(""));
    for (int device = 0; device < mesh.devices(); ++device) {
      if (!contains(schedule.programs.front().devices, DeviceId{device})) continue;
      const std::vector<float>& shard = found.values[static_cast<std::size_t>(device)][b];
      for (std::size_t e = 0; e < shard.size(); ++e) {
        std::int64_t rest = static_cast<std::int64_t>(e), at = 0, stride = 1;
        for (std::size_t d = buffer.extents.size(); d-- > 0; rest /= buffer.extents[d], stride *= whole.extents[d]) {
          std::int64_t position = 0;
          for (const AxisView& axis : buffer.sharding[d]) position = position * axis.size + mesh.coordinate(DeviceId{device}, axis);
          at += stride * (position * buffer.extents[d] + rest % buffer.extents[d]);
        }
        double& value = whole.values[static_cast<std::size_t>(at)];
        if (!std::isnan(value) && value != static_cast<double>(shard[e])) ADD_FAILURE() << buffer.tensor << ": devices hold different copies";
        value = static_cast<double>(shard[e]);
      }
    }
    const auto missing = std::count_if(whole.values.begin(), whole.values.end(), [](double value) { return std::isnan(value); });
    EXPECT_EQ(missing, 0) << buffer.tensor << ": elements that nobody wrote, or not a number";
    EXPECT_TRUE(result.emplace(buffer.tensor, std::move(whole)).second) << buffer.tensor << " is in two buffers";
  }
  return result;
}

/// Lowers, validates and runs a schedule; an empty result where that fails.
inline TensorsByName run_on_numbers(const Schedule& schedule, const CollectiveChooser& chooser, Filling filling = Filling::uniform) {
  const auto lowered = lower(schedule, chooser);
  if (!lowered) return ADD_FAILURE() << schedule.name << ": " << to_text(lowered.error()), TensorsByName{};
  if (const auto problems = validate(*lowered).all(); !problems.empty())
    return ADD_FAILURE() << schedule.name << " on " << to_text(schedule.mesh) << ": " << to_text(problems.front()), TensorsByName{};
  NumericOptions options;
  options.filling = filling;
  options.threads = 1;
  const auto tensors = make_numeric_engine(options)->run(*lowered);
  if (!tensors) return ADD_FAILURE() << schedule.name << ": " << to_text(tensors.error()), TensorsByName{};
  return whole_tensors(*lowered, *tensors);
}

/// So many rows of a tensor, flattened.
inline Matrix as_matrix(const Tensor& tensor, std::int64_t rows) {
  Matrix matrix(static_cast<std::size_t>(rows), tensor.values.size() / static_cast<std::size_t>(rows));
  matrix.values = tensor.values;
  return matrix;
}
/// Activations as [tokens, features], however they lie.
inline Matrix activations(const Tensor& tensor, std::int64_t tokens, ActivationLayout layout) {
  if (layout == ActivationLayout::tokens_by_row) return as_matrix(tensor, tokens);
  return transposed(as_matrix(tensor, static_cast<std::int64_t>(tensor.values.size()) / tokens));
}
/// Weights as [inputs, outputs]: what each dataflow reads of them.
inline Matrix weights(const Tensor& tensor, std::int64_t inputs, const ProductChoice& choice) {
  const DataflowTraits& flow = traits_of(choice.dataflow);
  const bool held_transposed = choice.transposed ? !flow.transpose_left : flow.transpose_right;
  if (!held_transposed) return as_matrix(tensor, inputs);
  return transposed(as_matrix(tensor, static_cast<std::int64_t>(tensor.values.size()) / inputs));
}

/// Relative to the largest.
inline ::testing::AssertionResult close(const Matrix& found, const Matrix& expected, double tolerance) {
  if (found.rows != expected.rows || found.columns != expected.columns)
    return ::testing::AssertionFailure() << found.rows << " x " << found.columns << ", expected " << expected.rows << " x " << expected.columns;
  double largest = 0;
  for (const double value : expected.values) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < found.values.size(); ++i)
    if (!(std::abs(found.values[i] - expected.values[i]) <= tolerance * largest))
      return ::testing::AssertionFailure() << "[" << i / found.columns << ", " << i % found.columns << "] is " << found.values[i] << ", expected "
                                           << expected.values[i] << " of " << largest;
  return ::testing::AssertionSuccess();
}

}  // namespace podsim::testing
