// Labels that launchers put before the lines of each process.
#pragma once

#include <cstdint>
#include <optional>

#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

/// Takes the label off a line and tells the process; nothing if it has none.
///
///   srun -l              "3: text", padded on the left
///   mpirun --tag-output  "[1,3]<stdout>: text", with or without the space; newer ones "[name@1,3]<stdout>: text"; stderr as well
///   mpiexec -l           "[3] text"
std::optional<std::int64_t> take_process_label(TextLine& line);

}  // namespace podsim
