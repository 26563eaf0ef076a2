// The proof behind `podsim check`: a schedule is matched, free of races and deadlocks, and computes what it claims.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The progress of a check.
struct CheckProgress {
  std::string_view doing;     // "random order 2 of 3"
  double part = 0;            // of the present step, 0 to 1
  bool has_part = false;      // false: unknown
};

/// What inputs are.
enum class InputData {
  random,  // integers for the proof, uniform data for the error
  arange,  // 0, 1, 2, .. over each tensor, row-major
  ones,
};
/// The inputs of the proof: "integers", "arange", "ones".
std::string_view name_of(InputData data);

struct CheckOptions {
  std::uint64_t seed = 1;
  int random_orders = 3;                   // in addition to program order
  int threads = 0;                         // 0: one per CPU
  Bytes max_bytes{std::int64_t{8} << 30};  // total: buffers, one copy of the outputs, the reference
  InputData data = InputData::random;
  bool structure_only = false;             // only validate(): no numbers, and no claim needed
  Cancellation stop{};                     // requested: the error is cancelled_work()
  std::function<void(const CheckProgress&)> progress{};  // now and then, from the calling thread
};

/// An output whose elements are few enough to be looked at.
struct CheckedOutput {
  std::string name;                   // of the tensor
  std::vector<std::int64_t> extents;  // without padding
  DType dtype = DType::f32;
  std::vector<double> values;         // row-major, in program order; complex numbers are two, the real part first
};
inline constexpr std::int64_t most_values_of_output = 64;

/// The error of one output on uniform data, in program order.
struct OutputError {
  std::string name;  // of the tensor
  double max_rel_error = 0;
  double found = 0, expected = 0;  // its first element
};

struct CheckReport {
  std::string compared = "nothing";  // what the results were compared with; see claim_of()
  int devices = 0;
  int orders_tried = 0;  // legal orders that ran to the end on integers
  bool matched = false;  // well-shaped, and every half of a transfer has its partner
  bool deadlock_free = false;
  bool race_free = false;
  bool bit_equal = false;      // on integers all orders gave the same bits: those of the reference, if there is one and it is exact
  std::string inexact{};       // why some results on integers are compared within a tolerance: the first operation that rounds; empty: all are exact
  std::string proven_on = "integers";  // or "uniform float32 data", "positive float32 data", "arange", "ones": the data of the proof
  double proof_rel_error = 0;  // of these, on integers and on uniform data in float32: the worst one for its tolerance
  double proof_tolerance = 0;  // where it hides everything (not_proven), the widest one of an output; infinite: of float32 that overflows
  double max_abs_error = 0;  // on uniform data, in program order; 0 if nothing was compared
  double max_rel_error = 0;
  double tolerance = 0;  // of max_rel_error
  bool is_residual = false;  // errors are residuals of factorisations and solutions, relative to norms
  InputData data = InputData::random;
  std::vector<CheckedOutput> outputs{};  // of arange and ones: those of at most most_values_of_output elements
  std::vector<OutputError> errors{};  // of outputs that are compared by value, in the order of the claim
  bool not_proven = false;  // nothing was found wrong, but roundings or overflow of float32 hide what would be: ok is false
  bool ok = false;       // all of the above hold, every output was compared, and the errors are within the tolerance
  std::vector<Diagnostic> problems;

  [[nodiscard]] bool compared_something() const { return compared != "nothing"; }
};

/// Roughly the multiply-adds of a check, runs and references together, where products that a BLAS computes count for less. For the caller to say, and to refuse:
/// check() itself has no limit but that of its memory. A core computes some 10^8 to 10^9 of them in a second.
double work_of_check(const Schedule& lowered, const CheckOptions& options);

/// Runs validate() first; a schedule that is unmatched or deadlocks is not executed.
///
/// The proof runs on integers, in program order and in random orders. Inputs are never zero and so small that every partial sum is exact
/// (integer_range()); buffers are float32 whatever their dtype. A correct schedule then gives the bits of the reference on every path, with tolerance
/// zero: a lost, doubled, swapped or stale contribution shows on any number of devices. Small schedules run a second time with other integers,
/// because two inputs may be equal by chance.
///
/// A claim that is a graph of operations may have some that round on integers too (ExactRange says which). What follows from these is compared within
/// the tolerance that Comparison defines, on uniform data in float32 too if the schedule has bf16 buffers; all orders still have to give the same
/// bits. A module on which integers prove nothing, since roundings may change its results on them beyond recognition (a softmax of large scores), is
/// proven on uniform data in float32; one on which these prove nothing, on numbers in (0, 1); one on which nothing proves anything is not_proven.
///
/// With arange or ones as inputs the proof runs on these, once in program order and in random orders, in float32, and the error is that of the proof;
/// where they prove nothing, it is not_proven.
///
/// Uniform data, in program order and in the buffers' own dtypes, gives the error that users of the schedule will see. Its tolerance follows from the
/// number of roundings (see Comparison). In bf16, deep graphs may allow more than the largest value: then this error proves nothing, the proof in
/// float32 does.
///
/// ok is false for a schedule that claims nothing, and for one with outputs that its claim does not cover. With structure_only, ok means only:
/// matched, free of races and deadlocks.
/// Errors: more than max_bytes; `computes` names tensors that the buffers do not hold (see Reference); cancelled_work().
Expected<CheckReport> check(const Schedule& lowered, const CheckOptions& options);

}  // namespace podsim
