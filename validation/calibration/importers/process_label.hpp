// Process labels that launchers prepend to output lines.
#pragma once

#include <cstdint>
#include <optional>

#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

/// Removes the label from a line and returns the process; nullopt if the line has none.
///
///   srun -l              "3: text", padded on the left
///   mpirun --tag-output  "[1,3]<stdout>: text", with or without the space; newer ones "[name@1,3]<stdout>: text"; stderr as well
///   mpiexec -l           "[3] text", "[3]# text"
std::optional<std::int64_t> take_process_label(TextLine& line);

}  // namespace podsim
