// The run itself: one legal order after the other.
#include "algorithms/mutation/interpreter.hpp"

#include <fmt/format.h>

#include <queue>
#include <tuple>

#include "algorithms/mutation/plan.hpp"
#include "sim/base/rng.hpp"

namespace podsim::mutation {

namespace {

/// One legal order, played.
class Run {
 public:
  Run(const Plan& plan, Memory memory, std::uint64_t seed, int order) : plan_{plan}, memory_{std::move(memory)}, seed_{seed}, order_{order} {
    states_.resize(plan.actions().size());
    for (std::size_t a = 0; a < states_.size(); ++a) {
      states_[a].waits = plan.actions()[a].waits;
      if (states_[a].waits == 0) schedule(static_cast<int>(a), start);
    }
    while (!queue_.empty()) {
      const Event event = queue_.top();
      queue_.pop();
      play(event);
    }
  }

  [[nodiscard]] bool finished() const { return ended_ == states_.size(); }
  [[nodiscard]] const Memory& memory() const { return memory_; }

 private:
  enum Moment { start = 2 };  // besides the two ends
  struct State {
    int waits = 0, ends = 0;
    bool read = false, written = false;
    Words words, sums;  // what has been read; what the target held when the transfer began
  };
  struct Event {
    std::uint64_t key;
    std::int64_t sequence;
    int action, moment;
    bool operator<(const Event& other) const { return std::tie(key, sequence) > std::tie(other.key, other.sequence); }
  };

  void schedule(int action, int moment) {
    const Action& what = plan_.actions()[static_cast<std::size_t>(action)];
    // Events in the order of readiness, at random, task by task, device by device, and at random again.
    std::uint64_t rank = 0;
    if (order_ % 4 == 1) rank = static_cast<std::uint64_t>(sequence_);
    if (order_ % 4 == 2) rank = static_cast<std::uint64_t>(what.task[sending]);
    if (order_ % 4 == 3) rank = static_cast<std::uint64_t>(what.device[sending]);
    queue_.push({order_ == 0 ? 0 : counter_hash(seed_, static_cast<std::uint64_t>(order_), rank), sequence_++, action, moment});
  }

  /// A coin of one action in one order; heads never in the first order.
  bool coin(int action, std::uint64_t which) const {
    return order_ > 0 && counter_hash(seed_ + which, static_cast<std::uint64_t>(order_), static_cast<std::uint64_t>(action)) % 2 == 0;
  }

  void play(const Event& event) {
    const Action& action = plan_.actions()[static_cast<std::size_t>(event.action)];
    State& state = states_[static_cast<std::size_t>(event.action)];
    if (event.moment == start) {
      if (coin(event.action, 1)) read(action, state);
      if (coin(event.action, 2) && action.transfer && adds(plan_.task(action, receiving).op))
        state.sums = load(action.device[receiving], target(action));
      if (coin(event.action, 3)) write(action, state);
      schedule(event.action, sending);
      if (action.transfer) schedule(event.action, receiving);
      return;
    }
    read(action, state);
    if (event.moment == receiving || !action.transfer) write(action, state);
    if (++state.ends == (action.transfer ? 2 : 1)) ++ended_;
    for (const int follower : action.followers[static_cast<std::size_t>(event.moment)])
      if (--states_[static_cast<std::size_t>(follower)].waits == 0) schedule(follower, start);
  }

  void read(const Action& action, State& state) {
    if (state.read) return;
    state.read = true;
    const Op& op = plan_.task(action, sending).op;
    const int device = action.device[sending];
    if (action.transfer) {
      state.words = load(device, source_of(op));
    } else if (const auto* matmul = std::get_if<Matmul>(&op)) {
      state.words = product(device, *matmul);
    } else if (const auto& local = std::get<Local>(op); !waits_only(local.kind)) {
      state.words = load(device, local.reads.front());
      if (local.kind == LocalKind::add || local.kind == LocalKind::add_in_switch) add_to(state.words, load(device, local.reads.back()));
    }
  }

  void write(const Action& action, State& state) {
    if (state.written) return;
    state.written = true;
    read(action, state);
    const Op& op = plan_.task(action, sending).op;
    if (!action.transfer) {
      if (const auto* matmul = std::get_if<Matmul>(&op)) return store(action.device[sending], matmul->out, state.words);
      const auto& local = std::get<Local>(op);
      if (!local.writes.empty()) store(action.device[sending], local.writes.front(), state.words);
      return;
    }
    if (adds(plan_.task(action, receiving).op)) add_to(state.words, state.sums.empty() ? load(action.device[receiving], target(action)) : state.sums);
    store(action.device[receiving], target(action), state.words);
  }

  const Region& target(const Action& action) const { return target_of(plan_.task(action, receiving).op); }

  Words product(int device, const Matmul& matmul) const {
    const auto [m, n, k] = product_extents(matmul);
    const Words left = load(device, matmul.left), right = load(device, matmul.right);
    Words out = matmul.accumulate ? load(device, matmul.out) : Words(static_cast<std::size_t>(m * n), 0);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t l = 0; l < k; ++l)
          out[static_cast<std::size_t>(i * n + j)] += left[static_cast<std::size_t>(matmul.transpose_left ? l * m + i : i * k + l)] *
                                                      right[static_cast<std::size_t>(matmul.transpose_right ? j * k + l : l * n + j)];
    return out;
  }

  static void add_to(Words& sum, const Words& words) {
    for (std::size_t e = 0; e < words.size(); ++e) sum[e] += words[e];
  }
  Positions where(int device, const Region& region) const { return plan_.positions(device, region).value(); }
  Words load(int device, const Region& region) const {
    const Words& buffer = memory_[static_cast<std::size_t>(device)][region.buffer.index()];
    Words words;
    for (const std::int64_t position : where(device, region)) words.push_back(buffer[static_cast<std::size_t>(position)]);
    return words;
  }
  void store(int device, const Region& region, const Words& words) {
    Words& buffer = memory_[static_cast<std::size_t>(device)][region.buffer.index()];
    std::size_t e = 0;
    for (const std::int64_t position : where(device, region)) buffer[static_cast<std::size_t>(position)] = words[e++];
  }

  const Plan& plan_;
  Memory memory_;
  std::uint64_t seed_;
  int order_;
  std::vector<State> states_;
  std::priority_queue<Event> queue_;
  std::int64_t sequence_ = 0;
  std::size_t ended_ = 0;
};

}  // namespace

Judgement judge(const Schedule& lowered, const Trial& trial) {
  const Plan plan{lowered};
  if (!plan.problem().empty()) return {Verdict::malformed, plan.problem()};
  const Memory before = initial_memory(lowered, trial.seed);
  const Postcondition postcondition{lowered, trial.seed};
  Judgement judgement{Verdict::right, ""};
  for (int order = 0; order < trial.orders; ++order) {
    const Run run{plan, before, trial.seed, order};
    if (!run.finished()) return {Verdict::deadlock, "tasks wait for each other"};
    if (const std::string violation = postcondition.violation(run.memory()); !violation.empty()) {
      judgement = {Verdict::wrong, fmt::format("{} in order {}", violation, order)};
      break;
    }
  }
  if (trial.races) judgement.race = race_in(plan);
  return judgement;
}

}  // namespace podsim::mutation
