// How long the tasks of a model take on each node if nothing holds them back, in picoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/engine/link_rates.hpp"

namespace podsim::max_plus {

/// Paths with equal latency and rate, and nodes with equal speed, share their times, which stay where they are.
class Timings {
 public:
  Timings(const Model& model, const LinkRates& rates);

  struct OfTransfer {
    std::int64_t delay = -1, flow = 0;  // flow: 0 needs none
  };
  /// Of a transfer that `cost` describes, by class of its path.
  const OfTransfer* of_transfer(const TaskCost& cost);
  [[nodiscard]] const std::uint32_t* path_classes() const { return class_of_path_.data(); }

  struct OfWork {
    std::int64_t launch = 0, flow = 0, rest = 0;  // flow: what draws memory, or the whole
    [[nodiscard]] std::int64_t whole() const { return launch + flow + rest; }
  };
  /// Of a work, by class of its node's speed.
  const OfWork* of_work(const TaskCost& cost);
  /// Of the sum at the receiver, by class of its node's speed.
  const std::int64_t* of_reduction(const TaskCost& cost);
  /// Class of a node's speed; null: there is one.
  [[nodiscard]] const std::uint32_t* speed_classes() const { return class_of_node_.empty() ? nullptr : class_of_node_.data(); }

 private:
  const Model& model_;
  const LinkRates& rates_;
  std::vector<std::uint32_t> class_of_path_, class_of_node_;
  std::vector<std::pair<Seconds, std::int64_t>> path_kinds_;  // latency, rate
  std::vector<double> speeds_;
  std::map<std::pair<double, double>, std::vector<OfTransfer>> transfers_;  // by delay and bytes
  std::map<std::tuple<double, double, double, bool>, std::vector<OfWork>> works_;  // by work, launch and rest, whether on the core
  std::map<double, std::vector<std::int64_t>> reductions_;
};

}  // namespace podsim::max_plus
