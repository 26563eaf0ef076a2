// The JSON that a verb prints, as a record keeps it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/expected.hpp"

namespace podsim {

/// What a JSON object is the result of: `run`, `compare`, `tune` (of products and blocks, or of training steps), `validate`, `sweep --export json`, `compare --hlo`, `validate --explain`, `diff`, `calibrate`, `check`.
enum class ResultKind { run, comparison, tuning, validation, sweep, differences, explanation, diff, calibration, check };
/// "run", "comparison", ...
std::string_view name_of(ResultKind kind);

/// Tells the kinds apart by their keys. Errors: no JSON, or that of no such verb, with `file:line:column`.
Expected<ResultKind> kind_of_result(std::string_view json, const std::string& file);

/// The JSON on one line, without wall_s and build_s of its object and of the objects in its arrays: how long podsim itself took differs from run to
/// run. Text that is no JSON object comes back as it is.
std::string recorded_result(std::string_view json);
/// JSON on one line.
std::string on_one_line(std::string_view json);

/// The number of the device at a place, "row=1,col=3", of the mesh that a result names; nothing where it has no such place.
std::optional<int> device_at(std::string_view json, std::string_view place);

}  // namespace podsim
