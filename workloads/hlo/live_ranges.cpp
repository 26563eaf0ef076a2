#include "workloads/hlo/live_ranges.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "workloads/hlo/buffer_sharing.hpp"
#include "workloads/hlo/hlo_leaves.hpp"

namespace podsim::hlo_buffers {

namespace {

constexpr std::size_t most_leaves = std::size_t{1} << 24;
constexpr std::int64_t no_use = -1, most_steps_of_loops = std::int64_t{1} << 40;

/// Where each element begins among the leaves of a tuple, and at the end their number.
std::vector<std::size_t> first_leaves(const HloShape& tuple) {
  std::vector<std::size_t> firsts{0};
  for (const HloShape& element : tuple.elements) firsts.push_back(firsts.back() + count_leaves(element));
  return firsts;
}

/// A value: what an instruction makes. `previous` is the value whose place it takes if nothing uses that any more.
struct Version {
  Sizes sizes{};
  std::int64_t made = 0, last_use = no_use;
  int previous = -1;
  std::vector<int> others{};   // further such values, in the order of choice
  std::vector<int> through{};  // and those that a result of the entry alone may take the place of
  std::vector<int> parts{};   // earlier values that lie side by side in its place: it has none of its own
  bool outside = false;       // its place belongs to the caller: a parameter
  bool kept = false;          // such a place that may not be written: a parameter of the entry that is not donated
  bool remote = false;        // other devices write it
  bool result = false;        // of the entry
};

/// While, call and conditional run computations in their own place in the schedule.
bool runs_computations(const HloInstruction& instruction) {
  return instruction.opcode == HloOpcode::while_ || instruction.opcode == HloOpcode::call || instruction.opcode == HloOpcode::conditional;
}

enum class Mode : std::uint8_t { loop, call, entry };

class LiveRanges {
 public:
  LiveRanges(const HloModule& module, const std::vector<std::array<Need, 2>>& needs, const HloComputation& computation, Mode mode)
      : module_{module},
        needs_{needs},
        computation_{computation},
        mode_{mode},
        values_(computation.instructions.size()),
        first_leaves_(computation.instructions.size()) {}

  /// false: too large to tell.
  bool measure(Need& need) {
    for (int i = 0; i < static_cast<int>(values_.size()); ++i) {
      make(i);
      leaves_ += values_[static_cast<std::size_t>(i)].size();
      if (leaves_ > most_leaves) return false;
    }
    hand_over(need);
    place();
    return collect(need);
  }

 private:
  using Leaves = std::vector<int>;  // versions

  [[nodiscard]] const HloInstruction& at(int i) const { return computation_.instructions[static_cast<std::size_t>(i)]; }

  int new_version(const HloShape& leaf, int i, int previous = -1) {
    versions_.push_back({sizes_of(leaf), i, i, previous});
    return static_cast<int>(versions_.size()) - 1;
  }

  /// The leaf is a value that there was before; the version made for it takes no place.
  void replace(int& leaf, int value) {
    versions_[static_cast<std::size_t>(leaf)].sizes = {};
    leaf = value;
  }

  Leaves new_versions(const HloShape& shape, int i) {
    Leaves made;
    for (const HloShape* const leaf : leaves_of(shape)) made.push_back(new_version(*leaf, i));
    return made;
  }

  const Leaves* operand(const HloInstruction& instruction, std::size_t n) const {
    if (n >= instruction.operands.size() || instruction.operands[n] == HloInstruction::missing) return nullptr;
    return &values_[static_cast<std::size_t>(instruction.operands[n])];
  }

  Leaves all_operands(const HloInstruction& instruction) const {
    Leaves all;
    for (std::size_t n = 0; n < instruction.operands.size(); ++n)
      if (const Leaves* const leaves = operand(instruction, n)) all.insert(all.end(), leaves->begin(), leaves->end());
    return all;
  }

  /// Whether other devices write the result: of a collective but the all-reduce, and of a SparseCore's call of any collective.
  bool others_write(const HloInstruction& instruction) const {
    if (instruction.phase == HloPhase::done) return false;
    if (is_collective(instruction.opcode)) return instruction.opcode != HloOpcode::all_reduce;
    return instruction.phase == HloPhase::start && std::any_of(instruction.calls.begin(), instruction.calls.end(), [&](const HloCall& call) {
      const std::vector<HloInstruction>& inside = module_.computations[static_cast<std::size_t>(call.computation)].instructions;
      return std::any_of(inside.begin(), inside.end(), [](const HloInstruction& one) { return is_collective(one.opcode); });
    });
  }

