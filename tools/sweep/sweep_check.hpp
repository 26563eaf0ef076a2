// What is wrong with a sweep whatever it is combined with.
#pragma once

#include <vector>

#include "tools/sweep/sweep_file.hpp"

namespace podsim {

/// Errors, at most 20 of them in the order of the file, each at its value: a field that is missing or belongs to another problem; a text that cannot
/// be read (an unknown machine, a value without its unit); a part of a system (a slice, a mesh, a cable) that goes with none of the others. What does
/// not apply to some combinations only is no error; neither is what only a schedule finds wrong, as a slice count that divides nothing.
Status check_sweep(const std::vector<SweepBlock>& blocks);

}  // namespace podsim
