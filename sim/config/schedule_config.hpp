// Schedules as files: textproto for people, binary for size and speed.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "sim/config/encoding.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The newest version of schedule files that this program reads.
inline constexpr int schedule_format_version = 1;

/// Reads text or binary. `file` is for messages. Errors, all of them at once, with line and column (in a binary file: the path of the field): input
/// that does not parse or is truncated, unknown axes, buffers and labels, edges to tasks that are not earlier, negative sizes, more than 2^24
/// devices, indices or sizes beyond 2^62, a newer version. validate() does all further checks.
Expected<Schedule> read_schedule(std::string_view bytes, const std::string& file);

/// Bytes that read_schedule() reads back as an equal schedule. Regions refer to a buffer by name if the name is unique; edges refer to tasks by
/// position. Axes and buffers must exist (an assert). An empty list of products is read back as no claim.
std::string write_schedule(const Schedule& schedule, Encoding encoding);

}  // namespace podsim
