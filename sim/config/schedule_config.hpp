// Schedules as files: textproto for people and hand-written ones, binary for size and speed.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "sim/config/encoding.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The newest schedule file that is understood.
inline constexpr int schedule_format_version = 1;

/// Reads either form. `file` is for messages. Errors, all of them at once, with line and column (in a binary file: the path of the field):
/// what does not parse or is cut short, unknown axes, buffers and labels, edges to tasks that are not earlier, negative sizes, more than
/// 2^24 devices, indices or sizes beyond 2^62, a newer version. Whether the schedule makes sense beyond that is validate()'s to say.
Expected<Schedule> read_schedule(std::string_view bytes, const std::string& file);

/// Bytes from which read_schedule() makes an equal schedule. Regions name their buffer where only one has the name; edges give positions.
/// Axes and buffers must exist (an assert); an empty list of products is read back as nothing claimed.
std::string write_schedule(const Schedule& schedule, Encoding encoding);

}  // namespace podsim
