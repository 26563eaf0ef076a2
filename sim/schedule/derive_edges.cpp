#include "sim/schedule/derive_edges.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <utility>

#include "sim/schedule/box_list.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/deploy.hpp"
#include "sim/schedule/program_builder.hpp"
#include "sim/schedule/submesh.hpp"
#include "sim/schedule/touches.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

namespace {

/// A set of devices of a program, by their positions in it.
class Bits {
 public:
  explicit Bits(std::size_t devices) : words_((devices + 63) / 64, 0) {}
  void set(std::size_t device) { words_[device / 64] |= std::uint64_t{1} << device % 64; }
  [[nodiscard]] bool empty() const {
    return std::all_of(words_.begin(), words_.end(), [](std::uint64_t word) { return word == 0; });
  }
  [[nodiscard]] std::size_t first() const {
    const auto word = std::find_if(words_.begin(), words_.end(), [](std::uint64_t bits) { return bits != 0; });
    return 64 * static_cast<std::size_t>(word - words_.begin()) + static_cast<std::size_t>(std::countr_zero(*word));
  }
  [[nodiscard]] bool within(const Bits& other) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      if ((words_[w] & ~other.words_[w]) != 0) return false;
    return true;
  }
  Bits& operator|=(const Bits& other) { return combine(other, [](std::uint64_t a, std::uint64_t b) { return a | b; }); }
  Bits& operator&=(const Bits& other) { return combine(other, [](std::uint64_t a, std::uint64_t b) { return a & b; }); }
  Bits& operator-=(const Bits& other) { return combine(other, [](std::uint64_t a, std::uint64_t b) { return a & ~b; }); }
  friend Bits operator&(Bits a, const Bits& b) { return a &= b; }

 private:
  template <class Combine>
  Bits& combine(const Bits& other, Combine combine) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] = combine(words_[w], other.words_[w]);
    return *this;
  }
  std::vector<std::uint64_t> words_;
};

// A node is a part of a task that waits and ends on its own: 2 t is the work or send half of task t, 2 t + 1 its receive half.
std::size_t node_of(std::size_t task, bool receives) { return 2 * task + (receives ? 1 : 0); }
TaskId task_of(std::size_t node) { return TaskId{node / 2}; }

/// The nodes of a task that a half names. `both` names those that there are.
std::vector<std::size_t> nodes_of(TaskId task, Half half) {
  std::vector<std::size_t> nodes;
  if (half != Half::receive) nodes.push_back(node_of(task.index(), false));
  if (half != Half::send) nodes.push_back(node_of(task.index(), true));
  return nodes;
}

class ProgramEdges {
 public:
  ProgramEdges(const Schedule& schedule, std::size_t program, const Deployment& deployment)
      : schedule_{schedule}, program_{schedule.programs[program]}, number_{program}, devices_{deployment.programs[program].devices} {
    for (const std::uint32_t device : devices_) coordinates_.push_back(schedule.mesh.coordinates(DeviceId{static_cast<int>(device)}));
    for (std::size_t t = 0; t < program_.tasks.size(); ++t) {
      const Participants& who = deployment.who(static_cast<std::uint32_t>(program), t);
      present_.push_back(where([&](std::size_t local) { return who.does(local); }));
      present_.push_back(where([&](std::size_t local) { return who.receives(local); }));
      collect_uses(t);
    }
  }

  std::vector<DerivedEdge> derive() {
    find_conflicts();
    before_.resize(present_.size());
    std::vector<DerivedEdge> derived;
    for (std::size_t t = 0; t < program_.tasks.size(); ++t) {
      std::vector<DerivedEdge> of_task;
      for (const std::size_t node : {node_of(t, false), node_of(t, true)}) {
        for (const Edge& edge : program_.tasks[t].after)
          for (const std::size_t gate : nodes_of(TaskId{t}, edge.gates))
            if (gate == node)
              for (const std::size_t earlier : nodes_of(edge.task, edge.done)) before_[node].push_back(earlier);
        for (const Conflict& conflict : needed(node)) of_task.push_back(edge_of(node, conflict));
      }
      merge(of_task);
      derived.insert(derived.end(), of_task.begin(), of_task.end());
    }
    return derived;
  }

