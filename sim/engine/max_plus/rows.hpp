// The tasks of a model in an order in which each comes after all that it waits for, on whatever device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/max_plus/circle.hpp"

namespace podsim::max_plus {

/// What a gate waits for: the `sent` of a row (the end of a work), or its `received`.
struct Source {
  std::uint32_t row = 0;
  bool received = false;
};

/// A task of a program, on all its devices.
struct Row {
  std::uint32_t program = 0, task = 0;
  std::uint32_t own = 0, receive = 0, end = 0;  // in Rows::sources: of its own gate, of its receive gate, one past both
  std::uint32_t last_use = 0;                   // the last row that asks for its times
};

/// A row that is played on all devices at once. Or rows that wait for each other in a circle, though on other devices (a broadcast that devices pass
/// on), which are played instance by instance.
struct Unit {
  std::uint32_t first = 0, end = 0;   // in Rows::rows
  std::uint32_t circle = no_device;   // in RowGraph::circles(): the order of its instances
  [[nodiscard]] bool is_circle() const { return circle != no_device; }
};

struct Rows {
  std::vector<Row> rows;
  std::vector<Source> sources;
  std::vector<Unit> units;

  [[nodiscard]] std::span<const Source> own(const Row& row) const { return {sources.data() + row.own, row.receive - row.own}; }
  [[nodiscard]] std::span<const Source> receive(const Row& row) const { return {sources.data() + row.receive, row.end - row.receive}; }
};

/// Which task waits for which, and the orders that follow. Core tasks of a program stay in its order. Cost O(tasks + edges + devices of Sends, and of
/// circles with different participants).
class RowGraph {
 public:
  explicit RowGraph(const Model& model);

  /// False: instances wait for each other, which is a deadlock; then there is no order.
  [[nodiscard]] bool has_order() const { return has_order_; }
  /// Which activities run nevertheless, per activity of the model. Cost O(task instances).
  [[nodiscard]] std::vector<bool> that_run() const;
  /// As in the programs, where that is an order: so times are asked for soon after they are known. Given `wanted`, a time per task by number(), the order
  /// is close to that of these times, and tasks come as late as what waits for them allows. Cost O(tasks log tasks + edges).
  [[nodiscard]] Rows order(std::span<const std::int64_t> wanted = {}) const;
  /// Numbers tasks through all programs.
  [[nodiscard]] std::uint32_t number(std::uint32_t program, std::size_t task) const { return first_[program] + static_cast<std::uint32_t>(task); }
  /// The instances of each circle, so that each comes after all that it waits for. Circles that are alike share one.
  [[nodiscard]] const std::vector<std::vector<Instance>>& circles() const { return circles_; }

 private:
  struct Place {
    std::uint32_t program, task;
  };
  using Units = std::vector<std::vector<std::uint32_t>>;  // the tasks of each, in program order

  template <class Visit>
  void each_task(Visit visit) const;
  void match();
  void collect();
  void precede(std::uint32_t one, std::uint32_t other) { followers_[one].push_back(other); }
  [[nodiscard]] std::vector<std::uint32_t> sorted(std::span<const std::int64_t> wanted) const;
  void find_circles();
  bool order_circles();

  const Model& model_;
  std::vector<std::uint32_t> first_;  // per program, the number of its first task; one more at the end
  std::vector<Place> places_;         // per task
  std::vector<std::vector<std::uint32_t>> senders_, followers_;
  std::vector<Gates> gates_;
  Units units_;
  std::vector<std::uint32_t> unit_of_, circle_of_;  // per task; per unit, no_device: it is a single row
  std::vector<std::vector<Instance>> circles_;
  bool has_order_ = true;
};

}  // namespace podsim::max_plus
