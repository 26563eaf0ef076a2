// The lines of a device as text: time to the right, a row per line.
#pragma once

#include <string>

#include "sim/base/expected.hpp"
#include "tools/page/record.hpp"

namespace podsim {

inline constexpr std::size_t narrowest_timeline = 40, widest_timeline = 100'000;  // columns

/// Columns of equal time from the start of the run to its end, at most `columns` wide with the names of the lines. A column shows the mark of the operation
/// that takes most of it, `.` where the line is busy for less than a tenth of it, and a space where it is idle. Tasks that belong to no operation of the
/// run's result are operations by their own name without its slice; calls and what they hold are their functions. Below, what each mark means, by the first column that shows it. Coloured: on
/// the colour of what it is, as on the page (role_colours.hpp).
/// Errors: the record's result is none (of the file `name`).
///   cost    O(bars + lines * columns)
Expected<std::string> timeline_chart(const Record& record, const RecordedTimeline& timeline, const std::string& name, std::size_t columns, bool coloured);

}  // namespace podsim
