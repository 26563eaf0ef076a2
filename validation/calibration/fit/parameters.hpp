// The unknowns of a calibration, and the predictions as a function of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <Eigen/Dense>

#include "sim/machine/machine_fields.hpp"
#include "validation/calibration/fit/calibrate.hpp"
#include "validation/calibration/fit/closed_form.hpp"

namespace podsim {

/// One unknown. Predictions are linear in x, or nearly: x is a time, the inverse of a rate or of an efficiency, each over `unit`.
struct Parameter {
  enum class Kind { time, rate, efficiency, share };
  std::string path, at{};
  Kind kind = Kind::time;
  const MachineField* field = nullptr;
  std::vector<int> entries{};  // of the field
  int point = -1;              // of a curve or table
  double unit = 1, low = 0, high = 0;
  bool last = false;  // gives way to every other unknown: the fastest point of a curve, which only the bandwidth's scale tells
  double rate = 0;    // of what is last: the bandwidth reached there; the fastest gives way to the others
};

double physical(const Parameter& parameter, double x);
double from_physical(const Parameter& parameter, double value);

/// Where efficiency curves and the matmul table have points.
struct Shapes {
  std::array<std::vector<Bytes>, cost_kind_count> curves{};  // increasing
  std::vector<MatmulPoint> products{};                       // extents; efficiencies are the start
  friend bool operator==(const Shapes&, const Shapes&) = default;
};

/// What of the machine the observations may tell, in order of precedence: of two that move all predictions alike the first is fitted and the other
/// keeps its value. Rates; launches; points of tables and curves; latency; per_message; what is `last`; overlap_hbm.
/// Curves and tables of `machine` are given the points of `shapes`.
std::vector<Parameter> knobs_for(const std::vector<Observation>& observations, const Shapes& shapes, const CalibrateOptions& options, System& system);

/// Observations on a system whose machine is turned.
class Predictions {
 public:
  /// Errors: an observation that cannot be predicted.
  static Expected<Predictions> make(const std::vector<Observation>& observations, const System& system, const PredictOptions& options);

  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] const Observation& observation(std::size_t i) const { return *items_[i].observation; }
  [[nodiscard]] CostKind kind(std::size_t i) const;
  /// The input of a collective that its efficiency curve looks at.
  [[nodiscard]] Bytes input(std::size_t i) const { return items_[i].input; }
  System& pod() { return system_; }

  /// Gives the machine these values.
  void turn(const std::vector<Parameter>& parameters, const Eigen::VectorXd& x);
  /// ln(predicted / observed) on the machine as it is.
  Eigen::VectorXd residuals();
  [[nodiscard]] Seconds predicted(std::size_t i);

 private:
  struct Item {
    const Observation* observation = nullptr;
    std::optional<ClosedForm> form;
    std::optional<Schedule> lowered;
    Bytes input;
  };
  System system_;
  std::vector<Item> items_;
  bool simulates_ = false, stale_ = true;
};

}  // namespace podsim
