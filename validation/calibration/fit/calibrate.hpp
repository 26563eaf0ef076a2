// Calibration: the machine whose predictions come nearest to what was observed, how sure its values are, and what the observations cannot tell.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "validation/calibration/fit/predict.hpp"

namespace podsim {

/// A value of the base machine that counts as known to a relative standard deviation: a specification. The path as in --set.
struct NamedPrior {
  std::string path;
  double relative_sigma = 0.05;
};

struct CalibrateOptions {
  PredictOptions predict{};
  std::string dataset = "observations";  // its name, for sources and trust
  std::vector<NamedPrior> priors{};
  std::vector<std::string> hold{};                     // paths that keep their value
  double noise = 0.02;                                 // residuals below this do not call for points of efficiency curves and tables
  bool curves = true;                                  // let collective[kind].efficiency and chip.matmul_efficiency depend on the size
  double confidence = 0.95;                            // that all intervals hold together
  std::function<void(std::size_t values)> progress{};  // after each stage of the search for curves: how many values are fitted there
};

/// One fitted number. Of a curve or table each point is one: `at` says which ("1 MiB", "1024x4096x4096").
struct CalibratedValue {
  enum class Origin {
    fitted,       // low and high are its confidence interval
    prior,        // a named prior, moved by the data as far as both allow; with an interval too
    not_limiting  // a rate that nothing observed was limited by: at least `low`
  };
  std::string path, at{}, unit;  // "s", "B/s", "1"
  double value = 0, low = 0, high = 0;
  Origin origin = Origin::fitted;
  std::optional<double> specified{};  // what the base machine has for a rate, where it is limited

  /// More than the base machine's, so that no such part can do it: the operations overlap, or ran otherwise, than the fit takes them to.
  [[nodiscard]] bool beyond_specification() const;
};
std::string_view name_of(CalibratedValue::Origin origin);

/// A value that the observations cannot tell; the machine keeps what it had.
struct Undetermined {
  std::string path, at{};
  std::string why;      // "moves every prediction as software.launch[all-gather] does"
  std::string probe;    // what to measure to tell
  bool anchor = false;  // the fastest point of a curve, which the bandwidth's scale stands for
};

struct Residual {
  std::size_t observation = 0;  // position in the input
  Seconds predicted;
  double error = 0;   // (predicted - observed) / observed
  double weight = 1;  // below 1: counted less, as it lies apart from the others
};

struct Calibration {
  std::vector<CalibratedValue> parameters;
  std::vector<Undetermined> undetermined;
  std::vector<Residual> residuals;  // in the order of the observations
  double median_abs_error = 0, p95_abs_error = 0;
  double scatter = 0;  // robust standard deviation of ln(predicted / observed)
  Machine machine;     // the base with the fitted values, their sources and its trust
};

/// Robust non-negative least squares on ln(predicted / observed); README.md says how. The same input gives the same bytes.
/// Errors: no observations; an observation that cannot be predicted on the system (names it); a path that is no machine value; a prior for a value that
/// is zero or unlimited.
Expected<Calibration> calibrate(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options = {});

/// Of |error|.
struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0, p95 = 0;
};
ErrorSummary summary_of(const std::vector<double>& errors);

/// How far a fit to half of the observations is off on the other half: every other one of each operation is fitted, then the others, so that each is
/// predicted once. Nothing where a half has fewer observations than values would be fitted to it. Costs two calibrations.
std::optional<ErrorSummary> held_back_error(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options);

}  // namespace podsim
