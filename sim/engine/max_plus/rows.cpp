#include "sim/engine/max_plus/rows.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace podsim::max_plus {

namespace {

/// Numbers tasks through all programs, and says which must come before which.
class Orderer {
 public:
  explicit Orderer(const Model& model) : model_{model} {
    std::uint32_t tasks = 0;
    for (const auto& costs : model.costs) {
      first_.push_back(tasks);
      tasks += static_cast<std::uint32_t>(costs.size());
    }
    first_.push_back(tasks);
    senders_.resize(tasks);
  }

  std::optional<Rows> run() {
    match();
    collect();
    if (!sort()) return std::nullopt;
    return write();
  }

 private:
  struct Gates {
    std::vector<Wait> own, receive;
  };

  [[nodiscard]] std::uint32_t number(std::uint32_t program, std::size_t task) const { return first_[program] + static_cast<std::uint32_t>(task); }

  template <class Visit>
  void each_task(Visit visit) const {
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t) visit(p, t, number(p, t));
  }

  /// The Sends of each Recv.
  void match() {
    each_task([&](std::uint32_t p, std::size_t t, std::uint32_t sender) {
      const Participants& who = model_.deployment.who(p, t);
      if (model_.costs[p][t].kind != TaskCost::Kind::transfer || who.to_task.empty()) return;
      for (std::size_t l = 0; l < who.to.size(); ++l)
        if (who.does(l)) {
          auto& senders = senders_[number(model_.deployment.places[who.to[l]].program, who.to_task[l])];
          if (senders.empty() || senders.back() != sender) senders.push_back(sender);
        }
    });
  }

  /// The waits of all gates, and who comes after whom.
  void collect() {
    gates_.resize(first_.back());
    followers_.resize(first_.back());
    before_.assign(first_.back(), 0);
    each_task([&](std::uint32_t p, std::size_t t, std::uint32_t self) {
      const Program& program = model_.schedule->programs[p];
      const Participants& who = model_.deployment.who(p, t);
      if (!who.to.empty() && model_.costs[p][t].kind != TaskCost::Kind::receive) gates_[self].own = waits_of(program, TaskId{t}, false);
      if (!who.from.empty()) gates_[self].receive = waits_of(program, TaskId{t}, true);
      for (const auto* waits : {&gates_[self].own, &gates_[self].receive})
        for (const Wait& wait : *waits) {
          const std::uint32_t source = number(p, wait.task.index());
          if (wait.received && model_.costs[p][wait.task.index()].kind == TaskCost::Kind::receive)
            for (const std::uint32_t sender : senders_[source]) precede(sender, self);
          else
            precede(source, self);
        }
      for (const std::uint32_t sender : senders_[self]) precede(self, sender);
    });
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p) {
      std::uint32_t previous = no_device;
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t) {
        if (!model_.costs[p][t].on_core) continue;
        if (previous != no_device) precede(previous, number(p, t));
        previous = number(p, t);
      }
    }
  }

  void precede(std::uint32_t one, std::uint32_t other) {
    followers_[one].push_back(other);
    ++before_[other];
  }

  /// As in the programs, where that is an order: so times are asked for soon after they are known.
  bool sort() {
    using Entry = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // task, program, number
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    each_task([&](std::uint32_t p, std::size_t t, std::uint32_t self) {
      if (before_[self] == 0) ready.emplace(static_cast<std::uint32_t>(t), p, self);
    });
    while (!ready.empty()) {
      const auto [task, program, self] = ready.top();
      ready.pop();
      order_.push_back({program, task});
      for (const std::uint32_t follower : followers_[self])
        if (--before_[follower] == 0) {
          const auto p = static_cast<std::uint32_t>(std::upper_bound(first_.begin(), first_.end(), follower) - first_.begin() - 1);
          ready.emplace(follower - first_[p], p, follower);
        }
    }
    return order_.size() == first_.back();
  }

  Rows write() const {
    Rows result;
    std::vector<std::uint32_t> position(first_.back());
    for (std::uint32_t i = 0; i < order_.size(); ++i) position[number(order_[i].program, order_[i].task)] = i;
    result.rows.reserve(order_.size());
    for (const Place& place : order_) {
      const Gates& gates = gates_[number(place.program, place.task)];
      Row row;
      row.program = place.program;
      row.task = place.task;
      const auto add = [&](const std::vector<Wait>& waits) {
        for (const Wait& wait : waits) result.sources.push_back({position[number(place.program, wait.task.index())], wait.received});
        return static_cast<std::uint32_t>(result.sources.size());
      };
      row.own = static_cast<std::uint32_t>(result.sources.size());
      row.receive = add(gates.own);
      row.end = add(gates.receive);
      row.last_use = static_cast<std::uint32_t>(result.rows.size());
      result.rows.push_back(row);
    }
    for (std::uint32_t i = 0; i < result.rows.size(); ++i) {
      const Row& row = result.rows[i];
      for (std::uint32_t s = row.own; s < row.end; ++s) use(result, result.sources[s].row, i);
      for (const std::uint32_t sender : senders_[number(row.program, row.task)]) use(result, i, position[sender]);
    }
    return result;
  }

  static void use(Rows& rows, std::uint32_t row, std::uint32_t by) { rows.rows[row].last_use = std::max(rows.rows[row].last_use, by); }

  struct Place {
    std::uint32_t program, task;
  };
  const Model& model_;
  std::vector<std::uint32_t> first_;  // per program, the number of its first task; one more at the end
  std::vector<std::vector<std::uint32_t>> senders_, followers_;
  std::vector<Gates> gates_;
  std::vector<std::uint32_t> before_;
  std::vector<Place> order_;
};

}  // namespace

std::optional<Rows> order_rows(const Model& model) { return Orderer{model}.run(); }

}  // namespace podsim::max_plus
