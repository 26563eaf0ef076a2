// Scenarios in files (scenario.proto).
#pragma once

#include <string>
#include <string_view>

#include "workloads/scenario/fields.hpp"

namespace podsim {

/// The fields of a file. Errors: `file:line:column` of what is wrong: unknown fields, several values of one, cases. Their values are read when they are
/// used (read_scenario.hpp), and then blamed at their places in the file.
Expected<Fields> read_scenario(std::string_view text, const std::string& file);
std::string write_scenario(const Fields& fields);

/// The same of the file at `path`. Errors: it cannot be read.
Expected<Fields> load_scenario(const std::string& path);

}  // namespace podsim