  void make(int i) {
    const HloInstruction& instruction = at(i);
    const bool hands_on = instruction.opcode == HloOpcode::tuple || instruction.opcode == HloOpcode::get_tuple_element;
    if (!hands_on)
      for (std::size_t n = 0; n < instruction.operands.size(); ++n)
        if (const Leaves* const leaves = operand(instruction, n))
          for (const int version : *leaves) versions_[static_cast<std::size_t>(version)].last_use = i;
    values_[static_cast<std::size_t>(i)] = result(i, instruction);
    if (others_write(instruction))
      for (const int leaf : values_[static_cast<std::size_t>(i)])
        if (versions_[static_cast<std::size_t>(leaf)].made == i) versions_[static_cast<std::size_t>(leaf)].remote = true;
  }

  Leaves result(int i, const HloInstruction& instruction) {
    const HloShape& shape = *instruction.shape;
    const std::size_t count = count_leaves(shape);
    const Leaves* const first = operand(instruction, 0);
    const auto same = [&](Leaves leaves) { return leaves.size() == count ? std::move(leaves) : new_versions(shape, i); };
    if (instruction.phase == HloPhase::start) return started(i, instruction);
    if (instruction.phase == HloPhase::update) return same(first != nullptr ? *first : Leaves{});
    if (instruction.phase == HloPhase::done) return same(finished(instruction));
    switch (instruction.opcode) {
      case HloOpcode::parameter: {
        Leaves leaves = new_versions(shape, i);
        for (const int version : leaves) {
          versions_[static_cast<std::size_t>(version)].outside = true;
          versions_[static_cast<std::size_t>(version)].kept = mode_ != Mode::loop;
        }
        return leaves;
      }
      case HloOpcode::tuple: return same(all_operands(instruction));
      case HloOpcode::ragged_all_to_all: {  // writes into its second operand
        Leaves leaves = new_versions(shape, i);
        if (count == 1) offer(instruction, 1, leaves.front());
        return leaves;
      }
      case HloOpcode::reshape:
        if (module_.is_scheduled) return new_versions(shape, i);  // of those that move nothing the compiler made bitcasts
        [[fallthrough]];
      case HloOpcode::bitcast:
      case HloOpcode::opt_barrier:
      case HloOpcode::add_dependency:
      case HloOpcode::domain: return same(first != nullptr ? *first : Leaves{});
      case HloOpcode::get_tuple_element: {
        if (first == nullptr) return new_versions(shape, i);
        const HloShape& tuple = *at(instruction.operands[0]).shape;
        const auto index = static_cast<std::size_t>(instruction.number);
        if (index >= tuple.elements.size()) return new_versions(shape, i);
        std::vector<std::size_t>& firsts = first_leaves_[static_cast<std::size_t>(instruction.operands[0])];
        if (firsts.empty()) firsts = first_leaves(tuple);
        const std::size_t begin = firsts[index];
        if (begin + count > first->size()) return new_versions(shape, i);
        return {first->begin() + static_cast<std::ptrdiff_t>(begin), first->begin() + static_cast<std::ptrdiff_t>(begin + count)};
      }
      case HloOpcode::scatter:
      case HloOpcode::dynamic_update_slice:
        if (!updates_in_place(instruction)) return shared(i, instruction);
        if (first == nullptr || first->size() != 1 || count != 1) return new_versions(shape, i);
        return {new_version(shape, i, first->front())};
      case HloOpcode::fusion: return fused(i, instruction);
      case HloOpcode::while_: return looped(i, instruction);
      case HloOpcode::call:
      case HloOpcode::conditional:
      case HloOpcode::custom_call: {
        // Arrays that lie side by side in one place.
        Leaves leaves = aliased(i, instruction);
        if (instruction.attributes->custom_call_target == "ConcatBitcast") {
          for (const int version : leaves) versions_[static_cast<std::size_t>(version)].sizes = {};
          if (!leaves.empty()) versions_[static_cast<std::size_t>(leaves.front())].parts = all_operands(instruction);
        }
        return leaves;
      }
      default: return shared(i, instruction);
    }
  }

