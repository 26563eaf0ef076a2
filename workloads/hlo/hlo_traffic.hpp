// The bytes that an instruction moves between its core and memory.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Padded bytes that cross the boundary of HBM (memory space 0) where an instruction runs by itself; values in other spaces have none.
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
/// Control flow (while, conditional, call) has none of its own. Keeps what it finds of fused computations: each is looked through once.
class HloTraffic {
 public:
  /// The module must outlive it.
  explicit HloTraffic(const HloModule& module) : module_{&module} {}

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

  const HloModule* module_;
  std::map<int, Fused> fused_;
};

}  // namespace podsim
