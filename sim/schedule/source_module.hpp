// What the operations of a schedule compute that was made from a compiled module: the schedule has their costs, the module their meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "sim/base/ids.hpp"

namespace podsim {

class SourceModule {
 public:
  virtual ~SourceModule() = default;

  using Values = std::vector<double>;  // of a region or buffer, row-major; those of s32 are whole numbers

  /// Executes opaque operation OpaqueCost::operation on a device: `reads` are its regions, `writes` have the sizes of theirs and are filled.
  /// Thread-safe. Errors: what the module does cannot be executed, or is not what the schedule assumes (a loop that runs on, another branch).
  virtual Status execute(int operation, DeviceId device, std::span<const Values> reads, std::span<Values> writes) const = 0;

  struct Results {
    std::vector<std::vector<Values>> outputs;  // by device, then by output of program 0, in the order of its buffers
    bool exact = false;                        // float32 holds all values, and all sums in any order of their terms
  };
  /// Results that are off by what roundings may do: each by one part in 2^24, up or down by a hash of the seed; those of bf16 by one in 2^9, unless they are
  /// carried in float32. Results beyond the largest float32 are infinite, as on a device.
  struct Roundings {
    std::uint64_t seed = 0;
    bool bf16_in_f32 = false;
  };
  /// What the module computes by itself, in float64, from inputs by device, then by input of program 0. Errors: as above, and cancelled_work().
  virtual Expected<Results> results(const std::vector<std::vector<Values>>& inputs, std::optional<Roundings> roundings, Cancellation stop) const = 0;
};

}  // namespace podsim