  Leaves shared(int i, const HloInstruction& instruction) {
    Leaves leaves = aliased(i, instruction);
    offer(instruction, leaves, overwrites_of(instruction, leaves.size()));
    return leaves;
  }

  /// An output that stands in the place of an operand, as output_to_operand_aliasing has it.
  Leaves aliased(int i, const HloInstruction& instruction) {
    Leaves leaves = new_versions(*instruction.shape, i);
    alias(instruction, leaves);
    return leaves;
  }

  void alias(const HloInstruction& instruction, Leaves& leaves) {
    for (const HloAlias& alias : operand_aliases_of(*instruction.attributes)) {
      const auto output = leaf_at(*instruction.shape, alias.output);
      const Leaves* const target = operand(instruction, static_cast<std::size_t>(alias.parameter));
      if (!output || target == nullptr) continue;
      const auto leaf = leaf_at(*at(instruction.operands[static_cast<std::size_t>(alias.parameter)]).shape, alias.parameter_index);
      if (leaf && *leaf < target->size() && *output < leaves.size()) replace(leaves[*output], (*target)[*leaf]);
    }
  }

  /// copy-start is (destination, source, context); others hold their operands first.
  Leaves started(int i, const HloInstruction& instruction) {
    const HloShape& shape = *instruction.shape;
    Leaves leaves = new_versions(shape, i);
    const Leaves operands = all_operands(instruction);
    if (instruction.opcode == HloOpcode::all_reduce) offer(instruction, leaves, overwrites_of(instruction, leaves.size()));
    if (!shape.is_tuple() || shape.elements.size() < 2 || instruction.opcode == HloOpcode::all_reduce) return leaves;
    const std::size_t held = instruction.opcode == HloOpcode::copy ? 1 : 0, begin = first_leaf(shape, held);
    if (count_leaves(shape.elements[held]) != operands.size()) return leaves;
    for (std::size_t n = 0; n < operands.size(); ++n) replace(leaves[begin + n], operands[n]);
    const std::vector<int> updated = updated_operands(instruction);
    for (std::size_t n = 0, made = first_leaf(shape, 1); n < updated.size() && made + n < leaves.size(); ++n) {  // in place, as by the core: what it holds is what it makes
      const Leaves* const target = updated[n] >= 0 ? operand(instruction, static_cast<std::size_t>(updated[n])) : nullptr;
      if (target == nullptr || target->size() != 1) continue;
      versions_[static_cast<std::size_t>(leaves[made + n])].previous = target->front();
      std::replace(leaves.begin() + static_cast<std::ptrdiff_t>(begin), leaves.begin() + static_cast<std::ptrdiff_t>(begin + operands.size()), target->front(), leaves[made + n]);
    }
    return leaves;
  }

  /// Of each leaf of what an instruction makes the operand that it updates in place, or -1.
  std::vector<int> updated_operands(const HloInstruction& instruction) const {
    if (updates_in_place(instruction)) return {0};
    const HloComputation* const wrapped = instruction.opcode == HloOpcode::async ? called(module_, instruction, HloRole::calls) : nullptr;
    if (wrapped == nullptr || wrapped->root == HloInstruction::missing) return {};
    const HloInstruction& root = wrapped->instructions[static_cast<std::size_t>(wrapped->root)];
    const HloComputation* const fused = root.opcode == HloOpcode::fusion ? called(module_, root, HloRole::calls) : nullptr;
    std::vector<int> updated = fused != nullptr ? updated_parameters(module_, *fused) : std::vector<int>{};
    for (int& operand : updated) {  // of the fusion -> of the start
      const int given = operand >= 0 && static_cast<std::size_t>(operand) < root.operands.size() ? root.operands[static_cast<std::size_t>(operand)] : HloInstruction::missing;
      const HloInstruction* const parameter = given == HloInstruction::missing ? nullptr : &wrapped->instructions[static_cast<std::size_t>(given)];
      operand = parameter != nullptr && parameter->opcode == HloOpcode::parameter ? static_cast<int>(parameter->number) : -1;
    }
    return updated;
  }