 private:
  struct Use {
    std::size_t node;
    Region region;
    bool write;
    Bits on;
  };
  /// Of a node with an earlier one. The uses are those of the first of its operands that conflicts.
  struct Conflict {
    std::size_t earlier, earlier_use, later_use;
    Bits on;
  };

  template <class Holds>
  Bits where(Holds holds) const {
    Bits bits{devices_.size()};
    for (std::size_t local = 0; local < devices_.size(); ++local)
      if (holds(local)) bits.set(local);
    return bits;
  }

  void collect_uses(std::size_t t) {
    const Op& op = program_.tasks[t].op;
    const Bits &doers = present_[node_of(t, false)], &receivers = present_[node_of(t, true)];
    if (const auto* collective = std::get_if<Collective>(&op)) {
      uses_.push_back({node_of(t, false), collective->input, false, doers & taking_part(*collective, false)});
      uses_.push_back({node_of(t, false), collective->output, true, doers & taking_part(*collective, true)});
      // A device that it neither reads nor writes has none of its transfers, and then nothing is ordered by it.
      present_[node_of(t, false)] = uses_.back().on;
      present_[node_of(t, false)] |= uses_[uses_.size() - 2].on;
    }
    if (const auto* call = std::get_if<Call>(&op)) {
      const std::vector<bool> written = written_parameters(schedule_.functions[static_cast<std::size_t>(call->function)]);
      for (const bool write : {false, true})
        for (std::size_t a = 0; a < call->arguments.size(); ++a)
          if (!write || written[a])
            uses_.push_back({node_of(t, false), whole_buffer(call->arguments[a], program_.buffers[call->arguments[a].index()].extents), write, doers});
    }
    if (std::holds_alternative<Collective>(op)) return;
    for_each_touch(op, [&](const Touch& touch) {
      const bool receives = touch.side == Side::target;
      uses_.push_back({node_of(t, receives), touch.region, touch.write, receives ? receivers : doers});
    });
  }

  /// The devices whose output a Collective writes, or whose input it reads.
  [[nodiscard]] Bits taking_part(const Collective& collective, bool writes) const {
    return where([&](std::size_t local) {
      const std::int64_t position = position_along(schedule_.mesh, collective.axes, DeviceId{static_cast<int>(devices_[local])});
      switch (collective.kind) {
        case CollectiveKind::broadcast: return writes || position == collective.root;
        case CollectiveKind::reduce: return !writes || position == collective.root;
        case CollectiveKind::permute:
          return std::any_of(collective.pairs.begin(), collective.pairs.end(),
                             [&](const Collective::Pair& pair) { return (writes ? pair.to : pair.from) == position; });
        case CollectiveKind::all_gather:
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_reduce:
        case CollectiveKind::all_to_all: break;
      }
      return true;
    });
  }

  void find_conflicts() {
    conflicts_.resize(present_.size());
    std::vector<std::vector<std::size_t>> of_buffer(program_.buffers.size());
    std::vector<bool> written(program_.buffers.size(), false);
    for (std::size_t u = 0; u < uses_.size(); ++u) {
      const std::size_t buffer = uses_[u].region.buffer.index();
      of_buffer[buffer].push_back(u);
      if (uses_[u].write) written[buffer] = true;
    }
    for (std::size_t b = 0; b < of_buffer.size(); ++b)
      if (written[b])
        for (const Bits& devices : classes(of_buffer[b])) find_conflicts(of_buffer[b], devices);
  }

