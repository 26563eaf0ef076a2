#include "sim/engine/max_plus/circle.hpp"

#include <algorithm>

namespace podsim::max_plus {

std::vector<Instance> CircleOrders::that_run(std::span<const std::uint32_t> tasks, std::span<const Gates> gates) {
  list_members(tasks);
  list_waits(tasks, gates);
  return sorted().order;
}

void CircleOrders::list_members(std::span<const std::uint32_t> tasks) {
  members_.clear();
  instances_ = 0;
  for (std::uint32_t r = 0; r < tasks.size(); ++r) {
    const auto program = static_cast<std::uint32_t>(std::upper_bound(first_.begin(), first_.end(), tasks[r]) - first_.begin() - 1);
    position_[tasks[r]] = r;
    members_.push_back({program, tasks[r] - first_[program], instances_});
    instances_ += static_cast<std::uint32_t>(model_.deployment.programs[program].devices.size());
  }
}

std::optional<std::uint32_t> CircleOrders::of(std::span<const std::uint32_t> tasks, std::span<const Gates> gates) {
  list_members(tasks);
  list_waits(tasks, gates);
  for (const Member& member : members_) waits_.push_back(member.offset);
  for (const std::uint32_t task : tasks) position_[task] = no_device;
  const auto [entry, is_new] = known_.try_emplace(waits_, static_cast<std::uint32_t>(orders_.size()));
  if (is_new) {
    Sorted found = sorted();
    if (!found.all) return std::nullopt;
    orders_.push_back(std::move(found.order));
  }
  return entry->second;
}

void CircleOrders::list_waits(std::span<const std::uint32_t> tasks, std::span<const Gates> gates) {
  waits_.clear();
  for (std::size_t r = 0; r < members_.size(); ++r) {
    const auto [program, task, offset] = members_[r];
    const TaskCost& cost = model_.costs[program][task];
    const Participants& who = model_.deployment.who(program, task);
    const Gates& gate = gates[tasks[r]];
    const auto nodes = static_cast<std::uint32_t>(model_.deployment.programs[program].devices.size());
    for (std::uint32_t l = 0; l < nodes; ++l) {
      const bool is_receive = cost.kind == TaskCost::Kind::receive;
      if (is_receive ? !who.receives(l) : !who.does(l)) {
        waits_.push_back(no_device);
        continue;
      }
      const std::size_t count = waits_.size();
      waits_.push_back(0);
      wait_for(is_receive ? gate.receive : gate.own, program, l);
      if (cost.kind == TaskCost::Kind::transfer) {
        const Deployment::Place& there = model_.deployment.places[who.to[l]];
        if (who.to_task.empty())
          wait_for(gate.receive, program, there.local);
        else
          add(number(there.program, who.to_task[l]), there.local);
      }
      for (std::size_t before = r; cost.on_core && before-- > 0 && members_[before].program == program;)
        if (const Member& other = members_[before]; model_.costs[program][other.task].on_core && model_.deployment.who(program, other.task).does(l)) {
          waits_.push_back(other.offset + l);
          break;
        }
      waits_[count] = static_cast<std::uint32_t>(waits_.size() - count - 1);
    }
  }
}

/// A gate of a device: what it waits for within the circle.
void CircleOrders::wait_for(const std::vector<Wait>& waits, std::uint32_t program, std::uint32_t local) {
  for (const auto& [task, received] : waits) {
    const Participants& who = model_.deployment.who(program, task.index());
    if (!received) {
      if (who.does(local)) add(number(program, task.index()), local);
    } else if (who.receives(local)) {
      const Deployment::Place& sender = model_.deployment.places[who.from[local]];
      add(number(sender.program, who.from_task.empty() ? task.index() : who.from_task[local]), sender.local);
    }
  }
}

void CircleOrders::add(std::uint32_t number, std::uint32_t local) {
  if (const std::uint32_t r = position_[number]; r != no_device) waits_.push_back(members_[r].offset + local);
}

/// Counts down what each instance waits for.
CircleOrders::Sorted CircleOrders::sorted() const {
  std::vector<std::uint32_t> left(instances_), rows(instances_ + 1, 0), followers;
  const auto each_wait = [&](auto visit) {
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < instances_; ++i) {
      const std::uint32_t count = waits_[next++];
      left[i] = count;
      for (std::uint32_t w = 0; count != no_device && w < count; ++w) visit(i, waits_[next++]);
    }
  };
  each_wait([&](std::uint32_t, std::uint32_t source) { ++rows[source + 1]; });
  for (std::uint32_t i = 0; i < instances_; ++i) rows[i + 1] += rows[i];
  followers.resize(rows.back());
  auto next_of = rows;
  each_wait([&](std::uint32_t i, std::uint32_t source) { followers[next_of[source]++] = i; });

  std::vector<std::uint32_t> ready;  // in the order in which they become so
  std::size_t present = 0;
  for (std::uint32_t i = 0; i < instances_; ++i) {
    present += left[i] != no_device;
    if (left[i] == 0) ready.push_back(i);
  }
  for (std::size_t done = 0; done < ready.size(); ++done)
    for (std::uint32_t f = rows[ready[done]]; f < rows[ready[done] + 1]; ++f)
      if (--left[followers[f]] == 0) ready.push_back(followers[f]);
  Sorted result{{}, ready.size() == present};
  std::vector<Instance>& order = result.order;
  order.reserve(ready.size());
  for (const std::uint32_t i : ready) {
    const auto after = std::upper_bound(members_.begin(), members_.end(), i, [](std::uint32_t instance, const Member& member) { return instance < member.offset; });
    const auto r = static_cast<std::uint32_t>(after - members_.begin() - 1);
    order.push_back({r, i - members_[r].offset});
  }
  return result;
}

}  // namespace podsim::max_plus
