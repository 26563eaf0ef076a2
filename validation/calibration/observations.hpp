// Observations: how long operations took on real machines. What importers produce, what calibrate and validate read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// What ran. The collective kinds are those of `run --collective`; a permute is one shift by 1 of all devices.
enum class ObservedOp { all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, reduce, permute, matmul, hbm_copy };
std::string_view name_of(ObservedOp op);  // "all-gather", "hbm_copy"
std::optional<ObservedOp> observed_op_named(std::string_view name);

/// How a collective or a collective matmul was carried out, as far as the source tells. Plain: a collective by itself, with nothing beside it; one after
/// the other. Overlapped: with arithmetic beside it; passed on one way. Bidirectional: passed on both ways. A matmul or a copy is by itself.
enum class ObservedSchedule { unknown, plain, overlapped, bidirectional };
std::string_view name_of(ObservedSchedule schedule);
std::optional<ObservedSchedule> observed_schedule_named(std::string_view name);

/// One row. `bytes` is what `run --bytes` means: the input on each device (hbm_copy: what is copied, read once and written once); of a matmul
/// nothing. `devices` is how many take part: of a collective along one axis its ring, not the mesh. m, n, k are of the whole product that each
/// device computes, of a collective with a matmul too: after an all-gather of [m/devices, k] or of [k/devices, n], before a reduce-scatter of [m, n].
struct Observation {
  ObservedOp op = ObservedOp::all_gather;
  int devices = 1;
  Bytes bytes{};
  Seconds time{};
  std::string axis{};              // of the mesh; empty: the only one, or not told
  std::optional<int> array_dim{};  // the dimension of the array that was gathered or scattered
  std::optional<DType> dtype{};
  std::int64_t m = 0, n = 0, k = 0;  // of a matmul, and of a collective with one; `schedule` plain: one after the other
  ObservedSchedule schedule = ObservedSchedule::unknown;
  std::string source{};    // where the row is from
  SourceLocation where{};  // in the file that it was read from
};

/// A collective with a matmul: several operations.
inline bool is_composite(const Observation& o) { return o.m > 0 && o.op != ObservedOp::matmul; }

/// The CSV of the contract: a heading `op,devices,bytes,seconds` with optional axis, array_dim, dtype, m, n, k, schedule, source, in any order; `#`
/// begins a comment line. Numbers are bare: bytes and seconds. Errors: `file:line:column` of unknown or missing columns, words that are no operation,
/// numbers that are not positive or too large to multiply (2^20 devices, 2^42 bytes, 2^30 rows or columns), fields that do not belong to the
/// operation.
Expected<std::vector<Observation>> read_observations(std::string_view text, const std::string& file);
std::string write_observations(const std::vector<Observation>& observations);

}  // namespace podsim