  /// Devices on which all of these uses are of the same boxes.
  [[nodiscard]] std::vector<Bits> classes(const std::vector<std::size_t>& uses) const {
    std::vector<const Affine*> indices;
    for (const std::size_t u : uses)
      for (const Range& range : uses_[u].region.dims)
        if (!range.index.terms.empty() && std::none_of(indices.begin(), indices.end(), [&](const Affine* known) { return *known == range.index; }))
          indices.push_back(&range.index);
    std::map<std::vector<std::int64_t>, Bits> by_values;
    for (std::size_t local = 0; local < devices_.size(); ++local) {
      std::vector<std::int64_t> values;
      for (const Affine* index : indices) values.push_back(evaluate(*index, coordinates_[local]));
      by_values.try_emplace(std::move(values), devices_.size()).first->second.set(local);
    }
    std::vector<Bits> result;
    for (const auto& [values, devices] : by_values) result.push_back(devices);
    return result;
  }

  /// Of the uses of one buffer, on devices where their boxes are the same.
  void find_conflicts(const std::vector<std::size_t>& uses, const Bits& devices) {
    struct Live {
      Box box;
      std::size_t use;
    };
    const Coordinates& at = coordinates_[devices.first()];
    BoxList<Live> live;
    std::map<std::size_t, Bits> alive;  // by use: the devices on which no write has covered it since
    for (const std::size_t u : uses) {
      const Use& use = uses_[u];
      const Bits on = use.on & devices;
      if (on.empty()) continue;
      const Box box = evaluate(use.region, at);
      live.remove_overlapping(box, [&](const Live& other) {
        const Use& earlier = uses_[other.use];
        if (task_of(earlier.node) == task_of(use.node) || (!use.write && !earlier.write)) return false;
        Bits& left = alive.at(other.use);
        const Bits both = left & on;
        if (both.empty()) return false;
        add_conflict(other.use, u, both);
        if (!use.write || !contains(box, other.box)) return false;
        left -= on;  // what conflicts with the covered use conflicts with this one too, and is ordered through it
        return left.empty();
      });
      live.add({box, u});
      alive.emplace(u, on);
    }
  }

  void add_conflict(std::size_t earlier_use, std::size_t later_use, const Bits& on) {
    std::map<std::size_t, Conflict>& of_node = conflicts_[uses_[later_use].node];
    const std::size_t earlier = uses_[earlier_use].node;
    const auto [entry, is_new] = of_node.try_emplace(earlier, Conflict{earlier, earlier_use, later_use, on});
    if (is_new) return;
    Conflict& known = entry->second;
    known.on |= on;
    if (later_use < known.later_use) known.earlier_use = earlier_use, known.later_use = later_use;
  }

  /// The conflicts of a node that no path of edges orders on all their devices; their edges are noted in before_.
  std::vector<Conflict> needed(std::size_t node) {
    std::map<std::size_t, Conflict>& open = conflicts_[node];
    std::vector<Conflict> kept;
    if (open.empty()) return kept;
    std::map<std::size_t, Bits, std::greater<>> ordered;  // earlier nodes that are over before this one starts, on these devices
    const auto follows = [&](std::size_t earlier, const Bits& on) {
      const Bits there = on & present_[earlier];
      if (const auto [entry, is_new] = ordered.try_emplace(earlier, there); !is_new) entry->second |= there;
    };
    for (const std::size_t earlier : before_[node]) follows(earlier, present_[node]);
    while (!open.empty()) {  // the latest first: the ones before may follow from it
      const std::size_t latest = std::prev(open.end())->first;
      if (!ordered.empty() && ordered.begin()->first >= latest) {
        const auto [passed, on] = *ordered.begin();
        ordered.erase(ordered.begin());
        if (passed == latest) {
          const bool implied = open.at(latest).on.within(on);
          if (!implied) keep(node, open.at(latest), kept);
          open.erase(latest);
          Bits reached = on;
          if (!implied) reached |= present_[node] & present_[passed];
          for (const std::size_t earlier : before_[passed]) follows(earlier, reached);
        } else {
          for (const std::size_t earlier : before_[passed]) follows(earlier, on);
        }
        continue;
      }
      keep(node, open.at(latest), kept);
      open.erase(latest);
      for (const std::size_t earlier : before_[latest]) follows(earlier, present_[node] & present_[latest]);
    }
    std::sort(kept.begin(), kept.end(), [](const Conflict& a, const Conflict& b) { return std::pair{a.later_use, a.earlier} < std::pair{b.later_use, b.earlier}; });
    return kept;
  }

