// The simulated time of a collective as a linear form of a machine's times and inverse rates.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "validation/calibration/fit/repeated_run.hpp"

namespace podsim {

/// What a fit may change of a collective's time on a grid: times, and inverse rates per byte of its input's efficiency.
///   0..4   launch of its kind, launch of Locals, per_message, 1 / reduce_bandwidth, 1 / (hbm_bandwidth e)
///   5, 6   1 / (injection_bandwidth e), 1 / (ejection_bandwidth e)
///   7      core_share of its kind, which is no cost: a tangent is flat along it
///   then   per dimension its links' latency and 1 / (bandwidth e)
inline constexpr std::size_t unit_costs = 8 + 2 * max_dimensions;
using UnitCosts = std::array<double, unit_costs>;

/// A simulated time is piecewise linear in unit costs: where the same transfers share the same links and the same path is the longest, it is linear,
/// and the tangent is the simulated time itself. A fit that moves through thousands of values evaluates tangents, and simulates where it begins and
/// ends.
///   cost    at(): a sum. touch(): one run where a known tangent fits, and one more per unit cost where none does
///   errors  those of RepeatedRun::time_on()
class TangentTime {
 public:
  /// `run` is one Collective of this kind and input per device.
  TangentTime(std::shared_ptr<RepeatedRun> run, CostKind kind, Bytes input) : run_{std::move(run)}, kind_{kind}, input_{input} {}

  /// The run's system with another machine.
  using OnMachine = std::function<const System&(const System& system, const Machine& machine)>;

  /// Simulated. Known times are not simulated again.
  Expected<Seconds> simulated(const Machine& machine, const OnMachine& on, Cancellation stop);
  /// Simulates on this machine and lays the tangent through that time: with the slopes of a known tangent if that meets it, else with new ones.
  /// Returns how far the tangent before was from it, as a share of the time.
  Expected<double> touch(const Machine& machine, const OnMachine& on, Cancellation stop);
  /// By the tangent of the last touch(); infinite without one.
  [[nodiscard]] Seconds at(const Machine& machine);

 private:
  struct Tangent {
    UnitCosts where{};
    Seconds time;
    std::vector<std::pair<std::size_t, double>> slopes;  // of the unit costs that the time depends on
    /// `cost(unit)` of these.
    template <class CostOf>
    [[nodiscard]] Seconds at(CostOf&& cost_of) const {
      double seconds = time.count();
      for (const auto& [unit, slope] : slopes) seconds += slope * (cost_of(unit) - where[unit]);
      return Seconds{seconds};
    }
  };
  /// Of flows: asked for again and again on the same curve.
  class Efficiency {
   public:
    double on(const Machine& machine, CostKind kind, Bytes input);

   private:
    std::vector<EfficiencyPoint> curve_;
    double value_ = 1;  // of no curve
  };
  Expected<Tangent> tangent_at(const Machine& machine, Seconds time, const OnMachine& on, Cancellation stop);

  std::shared_ptr<RepeatedRun> run_;
  CostKind kind_;
  Bytes input_;
  std::map<UnitCosts, Seconds> times_;
  std::vector<Tangent> known_;
  std::size_t present_ = 0;
  Efficiency efficiency_;
};

}  // namespace podsim
