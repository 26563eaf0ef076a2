// Results as files.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "sim/config/encoding.hpp"
#include "sim/analysis/result.hpp"

namespace podsim {

/// The newest result file that is understood.
inline constexpr int result_format_version = 1;

/// Reads either form. Errors, all of them at once: what does not parse or is cut short, unknown or missing fields, numbers that are not
/// finite or negative, a newer version.
Expected<Result> read_result(std::string_view bytes, const std::string& file);

/// Bytes from which read_result() makes an equal result.
std::string write_result(const Result& result, Encoding encoding);

}  // namespace podsim
