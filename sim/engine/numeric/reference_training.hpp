// The operations of training steps in float64, on whole arrays: what ReferenceKind has of them. Written from the definitions, apart from the kernels
// that execute schedules (training_kernels.hpp).
#pragma once

#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/reference_program.hpp"

namespace podsim {

// `last`: the extent of the last dimension.
std::vector<double> reference_softmax(std::vector<double> a, std::int64_t last);
std::vector<double> reference_log_sum_exp(const std::vector<double>& a, std::int64_t last);

// Errors: an index that is no whole number from 0 to rows - 1 (Cause::data).
Expected<std::vector<double>> reference_one_hot(const std::vector<double>& index, std::int64_t rows);
Expected<std::vector<double>> reference_take_rows(const std::vector<double>& a, const std::vector<double>& index, std::int64_t rows);
Expected<std::vector<double>> reference_add_rows(const std::vector<double>& b, const std::vector<double>& index, std::int64_t rows);

}  // namespace podsim
