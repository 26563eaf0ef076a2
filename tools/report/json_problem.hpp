// Where a text is no JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.hpp"

namespace podsim {

/// nullopt: it is JSON. Otherwise what is wrong, with `file:line:column` where that is known.
std::optional<Diagnostic> problem_in_json(std::string_view text, const std::string& file);

}  // namespace podsim