  void keep(std::size_t node, const Conflict& conflict, std::vector<Conflict>& kept) {
    before_[node].push_back(conflict.earlier);
    kept.push_back(conflict);
  }

  [[nodiscard]] DerivedEdge edge_of(std::size_t node, const Conflict& conflict) const {
    const auto half = [&](std::size_t of) {
      if (!std::holds_alternative<Shift>(program_.tasks[task_of(of).index()].op)) return Half::both;
      return of % 2 == 0 ? Half::send : Half::receive;
    };
    const Use &earlier = uses_[conflict.earlier_use], &later = uses_[conflict.later_use];
    const Hazard hazard = !later.write ? Hazard::read_after_write : earlier.write ? Hazard::write_after_write : Hazard::write_after_read;
    return {number_, task_of(node), {task_of(conflict.earlier), half(conflict.earlier), half(node)}, hazard, earlier.region, later.region,
            DeviceId{static_cast<int>(devices_[conflict.on.first()])}};
  }

  /// Makes one edge of two that differ in one half only.
  static void merge(std::vector<DerivedEdge>& edges) {
    for (std::size_t i = 0; i < edges.size(); ++i)
      for (std::size_t j = i + 1; j < edges.size();) {
        Edge &first = edges[i].edge, &second = edges[j].edge;
        const bool gates_join = first.task == second.task && first.done == second.done, halves_join = first.task == second.task && first.gates == second.gates;
        if (!gates_join && !halves_join) {
          ++j;
          continue;
        }
        if (first.gates != second.gates) first.gates = Half::both;
        if (first.done != second.done) first.done = Half::both;
        edges.erase(edges.begin() + static_cast<std::ptrdiff_t>(j));
      }
  }

  const Schedule& schedule_;
  const Program& program_;
  std::size_t number_;
  const std::vector<std::uint32_t>& devices_;
  std::vector<Coordinates> coordinates_;
  std::vector<Bits> present_;                                // by node
  std::vector<Use> uses_;                                    // in program order, of a task what it reads first
  std::vector<std::map<std::size_t, Conflict>> conflicts_;   // by node, with earlier nodes
  std::vector<std::vector<std::size_t>> before_;             // by node: those that it waits for
};

/// With a join in place of each Collective: deploy() takes no Collectives, and of them only the guard is asked for.
Schedule without_collectives(Schedule schedule) {
  for (Program& program : schedule.programs)
    for (Task& task : program.tasks)
      if (std::holds_alternative<Collective>(task.op)) task.op = Local{LocalKind::join, {}, {}, 1, Unit::dma};
  return schedule;
}

}  // namespace

std::string_view name_of(Hazard hazard) {
  constexpr std::array<std::string_view, 3> names{"read after write", "write after read", "write after write"};
  return names[static_cast<std::size_t>(hazard)];
}

Expected<DerivedEdges> derive_edges(Schedule schedule) {
  if (auto problems = check_shapes(schedule); !problems.empty()) return std::move(problems.front());
  const Schedule skeleton = without_collectives(schedule);
  Deployed deployed = deploy(skeleton);
  if (!deployed.problems.empty()) return std::move(deployed.problems.front());
  DerivedEdges result;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
    const std::vector<DerivedEdge> edges = ProgramEdges{schedule, p, deployed.deployment}.derive();
    for (const DerivedEdge& edge : edges) schedule.programs[p].tasks[edge.task.index()].after.push_back(edge.edge);
    result.edges.insert(result.edges.end(), edges.begin(), edges.end());
  }
  result.schedule = std::move(schedule);
  return result;
}

}  // namespace podsim
