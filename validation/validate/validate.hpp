// DatasetValidation: what a machine that was fitted to some measurements says of others.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "topologies/system.hpp"
#include "validation/validate/datasets.hpp"

namespace podsim {

/// A measured row that the machine was not fitted to.
struct ValidatedRow {
  Observation observation;
  Seconds predicted;
  double error = 0;  // (predicted - measured) / measured
};

/// A case under one hypothesis.
struct ValidatedCase {
  std::string name, hypothesis;  // empty: what ran is known
  Tier tier = Tier::other_sizes;
  std::size_t fitted = 0;  // rows; with parts, of each fit on average
  std::vector<ValidatedRow> rows;
  ErrorSummary errors;
  std::optional<ErrorBound> bound;
  std::string no_bound;
  bool counted = true;  // in figures of more than this case; false: what ran is not known, so that every hypothesis has a prediction, or the
                        // measurements tell too little of the machine for a bound
  bool ok = true;       // within its bound
};

struct DatasetValidation {
  std::string dataset;
  std::vector<ValidatedCase> cases;
  [[nodiscard]] bool ok() const;
};

/// The errors that count, of a tier or of all: a row once for each rung, in the first case that predicts it.
std::vector<double> counted_errors(const DatasetValidation& validation, std::optional<Tier> tier = std::nullopt);

/// Whether what ran is known: of a matmul, a copy or a permute always.
bool is_known(const Observation& observation);

/// How often one validate() asks whether to stop, and says how far it is.
struct ValidateControl {
  int threads = 0;                                       // 0: as many as the machine has; results do not depend on it
  Cancellation stop;                                     // requested: the result is cancelled_work()
  std::function<void(std::size_t, std::size_t)> done{};  // fits done, of so many; from one thread at a time
};

/// Fits and predicts every case of every dataset, under every hypothesis where what ran in a row is unknown, else as `podsim run` does. The same
/// input gives the same bytes. Errors: at the place in the study: a filter that lets no row pass, a dataset that there is not, a system that cannot be
/// made, a case that fits what it predicts; at the observation: what cannot be predicted on the system.
Expected<std::vector<DatasetValidation>> validate(const std::vector<Dataset>& datasets, const ValidateControl& control = {});

/// All rows on a machine as it is.
Expected<ValidatedCase> validate_on(const std::vector<Observation>& observations, const System& system, std::optional<ErrorBound> bound);

}  // namespace podsim
