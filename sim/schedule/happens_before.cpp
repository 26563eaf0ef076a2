#include "sim/schedule/happens_before.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

/// Calls f for everything that an activity waits for, and with core order for the core work before it.
class Waits {
 public:
  Waits(const ActivityGraph& graph, const Schedule& lowered, bool core_order) : graph_{graph} {
    if (!core_order) return;
    core_before_.assign(graph.activities.size(), none);
    for (int d = 0; d < lowered.mesh.devices(); ++d) {
      std::uint32_t previous = none;
      for (const std::uint32_t a : graph.program_order(DeviceId{d})) {
        if (!on_core(lowered, graph.activities[a])) continue;
        core_before_[a] = previous;
        previous = a;
      }
    }
  }
  template <class F>
  void operator()(std::uint32_t activity, F&& f) const {
    for (const Gate gate : {Gate::start, Gate::receive})
      for (const Dependency& dependency : graph_.waits_for(activity, gate)) f(dependency.activity);
    if (!core_before_.empty() && core_before_[activity] != none) f(core_before_[activity]);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  const ActivityGraph& graph_;
  std::vector<std::uint32_t> core_before_;
};

}  // namespace

bool on_core(const Schedule& lowered, const Activity& activity) {
  if (activity.kind == Activity::Kind::transfer) return false;
  const Op& op = lowered.programs[activity.program].tasks[activity.task.index()].op;
  const auto* local = std::get_if<Local>(&op);
  return !local || local->unit == Unit::core;
}

TopologicalOrder topological_order(const ActivityGraph& graph, const Schedule& lowered, bool core_order) {
  const Waits waits{graph, lowered, core_order};
  const std::size_t n = graph.activities.size();
  std::vector<std::uint32_t> pending(n, 0), rows(n + 1, 0);
  for (std::uint32_t a = 0; a < n; ++a) waits(a, [&](std::uint32_t before) { ++pending[a], ++rows[before + 1]; });
  for (std::size_t i = 0; i < n; ++i) rows[i + 1] += rows[i];
  std::vector<std::uint32_t> followers(rows[n]), next(rows.begin(), rows.end() - 1);
  for (std::uint32_t a = 0; a < n; ++a) waits(a, [&](std::uint32_t before) { followers[next[before]++] = a; });

  TopologicalOrder result;
  result.order.reserve(n);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t a = 0; a < n; ++a)
    if (pending[a] == 0) ready.push(a);
  while (!ready.empty()) {
    const std::uint32_t a = ready.top();
    ready.pop();
    result.order.push_back(a);
    for (std::uint32_t i = rows[a]; i < rows[a + 1]; ++i)
      if (--pending[followers[i]] == 0) ready.push(followers[i]);
  }
  if (result.order.size() == n) return result;

  // Everything left waits for something left: walking from wait to wait must come back.
  auto at = static_cast<std::uint32_t>(std::find_if(pending.begin(), pending.end(), [](std::uint32_t count) { return count > 0; }) - pending.begin());
  std::vector<std::uint32_t> path;
  std::vector<bool> visited(n, false);
  while (!visited[at]) {
    visited[at] = true;
    path.push_back(at);
    std::optional<std::uint32_t> onwards;
    waits(at, [&](std::uint32_t before) {
      if (pending[before] > 0 && (!onwards || before < *onwards)) onwards = before;
    });
    PODSIM_ASSERT(onwards);
    at = *onwards;
  }
  result.cycle.assign(std::find(path.begin(), path.end(), at), path.end());
  return result;
}

