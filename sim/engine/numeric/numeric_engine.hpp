// Executes a schedule on real numbers: the final contents of every device's buffers, for any order of tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "sim/engine/numeric/rounding.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// How inputs are filled, by counter hash of (seed, tensor, global index), and how buffers are rounded.
enum class Filling {
  integers,   // for proofs: non-zero integers of at most integer_range(), in float32 if a buffer is narrower; nothing rounds, so results are exact
  uniform,    // uniform in (-1, 1), in the buffer's dtype; every store rounds to it
  fractions,  // uniform in (-1, 1), in float32 if a buffer is narrower
  positive,   // uniform in (0, 1), the same: for what computes badly on numbers of either sign, as the square root of a sum of second moments
  arange,     // 0, 1, 2, ..: the row-major position in the tensor, in float32
  ones,       // 1 everywhere, in float32
              // Both parts of complex numbers, but in the last two, where they are real. s32 and s8 buffers hold integers whatever the filling,
              // and inputs with ReferenceNode::below whole numbers below that.
};

/// The dtype to which stores into a buffer of `dtype` round.
constexpr DType carried_in(Filling filling, DType dtype) { return is_narrow(dtype) && filling != Filling::uniform ? DType::f32 : dtype; }

/// The order in which tasks run: program order, or random choices among the ready tasks, from a seed. Random orders respect only the waits of the
/// activity graph: the program order of a device's core is not part of happens-before.
struct Order {
  std::optional<std::uint64_t> random_seed{};  // nullopt: program order, by (task, device) among ready activities
};

struct NumericOptions {
  std::uint64_t seed = 1;
  Filling filling = Filling::integers;
  Order order{};
  int threads = 0;                         // threads, over devices; 0: one per CPU. Results do not depend on it.
  Bytes max_bytes{std::int64_t{8} << 30};  // of an engine's run (4 bytes per word, storage.hpp), or of a reference
  Cancellation stop{};                     // requested: the error is cancelled_work()
};

/// Buffer contents, row-major words (storage.hpp): values[device][buffer]. With uniform data, narrow buffers hold values rounded to their type. Scratch buffers are
/// empty; a device that runs no program has no buffers.
struct Tensors {
  std::vector<std::vector<std::vector<float>>> values;
};

/// Executes a lowered schedule. Stateless: run() may be repeated, and the same schedule gives the same result.
class NumericEngine {
 public:
  virtual ~NumericEngine() = default;
  /// Errors: a schedule that does not deploy, that deadlocks (the message names the tasks that wait for each other), that needs more than max_bytes,
  /// that has a buffer of more than 8 dimensions, or that cannot work on its data (Cause::data: a singular matrix, an index of no row); cancelled_work().
  [[nodiscard]] virtual Expected<Tensors> run(const Schedule& lowered) const = 0;
};

/// Products are single-precision OpenBLAS calls with one thread each; devices run in parallel. (The first run sets OpenBLAS to one thread for the
/// whole process: it has no other setting.) With uniform data, every narrow store rounds to nearest even (s8 wraps), also at the target of a transfer.
/// Inside one Matmul arithmetic is float32, of integers that of s32; inside a norm, an activation or attention it is float64. Outputs and scratch start as NaN, so unwritten elements
/// stay visible.
std::unique_ptr<NumericEngine> make_numeric_engine(const NumericOptions& options);

/// The difference between the outputs of an engine and the reference result of the schedule's `computes` on the same inputs.
///
/// Tolerances are relative to the largest |element| of an output. Of products and collectives: 1e-5 for float32, 2^-8 (1 + stores of one partial sum)
/// if the schedule has bf16 buffers (stores_of_partial_sums()), 2^-4 and 2^-3 in its place where it stores results in f8e4m3fn and f8e5m2. Integers are exact, but where roundings change what a module makes of them: that proves nothing. Of a graph of operations at least that; and 8 times what roundings do to the
/// reference: it is evaluated again, a few times, with every result that is not just moved off by one part in 2^24 (float32) or in 2^9 (bf16; as many
/// of these as the stores of one partial sum are per node of the longest path), up or down at random, and with each term of a K-term sum off by
/// sqrt(K) times that. So a tolerance grows with depth, length of sums and cancellation as the errors themselves do, whatever the operations.
/// It is infinite where they make a NaN or an infinity of a number, or the other way round.
/// Factors and solutions of linear systems are judged by what they satisfy (judged_outputs.hpp): the relative error is that of a residual then.
struct Comparison {
  bool bit_equal = false;    // every element equals the reference rounded to the buffer's dtype
  bool agrees = false;       // the same bits where the output is exact, within the tolerance elsewhere
  bool exact = false;        // all outputs are: integers through operations that keep them exact (exactness())
  double max_abs_error = 0;  // infinite if any element is not a finite number where the reference is one
  double max_rel_error = 0;  // max |difference| / max |reference|, reference in float64; of several outputs, the worst one for its tolerance
  double tolerance = 0;      // of that output

  /// The first element with the largest relative error; nullopt if all errors are zero.
  struct Element {
    DeviceId device;
    BufferId buffer;
    std::int64_t index = 0;  // of the word, row-major
    double found = 0, expected = 0;
  };
  std::optional<Element> worst;
  /// Each output that is compared by value, in the order of the claim.
  struct Output {
    std::optional<Element> first;  // its first element; its device and buffer say which output it is
    double max_rel_error = 0;
  };
  std::vector<Output> outputs{};
  bool is_residual = false;  // max_rel_error is that of a factorisation or solution, judged by what it satisfies
  std::string why{};         // it is none
};

/// The contents of a device's buffer: words, row-major.
using BufferReader = std::function<std::span<const float>(DeviceId, BufferId)>;

/// Reference outputs, computed in float64 from the global inputs; reusable across orders.
///   a product       multiplies the global tensors; every output buffer that holds a shard of the product is compared
///   a graph         evaluates its operations on the global tensors; every output buffer that holds a shard of an output is compared
///   a collective    applies its definition to the inputs of all devices along its axes; its output region is compared
/// Uniform bf16 inputs are rounded first.
class Reference {
 public:
  /// Errors: `computes` is empty, or names tensors that the buffers do not hold or hold only in part; blocks of a collective that differ where a
  /// graph says that they are the same; more than max_bytes; cancelled_work().
  static Expected<Reference> make(const Schedule& lowered, const NumericOptions& options);
  /// An upper bound on the bytes that make() allocates; saturates. The schedule must be well-shaped.
  static Bytes bytes_needed(const Schedule& lowered);
  /// Of all outputs; 0: all are exact. Infinite where float32 overflows, or roundings decide what is a number: what a device makes of that proves nothing.
  [[nodiscard]] double widest_tolerance() const;
  /// If cancelled, some elements are not compared.
  [[nodiscard]] Comparison compare(const Tensors& tensors) const;
  [[nodiscard]] Comparison compare(const BufferReader& read) const;

 private:
  struct Contents;
  class Comparer;
  class Builder;
  std::shared_ptr<const Contents> contents_;  // never changes
};

/// The largest number of roundings on the path of a partial sum into an output: stores of a Matmul, of a computing Local, of a transfer that adds.
/// Copies between buffers of one dtype are exact and do not count. Counted over the activity graph per written region: a write that covers a region
/// replaces its count, a write that only overlaps keeps the larger one. Exact where writes cover whole regions, otherwise an upper bound.
/// The schedule must unroll without problems. If cancelled, the count is incomplete. Cost O(task instances * regions per buffer).
int stores_of_partial_sums(const Schedule& lowered, Cancellation stop = {});

}  // namespace podsim
