#include "sim/model/core_share.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sim/model/task_cost.hpp"

namespace podsim {

namespace {

/// The operations of one program that have a share, and their pieces.
class Sharer {
 public:
  Sharer(const Model& model, std::uint32_t program)
      : model_{model},
        program_{program},
        costs_{model.costs[program]},
        tasks_{model.schedule->programs[program].tasks},
        nodes_{model.deployment.programs[program].devices.size()} {}

  CoreShares run() {
    for (std::size_t t = costs_.size(); t-- > 0;)
      if (costs_[t].on_core) core_.push_back(t);
    std::reverse(core_.begin(), core_.end());
    for (const Operation& operation : operations()) place(operation);
    std::stable_sort(shares_.pieces.begin(), shares_.pieces.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
    add_up();
    return std::move(shares_);
  }

 private:
  struct Operation {
    double share = 0;
    std::vector<std::size_t> tasks;  // in program order; of a Collective the first is its launch
  };

  /// In program order. A Collective without a launch has one device: nothing moves.
  std::vector<Operation> operations() const {
    std::vector<Operation> result;
    std::map<int, std::size_t> launched;  // by collective: position in `result`
    for (std::size_t t = 0; t < costs_.size(); ++t) {
      const Task& task = tasks_[t];
      if (costs_[t].on_core) continue;
      if (task.origin && !is_launch(task.op)) {
        if (const auto known = launched.find(task.origin->collective); known != launched.end()) result[known->second].tasks.push_back(t);
        continue;
      }
      const double share = core_share_of(*model_.machine, task);
      if (share == 0) continue;
      if (task.origin) launched[task.origin->collective] = result.size();
      result.push_back({share, {t}});
    }
    return result;
  }

  using Key = std::vector<std::uint64_t>;

  /// What the durations of an operation follow from: layers and microbatches repeat the same ones. nullopt: from tasks of other programs, too.
  std::optional<Key> key_of(const Operation& operation) const {
    const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
    Key key;
    for (auto task = operation.tasks.begin(); task != operation.tasks.end(); ++task) {
      const std::uint32_t participants = model_.deployment.programs[program_].participants[*task];
      const Participants& who = model_.deployment.participants[participants];
      if (!who.to_task.empty() || !who.from_task.empty()) return std::nullopt;
      const TaskCost& cost = costs_[*task];
      const auto traits = static_cast<std::uint64_t>(cost.kind) + (cost.on_core ? 4 : 0) + (tasks_[*task].origin ? 8 : 0);
      key.insert(key.end(), {participants, traits, cost.routing, bits(cost.work.count()), bits(cost.delay.count()), bits(cost.flow_bytes), bits(cost.reduction.count())});
      for (const Edge& edge : tasks_[*task].after)
        if (const auto before = std::lower_bound(operation.tasks.begin(), task, edge.task.index()); before != task && *before == edge.task.index())
          key.push_back(static_cast<std::uint64_t>(task - before) * 16 + static_cast<std::uint64_t>(edge.gates) * 4 + static_cast<std::uint64_t>(edge.done));
      key.push_back(0);  // no edge leads to the task itself
    }
    return key;
  }

  const std::vector<Seconds>& durations(const Operation& operation) {
    const auto key = key_of(operation);
    if (!key) return others_ = longest(operation);
    const auto [known, is_new] = known_.try_emplace(*key);
    if (is_new) known->second = longest(operation);
    return known->second;
  }

  /// Per node, the longest path through the operation's own tasks there: its duration while nobody else uses a link.
  std::vector<Seconds> longest(const Operation& operation) {
    const Deployment& deployment = model_.deployment;
    ends_.assign(operation.tasks.size() * nodes_, {});
    std::vector<Seconds> longest(nodes_), begin(nodes_);
    for (auto task = operation.tasks.begin(); task != operation.tasks.end(); ++task) {
      const std::size_t t = *task;
      const Participants& who = deployment.who(program_, t);
      const std::span<Seconds> end = ends_of(operation, task);
      for (std::size_t l = 0; l < nodes_; ++l) {
        if (who.does(l)) end[l] = uncontended(model_, program_, t, l);
        if (!who.receives(l) || !tasks_[t].origin) continue;  // of an algorithm's own transfer, the sender pays
        const auto& [program, local] = deployment.places[who.from[l]];
        end[l] = std::max(end[l], uncontended(model_, program, who.from_task.empty() ? t : who.from_task[l], local));
      }
      std::ranges::fill(begin, Seconds{});
      for (const bool receive_gate : {false, true})
        for (const Wait& wait : waits_of(model_.schedule->programs[program_], TaskId{t}, receive_gate))
          if (const auto before = std::lower_bound(operation.tasks.begin(), task, wait.task.index()); before != task && *before == wait.task.index())
            for (std::size_t l = 0; l < nodes_; ++l) begin[l] = std::max(begin[l], ends_of(operation, before)[l]);
      for (std::size_t l = 0; l < nodes_; ++l) {
        end[l] += begin[l];
        longest[l] = std::max(longest[l], end[l]);
      }
    }
    return longest;
  }

  std::span<Seconds> ends_of(const Operation& operation, std::vector<std::size_t>::const_iterator task) {
    return std::span{ends_}.subspan(static_cast<std::size_t>(task - operation.tasks.begin()) * nodes_, nodes_);
  }

  [[nodiscard]] bool is(std::size_t task, LocalKind kind) const {
    const auto* local = std::get_if<Local>(&tasks_[task].op);
    return local != nullptr && local->kind == kind;
  }

  /// The tasks on the core that the operation goes on beside: those behind it up to the first that waits for it, for as long as it lasts. A call counts
  /// as one, written out or not: its end stands for it.
  std::vector<std::size_t> beside(const Operation& operation, Seconds duration) const {
    const std::size_t place = operation.tasks.front();
    std::vector<std::size_t> result;
    auto next = std::upper_bound(core_.begin(), core_.end(), place);
    if (next == core_.end()) return result;
    std::vector<bool> waits{true};  // for the operation, itself or through others; of the tasks from its first on
    const auto is_own = [&](std::size_t t) { return std::ranges::binary_search(operation.tasks, t); };
    Seconds worked, in_call;
    bool calls = false;
    for (std::size_t t = place + 1; t < costs_.size() && worked < duration; ++t) {
      const auto& after = tasks_[t].after;
      waits.push_back(is_own(t) || std::any_of(after.begin(), after.end(), [&](const Edge& edge) { return edge.task.index() >= place && waits[edge.task.index() - place]; }));
      if (!costs_[t].on_core) continue;
      if (waits.back()) break;
      if (is(t, LocalKind::begin_call)) {
        calls = true;
        in_call = {};
      } else if (is(t, LocalKind::end_call)) {
        if (!calls) break;  // of its own call, which waits for it; or a stray one of a file
        calls = false;
        result.push_back(t);
        worked += in_call;
      } else if (calls) {
        in_call += costs_[t].work;
      } else {
        result.push_back(t);
        const PlayedCall* played = model_.call(program_, t);
        worked += played == nullptr ? costs_[t].work : played->core_work;
      }
    }
    return result;
  }

  void place(const Operation& operation) {
    std::vector<Seconds> time = durations(operation);
    const std::vector<std::size_t> others = beside(operation, *std::max_element(time.begin(), time.end()));
    for (Seconds& each : time) each = operation.share / static_cast<double>(others.size() + 1) * each;
    const TaskId of{operation.tasks.front()};
    shares_.pieces.push_back({of, static_cast<std::uint32_t>(of.index()), time});
    for (const std::size_t t : others) shares_.pieces.push_back({of, static_cast<std::uint32_t>(t + 1), time});
  }

  void add_up() {
    shares_.first.resize(nodes_);
    shares_.behind.resize(costs_.size());
    for (const CoreShares::Piece& piece : shares_.pieces) {
      const auto behind = std::lower_bound(core_.begin(), core_.end(), piece.place);
      for (std::size_t l = 0; l < nodes_; ++l) {
        if (piece.time[l] == Seconds{}) continue;
        auto after = behind;
        while (after != core_.begin() && !model_.deployment.who(program_, *std::prev(after)).does(l)) --after;
        std::vector<Seconds>& sums = after == core_.begin() ? shares_.first : shares_.behind[*std::prev(after)];
        sums.resize(nodes_);
        sums[l] += piece.time[l];
      }
    }
  }

  const Model& model_;
  std::uint32_t program_;
  const std::vector<TaskCost>& costs_;
  const std::vector<Task>& tasks_;
  std::size_t nodes_;
  std::vector<std::size_t> core_;  // tasks on the core
  std::vector<Seconds> ends_;      // of an operation's tasks, by node
  std::map<Key, std::vector<Seconds>> known_;
  std::vector<Seconds> others_;    // of an operation without a key
  CoreShares shares_;
};

}  // namespace

std::vector<CoreShares> core_shares_of(const Model& model) {
  const auto& shares = model.machine->software.core_share;
  std::vector<CoreShares> result;
  if (std::all_of(shares.begin(), shares.end(), [](double share) { return share == 0; })) return result;
  bool any = false;
  for (std::uint32_t p = 0; p < model.costs.size(); ++p) {
    result.push_back(Sharer{model, p}.run());
    any |= !result.back().pieces.empty();
  }
  if (!any) result.clear();
  return result;
}

}  // namespace podsim
