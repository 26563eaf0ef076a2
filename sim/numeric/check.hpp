// The proof behind `podsim check`: a schedule is matched, free of races and deadlock, and computes what it says.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

struct CheckOptions {
  std::uint64_t seed = 1;
  int random_orders = 3;                   // besides program order
  int threads = 0;                         // 0: as many as the machine has
  Bytes max_bytes{std::int64_t{8} << 30};  // of everything: buffers, one copy of the outputs, the reference
};

struct CheckReport {
  int devices = 0;
  int orders_tried = 0;  // legal orders that ran to their end on integers
  bool matched = false;  // well-shaped, and every half of a transfer has its partner
  bool deadlock_free = false;
  bool race_free = false;
  bool bit_equal = false;    // on integers all orders gave the same bits, and where that is exact they are the reference's
  double max_abs_error = 0;  // on uniform data, in program order; 0 if the schedule does not say what it computes
  double max_rel_error = 0;
  double tolerance = 0;  // of max_rel_error
  bool ok = false;       // all of the above hold and the errors are within the tolerance
  std::vector<Diagnostic> problems;
};

/// While no partial sum of integers in [-4, 4] can leave what float32 holds exactly: their results are then the reference's bits.
bool exact_on_integers(const Schedule& schedule);

/// validate() first; a schedule that is not matched or has a deadlock is not run. Then integers, in program order and in random orders, then
/// uniform data in program order. On integers a float32 result is exact, hence bit-equal to the reference, while 16 K <= 2^24: operands are at
/// most 4, so no partial sum of a product over K exceeds 16 K, and float32 holds all integers up to 2^24 (a collective over P devices: 4 P).
/// Beyond that, and in bf16, the tolerance decides. A schedule that does not say what it computes is only compared with itself.
/// Errors: more than max_bytes; `computes` names what the buffers do not hold (see Reference).
Expected<CheckReport> check(const Schedule& lowered, const CheckOptions& options);

}  // namespace podsim
