// Observations: measured times of operations on real machines. Importers produce them, calibrate and validate read them.
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

/// The observed operation. Collective kinds are those of `run --collective`; a permute is one shift by 1 on all devices. fft, ifft: of three dimensions.
/// training_step: a whole one, which the study of its dataset describes. run: whatever `podsim run` simulates, as that study describes it.
enum class ObservedOp { all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, reduce, permute, matmul, hbm_copy, fft, ifft, training_step, run };
std::string_view name_of(ObservedOp op);  // "all-gather", "hbm_copy"
std::optional<ObservedOp> observed_op_named(std::string_view name);

/// How a collective or collective matmul was executed, if the source states it. plain: a collective without concurrent arithmetic; with a matmul: one
/// after the other. overlapped: concurrent with the arithmetic, in one direction. bidirectional: concurrent, in both directions. A matmul or copy
/// runs alone.
enum class ObservedSchedule { unknown, plain, overlapped, bidirectional };
std::string_view name_of(ObservedSchedule schedule);
std::optional<ObservedSchedule> observed_schedule_named(std::string_view name);

/// One row. `bytes` is the argument of `run --bytes`: the input per device (hbm_copy: the bytes copied, read once and written once); unused for a
/// matmul, a training step and a run; of an FFT the complex block of a device. `devices` is the number that take part: for a collective along one axis its ring, not the mesh. m, n, k are the whole product that each
/// device computes; with a collective: after an all-gather of [m/devices, k] or [k/devices, n], or before a reduce-scatter of [m, n].
struct Observation {
  ObservedOp op = ObservedOp::all_gather;
  int devices = 1;
  Bytes bytes{};
  Seconds time{};
  std::string axis{};              // of the mesh; empty: the only one, or not stated
  std::string slice{};             // "1x4": where it ran, if not on the slice that all rows are predicted on
  int groups = 1;                  // of `devices` each, that did the same at once; they fill the slice
  bool in_place = false;           // the own block was where the collective leaves it
  std::optional<int> array_dim{};  // the dimension of the array that is gathered or scattered
  std::optional<DType> dtype{};
  std::int64_t m = 0, n = 0, k = 0;  // of a matmul, and of a collective with one
  std::int64_t points = 0;           // of an FFT: in each of its three dimensions
  std::vector<int> mesh{};           // of an FFT: how many devices divide its first dimension, and its second
  std::string step{};                // of a training step: its name in the study
  int pods = 1;                      // of a training step: the number of slices
  std::string run{};                 // of a run: its name in the study
  std::optional<double> spread{};    // of the times that were repeated: (longest - least) / the time of the row
  ObservedSchedule schedule = ObservedSchedule::unknown;
  std::string source{};    // the origin of the row
  SourceLocation where{};  // in the file that it was read from
};

inline bool is_training_step(const Observation& o) { return o.op == ObservedOp::training_step; }
inline bool is_run(const Observation& o) { return o.op == ObservedOp::run; }
/// Whether a study describes what a row names: a step or a run.
inline bool is_described(const Observation& o) { return is_training_step(o) || is_run(o); }
inline bool is_fft(const Observation& o) { return o.op == ObservedOp::fft || o.op == ObservedOp::ifft; }

/// Whether a row is a collective with a matmul.
inline bool is_composite(const Observation& o) { return o.m > 0 && o.op != ObservedOp::matmul; }

/// The size of the whole array of a collective, as nccl-tests counts it: what an all-gather gathers, the input of others.
inline Bytes tensor_bytes(const Observation& o) { return o.op == ObservedOp::all_gather ? std::int64_t{o.devices} * o.bytes : o.bytes; }

/// Reads CSV with the heading `op,devices,bytes,seconds` and optional columns axis, array_dim, dtype, m, n, k, schedule, source, slice, groups,
/// in_place (yes or no), points, mesh ("2x4"), step, pods, run, spread, in any order; `#` begins a comment line. Numbers have no unit: bytes and seconds. A table of products of one device needs no
/// more than `m,n,k,latency_ms` (or seconds), with optional columns dtype and source. Errors, with `file:line:column`: unknown or missing columns,
/// unknown operations,
/// numbers that are not positive or too large to multiply (2^20 devices, 2^42 bytes, 2^30 rows or columns), fields that do not belong to the
/// operation, groups without a slice.
Expected<std::vector<Observation>> read_observations(std::string_view text, const std::string& file);
/// Times of an observation beyond the range of hardware (sim/machine/hardware_ranges.hpp), and the bandwidth or rate that they mean, each at its row.
std::vector<Diagnostic> doubts_about(const std::vector<Observation>& observations);
std::string write_observations(const std::vector<Observation>& observations);

}  // namespace podsim
