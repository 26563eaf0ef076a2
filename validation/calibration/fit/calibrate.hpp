// Calibration: fits a machine to observations, with confidence intervals, and reports the values that the observations cannot identify.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "validation/calibration/fit/predict.hpp"

namespace podsim {

/// A prior for a value of the base machine, such as a specification: its relative standard deviation. The path is as in --set.
struct NamedPrior {
  std::string path;
  double relative_sigma = 0.05;
  bool of_ratio = false;  // of ln(value / specification): twice and half are equally far
};

/// The time on a machine of a row that a study describes: a training step, or a run of whatever `podsim run` simulates.
using DescribedTime = std::function<Expected<Seconds>(const Observation& observation, const Machine& machine, Cancellation stop)>;

struct CalibrateOptions {
  PredictOptions predict{};
  Cancellation stop{};                                   // requested: the result is cancelled_work()
  std::string dataset = "observations";  // recorded in sources and trust
  std::vector<NamedPrior> priors{};
  std::vector<std::string> hold{};                     // paths whose values are not fitted
  std::vector<std::string> only{};                     // if any: the only paths whose values are fitted, without points of curves
  DescribedTime described_time{};                      // needed for training steps and runs
  int threads = 1;                                     // for the simulation of training steps and runs; 0: one per CPU
  double noise = 0.02;                                 // residuals below this do not justify points of efficiency curves and tables
  std::size_t surface_from = 200;                      // so many products: an efficiency surface (surface.hpp) instead of points of a table
  bool curves = true;                                  // let collective[kind].efficiency and chip.matmul_efficiency depend on the size
  double confidence = 0.95;                            // joint, of all intervals
  std::function<void(std::size_t values)> progress{};  // called after each stage of the search for curves, with the number of fitted values
  std::function<void(std::size_t done, std::size_t all)> counting{};  // of held_back_error(): how many of its fits are done
};

/// One fitted number. Each point of a curve or table is one; `at` is its size ("1 MiB", "1024x4096x4096").
struct CalibratedValue {
  enum class Origin {
    fitted,       // low and high are its confidence interval
    prior,        // a prior combined with the data; has an interval too
    not_limiting  // a rate that limited no observation: at least `low`
  };
  std::string path, at{}, unit;  // "s", "B/s", "1"
  double value = 0, low = 0, high = 0;
  Origin origin = Origin::fitted;
  std::optional<double> specified{};  // the base machine's value of a limited rate

  /// The whole interval is above the base machine's value, which is physically impossible: the operations overlapped, or ran differently than the fit
  /// assumes.
  [[nodiscard]] bool beyond_specification() const;
};
std::string_view name_of(CalibratedValue::Origin origin);

/// A value that the observations cannot identify; it keeps the base machine's value.
struct Undetermined {
  std::string path, at{};
  std::string why;      // "moves every prediction as software.launch[all-gather] does"
  std::string probe;    // the measurement that would identify it
  bool anchor = false;  // the highest point of a curve, which is fixed by the scale of the bandwidth
};

struct Residual {
  std::size_t observation = 0;  // position in the input
  Seconds predicted;
  double error = 0;   // (predicted - observed) / observed
  double weight = 1;  // below 1: an outlier with less influence
};

struct Calibration {
  std::vector<CalibratedValue> parameters;
  std::vector<Undetermined> undetermined;
  std::vector<std::string> choices{};  // how an efficiency surface was found, and what the fit left out, a sentence each
  std::vector<Residual> residuals;  // in the order of the observations
  double median_abs_error = 0, p95_abs_error = 0;
  double scatter = 0;  // robust standard deviation of ln(predicted / observed)
  Machine machine;     // the base machine with the fitted values, their sources and its trust
};

/// Robust non-negative least squares on ln(predicted / observed); README.md describes the method. Equal inputs give equal bytes.
/// Errors: no observations; an observation that cannot be predicted on the system (the message names it); a path that is not a machine value, or for `only`
/// none that training steps and runs are fitted to; a prior for a value that is zero or unlimited.
Expected<Calibration> calibrate(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options = {});

/// Quantiles of |error|.
struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0, p95 = 0;
};
ErrorSummary summary_of(const std::vector<double>& errors);

/// The two-fold cross-validation error: fits every other observation of each operation, then the rest, and predicts each observation by the fit
/// without it. Of training steps every other step with all its rows, so that each is predicted from others. nullopt if a half has fewer observations than fitted values. Costs two calibrations.
std::optional<ErrorSummary> held_back_error(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options);

}  // namespace podsim
