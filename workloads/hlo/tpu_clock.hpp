// The clock of a TPU's matrix units: what makes the compiler's estimated_cycles a time.
#pragma once

#include <optional>

#include "sim/machine/machine.hpp"

namespace podsim {

/// The peak of bf16 of a machine of Google's over what its matrix units do in a cycle: the clock at which units of 128 x 128 (v6e, tpu7x: 256 x 256)
/// multiply-adds give the published peak, as 1.5 GHz of v5e. By the name of the machine; nullopt: another machine.
/// Sources: of the units, cloud.google.com/tpu/docs/system-architecture (v3: 2 a core; v4, v5p: 4 a core, two cores a device; v5e: 4; v6e: 4 of 256 x 256) and the
/// cycles that libtpu 0.0.42.1 estimates of products, which come to 78 to 97 % of it.
std::optional<double> tpu_clock_hz(const Machine& machine);

}  // namespace podsim
