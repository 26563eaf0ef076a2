// Tasks that wait for each other in a circle, though on other devices: the order of their instances.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/model/model.hpp"

namespace podsim::max_plus {

/// What the gates of a task wait for.
struct Gates {
  std::vector<Wait> own, receive;
};

/// A task of a circle on one device: a work, a transfer at its sender, or a Recv, which tells when it is ready.
struct Instance {
  std::uint32_t row = 0, local = 0;  // row: position of the task in its circle
};

/// The instances of circles, so that each comes after all that it waits for. Circles that are alike share one order.
///   example a broadcast along a line of four: the Send of chunk c from device 0, from 1, from 2
///   cost    O(devices * waits) per circle, and memory O(devices) per order
class CircleOrders {
 public:
  /// `first`: per program, the number of its first task.
  CircleOrders(const Model& model, std::span<const std::uint32_t> first) : model_{model}, first_{first}, position_(first.back(), no_device) {}

  /// Of the tasks with these numbers, in program order: position of their order in take(). `gates` by number. nullopt: instances wait for each other.
  std::optional<std::uint32_t> of(std::span<const std::uint32_t> tasks, std::span<const Gates> gates);
  /// Of any tasks: the instances that run, though others wait for each other.
  [[nodiscard]] std::vector<Instance> that_run(std::span<const std::uint32_t> tasks, std::span<const Gates> gates);
  [[nodiscard]] std::vector<std::vector<Instance>> take() && { return std::move(orders_); }

 private:
  struct Member {  // of the circle at hand
    std::uint32_t program, task, offset;  // offset: of its first instance
  };
  [[nodiscard]] std::uint32_t number(std::uint32_t program, std::size_t task) const { return first_[program] + static_cast<std::uint32_t>(task); }
  void list_members(std::span<const std::uint32_t> tasks);
  void list_waits(std::span<const std::uint32_t> tasks, std::span<const Gates> gates);
  void wait_for(const std::vector<Wait>& waits, std::uint32_t program, std::uint32_t local);
  void add(std::uint32_t number, std::uint32_t local);
  struct Sorted {
    std::vector<Instance> order;
    bool all = true;  // of the instances that are present
  };
  [[nodiscard]] Sorted sorted() const;

  const Model& model_;
  std::span<const std::uint32_t> first_;
  std::vector<std::uint32_t> position_;  // per task, in the circle at hand
  std::vector<Member> members_;
  std::uint32_t instances_ = 0;
  std::vector<std::uint32_t> waits_;  // per instance how many, then for which instances; no_device: it is absent. Then the members' offsets
  std::map<std::vector<std::uint32_t>, std::uint32_t> known_;
  std::vector<std::vector<Instance>> orders_;
};

}  // namespace podsim::max_plus
