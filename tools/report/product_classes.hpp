// The errors of many products by their number of rows, for the report of `podsim validate`.
#pragma once

#include <string>
#include <vector>

#include "validation/validate/validate.hpp"

namespace podsim {

/// A table with a line per case of 200 products or more: median and 95th percentile of |error| for m to 16, to 128, to 1024 and above. Empty without
/// such a case.
std::string product_class_table(const std::vector<DatasetValidation>& validations);

}  // namespace podsim
