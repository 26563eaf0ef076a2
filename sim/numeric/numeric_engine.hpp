// Runs a schedule on real numbers: what every device's buffers hold in the end, whatever the order of tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/engine.hpp"

namespace podsim {

/// How the inputs are filled, by counter hash of (seed, tensor, global index).
enum class Filling {
  integers,  // uniform in {-4, ..., 4}: exact in float32, so results must be bit-equal to the plain product while 16 K <= 2^24
  uniform,   // uniform in (-1, 1)
};

/// The legal order in which tasks run: program order, or random choices among what is ready, from a seed.
struct Order {
  std::optional<std::uint64_t> random_seed;  // none: program order
};

struct NumericOptions {
  std::uint64_t seed = 1;
  Filling filling = Filling::integers;
  Order order;
  int threads = 0;  // devices in parallel; 0: as many as the machine has. Results do not depend on it.
};

/// Buffer contents, float32 (bf16 buffers hold values rounded to bf16), row-major: values[device][buffer]. Scratch buffers are dropped.
struct Tensors {
  std::vector<std::vector<std::vector<float>>> values;
};

using NumericEngine = Engine<Tensors>;

std::unique_ptr<NumericEngine> make_numeric_engine(const NumericOptions& options);

/// What the schedule's `computes` says its outputs are, from the same inputs, against what the engine found.
struct Comparison {
  bool bit_equal = false;
  double max_abs_error = 0;
  double max_rel_error = 0;  // max |difference| / max |reference|, reference in float64
  double tolerance = 0;      // float32: 1e-5; bf16: 2^-8 (1 + stores of one partial sum)
};

/// Expected outputs, computed plainly in float64 from the global inputs; reuse it across orders.
class Reference {
 public:
  /// Errors: `computes` is empty, or names tensors that the buffers do not hold.
  static Expected<Reference> make(const Schedule& lowered, const NumericOptions& options);
  [[nodiscard]] Comparison compare(const Schedule& lowered, const Tensors& tensors) const;

 private:
  std::vector<std::vector<std::vector<double>>> expected_;  // [device][buffer], outputs only
  double tolerance_ = 0;
};

}  // namespace podsim
