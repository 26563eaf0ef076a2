// Results as files.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "sim/config/encoding.hpp"
#include "sim/analysis/result.hpp"

namespace podsim {

/// The newest version of result files that this program reads.
inline constexpr int result_format_version = 1;

/// Reads text or binary. Errors, all of them at once: input that does not parse or is truncated, unknown or missing fields, negative or non-finite
/// numbers, a newer version.
Expected<Result> read_result(std::string_view bytes, const std::string& file);

/// Bytes that read_result() reads back as an equal result.
std::string write_result(const Result& result, Encoding encoding);

}  // namespace podsim
