// Validations as tables, JSON, CSV and a plot.
#pragma once

#include <string>
#include <vector>

#include "validation/validate/explain_rows.hpp"
#include "validation/validate/validate.hpp"

namespace podsim {

/// One line per case, the errors of each tier, cases above their bound; with `rows` preceded by all rows.
std::string validation_table(const std::vector<DatasetValidation>& validations, bool rows);
std::string validation_json(const std::vector<DatasetValidation>& validations);
/// One line per row.
std::string validation_csv(const std::vector<DatasetValidation>& validations);
/// Of explain_rows(): one line per row; the same as JSON.
std::string explained_table(const std::vector<ExplainedRow>& rows);
std::string explained_json(const std::vector<ExplainedRow>& rows);
/// Predicted over measured time, both logarithmic; one colour per tier, hollow if the row does not count.
std::string validation_svg(const std::vector<DatasetValidation>& validations);

/// "all-gather 16 MiB on 8 along col", "matmul 1024x1024x1024".
std::string observation_text(const Observation& observation);

}  // namespace podsim
