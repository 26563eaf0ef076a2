// The memory that a module needs at most, by live ranges in the order of its text.
#pragma once

#include <optional>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Padded bytes of one device, by live ranges. XLA calls `parameters` argument, `temporary` temp and `aliased` alias.
struct HloPeakMemory {
  Bytes hbm;         // the largest live set, with parameters and results
  Bytes allocated;   // parameters + outputs + temporary - aliased; never below `hbm`
  Bytes required;    // what has to fit into the HBM: on TPUs `hbm`, by which their compiler refuses a module; on GPUs `allocated`
  Bytes parameters;  // these four in HBM
  Bytes outputs;
  Bytes temporary;   // the heap of everything else, gaps included; on TPUs these twice, as XLA tells it
  Bytes aliased;     // of outputs, in the place of a donated parameter
  Bytes vmem, cmem;  // the largest live sets of memory spaces 1 and 3 by themselves
  Bytes host;        // and of pinned memory of the host
};

/// The most bytes that are live at one time, instructions in the order of the text, computations of loops, calls and conditionals in the place of the
/// instruction that runs them. A value lives from its instruction to its last use; parameters of the entry live throughout, its results to the end,
/// and they have places from the beginning, in which smaller buffers lie while they are free. One place are: tuples and their elements, bitcasts,
/// reshapes (not of a scheduled module: one that the compiler left moves its elements), -done forms and their starts; the parts of a ConcatBitcast and their concatenation; an output and the operand that
/// output_to_operand_aliasing names; a dynamic-update-slice, scatter into one array or ragged-all-to-all and its target, a loop's tuple before, in and after the loop, and an output and the
/// parameter that it aliases, unless the old value is used after the new one is made, which then takes a place of its own; in HBM, a result and an
/// operand of the same size that nothing uses later, where buffer_sharing.hpp allows it and the operand makes the value itself. Fusions have no memory
/// inside. What is allocated is told by buffer_heap.hpp: the compiler of TPUs, known by tiles in layouts, places buffers in another way than that of
/// GPUs. Scratch of custom-calls is known where it is an output. nullopt: the module has no ENTRY, or more than 2^24 values.
std::optional<HloPeakMemory> peak_memory_of(const HloModule& module);

}  // namespace podsim
