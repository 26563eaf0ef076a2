#include "sim/engine/analytic/analytic_engine.hpp"

#include <algorithm>
#include <vector>

#include "sim/model/costed_graph.hpp"
#include "sim/engine/deadlock.hpp"

namespace podsim {

namespace {

/// Longest path by counting down what each gate still waits for; the order in which activities are taken does not matter.
class LongestPath {
 public:
  LongestPath(const CostedGraph& costs, int devices)
      : costs_{costs}, graph_{costs.graph}, times_(graph_.activities.size()), gates_(graph_.activities.size()) {
    link();
    core_next_.assign(graph_.activities.size(), none);
    for (int d = 0; d < devices; ++d) core_free_.push_back(ceil_to_clock(costs.shares_first[static_cast<std::size_t>(d)]));
    for (int d = 0; d < devices; ++d) {
      std::uint32_t previous = none;
      for (const std::uint32_t a : graph_.program_order(DeviceId{d})) {
        if (!costs.on_core[a]) continue;
        if (previous != none) {
          core_next_[previous] = a;
          ++gates_[a].own_waits;
        }
        previous = a;
      }
    }
  }

  /// Whether everything ran; times() then holds when.
  bool run() {
    for (std::uint32_t a = 0; a < gates_.size(); ++a)
      if (gates_[a].own_waits == 0 && !gates_[a].issued) issue(a);  // a core chain may have come by already
    while (!finished_.empty()) {
      const std::uint32_t a = finished_.back();
      finished_.pop_back();
      ++done_;
      for (std::uint32_t i = rows_[a]; i < rows_[a + 1]; ++i) {
        const Follower& follower = followers_[i];
        Gates& gates = gates_[follower.activity];
        const Picoseconds end = follower.received ? times_[a].received : times_[a].sent;
        if (follower.gate == Gate::receive) {
          gates.receive_ready = std::max(gates.receive_ready, end);
          if (--gates.receive_waits == 0 && gates.issued) start(follower.activity);
        } else {
          gates.own_ready = std::max(gates.own_ready, end);
          if (--gates.own_waits == 0) issue(follower.activity);
        }
      }
    }
    return done_ == gates_.size();
  }

  [[nodiscard]] const std::vector<ActivityTimes>& times() const { return times_; }
  /// When the last core has worked off its shares.
  [[nodiscard]] Picoseconds cores_end() const { return core_free_.empty() ? Picoseconds{} : *std::max_element(core_free_.begin(), core_free_.end()); }
  [[nodiscard]] std::vector<bool> finished() const {
    std::vector<bool> result;
    for (const Gates& gates : gates_) result.push_back(gates.started);
    return result;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Gates {
    std::uint32_t own_waits = 0, receive_waits = 0;  // own: the start of a work, the send gate of a transfer, and the core before it
    bool issued = false, started = false;
    Picoseconds own_ready, receive_ready;
  };
  struct Follower {
    std::uint32_t activity;
    Gate gate;
    bool received;
  };

  void link() {
    rows_.assign(gates_.size() + 1, 0);
    const auto each_wait = [&](auto&& f) {
      for (std::uint32_t a = 0; a < gates_.size(); ++a)
        for (const Gate gate : {Gate::start, Gate::receive})
          for (const Dependency& dependency : graph_.waits_for(a, gate)) f(a, gate, dependency);
    };
    each_wait([&](std::uint32_t a, Gate gate, const Dependency& dependency) {
      ++rows_[dependency.activity + 1];
      ++(gate == Gate::receive ? gates_[a].receive_waits : gates_[a].own_waits);
    });
    for (std::size_t a = 0; a < gates_.size(); ++a) rows_[a + 1] += rows_[a];
    followers_.resize(rows_.back());
    std::vector<std::uint32_t> next(rows_.begin(), rows_.end() - 1);
    each_wait([&](std::uint32_t a, Gate gate, const Dependency& dependency) {
      followers_[next[dependency.activity]++] = {a, gate, dependency.received};
    });
  }

  /// All that the own gate waits for is done, the core included. Issues what follows on the core as far as it can.
  void issue(std::uint32_t a) {
    while (a != none) {
      Gates& gates = gates_[a];
      gates.issued = true;
      std::uint32_t next = none;
      if (costs_.on_core[a]) {
        Picoseconds& core = core_free_[graph_.activities[a].device.index()];
        gates.own_ready = std::max(gates.own_ready, core);
        core = later(later(gates.own_ready, ceil_to_clock(costs_.work_time[a])), ceil_to_clock(costs_.shares_behind[a]));
        if (core_next_[a] != none && --gates_[core_next_[a]].own_waits == 0) next = core_next_[a];
      }
      if (gates.receive_waits == 0) start(a);
      a = next;
    }
  }

  void start(std::uint32_t a) {
    Gates& gates = gates_[a];
    gates.started = true;
    ActivityTimes& times = times_[a];
    times.start = std::max(gates.own_ready, gates.receive_ready);
    if (graph_.activities[a].kind == Activity::Kind::work) {
      times.sent = times.received = later(times.start, ceil_to_clock(costs_.work_time[a]));
    } else {
      const TransferCost& transfer = costs_.transfers[a];
      const Seconds flow{transfer.flow_bytes / costs_.bottlenecks[transfer.route].count()};
      times.sent = later(times.start, ceil_to_clock(transfer.delay) + ceil_to_clock(flow));
      times.received = later(times.sent, ceil_to_clock(transfer.reduction));
    }
    finished_.push_back(a);
  }

  const CostedGraph& costs_;
  const ActivityGraph& graph_;
  std::vector<ActivityTimes> times_;
  std::vector<Gates> gates_;
  std::vector<std::uint32_t> rows_;
  std::vector<Follower> followers_;
  std::vector<std::uint32_t> core_next_;
  std::vector<Picoseconds> core_free_;
  std::vector<std::uint32_t> finished_;  // started, so that their ends are known; followers not yet told
  std::size_t done_ = 0;
};

}  // namespace

Expected<Timeline> run_analytic(const Model& model, const RunControl&) {
  const CostedGraph costs = write_out(model);
  LongestPath path{costs, model.schedule->mesh.devices()};
  if (!path.run()) return deadlock(model, path.finished());
  return make_timeline(path.times(), path.cores_end(), static_cast<std::int64_t>(costs.graph.activities.size()));
}

}  // namespace podsim
