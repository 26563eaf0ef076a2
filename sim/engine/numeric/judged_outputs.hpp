// Outputs that are right by what they satisfy, not by their values: another order of additions may choose another pivot, and a solution of a badly
// conditioned system is far from the exact one however well it was computed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/engine/numeric/reference_linear_algebra.hpp"
#include "sim/schedule/reference_program.hpp"

namespace podsim {

/// P, L and U of one matrix if all three are outputs, or a solution that is one.
struct JudgedOutputs {
  bool solution = false;
  std::vector<std::size_t> outputs{};  // positions in ReferenceProgram::outputs: P, L, U; or x
  std::vector<int> nodes{};            // of these
  std::vector<int> operands{};         // nodes: A; or A, b
  std::int64_t n = 0, columns = 1;
  std::vector<std::vector<double>> arrays{};  // of the operands
};

/// All of a program, without the arrays of their operands.
std::vector<JudgedOutputs> judged_outputs(const ReferenceProgram& program);

/// `operands`, `found`: the arrays of the operands and of the outputs, whole.
RelativeResidual residual_of(const JudgedOutputs& judged, const std::vector<std::span<const double>>& operands, const std::vector<std::span<const double>>& found);

/// "|P A - L U| / |A| is 0.3; expected at most 1e-05", or why these are no factors.
std::string describe(const JudgedOutputs& judged, const RelativeResidual& residual);

}  // namespace podsim
