// Executes a schedule on given arrays: whole inputs in, whole outputs out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"

namespace podsim {

/// An input or output of a schedule, as a whole. Its extents are those that the claim gives it, else those of the tensor without padding.
struct GlobalTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> extents;
};
/// Each tensor once, in the order of the buffers. The schedule must be well-shaped.
std::vector<GlobalTensor> tensors_of(const Schedule& schedule, Role role);

/// Runs in program order, in the buffers' own dtypes: every store into a bf16 buffer rounds, and so do its inputs. Elements of outputs that no task
/// writes, or that no device holds, are NaN. A tensor that is held as partial sums is their sum. If devices that should hold the same elements differ,
/// the last of them counts: check() says whether they may.
/// Errors: those of NumericEngine::run(). The inputs must be complete (an assert).
Expected<GivenTensors> execute(const Schedule& lowered, const GivenTensors& inputs, const NumericOptions& options);

}  // namespace podsim
