// Validation: predicts measurements with machines that were fitted to other measurements.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "topologies/system.hpp"
#include "validation/validate/datasets.hpp"

namespace podsim {

/// A measured row that was not used in the fit.
struct ValidatedRow {
  Observation observation;
  Seconds predicted;
  double error = 0;  // (predicted - measured) / measured
};

/// Of collectives, by tensor_bytes().
enum class SizeClass { small, medium, large };
inline constexpr std::size_t size_class_count = 3;
std::string_view name_of(SizeClass size);  // "below 1 MiB", "to 64 MiB", "above 64 MiB"
/// nullopt: not a collective.
std::optional<SizeClass> size_class_of(const Observation& observation);

/// A case of a study, under one hypothesis.
struct ValidatedCase {
  std::string name, hypothesis;  // hypothesis: the assumed algorithm; empty: the measured algorithm is known
  Tier tier = Tier::other_sizes;
  std::size_t fitted = 0;  // rows; with parts, the mean over their fits
  std::vector<ValidatedRow> rows;
  ErrorSummary errors;
  std::array<ErrorSummary, size_class_count> by_size{};  // without rows: there are none of that size
  std::optional<double> spread{};  // the median over the rows that were repeated: how far equal runs differ
  std::optional<ErrorBound> bound;
  std::vector<Pool> pools;
  std::string no_bound;
  bool counted = true;  // whether this case counts in the aggregate error. False if the measured algorithm is unknown (each hypothesis is then
                        // predicted separately), or the measurements determine too little of the machine for a bound
  bool ok = true;       // within its bound
};

/// How far two sources of one machine differ: per operation the median of larger / smaller - 1 over rows of equal operation, devices and tensor, in each
/// size class. No prediction can be expected to be better against both.
struct NoiseFloor {
  struct Range {
    std::size_t rows = 0;
    double least = 0, most = 0;  // over the operations
  };
  std::string other;  // the dataset
  std::array<Range, size_class_count> by_size{};
};
NoiseFloor noise_floor(const std::vector<Observation>& observations, const std::string& other, const std::vector<Observation>& of_other);

struct DatasetValidation {
  std::string dataset;
  std::vector<ValidatedCase> cases;
  std::vector<NoiseFloor> noise{};
  [[nodiscard]] bool ok() const;
};

/// The rows of a pool, of all cases that name it.
struct PooledErrors {
  Pool pool;
  std::size_t cases = 0;
  std::vector<std::pair<std::string, const ValidatedRow*>> rows;  // of which dataset
  ErrorSummary errors;
  std::array<ErrorSummary, size_class_count> by_size{};
  [[nodiscard]] bool misses_bar() const;
};
/// In the order in which cases name them; the rows belong to `validations`.
std::vector<PooledErrors> pooled(const std::vector<DatasetValidation>& validations);

/// The errors that count in the aggregate, of one tier or of all. A row counts once per tier, in the first case that predicts it. FFTs, training steps and runs, whole programs,
/// have bounds of their own and do not count beside single operations.
std::vector<double> counted_errors(const DatasetValidation& validation, std::optional<Tier> tier = std::nullopt);

/// Whether the measured algorithm is known; always true for matmul, copy and permute.
bool is_known(const Observation& observation);

/// Threads, cancellation and progress of validate().
struct ValidateControl {
  int threads = 0;                                       // 0: one per CPU; results do not depend on it
  Cancellation stop;                                     // requested: the error is cancelled_work()
  std::function<void(std::size_t, std::size_t)> done{};  // called with the number of fits done and their total; from one thread at a time
};

/// Fits and predicts every case of every dataset. A row whose algorithm is unknown is predicted under every hypothesis, other rows with the defaults
/// of `podsim run`. Equal inputs give equal bytes. Errors, at the location in the study: a filter that passes no row, an unknown dataset, a system
/// that cannot be made, a case that predicts rows it is fitted to; at the observation: an operation that cannot be predicted on the system.
Expected<std::vector<DatasetValidation>> validate(const std::vector<Dataset>& datasets, const ValidateControl& control = {});

/// Predicts all rows on a machine without a fit.
Expected<ValidatedCase> validate_on(const std::vector<Observation>& observations, const System& system, std::optional<ErrorBound> bound);

}  // namespace podsim
