// Shapes that a text declares of a computation apart from its instructions: in the signature in front of "{", and of the entry in the module's header.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/base/expected.hpp"
#include "workloads/hlo/hlo_cursor.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// `(p0: f32[8], p1: (s32[], f32[4])) -> f32[8]`. Names are not kept: parameters stand in the order of their numbers.
struct HloSignature {
  struct Declared {
    HloShape shape;
    std::size_t at = 0;  // in the text
  };
  std::vector<Declared> parameters{};
  Declared result{};
};

/// The signature here, the cursor at its "(". Moves behind the shape of the result.
Expected<HloSignature> read_signature(HloCursor& cursor);

/// Whether a computation has the parameters and the root that its signature declares. Errors: the first that differs, in the signature.
Status check_signature(const HloSignature& signature, const HloComputation& computation, const HloCursor& cursor);

/// `{(f32[4]{0}, /*index=1*/(bf16[8]{0}))->f32[4]{0}}`, of entry_computation_layout.
struct HloEntryLayout {
  std::vector<HloShape> parameters{};
  HloShape result{};
};
/// The layout here, the cursor at its "{". Moves behind it.
Expected<HloEntryLayout> read_entry_layout(HloCursor& cursor);

/// Whether the entry has the parameters and the result of the header's entry_computation_layout, where it has one. Errors: the first that differs.
Status check_entry_layout(const HloModule& module);

/// Whether the header's input_output_alias and buffer_donor name outputs and parameters that the entry has, no parameter twice. Errors: the first that
/// does not, at the entry.
Status check_aliases(const HloModule& module);

}  // namespace podsim
