// The bytes that an instruction moves between its core and a memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Padded bytes that cross the boundary of HBM, or of the memories on the chip, where an instruction runs by itself; values elsewhere have none.
///
///   free, collectives, starts and dones,  none
///   send, recv
///   slice, dynamic-slice                  the slice is read and written
///   dynamic-update-slice                  the update is read and written, in place; the rest of the target is not touched
///   gather                                the indices and what they select are read, the result written
///   scatter                               indices and updates are read, the updates written in place and, where it combines, what was there read; where the old array is
///                                         needed, XLA has a copy of its own
///   fusion                                the same rules for its parameters and its result: of a parameter that is only sliced
///                                         the slices, of an updated one nothing but the update; else the whole. Also through a fusion inside it
///   others                                operands are read, the result is written
///
/// Registers are loaded and stored whole, so on the chip a slice or an update counts by the tiles of the array that it is a part of.
/// Control flow (while, conditional, call) has none of its own. Keeps what it finds of fused computations: each is looked through once.
class HloTraffic {
 public:
  /// On the chip: VMEM, and CMEM of v4, from which registers are loaded as from VMEM, or through it.
  enum class Memory : std::uint8_t { hbm, on_chip };

  /// The module must outlive it.
  explicit HloTraffic(const HloModule& module, Memory memory = Memory::hbm) : module_{&module}, memory_{memory} {}

  struct Amount {
    Bytes read, written;
    friend bool operator==(const Amount&, const Amount&) = default;
  };
  Amount of(const HloComputation& computation, const HloInstruction& instruction);

 private:
  struct Fused {
    std::vector<std::optional<Bytes>> parameters;  // read of each parameter; nullopt: all of it
    Bytes written;
    int updated = -1;  // the parameter in whose place the result lies, of which only a part is written
  };
  const Fused& fused(int computation);
  /// What a fusion runs, which may be inside another one; nullptr for other instructions.
  const Fused* fused_by(const HloInstruction& instruction);
  [[nodiscard]] bool reads_what_was_there(const HloInstruction& scatter) const;
  [[nodiscard]] Bytes here(const HloShape& shape) const { return memory_ == Memory::hbm ? device_bytes_in(shape, HloMemory::hbm) : device_bytes_on_chip(shape); }
  /// The bytes of `part` of `whole`, if that lives here.
  [[nodiscard]] Bytes if_here(const HloShape* whole, const HloShape& part) const;
  [[nodiscard]] Bytes part_of(const HloShape& whole, const HloShape& part) const;

  const HloModule* module_;
  Memory memory_;
  std::map<int, Fused> fused_;
};

}  // namespace podsim
