// Races, by the definition: of every two accesses to an element, one of them a write, the one must end before the other begins.
#include <fmt/format.h>

#include <map>

#include "algorithms/mutation/plan.hpp"

namespace podsim::mutation {

namespace {

/// One end of one action, numbered.
std::size_t number(int action, int end) { return 2 * static_cast<std::size_t>(action) + static_cast<std::size_t>(end); }

/// Per action: the ends that happen before it starts.
class HappensBefore {
 public:
  explicit HappensBefore(const Plan& plan) {
    const std::vector<Action>& actions = plan.actions();
    before_.assign(actions.size(), std::vector<std::uint64_t>(2 * actions.size() / 64 + 1, 0));
    std::vector<int> waits, ready;
    for (std::size_t a = 0; a < actions.size(); ++a) {
      waits.push_back(actions[a].waits);
      if (waits.back() == 0) ready.push_back(static_cast<int>(a));
    }
    while (!ready.empty()) {
      const int a = ready.back();
      ready.pop_back();
      for (const int end : {sending, receiving})
        for (const int follower : actions[static_cast<std::size_t>(a)].followers[static_cast<std::size_t>(end)]) {
          std::vector<std::uint64_t>& set = before_[static_cast<std::size_t>(follower)];
          const std::vector<std::uint64_t>& own = before_[static_cast<std::size_t>(a)];
          for (std::size_t i = 0; i < set.size(); ++i) set[i] |= own[i];
          set[number(a, end) / 64] |= std::uint64_t{1} << number(a, end) % 64;
          if (--waits[static_cast<std::size_t>(follower)] == 0) ready.push_back(follower);
        }
    }
  }

  [[nodiscard]] bool ordered(std::size_t end, int action) const { return (before_[static_cast<std::size_t>(action)][end / 64] >> end % 64 & 1) != 0; }

 private:
  std::vector<std::vector<std::uint64_t>> before_;  // sets of ends, a bit each
};

/// From the action's start to this end. What has been received has been read before, so the source of a transfer is free after either end.
struct Access {
  int action, end;
  bool writes;
};

}  // namespace

std::string race_in(const Plan& plan) {
  const HappensBefore before{plan};
  std::map<std::tuple<int, int, std::int64_t>, std::vector<Access>> accesses;  // of (device, buffer, position)
  const auto add = [&](int device, const Region& region, Access access) {
    const Positions positions = plan.positions(device, region).value();
    for (const std::int64_t position : positions) accesses[{device, region.buffer.value, position}].push_back(access);
  };
  for (std::size_t i = 0; i < plan.actions().size(); ++i) {
    const Action& action = plan.actions()[i];
    const auto a = static_cast<int>(i);
    const Op& op = plan.task(action, sending).op;
    if (action.transfer) {
      add(action.device[sending], source_of(op), {a, sending, false});
      add(action.device[receiving], target_of(plan.task(action, receiving).op), {a, receiving, true});
    } else if (const auto* matmul = std::get_if<Matmul>(&op)) {
      for (const Region* read : {&matmul->left, &matmul->right}) add(action.device[sending], *read, {a, sending, false});
      add(action.device[sending], matmul->out, {a, sending, true});
    } else {
      const auto& local = std::get<Local>(op);
      for (const Region& read : local.reads) add(action.device[sending], read, {a, sending, false});
      for (const Region& write : local.writes) add(action.device[sending], write, {a, sending, true});
    }
  }
  const auto ordered = [&](const Access& first, const Access& then) {
    return before.ordered(number(first.action, first.end), then.action) || before.ordered(number(first.action, receiving), then.action);
  };
  for (const auto& [place, list] : accesses)
    for (std::size_t i = 0; i < list.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const Access &x = list[i], &y = list[j];
        if (x.action == y.action || !(x.writes || y.writes)) continue;
        if (ordered(x, y) || ordered(y, x)) continue;
        const auto task = [&](const Access& access) {
          return plan.actions()[static_cast<std::size_t>(access.action)].task[static_cast<std::size_t>(access.end)];
        };
        return fmt::format("tasks {} and {} race for element {} of buffer {} on device {}", task(y), task(x), std::get<2>(place), std::get<1>(place),
                           std::get<0>(place));
      }
  return "";
}

}  // namespace podsim::mutation
