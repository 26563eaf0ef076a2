#include "validation/diff/late_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "algorithms/collectives/collectives.hpp"
#include "sim/base/text.hpp"

namespace podsim {

namespace {

struct Span {
  std::int64_t begin_ps = 0, end_ps = 0;
};

/// By name and occurrence.
using Spans = std::map<std::pair<std::string, std::uint32_t>, Span>;

bool is_communication(const std::string& category) { return category == "collective" || collective_kind_named(category).has_value(); }

Spans spans_of(const ProfiledDeviceStep& device, std::map<std::string, const ProfiledOperation*>& collectives) {
  Spans spans;
  for (const ProfiledDeviceStep::Event& event : device.events) {
    const ProfiledOperation& operation = device.step.operations[event.operation];
    if (!is_communication(operation.category)) continue;
    collectives.try_emplace(operation.name, &operation);
    const auto [at, is_new] = spans.try_emplace({operation.name, event.occurrence}, Span{event.begin_ps, event.end_ps});
    if (!is_new) at->second = {std::min(at->second.begin_ps, event.begin_ps), std::max(at->second.end_ps, event.end_ps)};
  }
  return spans;
}

}  // namespace

LateRanks late_ranks(const ProfiledStep& step, Seconds noise) {
  LateRanks late;
  std::map<std::string, const ProfiledOperation*> operations;
  std::vector<Spans> spans;
  const std::size_t count = step.devices.size();
  for (const ProfiledDeviceStep& device : step.devices) {
    late.ranks.push_back({device.device, {}, 0, {}, std::vector<Seconds>(count)});
    spans.push_back(spans_of(device, operations));
  }
  if (count < 2) return late;
  std::set<std::string> of_groups, unequal;
  std::map<std::string, LateCollective> found;
  std::map<std::string, std::vector<int>> last_of;
  for (const auto& [name, operation] : operations)
    if (operation->group > 0 && static_cast<std::size_t>(operation->group) < count) of_groups.insert(name);
  for (const auto& [name, operation] : operations) {
    std::vector<std::size_t> occurrences;
    for (const Spans& of_device : spans) occurrences.push_back(static_cast<std::size_t>(std::distance(of_device.lower_bound({name, 0}), of_device.upper_bound({name, UINT32_MAX}))));
    if (std::ranges::adjacent_find(occurrences, std::not_equal_to{}) != occurrences.end()) unequal.insert(name);
  }
  for (const auto& [key, first] : spans.front()) {
    const std::string& name = key.first;
    if (of_groups.contains(name) || unequal.contains(name)) continue;
    std::vector<std::int64_t> lasted;
    for (const Spans& of_device : spans)
      if (const auto at = of_device.find(key); at != of_device.end()) lasted.push_back(at->second.end_ps - at->second.begin_ps);
    if (lasted.size() < count) continue;  // equally often, but numbered otherwise
    const auto last = static_cast<std::size_t>(std::ranges::min_element(lasted) - lasted.begin());
    const std::int64_t least = lasted[last], most = std::ranges::max(lasted);
    LateCollective& collective = found.try_emplace(name, LateCollective{name, operations.at(name)->category, 0, 0, 0, {}, {}, std::vector<Seconds>(count)}).first->second;
    ++collective.count;
    const auto seconds = [](std::int64_t ps) { return Seconds{static_cast<double>(ps) * 1e-12}; };
    if (seconds(most - least) < noise) continue;
    auto& times_last = last_of.try_emplace(name, std::vector<int>(count)).first->second;
    ++times_last[last];
    ++late.ranks[last].times_last;
    collective.longest = std::max(collective.longest, seconds(most - least));
    for (std::size_t rank = 0; rank < count; ++rank) {
      const Seconds waited = seconds(lasted[rank] - least);
      collective.waited += waited;
      collective.lateness[rank] += seconds(most - lasted[rank]);
      late.ranks[rank].waited += waited;
      late.ranks[rank].waited_for[last] += waited;
      late.ranks[last].others_waited += waited;
    }
  }
  for (auto& [name, collective] : found) {
    if (const auto times = last_of.find(name); times != last_of.end()) {
      const auto most = std::ranges::max_element(times->second);
      collective.last = static_cast<std::size_t>(most - times->second.begin()), collective.times_last = *most;
    }
    late.collectives.push_back(std::move(collective));
  }
  std::ranges::stable_sort(late.collectives, std::greater{}, &LateCollective::waited);
  if (!of_groups.empty()) late.notes.push_back(fmt::format("late ranks: {} of groups of fewer than the {} devices left out: the profile does not say which form a group", counted(static_cast<std::int64_t>(of_groups.size()), "collective"), count));
  if (!unequal.empty()) late.notes.push_back(fmt::format("late ranks: {} left out that not all devices run equally often", counted(static_cast<std::int64_t>(unequal.size()), "collective")));
  return late;
}

}  // namespace podsim
