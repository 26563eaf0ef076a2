// Whether instructions and the computations that they call agree on shapes.
#pragma once

#include "sim/base/expected.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Layouts are left out. Fusions, calls and asynchronous starts have an operand for each parameter, of its shape, and the root's shape (of a start its
/// second element); of a loop the operand, the body's parameter and root and the condition's parameter have its shape, and the condition gives a pred[]; a conditional has an operand
/// for each branch, of the shape of its parameter, the roots have its shape, and a pred[] or s32[] chooses. Reductions, maps, scatters and sorts call
/// computations of as many numbers as they combine, that of a sort gives a pred[]; custom calls are not looked at. Errors: at the first call that does not fit. Cost O(arrays of the shapes).
Status check_call_shapes(const HloModule& module);

}  // namespace podsim