  Leaves finished(const HloInstruction& instruction) const {
    const Leaves* const started = operand(instruction, 0);
    if (started == nullptr) return {};
    const HloShape& shape = *at(instruction.operands[0]).shape;
    if (!shape.is_tuple() || shape.elements.size() < 2 || instruction.opcode == HloOpcode::all_reduce) return *started;
    const std::size_t index = instruction.opcode == HloOpcode::copy ? 0 : 1, begin = first_leaf(shape, index),
                      count = count_leaves(shape.elements[index]);
    if (begin + count > started->size()) return {};
    return {started->begin() + static_cast<std::ptrdiff_t>(begin), started->begin() + static_cast<std::ptrdiff_t>(begin + count)};
  }

  Leaves fused(int i, const HloInstruction& instruction) {
    Leaves leaves = aliased(i, instruction);
    const HloComputation* const inside = called(module_, instruction, HloRole::calls);
    if (inside == nullptr) return leaves;
    const auto [found, is_new] = sharing_of_.try_emplace(inside);  // many fusions may call one computation
    if (is_new) found->second = {updated_parameters(module_, *inside), overwrites_of_fused(*inside)};
    const auto& [updated, overwrites] = found->second;
    for (std::size_t leaf = 0; leaf < std::min(leaves.size(), updated.size()); ++leaf) {
      const Leaves* const target = updated[leaf] >= 0 ? operand(instruction, static_cast<std::size_t>(updated[leaf])) : nullptr;
      if (target != nullptr && target->size() == 1 && leaves[leaf] != target->front())
        versions_[static_cast<std::size_t>(leaves[leaf])].previous = target->front();
    }
    offer(instruction, leaves, overwrites);
    return leaves;
  }

  /// The leaf may lie in the place of what operand n makes if nothing uses that later. Values that only come through it, from a tuple or a -start,
  /// keep their places. Source: openxla/xla, xla/service/heap_simulator, HeapSimulator::RunComputation.
  void offer(const HloInstruction& instruction, std::size_t n, int leaf) {
    const Leaves* const values = operand(instruction, n);
    if (values == nullptr) return;
    for (const int value : *values) {
      const Sizes& sizes = versions_[static_cast<std::size_t>(leaf)].sizes;
      if (leaf <= value || sizes != versions_[static_cast<std::size_t>(value)].sizes || sizes[vmem] > 0 || sizes[cmem] > 0) continue;
      const bool direct = versions_[static_cast<std::size_t>(value)].made == instruction.operands[n];
      (direct ? versions_[static_cast<std::size_t>(leaf)].others : versions_[static_cast<std::size_t>(leaf)].through).push_back(value);
    }
  }

  void offer(const HloInstruction& instruction, const Leaves& leaves, const std::vector<Overwrite>& overwrites) {
    for (const Overwrite& overwrite : overwrites)
      if (overwrite.leaf < leaves.size()) offer(instruction, overwrite.operand, leaves[overwrite.leaf]);
  }

  Leaves looped(int i, const HloInstruction& instruction) {
    Leaves leaves = new_versions(*instruction.shape, i);
    const Leaves* const before = operand(instruction, 0);
    const Need* body = nullptr;
    for (const HloCall& call : instruction.calls) {
      if (call.role == HloRole::body) body = &needs_[static_cast<std::size_t>(call.computation)][0];
    }
    if (before == nullptr || before->size() != leaves.size()) return leaves;
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      if (body != nullptr && leaf < body->unchanged.size() && body->unchanged[leaf])
        replace(leaves[leaf], (*before)[leaf]);
      else
        versions_[static_cast<std::size_t>(leaves[leaf])].previous = (*before)[leaf];
    }
    return leaves;
  }

