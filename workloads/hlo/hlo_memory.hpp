// The memory that a module needs at most, by live ranges in the order of its text.
#pragma once

#include <optional>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Padded bytes of one device.
struct HloPeakMemory {
  Bytes hbm;         // at the peak, with parameters and results
  Bytes parameters;  // of it
  Bytes vmem;        // the peak of memory space 1 by itself
};

/// The most bytes that are live at one time, instructions in the order of the text. A value lives from its instruction to its last use; parameters of
/// the entry live throughout, its results to the end. One place are: tuples and their elements, bitcasts, -done forms and their starts; a
/// dynamic-update-slice and its target, a loop's tuple before, in and after the loop, and an output and the parameter that it aliases, unless the old
/// value is used after the new one is made, which then takes a place of its own. Fusions have no memory inside; a loop or call adds the peak of what
/// it runs. Scratch of custom-calls and padding of allocations are not known. nullopt: the module has no ENTRY.
std::optional<HloPeakMemory> peak_memory_of(const HloModule& module);

}  // namespace podsim
