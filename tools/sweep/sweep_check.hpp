// Errors of a sweep file that do not depend on the combination of values.
#pragma once

#include <vector>

#include "tools/sweep/sweep_file.hpp"

namespace podsim {

/// Errors, at most 20, in file order, each at its value: a field that is missing or belongs to another problem; a text that cannot be parsed (an
/// unknown machine, a value without its unit); a part of a system (a slice, a mesh, a cable) that fits none of the others. A value that only some
/// combinations exclude is not an error, and neither is one that only the schedule excludes, such as a slice count that does not divide.
Status check_sweep(const std::vector<SweepBlock>& blocks);

/// Values of machines beyond the range of hardware, in files and in the sweep, each once.
std::vector<Diagnostic> doubts_about(const std::vector<SweepBlock>& blocks);

}  // namespace podsim
