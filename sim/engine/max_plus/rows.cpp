#include "sim/engine/max_plus/rows.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

#include "sim/base/invariant.hpp"
#include "sim/engine/max_plus/circle.hpp"

namespace podsim::max_plus {

RowGraph::RowGraph(const Model& model) : model_{model} {
  for (std::uint32_t p = 0; p < model.costs.size(); ++p) {
    first_.push_back(static_cast<std::uint32_t>(places_.size()));
    for (std::uint32_t t = 0; t < model.costs[p].size(); ++t) places_.push_back({p, t});
  }
  first_.push_back(static_cast<std::uint32_t>(places_.size()));
  match();
  collect();
  unit_of_.resize(places_.size());
  std::iota(unit_of_.begin(), unit_of_.end(), 0U);
  units_.resize(places_.size());
  for (std::uint32_t t = 0; t < units_.size(); ++t) units_[t] = {t};
  circle_of_.assign(units_.size(), no_device);
  if (sorted({}).size() == units_.size()) return;
  find_circles();
  has_order_ = order_circles();
}

template <class Visit>
void RowGraph::each_task(Visit visit) const {
  for (std::uint32_t self = 0; self < places_.size(); ++self) visit(places_[self].program, places_[self].task, self);
}

/// The Sends of each Recv.
void RowGraph::match() {
  senders_.resize(places_.size());
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
void RowGraph::collect() {
  gates_.resize(places_.size());
  followers_.resize(places_.size());
  const auto kind = [&](std::uint32_t p, TaskId task) { return model_.costs[p][task.index()].kind; };
  each_task([&](std::uint32_t p, std::size_t t, std::uint32_t self) {
    const Program& program = model_.schedule->programs[p];
    const Participants& who = model_.deployment.who(p, t);
    if (!who.to.empty() && kind(p, TaskId{t}) != TaskCost::Kind::receive) gates_[self].own = waits_of(program, TaskId{t}, false);
    if (!who.from.empty()) gates_[self].receive = waits_of(program, TaskId{t}, true);
    for (auto* waits : {&gates_[self].own, &gates_[self].receive}) {
      // A Recv sends nothing.
      std::erase_if(*waits, [&](const Wait& wait) { return !wait.received && kind(p, wait.task) == TaskCost::Kind::receive; });
      for (const Wait& wait : *waits) {
        const std::uint32_t source = number(p, wait.task.index());
        if (kind(p, wait.task) == TaskCost::Kind::receive)
          for (const std::uint32_t sender : senders_[source]) precede(sender, self);
        else
          precede(source, self);
      }
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

/// The units; fewer than all if they wait for each other.
std::vector<std::uint32_t> RowGraph::sorted(std::span<const std::int64_t> wanted) const {
  std::vector<std::uint32_t> before(units_.size(), 0), order;
  each_task([&](std::uint32_t, std::size_t, std::uint32_t self) {
    for (const std::uint32_t follower : followers_[self]) before[unit_of_[follower]] += unit_of_[follower] != unit_of_[self] || circle_of_[unit_of_[self]] == no_device;
  });
  // By when each unit is wanted: what others wait for, by when they are.
  std::vector<std::int64_t> by(units_.size(), 0);
  if (!wanted.empty()) {
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
      by[unit] = std::numeric_limits<std::int64_t>::max();
      for (const std::uint32_t task : units_[unit]) by[unit] = std::min(by[unit], wanted[task]);
    }
    const std::vector<std::uint32_t> program_order = sorted({});
    for (std::size_t i = program_order.size(); i-- > 0;)
      for (const std::uint32_t task : units_[program_order[i]])
        for (const std::uint32_t follower : followers_[task]) by[program_order[i]] = std::min(by[program_order[i]], by[unit_of_[follower]]);
  }
  using Entry = std::tuple<std::int64_t, std::uint32_t, std::uint32_t, std::uint32_t>;  // wanted time, task, program, unit
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto make_ready = [&](std::uint32_t unit) {
    const Place& place = places_[units_[unit].front()];
    ready.emplace(by[unit], place.task, place.program, unit);
  };
  for (std::uint32_t unit = 0; unit < units_.size(); ++unit)
    if (before[unit] == 0) make_ready(unit);
  order.reserve(units_.size());
  while (!ready.empty()) {
    const std::uint32_t unit = std::get<3>(ready.top());
    ready.pop();
    order.push_back(unit);
    for (const std::uint32_t task : units_[unit])
      for (const std::uint32_t follower : followers_[task])
        if (unit_of_[follower] != unit && --before[unit_of_[follower]] == 0) make_ready(unit_of_[follower]);
  }
  return order;
}

/// Tasks that wait for each other become one unit.
void RowGraph::find_circles() {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> graph{places_.size()};
  std::vector<bool> waits_for_itself(places_.size(), false);
  each_task([&](std::uint32_t, std::size_t, std::uint32_t self) {
    for (const std::uint32_t follower : followers_[self]) {
      if (follower == self) waits_for_itself[self] = true;
      boost::add_edge(self, follower, graph);
    }
  });
  const auto components = static_cast<std::size_t>(boost::strong_components(graph, boost::make_iterator_property_map(unit_of_.begin(), boost::get(boost::vertex_index, graph))));
  units_.assign(components, {});
  for (std::uint32_t t = 0; t < places_.size(); ++t) units_[unit_of_[t]].push_back(t);
  circle_of_.assign(components, no_device);
  for (std::uint32_t u = 0; u < components; ++u)
    if (units_[u].size() > 1 || waits_for_itself[units_[u].front()]) circle_of_[u] = 0;
}

/// False: instances of a circle wait for each other.
bool RowGraph::order_circles() {
  CircleOrders orders{model_, first_};
  for (std::uint32_t u = 0; u < units_.size(); ++u) {
    if (circle_of_[u] == no_device) continue;
    const auto of_unit = orders.of(units_[u], gates_);
    if (!of_unit) return false;
    circle_of_[u] = *of_unit;
  }
  circles_ = std::move(orders).take();
  return true;
}

std::vector<bool> RowGraph::that_run() const {
  std::vector<std::uint32_t> all(places_.size());
  std::iota(all.begin(), all.end(), 0U);
  std::vector<bool> result(static_cast<std::size_t>(model_.deployment.activities()), false);
  CircleOrders orders{model_, first_};
  for (const auto& [task, local] : orders.that_run(all, gates_)) {
    const Place& place = places_[task];
    if (model_.costs[place.program][place.task].kind != TaskCost::Kind::receive) result[model_.deployment.activity(place.program, place.task, local)] = true;
  }
  return result;
}

Rows RowGraph::order(std::span<const std::int64_t> wanted) const {
  PODSIM_ASSERT(has_order_ && "there is an order");
  Rows result;
  std::vector<std::uint32_t> position(places_.size());
  std::uint32_t next = 0;
  for (const std::uint32_t unit : sorted(wanted)) {
    result.units.push_back({next, next + static_cast<std::uint32_t>(units_[unit].size()), circle_of_[unit]});
    for (const std::uint32_t task : units_[unit]) {
      position[task] = next++;
      Row& row = result.rows.emplace_back();
      row.program = places_[task].program;
      row.task = places_[task].task;
    }
  }
  for (std::uint32_t i = 0; i < next; ++i) {
    Row& row = result.rows[i];
    const Gates& gates = gates_[number(row.program, row.task)];
    const auto add = [&](const std::vector<Wait>& waits) {
      for (const Wait& wait : waits) result.sources.push_back({position[number(row.program, wait.task.index())], wait.received});
      return static_cast<std::uint32_t>(result.sources.size());
    };
    row.own = static_cast<std::uint32_t>(result.sources.size());
    row.receive = add(gates.own);
    row.end = add(gates.receive);
    row.last_use = i;
  }
  std::vector<std::uint32_t> last_of_unit(next);
  for (const Unit& unit : result.units) std::fill(last_of_unit.begin() + unit.first, last_of_unit.begin() + unit.end, unit.end - 1);
  for (std::uint32_t i = 0; i < next; ++i) {
    const Row& row = result.rows[i];
    const auto use = [&](std::uint32_t used, std::uint32_t by) { result.rows[used].last_use = std::max(result.rows[used].last_use, last_of_unit[by]); };
    use(i, i);
    for (std::uint32_t s = row.own; s < row.end; ++s) use(result.sources[s].row, i);
    for (const std::uint32_t sender : senders_[number(row.program, row.task)]) use(i, position[sender]);
  }
  return result;
}

}  // namespace podsim::max_plus
