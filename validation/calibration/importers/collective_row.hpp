// One measured row of a benchmark of collectives, as readers of different forms find it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

/// "AllReduce", "all_reduce_perf", "./build/all_reduce_perf", "sendrecv": nullopt for what podsim has no row for (gather, scatter, ...).
std::optional<ObservedOp> collective_of_benchmark(std::string_view name);

/// A row as nccl-tests count it.
struct CollectiveRow {
  std::optional<ObservedOp> op{};
  int devices = 0;
  std::int64_t size = 0;  // of all devices together in an all-gather, else the input of each
  double micros = 0;
  double bandwidth = 0;   // GB/s of size / time, as the file says; 0: it does not
  std::string_view type{};
  bool in_place = false, wrong = false;
  SourceLocation where{};
};

/// Errors: a bandwidth of at least 0.1 GB/s, as two decimals tell it, is not `size` / `micros`.
Status check_bandwidth(std::int64_t size, double micros, double bandwidth, const SourceLocation& where);

/// Rows of one file, and what was skipped.
class CollectiveRows {
 public:
  explicit CollectiveRows(const ImportOptions& options) : options_{options} {}
  /// Errors: the collective, or the devices, are neither in the row nor in the options; a time that is not positive; a size out of range; a bandwidth that is not size / time.
  Status add(const CollectiveRow& row);
  /// Errors: no row.
  Expected<Imported> finish(const std::string& file);

 private:
  const ImportOptions& options_;
  Imported imported_;
  std::size_t indivisible_ = 0, wrong_ = 0, empty_ = 0, in_place_ = 0;
};

}  // namespace podsim