  /// The results: where they lie, and that they live to the end.
  void hand_over(Need& need) {
    if (computation_.root == HloInstruction::missing) return;
    const auto end = static_cast<std::int64_t>(values_.size());
    const Leaves& results = values_[static_cast<std::size_t>(computation_.root)];
    if (mode_ == Mode::loop && !computation_.parameters.empty() && computation_.parameters[0] != HloInstruction::missing) {
      const Leaves& parameter = values_[static_cast<std::size_t>(computation_.parameters[0])];
      for (std::size_t leaf = 0; leaf < std::min(results.size(), parameter.size()); ++leaf) {
        need.unchanged.push_back(results[leaf] == parameter[leaf]);
        take_place(results[leaf], parameter[leaf]);
      }
    }
    if (mode_ == Mode::entry)
      for (const HloAlias& alias : module_.aliases) {
        const auto result = leaf_at(*at(computation_.root).shape, alias.output);
        if (!result || static_cast<std::size_t>(alias.parameter) >= computation_.parameters.size()) continue;
        const int number = computation_.parameters[static_cast<std::size_t>(alias.parameter)];
        if (number == HloInstruction::missing) continue;
        const auto parameter = leaf_at(*at(number).shape, alias.parameter_index);
        if (!parameter) continue;
        Version& place = versions_[static_cast<std::size_t>(values_[static_cast<std::size_t>(number)][*parameter])];
        place.kept = false;  // donated
        if (*result < results.size()) take_place(results[*result], values_[static_cast<std::size_t>(number)][*parameter]);
      }
    for (const int version : results) {
      versions_[static_cast<std::size_t>(version)].last_use = end;
      versions_[static_cast<std::size_t>(version)].result = mode_ == Mode::entry;
    }
    for (std::size_t v = versions_.size(); v-- > 0;)
      for (const int part : versions_[v].parts) {
        std::int64_t& last_use = versions_[static_cast<std::size_t>(part)].last_use;
        last_use = std::max(last_use, versions_[v].last_use);
      }
    // What a call gives is counted where it is called.
    if (mode_ == Mode::call)
      for (const int version : results) versions_[static_cast<std::size_t>(version)].outside = true;
  }

  void take_place(int version, int place) {
    if (version != place && versions_[static_cast<std::size_t>(version)].previous < 0) versions_[static_cast<std::size_t>(version)].previous = place;
  }

  /// Versions that take the place of an earlier one become one buffer with it.
  void place() {
    buffer_of_.resize(versions_.size());
    // HeapSimulator::RunComputation reuses no place of values that have to lie together, nor for one of them.
    std::vector<bool> taken(versions_.size()), aliased(versions_.size());
    for (std::size_t v = 0; v < versions_.size(); ++v)
      if (versions_[v].previous >= 0) aliased[v] = aliased[static_cast<std::size_t>(versions_[v].previous)] = true;
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      const Version& version = versions_[v];
      buffer_of_[v] = static_cast<int>(v);
      const auto take = [&](int place) {
        // The place may be that of a parameter that stands behind the value in the text.
        if (place < 0 || place >= static_cast<int>(v) || taken[static_cast<std::size_t>(place)]) return false;
        const Version& previous = versions_[static_cast<std::size_t>(place)];
        const int buffer = buffer_of_[static_cast<std::size_t>(place)];
        const Version& begin = versions_[static_cast<std::size_t>(buffer)];
        if (previous.last_use > version.made || previous.sizes != version.sizes || (begin.outside && begin.kept)) return false;
        buffer_of_[v] = buffer;
        taken[static_cast<std::size_t>(place)] = true;
        return true;
      };
      const auto reuse = [&](int place) { return !aliased[v] && !aliased[static_cast<std::size_t>(place)] && take(place); };
      if (!take(version.previous) && !std::any_of(version.others.begin(), version.others.end(), reuse) && version.result)
        std::any_of(version.through.begin(), version.through.end(), take);
    }
  }

  /// What the control flow of an instruction runs, one after the other.
  template <class Visit>
  void for_each_run(const HloInstruction& instruction, Visit visit) const {
    if (!runs_computations(instruction)) return;
    for (const HloCall& call : instruction.calls) visit(needs_[static_cast<std::size_t>(call.computation)][call.role == HloRole::body ? 0 : 1]);
  }

