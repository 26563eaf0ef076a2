#include "workloads/hlo/list_order.hpp"

#include <algorithm>
#include <queue>
#include <set>

#include "workloads/hlo/program_scope.hpp"

namespace podsim {

namespace {

/// An instruction whose operands are there from some time on.
struct Waiting {
  double from_s = 0;
  int instruction = 0;
  friend auto operator<=>(const Waiting&, const Waiting&) = default;
};
using Earliest = std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>;

bool communicates(const HloModule& module, const HloInstruction& instruction) {
  return is_collective(instruction.opcode) || (instruction.opcode == HloOpcode::fusion && collective_inside(module, instruction).collective != nullptr);
}

}  // namespace

Expected<std::vector<int>> list_order(const HloModule& module, const HloComputation& computation, const HloUsers& users, HloTaskCosts& costs, const HloRates& rates) {
  const std::size_t count = computation.instructions.size();
  std::vector<double> duration(count, 0), there(count, 0);
  std::vector<bool> on_links(count, false);
  std::vector<int> missing(count, 0);
  std::vector<std::vector<int>> followers(count);
  for (std::size_t i = 0; i < count; ++i) {
    const HloInstruction& at = computation.instructions[i];
    on_links[i] = communicates(module, at);
    const auto cost = costs.of(computation, static_cast<int>(i));
    if (!cost) return cost.error();
    duration[i] = on_links[i] ? static_cast<double>(logical_bytes(*at.shape).count()) / rates.link_bytes_per_s : std::max((cost->matrix + cost->vector) / rates.flops_per_s, cost->bytes / rates.bytes_per_s);
    for (const int user : users.of(static_cast<int>(i))) followers[i].push_back(user);
    for (const int before : at.attributes->control_predecessors) followers[static_cast<std::size_t>(before)].push_back(static_cast<int>(i));
  }
  for (const std::vector<int>& behind : followers)
    for (const int user : behind) ++missing[static_cast<std::size_t>(user)];

  std::vector<int> order;
  order.reserve(count);
  double core_s = 0, links_s = 0;
  Earliest coming;         // core work, by when its operands are there
  std::set<int> ready;     // core work whose operands are there, in the order of the text
  std::vector<int> freed;  // whose operands are all in the order
  const auto take = [&](int i, double end_s) {
    order.push_back(i);
    for (const int user : followers[static_cast<std::size_t>(i)]) {
      const auto u = static_cast<std::size_t>(user);
      there[u] = std::max(there[u], end_s);
      if (--missing[u] == 0) freed.push_back(user);
    }
  };
  // What costs the core nothing is taken at once, collectives in the order of the text.
  std::set<int> sent;
  const auto settle = [&] {
    while (!freed.empty() || !sent.empty()) {
      if (freed.empty()) {
        const int i = *sent.begin();
        sent.erase(sent.begin());
        const auto at = static_cast<std::size_t>(i);
        links_s = std::max(links_s, there[at]) + duration[at];
        take(i, links_s);
        continue;
      }
      const int i = freed.back();
      freed.pop_back();
      const auto at = static_cast<std::size_t>(i);
      if (on_links[at])
        sent.insert(i);
      else if (duration[at] == 0 && computation.instructions[at].opcode != HloOpcode::while_)
        take(i, there[at]);
      else
        coming.push({there[at], i});
    }
  };
  for (std::size_t i = count; i-- > 0;)
    if (missing[i] == 0) freed.push_back(static_cast<int>(i));
  settle();
  while (!coming.empty() || !ready.empty()) {
    if (ready.empty()) core_s = std::max(core_s, coming.top().from_s);
    while (!coming.empty() && coming.top().from_s <= core_s) {
      ready.insert(coming.top().instruction);
      coming.pop();
    }
    const int i = *ready.begin();
    ready.erase(ready.begin());
    core_s += duration[static_cast<std::size_t>(i)];
    take(i, core_s);
    settle();
  }
  for (std::size_t i = 0; i < count && order.size() < count; ++i)
    if (missing[i] > 0) {
      const HloInstruction& at = computation.instructions[i];
      return Diagnostic{module.where(at), at.name + ": expected control predecessors that do not wait for it"};
    }
  return order;
}

}  // namespace podsim
