// The proof behind `podsim check`: a schedule is matched, free of races and deadlock, and computes what it says.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// How far a check is.
struct CheckProgress {
  std::string_view doing;     // "random order 2 of 3"
  double part = 0;            // of it, 0 to 1
  bool has_part = false;      // else it is not known
};

struct CheckOptions {
  std::uint64_t seed = 1;
  int random_orders = 3;                   // besides program order
  int threads = 0;                         // 0: as many as the machine has
  Bytes max_bytes{std::int64_t{8} << 30};  // of everything: buffers, one copy of the outputs, the reference
  bool structure_only = false;             // validate() alone: no numbers, and none asked for
  Cancellation stop{};                     // requested: the error is cancelled_work()
  std::function<void(const CheckProgress&)> progress{};  // now and then, from the calling thread
};

struct CheckReport {
  std::string compared = "nothing";  // what the results were compared with; see claim_of()
  int devices = 0;
  int orders_tried = 0;  // legal orders that ran to their end on integers
  bool matched = false;  // well-shaped, and every half of a transfer has its partner
  bool deadlock_free = false;
  bool race_free = false;
  bool bit_equal = false;    // on integers all orders gave the same bits, and if anything was compared those of the reference
  double max_abs_error = 0;  // on uniform data, in program order; 0 if nothing was compared
  double max_rel_error = 0;
  double tolerance = 0;  // of max_rel_error
  bool ok = false;       // all of the above hold, every output was compared, and the errors are within the tolerance
  std::vector<Diagnostic> problems;

  [[nodiscard]] bool compared_something() const { return compared != "nothing"; }
};

/// validate() first; a schedule that is not matched or has a deadlock is not run.
///
/// The proof runs on integers, in program order and in random orders: inputs that are never zero, of a range such that every partial sum is exact
/// (integer_range()), in buffers of float32 whatever their dtype. A right schedule then has the reference's bits on every path, and a lost, doubled,
/// swapped or stale contribution shows, on however many devices, because nothing is forgiven. Small schedules run a second time, with other
/// integers, so that values that happen to be equal hide nothing.
///
/// Uniform data, in program order, in the buffers' own dtypes, gives the error that users of the schedule will see; its tolerance follows
/// from the roundings (see Comparison).
///
/// What claims nothing is not ok, however well it runs; nor is what has outputs of which it claims nothing. With structure_only, ok means
/// matched, free of races and deadlock, and no more.
/// Errors: more than max_bytes; `computes` names what the buffers do not hold (see Reference); cancelled_work().
Expected<CheckReport> check(const Schedule& lowered, const CheckOptions& options);

}  // namespace podsim