  /// false: too large to tell.
  bool collect(Need& need) const {
    std::vector<std::int64_t> step(values_.size() + 2);  // in which an instruction begins
    for (std::size_t i = 0; i < values_.size(); ++i) {
      step[i + 1] = step[i] + 1;
      for_each_run(computation_.instructions[i], [&](const Need& run) { step[i + 1] += run.steps; });
      if (step[i + 1] > most_steps_of_loops) return false;
    }
    step.back() = need.steps = step[values_.size()] + 1;
    std::vector<bool> remote(versions_.size());
    for (std::size_t v = 0; v < versions_.size(); ++v)
      if (versions_[v].remote) remote[static_cast<std::size_t>(buffer_of_[v])] = true;
    std::vector<std::int64_t> last(versions_.size(), no_use);
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      std::int64_t& end = last[static_cast<std::size_t>(buffer_of_[v])];
      end = std::max({end, versions_[v].last_use, versions_[v].made});
    }
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      const Version& version = versions_[v];
      if (buffer_of_[v] != static_cast<int>(v) || version.outside || version.sizes == Sizes{}) continue;
      need.intervals.push_back({version.sizes, step[static_cast<std::size_t>(version.made)], step[static_cast<std::size_t>(last[v]) + 1] - 1, remote[v]});
    }
    if (mode_ == Mode::entry) collect_donated(need, step);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      std::int64_t begin = step[i] + 1;
      bool small = true;
      for_each_run(computation_.instructions[i], [&](const Need& run) {
        small = small && need.intervals.size() + run.intervals.size() <= most_leaves;
        if (!small) return;
        for (const Interval& inside : run.intervals) need.intervals.push_back({inside.sizes, begin + inside.begin, begin + inside.end, inside.remote});
        begin += run.steps;
      });
      if (!small) return false;
    }
    return true;
  }

  /// Versions in one place follow each other.
  void collect_donated(Need& need, const std::vector<std::int64_t>& step) const {
    constexpr std::size_t none = ~std::size_t{0};
    std::vector<std::size_t> place_of(versions_.size(), none);
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      const Version& version = versions_[v];
      const auto buffer = static_cast<std::size_t>(buffer_of_[v]);
      if (!versions_[buffer].outside || versions_[buffer].kept || version.sizes == Sizes{}) continue;
      if (buffer == v) {
        place_of[v] = need.donated.size();
        need.donated.push_back({version.sizes});
      }
      const std::int64_t begin = buffer == v ? 0 : step[static_cast<std::size_t>(version.made)];  // a parameter is there before the first step
      need.donated[place_of[buffer]].live.push_back({begin, step[static_cast<std::size_t>(std::max<std::int64_t>(version.last_use, version.made)) + 1] - 1});
    }
  }

  const HloModule& module_;
  const std::vector<std::array<Need, 2>>& needs_;
  const HloComputation& computation_;
  Mode mode_;
  std::vector<Leaves> values_;
  std::vector<std::vector<std::size_t>> first_leaves_;  // of an instruction's tuple, once it is asked for
  std::vector<Version> versions_;
  std::vector<int> buffer_of_;
  std::map<const HloComputation*, std::pair<std::vector<int>, std::vector<Overwrite>>> sharing_of_;  // of fused computations: updated_parameters(), overwrites_of_fused()
  std::size_t leaves_ = 0;
};

}  // namespace

Sizes sizes_of(const HloShape& leaf) {
  Sizes sizes{};
  if (!leaf.is_array()) return sizes;
  const std::int64_t bytes = device_bytes(leaf).count();
  switch (leaf.layout.memory_space) {
    case HloMemory::hbm: sizes[hbm] = bytes; break;
    case HloMemory::vmem: sizes[vmem] = bytes; break;
    case HloMemory::cmem: sizes[cmem] = bytes; break;
    case HloMemory::host: sizes[host] = bytes; break;
    default: break;
  }
  return sizes;
}

std::optional<Need> need_of_entry(const HloModule& module) {
  // Which computations control flow runs, as a loop's body or otherwise.
  std::vector<std::array<bool, 2>> runs(module.computations.size());
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      if (runs_computations(instruction))
        for (const HloCall& call : instruction.calls) runs[static_cast<std::size_t>(call.computation)][call.role == HloRole::body ? 0 : 1] = true;
  std::vector<std::array<Need, 2>> needs(module.computations.size());
  for (std::size_t c = 0; c < module.computations.size(); ++c)
    for (const Mode mode : {Mode::loop, Mode::call}) {
      const auto which = static_cast<std::size_t>(mode);
      if (runs[c][which] && !LiveRanges{module, needs, module.computations[c], mode}.measure(needs[c][which])) return std::nullopt;
    }
  Need need;
  if (!LiveRanges{module, needs, module.entry_computation(), Mode::entry}.measure(need)) return std::nullopt;
  return need;
}

}  // namespace podsim::hlo_buffers
