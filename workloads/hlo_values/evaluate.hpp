// One HLO instruction on one device, by the definition of its operation. Written apart from the lowering to schedules, so that either checks the
// other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/expected.hpp"
#include "workloads/hlo/hlo_module.hpp"
#include "workloads/hlo_values/hlo_array.hpp"

namespace podsim {

/// How results that are real numbers are treated, and what they tell of exactness. The largest sum and `integral` together prove that a run on
/// whole numbers is exact in a type: every sum of whole numbers with absolute values up to 2^24 is exact in f32.
struct HloArithmetic {
  /// If set, every real result of an operation that rounds, and every partial sum of a reduction, is off by one part in 2^24, up or down by a hash; in
  /// types of 16 bits by one part in 2^9, of fewer by one in 2^4, in f64 by one in 2^53. A sum of products is off by one part in 2^24 of the sum of their absolute
  /// values, as its partial sums would make it. Beyond the largest f32 it is infinite, but in f64. So two seeds show what roundings do to a result.
  std::optional<std::uint64_t> perturb_seed{};
  bool narrow_as_f32 = false;  // types of 16 bits or fewer round as f32 does
  /// If set, results of types of 8 bits are the nearest numbers of the type, whatever the seed: they are meant to be coarse.
  bool round_8_bits = false;
  std::uint64_t results = 0;  // perturbed so far: the counter of the hash

  /// Of any dot, convolution, reduction, addition, subtraction or multiplication: the largest sum of the absolute values of its terms (a product is
  /// one term). Terms that are not finite are left out.
  double largest_sum = 0;
  bool integral = true;  // every real value that was made is a whole number, or infinite
};

/// Where an instruction runs.
struct HloDevice {
  std::int64_t partition = 0, replica = 0;
  friend bool operator==(const HloDevice&, const HloDevice&) = default;
};

/// The value of an instruction. Real numbers are computed in double, never rounded to the HLO type; whole numbers wrap around at their width.
/// Fusions, calls, loops, branches, maps and reductions run what they call. Collectives, parameters and the phases of asynchronous operations need
/// interpret() (interpret.hpp).
/// cost    O(elements) of operands and result; of products and windows O(multiplications)
/// errors  at the instruction: `NAME: OPCODE is not interpreted`, shapes that do not fit together, more than 2^26 elements
Expected<HloArrays> evaluate(const HloModule& module, const HloComputation& computation, const HloInstruction& instruction,
                             const std::vector<const HloArrays*>& operands, const HloDevice& device, HloArithmetic& arithmetic);

/// A collective, or a conditional with collectives in its branches, [device][operand][leaf] -> [device][result], on all devices of the module.
/// errors  as above
Expected<std::vector<HloArrays>> evaluate_on_all(const HloModule& module, const HloComputation& computation, const HloInstruction& instruction,
                                                 const std::vector<std::vector<HloArrays>>& operands, HloArithmetic& arithmetic);

}  // namespace podsim
