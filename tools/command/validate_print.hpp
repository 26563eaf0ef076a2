// Validations as tables, JSON, CSV and a plot.
#pragma once

#include <string>
#include <vector>

#include "validation/validate/validate.hpp"

namespace podsim {

/// A line per case, figures of each rung, what is above its bound; with `rows` every row first.
std::string validation_table(const std::vector<DatasetValidation>& validations, bool rows);
std::string validation_json(const std::vector<DatasetValidation>& validations);
/// A line per row.
std::string validation_csv(const std::vector<DatasetValidation>& validations);
/// Predicted over measured, both logarithmic; a colour per rung, hollow where it does not count.
std::string validation_svg(const std::vector<DatasetValidation>& validations);

/// "all-gather 16 MiB on 8 along col", "matmul 1024x1024x1024".
std::string observation_text(const Observation& observation);

}  // namespace podsim
