// What an instruction of a module does to its operands: computes, copies, or changes a layout.
#pragma once

#include <cstdint>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

enum class WorkKind : std::uint8_t {
  arithmetic,  // computes something, or fills an array
  copy,        // moves data: copies, slices, updates, concatenations, and fusions of these alone
  layout,      // the same with a transpose, or a copy to another layout, among it
};

/// Of an instruction of a computation of the module. Fusions and asynchronous operations are what they call, to any depth. Cost O(what it calls).
WorkKind work_kind_of(const HloModule& module, const HloInstruction& instruction);

}  // namespace podsim
