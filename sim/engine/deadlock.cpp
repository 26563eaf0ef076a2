#include "sim/engine/deadlock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "sim/schedule/text.hpp"

namespace podsim {

namespace {

/// An activity: of a transfer, its sender's task.
struct Instance {
  std::uint32_t program = 0;
  std::size_t task = 0, local = 0;
  friend bool operator==(const Instance&, const Instance&) = default;
};

class Search {
 public:
  Search(const Model& model, const std::vector<bool>& finished) : model_{model}, deployment_{model.deployment}, finished_{finished} {}

  Diagnostic report() const {
    std::vector<Instance> chain{first_unfinished()};
    std::vector<std::string> reasons;  // why each in the chain waits for the next one
    std::size_t cycle = 0;
    for (;;) {
      const auto [blocker, reason] = blocker_of(chain.back());
      reasons.push_back(reason);
      const auto seen = std::find(chain.begin(), chain.end(), blocker);
      cycle = static_cast<std::size_t>(seen - chain.begin());
      if (seen != chain.end()) break;
      chain.push_back(blocker);
    }
    constexpr std::size_t most_named = 6;
    const std::size_t length = chain.size() - cycle;
    std::string text = "deadlock: " + name(chain[cycle]);
    for (std::size_t i = 0; i < length; ++i) {
      if (i == most_named) {
        text += fmt::format("; and so on through {} more, back to the first", length - most_named);
        break;
      }
      const Instance& next = chain[cycle + (i + 1) % length];
      text += fmt::format("{} waits for {}{}", i == 0 ? "" : ", which", reasons[cycle + i], name(next));
    }
    const auto [left, all] = instances();
    return {location_of(model_.schedule->programs[chain[cycle].program].tasks[chain[cycle].task].written_at),
            fmt::format("{}; {} of {} task instances never ran", text, left, all)};
  }

 private:
  bool finished(const Instance& a) const { return finished_[deployment_.activity(a.program, a.task, a.local)]; }

  std::string name(const Instance& a) const {
    const DeviceId device = model_.device_of[deployment_.programs[a.program].devices[a.local]];
    return fmt::format("task {} on device {} ({})", task_name(model_.schedule->programs[a.program], TaskId{a.task}), device.value,
                       model_.schedule->mesh.name(device));
  }

  /// Of all devices, those that the model keeps as one class counted each: how many never ran, and how many there are.
  std::pair<std::int64_t, std::int64_t> instances() const {
    std::int64_t left = 0, all = 0;
    for (std::uint32_t p = 0; p < deployment_.programs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t)
        for (std::size_t l = 0; l < deployment_.programs[p].devices.size(); ++l) {
          if (!deployment_.who(p, t).does(l)) continue;
          const std::int64_t devices = model_.devices_in[deployment_.programs[p].devices[l]];
          all += devices;
          if (!finished({p, t, l})) left += devices;
        }
    return {left, all};
  }

  Instance first_unfinished() const {
    for (std::uint32_t p = 0; p < deployment_.programs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t)
        for (std::size_t l = 0; l < deployment_.programs[p].devices.size(); ++l)
          if (deployment_.who(p, t).does(l) && !finished({p, t, l})) return {p, t, l};
    return {};
  }

  /// The first unfinished activity that a gate of a task waits for.
  std::optional<Instance> awaited(std::uint32_t p, std::size_t task, std::size_t local, bool receive_gate) const {
    for (const Wait& wait : waits_of(model_.schedule->programs[p], TaskId{task}, receive_gate)) {
      const Participants& who = deployment_.who(p, wait.task.index());
      Instance other{p, wait.task.index(), local};
      if (wait.received) {
        if (!who.receives(local)) continue;
        const auto& place = deployment_.places[who.from[local]];
        other = {place.program, who.from_task.empty() ? wait.task.index() : who.from_task[local], place.local};
      } else if (!who.does(local)) {
        continue;
      }
      if (!finished(other)) return other;
    }
    return std::nullopt;
  }

  std::pair<Instance, std::string> blocker_of(const Instance& a) const {
    if (const auto other = awaited(a.program, a.task, a.local, false)) return {*other, ""};
    const TaskCost& cost = model_.costs[a.program][a.task];
    const Participants& who = deployment_.who(a.program, a.task);
    if (cost.kind == TaskCost::Kind::transfer) {
      const auto& place = deployment_.places[who.to[a.local]];
      const std::size_t receiver_task = who.to_task.empty() ? a.task : who.to_task[a.local];
      if (const auto other = awaited(place.program, receiver_task, place.local, true)) return {*other, ""};
    }
    // The core stands before the first of its tasks that waits for something.
    for (std::size_t before = 0; before < a.task; ++before)
      if (model_.costs[a.program][before].on_core && deployment_.who(a.program, before).does(a.local) && awaited(a.program, before, a.local, false))
        return {{a.program, before, a.local}, "the core, which is kept by "};
    return {a, ""};  // an engine's mistake: it waits for nothing
  }

  const Model& model_;
  const Deployment& deployment_;
  const std::vector<bool>& finished_;
};

}  // namespace

Diagnostic deadlock(const Model& model, const std::vector<bool>& finished) { return Search{model, finished}.report(); }

}  // namespace podsim
