// The unknowns of a calibration, and the predictions as a function of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <Eigen/Dense>

#include "validation/calibration/fit/calibrate.hpp"
#include "validation/calibration/fit/closed_form.hpp"
#include "validation/calibration/fit/parameter.hpp"
#include "validation/calibration/fit/repeated_run.hpp"
#include "validation/calibration/fit/step_time.hpp"
#include "validation/calibration/fit/tangent_time.hpp"

namespace podsim {

/// The points of efficiency curves and the matmul table.
struct Shapes {
  std::array<std::vector<Bytes>, cost_kind_count> curves{};  // increasing
  std::vector<MatmulPoint> products{};                       // extents; the efficiencies are starting values
  std::array<bool, cost_kind_count> dense{};                 // the curve is smooth, and has points wherever the observations have sizes
  friend bool operator==(const Shapes&, const Shapes&) = default;
};

/// The unknowns that the observations may determine, in order of precedence: of two with the same influence on all predictions the first is fitted
/// and the other keeps its value. Rates; launches; points of tables and curves; latency; per_message; the core share of transfers, if
/// products overlap them; those that are `last`; overlap_hbm.
/// The curves and tables of `machine` get the points of `shapes`.
std::vector<Parameter> parameters_for(const std::vector<Observation>& observations, const Shapes& shapes, const CalibrateOptions& options, System& system);

/// Predictions of observations on a system whose machine values change.
class Predictions {
 public:
  /// Errors: an observation that cannot be predicted.
  static Expected<Predictions> make(const std::vector<Observation>& observations, const System& system, const CalibrateOptions& options);

  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] const Observation& observation(std::size_t i) const { return *items_[i].observation; }
  [[nodiscard]] CostKind kind(std::size_t i) const;
  /// The input bytes of a collective, the argument of its efficiency curve.
  [[nodiscard]] Bytes input(std::size_t i) const { return items_[i].input; }
  System& system() { return system_; }

  /// Sets these values on the machine. Tangents of training steps are laid along the most values that were set at once.
  void turn(const std::vector<Parameter>& parameters, const Eigen::VectorXd& x);
  /// ln(predicted / observed) with the present values.
  Eigen::VectorXd residuals();
  /// By the closed form where there is one, also on the way through values with which memory would be short.
  [[nodiscard]] Seconds predicted(std::size_t i);
  /// Lays the tangents of simulated collectives and of training steps through their times with the present values (tangent_time.hpp, step_time.hpp). Returns how far a tangent was from a time
  /// at most, as a share of it; 0 where all have closed forms.
  double touch();
  /// Errors: a training step that no simulation since could run, at its row. Known after touch().
  [[nodiscard]] Status steps_ran() const { return refused_ ? Status{*refused_} : success(); }
  /// residuals() by those tangents.
  Eigen::VectorXd tangent_residuals();
  /// Whether the closed form may be below the simulated time on this machine, where transfers share a memory that is short.
  [[nodiscard]] bool leaves_memory_out(std::size_t i, const Machine& machine) const;

 private:
  struct Item {
    const Observation* observation = nullptr;
    std::vector<ClosedForm> forms;           // the fastest counts; none: simulated
    std::shared_ptr<RepeatedRun> run;  // where it is simulated
    std::shared_ptr<TangentTime> tangent;    // of a collective that is simulated on a grid; rows of one schedule have one
    std::shared_ptr<StepTime> step;          // of a training step or run
    Bytes input;
    double time = 0, residual = 0;  // the last ones, as most values change few times
  };
  /// A system with the present machine.
  struct Turned {
    System system;
    bool stale = true;
  };
  [[nodiscard]] const System& turned(const System& system);
  [[nodiscard]] TangentTime::OnMachine on_machine();
  double touch_steps();
  template <class TimeOf>
  Eigen::VectorXd residuals_by(TimeOf&& time_of);

  System system_;
  std::vector<Item> items_;
  std::map<const System*, Turned> turned_;  // by the system of a RepeatedRun
  std::map<const System*, System> nudged_;  // the last ones with another machine than the present
  std::vector<Parameter> along_;  // the most that were turned at once
  std::optional<Diagnostic> refused_;  // the first step that cannot be simulated
  int threads_ = 1;
  Cancellation stop_{};
};

}  // namespace podsim
