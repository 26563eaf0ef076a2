#include "workloads/hlo/link_hlo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "workloads/hlo/joined_transfers.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_warnings = 1000;
const std::string further = "further kinds of warnings";

/// Computations in the order in which they are finished by a walk through the calls: called ones first. A call into a computation that is not
/// finished yet closes a cycle.
class CallOrder {
 public:
  explicit CallOrder(HloModule& module) : module_{module}, states_(module.computations.size()) {}

  /// The instruction that closes a cycle, where `drop` does not leave its call out.
  template <class Drop>
  const HloInstruction* walk(Drop drop) {
    for (std::size_t first = 0; first < states_.size(); ++first) {
      if (states_[first] != State::unseen) continue;
      std::vector<Place> path{{static_cast<int>(first)}};
      states_[first] = State::open;
      while (!path.empty()) {
        Place& place = path.back();
        HloComputation& computation = module_.computations[static_cast<std::size_t>(place.computation)];
        if (place.instruction == computation.instructions.size()) {
          states_[static_cast<std::size_t>(place.computation)] = State::finished;
          order_.push_back(place.computation);
          path.pop_back();
          continue;
        }
        HloInstruction& instruction = computation.instructions[place.instruction];
        if (place.call == instruction.calls.size()) {
          ++place.instruction;
          place.call = 0;
          continue;
        }
        const int next = instruction.calls[place.call].computation;
        if (states_[static_cast<std::size_t>(next)] == State::open) {
          if (!drop(instruction)) return &instruction;
          instruction.calls[place.call++].computation = HloInstruction::missing;
          continue;
        }
        ++place.call;
        if (states_[static_cast<std::size_t>(next)] != State::unseen) continue;
        states_[static_cast<std::size_t>(next)] = State::open;
        path.push_back({next});
      }
    }
    return nullptr;
  }

  /// Puts the computations into that order.
  void apply() {
    std::vector<int> position(order_.size());
    std::vector<HloComputation> ordered;
    ordered.reserve(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      position[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
      ordered.push_back(std::move(module_.computations[static_cast<std::size_t>(order_[i])]));
    }
    module_.computations = std::move(ordered);
    for (HloComputation& computation : module_.computations)
      for (HloInstruction& instruction : computation.instructions)
        for (HloCall& call : instruction.calls) call.computation = position[static_cast<std::size_t>(call.computation)];
    if (module_.entry != HloInstruction::missing) module_.entry = position[static_cast<std::size_t>(module_.entry)];
  }

 private:
  enum class State : std::uint8_t { unseen, open, finished };
  struct Place {
    int computation = 0;
    std::size_t instruction = 0, call = 0;
  };
  HloModule& module_;
  std::vector<State> states_;
  std::vector<int> order_;
};

void drop_missing_calls(HloModule& module) {
  for (HloComputation& computation : module.computations)
    for (HloInstruction& instruction : computation.instructions)
      std::erase_if(instruction.calls, [](const HloCall& call) { return call.computation == HloInstruction::missing; });
}

/// That groups or pairs name; -1: none.
std::int64_t largest_device(const HloAttributes& attributes) {
  std::int64_t largest = attributes.replica_groups ? attributes.replica_groups->largest() : -1;
  for (const auto& [source, target] : attributes.source_target_pairs) largest = std::max({largest, source, target});
  return largest;
}

}  // namespace

void HloWarnings::add(const std::string& message, std::size_t at) {
  auto known = known_.find(message);
  if (known == known_.end()) {
    const std::string& kept = module_.warnings.size() < most_warnings ? message : further;
    const auto [place, is_new] = known_.try_emplace(kept, module_.warnings.size());
    if (is_new) module_.warnings.push_back({kept, 0, cursor_.where(at)});
    known = place;
  }
  ++module_.warnings[known->second].count;
}

Status link_hlo(HloModule& module, const HloLinks& links, const std::vector<HloLinks::Entry>& entries, const HloCursor& cursor, HloWarnings& warnings,
                bool tolerant) {
  std::unordered_map<std::string_view, int> numbers;
  for (const auto& [name, computation] : links.defined()) {
    if (numbers.emplace(name, computation).second) continue;
    const HloComputation& twice = module.computations[static_cast<std::size_t>(computation)];
    if (!tolerant)
      return Diagnostic{{module.file, twice.line, twice.column},
                        fmt::format("expected a name that is not yet taken, got computation {} again", quoted(name))};
    warnings.add("computations that are defined twice", 0);
  }
  for (const HloLinks::OfComputation& of : links.calls())
    for (const HloLinks::Call& call : of.calls) {
      HloInstruction& instruction =
          module.computations[static_cast<std::size_t>(of.computation)].instructions[static_cast<std::size_t>(call.instruction)];
      const auto found = numbers.find(call.name);
      if (found != numbers.end()) {
        instruction.calls[static_cast<std::size_t>(call.call)].computation = found->second;
        continue;
      }
      if (!tolerant) return cursor.expected_at(call.at, "the name of a computation of this module");
      warnings.add("computations that are missing", call.at);
    }
  if (tolerant) drop_missing_calls(module);

  if (entries.size() > 1 && !tolerant) return Diagnostic{cursor.where(entries[1].at), "expected one ENTRY, got a second one"};
  if (entries.size() > 1) warnings.add("several ENTRY", entries[1].at);
  module.entry = entries.empty() ? HloInstruction::missing : entries.front().computation;
  if (entries.empty()) {
    if (!tolerant)
      return Diagnostic{cursor.where(cursor.text().size()),
                        fmt::format("expected a computation marked ENTRY, got none in {} computations", module.computations.size())};
    warnings.add("no ENTRY", cursor.text().size());
  }

  wrap_starts(module);
  CallOrder order{module};
  const HloInstruction* const cyclic = order.walk([&](const HloInstruction&) {
    if (tolerant) warnings.add("computations that call themselves", 0);
    return tolerant;
  });
  if (cyclic != nullptr)
    return Diagnostic{module.where(*cyclic),
                      fmt::format("expected computations that do not call themselves, but {} closes a cycle", quoted(cyclic->name))};
  if (tolerant) drop_missing_calls(module);
  order.apply();
  const std::int64_t there = module.num_partitions && !tolerant ? devices_of(module) : std::numeric_limits<std::int64_t>::max();
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions) {
      const std::int64_t named = largest_device(*instruction.attributes);
      if (named >= there) return Diagnostic{module.where(instruction), fmt::format("{}: expected ids below {}, got {}", instruction.name, there, named)};
      module.named_devices = std::max(module.named_devices, named + 1);
    }
  return success();
}

}  // namespace podsim
