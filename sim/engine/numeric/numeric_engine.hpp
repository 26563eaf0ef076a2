// Runs a schedule on real numbers: what every device's buffers hold in the end, whatever the order of tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// How the inputs are filled, by counter hash of (seed, tensor, global index), and how buffers are carried.
enum class Filling {
  integers,  // for proofs: non-zero integers of at most integer_range(), in float32 whatever a buffer's dtype: nothing rounds, results are exact
  uniform,   // uniform in (-1, 1), in the buffer's dtype, to which every store rounds
};

/// The dtype to which stores into a buffer of `dtype` round.
constexpr DType carried_in(Filling filling, DType dtype) { return filling == Filling::integers ? DType::f32 : dtype; }

/// The legal order in which tasks run: program order, or random choices among what is ready, from a seed. Random orders respect the waits of
/// the activity graph and nothing else: the order of a device's core is no part of happens-before.
struct Order {
  std::optional<std::uint64_t> random_seed{};  // none: program order, by (task, device) among what is ready
};

struct NumericOptions {
  std::uint64_t seed = 1;
  Filling filling = Filling::integers;
  Order order{};
  int threads = 0;                         // devices in parallel; 0: as many as the machine has. Results do not depend on it.
  Bytes max_bytes{std::int64_t{8} << 30};  // of an engine's run (4 bytes per element, whatever its dtype), or of a reference
  Cancellation stop{};                     // requested: the error is cancelled_work()
};

/// Buffer contents, float32 (of uniform data, bf16 buffers hold values rounded to bf16), row-major: values[device][buffer]. Scratch buffers are dropped (empty);
/// a device that runs no program has no buffers.
struct Tensors {
  std::vector<std::vector<std::vector<float>>> values;
};

/// What: runs a lowered schedule on numbers. Stateless: run() may be repeated, the same schedule gives the same outcome.
class NumericEngine {
 public:
  virtual ~NumericEngine() = default;
  /// Errors: a schedule that does not deploy, that cannot progress (names the tasks that wait for each other), that needs more than
  /// max_bytes, or has a buffer of more than 8 dimensions; cancelled_work().
  [[nodiscard]] virtual Expected<Tensors> run(const Schedule& lowered) const = 0;
};

/// Products are single-precision OpenBLAS calls with one thread each, devices run in parallel. (The first run sets OpenBLAS to one thread for
/// the whole process: it has no other setting.) Of uniform data, every bf16 store rounds to nearest even, the target of a transfer included;
/// inside one Matmul it is float32, inside a norm, an activation or attention float64. Outputs and scratch start as NaN: what nobody wrote stays
/// visible.
std::unique_ptr<NumericEngine> make_numeric_engine(const NumericOptions& options);

/// What the schedule's `computes` says its outputs are, from the same inputs, against what the engine found.
struct Comparison {
  bool bit_equal = false;    // every element is the reference rounded to the dtype that it is carried in: integers promise that
  double max_abs_error = 0;  // infinite if any element is not a finite number
  double max_rel_error = 0;  // max |difference| / max |reference|, reference in float64; of several products the worst
  double tolerance = 0;      // of uniform data. float32: 1e-5; bf16: 2^-8 (1 + stores of one partial sum), see stores_of_partial_sums()

  /// Where the relative error is largest, the first such; none if it is zero everywhere.
  struct Element {
    DeviceId device;
    BufferId buffer;
    std::int64_t index = 0;  // row-major
    double found = 0, expected = 0;
  };
  std::optional<Element> worst;
};

/// The contents of a device's buffer, row-major.
using BufferReader = std::function<std::span<const float>(DeviceId, BufferId)>;

/// Expected outputs, computed plainly in float64 from the global inputs; reuse it across orders.
///   a product       the global tensors, multiplied whole; every buffer of role output that holds a shard of it is compared
///   a collective    its definition, applied to the inputs of all devices along its axes; its output region is compared
/// Uniform bf16 inputs are rounded first.
class Reference {
 public:
  /// Errors: `computes` is empty, or names tensors that the buffers do not hold or hold only in part; more than max_bytes; cancelled_work().
  static Expected<Reference> make(const Schedule& lowered, const NumericOptions& options);
  /// What make() allocates at most; stops at the largest number. The schedule is well-shaped.
  static Bytes bytes_needed(const Schedule& lowered);
  /// Told to stop, it leaves elements out.
  [[nodiscard]] Comparison compare(const Tensors& tensors) const;
  [[nodiscard]] Comparison compare(const BufferReader& read) const;

 private:
  struct Contents;
  class Builder;
  std::shared_ptr<const Contents> contents_;  // never changes
};

/// The largest number of roundings along which a partial sum travels into an output: stores of a Matmul, of a Local that computes, of a transfer
/// that adds. Copies between buffers of one type are exact and do not count. Counted over the activity graph per region written: a write that
/// covers a region replaces its count, one that only overlaps keeps the larger; so it is exact where writes cover whole regions, else a bound.
/// The schedule unrolls without problems. Told to stop, it counts no further. Cost O(task instances * regions per buffer).
int stores_of_partial_sums(const Schedule& lowered, Cancellation stop = {});

}  // namespace podsim