HappensBefore::HappensBefore(const ActivityGraph& graph, const std::vector<std::uint32_t>& order, std::size_t most_clock_bytes)
    : graph_{graph}, order_{order}, most_clock_bytes_{most_clock_bytes}, position_(order.size()), seen_(order.size(), 0) {
  PODSIM_ASSERT(order.size() == graph.activities.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
}

bool HappensBefore::operator()(const OrderQuestion& question) { return *within(std::numeric_limits<std::size_t>::max(), question); }

std::optional<bool> HappensBefore::within(std::size_t most, const OrderQuestion& question) {
  const auto [first, received, then] = question;
  ++query_;
  stack_.assign(1, then);
  std::size_t looked_at = 0;
  while (!stack_.empty()) {
    const std::uint32_t at = stack_.back();
    stack_.pop_back();
    // Own device last, so that it is searched first: that is where direct edges lead.
    for (const bool same_device : {false, true})
      for (const Gate gate : {Gate::start, Gate::receive})
        for (const Dependency& dependency : graph_.waits_for(at, gate)) {
          if (dependency.activity == first && (dependency.received || !received)) return true;
          ++waits_searched_;
          if (++looked_at > most) return std::nullopt;
          if ((graph_.activities[dependency.activity].device == graph_.activities[first].device) != same_device) continue;
          if (position_[dependency.activity] <= position_[first] || seen_[dependency.activity] == query_) continue;
          seen_[dependency.activity] = query_;
          stack_.push_back(dependency.activity);
        }
  }
  return false;
}

std::vector<bool> HappensBefore::together(std::span<const OrderQuestion> questions, Cancellation stop) {
  // A part at a time, so that clocks take over in the midst of many questions.
  constexpr std::size_t part = 16 * at_once;
  std::vector<bool> answers;
  answers.reserve(questions.size());
  while (answers.size() < questions.size()) {
    if (clocks_pay())
      if (const auto rest = by_clocks(questions.subspan(answers.size()), stop)) {
        answers.insert(answers.end(), rest->begin(), rest->end());
        break;
      }
    const std::vector<bool> next = by_passes(questions.subspan(answers.size(), std::min(part, questions.size() - answers.size())), stop);
    answers.insert(answers.end(), next.begin(), next.end());
  }
  return answers;
}

bool HappensBefore::clocks_pay() {
  // Chains cost a few looks at each wait: not before passes have cost as much.
  const std::uint64_t walk = graph_.activities.size() + graph_.waits.size();
  if (waits_passed_ < walk) return false;
  return waits_passed_ >= clocks().entries() / entries_per_wait && clocks().peak_bytes() <= most_clock_bytes_;
}

VectorClocks& HappensBefore::clocks() {
  if (!clocks_) clocks_.emplace(graph_, order_);
  return *clocks_;
}

std::uint64_t HappensBefore::waits_looked_at() const {
  return waits_searched_ + waits_passed_ + (clocks_ ? clocks_->entries_looked_at() / entries_per_wait : 0);
}

std::optional<std::vector<bool>> HappensBefore::by_clocks(std::span<const OrderQuestion> questions, Cancellation stop) {
  VectorClocks& clocks = this->clocks();
  if (clocks.peak_bytes() > most_clock_bytes_) return std::nullopt;
  std::vector<std::uint32_t> in_order(questions.size());
  std::iota(in_order.begin(), in_order.end(), 0u);
  const auto then = [&](std::uint32_t q) { return position_[questions[q].then]; };
  std::stable_sort(in_order.begin(), in_order.end(), [&](std::uint32_t a, std::uint32_t b) { return then(a) < then(b); });
  if (!in_order.empty() && clocks.reached() > then(in_order.front()) + 1) return std::nullopt;

  std::vector<bool> answers(questions.size(), true);
  for (const std::uint32_t q : in_order) {
    PODSIM_ASSERT(position_[questions[q].first] < then(q));
    while (clocks.reached() < then(q) + 1) {
      if (stop.requested()) return answers;
      clocks.next();
    }
    answers[q] = clocks.over(questions[q].first, questions[q].received);
  }
  return answers;
}

std::vector<bool> HappensBefore::by_passes(std::span<const OrderQuestion> questions, Cancellation stop) {
  over_.resize(order_.size());
  asked_of_.resize(order_.size(), 0);
  std::vector<bool> answers;
  answers.reserve(questions.size());
  for (std::size_t begin = 0; begin < questions.size() && !stop.requested(); begin += at_once) {
    const std::span<const OrderQuestion> of_pass = questions.subspan(begin, std::min(at_once, questions.size() - begin));
    pass(of_pass);
    for (std::size_t q = 0; q < of_pass.size(); ++q) answers.push_back((over_[of_pass[q].then][q / 64] >> (q % 64) & 1) != 0);
  }
  answers.resize(questions.size(), true);
  return answers;
}

void HappensBefore::pass(std::span<const OrderQuestion> questions) {
  std::uint32_t begin = static_cast<std::uint32_t>(order_.size()), end = 0;
  std::vector<std::uint32_t> next(questions.size(), 0);  // the question before it about the same activity, and 1
  for (std::size_t q = 0; q < questions.size(); ++q) {
    PODSIM_ASSERT(position_[questions[q].first] < position_[questions[q].then]);
    begin = std::min(begin, position_[questions[q].first]);
    end = std::max(end, position_[questions[q].then] + 1);
    next[q] = std::exchange(asked_of_[questions[q].first], static_cast<std::uint32_t>(q) + 1);
  }
  for (std::uint32_t p = begin; p < end; ++p) {
    Set& over = over_[order_[p]] = Set{};
    for (const Gate gate : {Gate::start, Gate::receive})
      for (const Dependency& wait : graph_.waits_for(order_[p], gate)) {
        ++waits_passed_;
        if (position_[wait.activity] < begin) continue;
        for (std::size_t w = 0; w < words; ++w) over[w] |= over_[wait.activity][w];
        for (std::uint32_t q = asked_of_[wait.activity]; q != 0; q = next[q - 1])
          if (wait.received || !questions[q - 1].received) over[(q - 1) / 64] |= std::uint64_t{1} << ((q - 1) % 64);
      }
  }
  for (const OrderQuestion& question : questions) asked_of_[question.first] = 0;
}

}  // namespace podsim
