#include "workloads/hlo/hlo_memory.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "workloads/hlo/hlo_leaves.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_leaves = std::size_t{1} << 24;
constexpr std::int64_t no_use = -1, most_live = std::int64_t{1} << 62;
__extension__ using Wide = __int128;  // sums of 2^24 sizes of 2^60 bytes

/// Bytes in HBM and in VMEM.
using Sizes = std::array<std::int64_t, 2>;
Sizes sizes_of(const HloShape& leaf) { return {device_bytes_in(leaf, HloMemory::hbm).count(), device_bytes_in(leaf, HloMemory::vmem).count()}; }

/// Where each element begins among the leaves of a tuple, and at the end their number.
std::vector<std::size_t> first_leaves(const HloShape& tuple) {
  std::vector<std::size_t> firsts{0};
  for (const HloShape& element : tuple.elements) firsts.push_back(firsts.back() + count_leaves(element));
  return firsts;
}

/// Of each leaf of a fused computation's result the parameter that it updates in place, or -1.
std::vector<int> updated_parameters(const HloComputation& fused) {
  std::vector<int> updated;
  if (fused.root == HloInstruction::missing) return updated;
  const auto instruction = [&](int number) -> const HloInstruction& { return fused.instructions[static_cast<std::size_t>(number)]; };
  const auto behind_bitcasts = [&](int number) {
    while (number != HloInstruction::missing && instruction(number).opcode == HloOpcode::bitcast && !instruction(number).operands.empty())
      number = instruction(number).operands[0];
    return number;
  };
  const auto target = [&](int number) {
    number = behind_bitcasts(number);
    if (number == HloInstruction::missing || instruction(number).opcode != HloOpcode::dynamic_update_slice || instruction(number).operands.empty())
      return -1;
    number = behind_bitcasts(instruction(number).operands[0]);
    return number != HloInstruction::missing && instruction(number).opcode == HloOpcode::parameter ? static_cast<int>(instruction(number).number)
                                                                                                   : -1;
  };
  const HloInstruction& root = instruction(fused.root);
  if (root.opcode != HloOpcode::tuple) return {target(fused.root)};
  for (const int operand : root.operands) updated.push_back(target(operand));
  return updated;
}

/// A value: what an instruction makes. `previous` is the value whose place it takes if nothing uses that any more.
struct Version {
  Sizes sizes{};
  std::int64_t made = 0, last_use = no_use;
  int previous = -1;
  bool outside = false;  // its place belongs to the caller: a parameter
  bool kept = false;     // such a place that may not be written: a parameter of the entry that is not donated
};

/// What a computation needs beside its parameters, and in `control` modes beside its results.
struct Need {
  Sizes peak{};
  std::vector<bool> unchanged{};  // of a loop's body: leaves of its tuple that it hands on as they are
};

enum class Mode : std::uint8_t { loop, call, entry };

class LiveRanges {
 public:
  LiveRanges(const HloModule& module, const std::vector<std::array<Need, 2>>& needs, const HloComputation& computation, Mode mode)
      : module_{module},
        needs_{needs},
        computation_{computation},
        mode_{mode},
        values_(computation.instructions.size()),
        extra_(computation.instructions.size()),
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
    need.peak = peak();
    return true;
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

  void make(int i) {
    const HloInstruction& instruction = at(i);
    const bool hands_on = instruction.opcode == HloOpcode::tuple || instruction.opcode == HloOpcode::get_tuple_element;
    if (!hands_on)
      for (std::size_t n = 0; n < instruction.operands.size(); ++n)
        if (const Leaves* const leaves = operand(instruction, n))
          for (const int version : *leaves) versions_[static_cast<std::size_t>(version)].last_use = i;
    values_[static_cast<std::size_t>(i)] = result(i, instruction);
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
      case HloOpcode::dynamic_update_slice:
        if (first == nullptr || first->size() != 1 || count != 1) return new_versions(shape, i);
        return {new_version(shape, i, first->front())};
      case HloOpcode::fusion: return fused(i, instruction);
      case HloOpcode::while_: return looped(i, instruction);
      case HloOpcode::call:
      case HloOpcode::conditional:
        for (const HloCall& call : instruction.calls) add_extra(i, needs_[static_cast<std::size_t>(call.computation)][1].peak);
        return new_versions(shape, i);
      default: return new_versions(shape, i);
    }
  }

  void add_extra(int i, const Sizes& peak) {
    for (std::size_t s = 0; s < peak.size(); ++s) extra_[static_cast<std::size_t>(i)][s] = std::max(extra_[static_cast<std::size_t>(i)][s], peak[s]);
  }

  /// copy-start is (destination, source, context); others hold their operands first.
  Leaves started(int i, const HloInstruction& instruction) {
    const HloShape& shape = *instruction.shape;
    Leaves leaves = new_versions(shape, i);
    const Leaves operands = all_operands(instruction);
    if (!shape.is_tuple() || shape.elements.size() < 2 || instruction.opcode == HloOpcode::all_reduce) return leaves;
    const std::size_t held = instruction.opcode == HloOpcode::copy ? 1 : 0, begin = first_leaf(shape, held);
    if (count_leaves(shape.elements[held]) == operands.size())
      for (std::size_t n = 0; n < operands.size(); ++n) replace(leaves[begin + n], operands[n]);
    return leaves;
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
    Leaves leaves = new_versions(*instruction.shape, i);
    const HloComputation* const inside = called(module_, instruction, HloRole::calls);
    if (inside == nullptr) return leaves;
    const std::vector<int> updated = updated_parameters(*inside);
    for (std::size_t leaf = 0; leaf < std::min(leaves.size(), updated.size()); ++leaf) {
      const Leaves* const target = updated[leaf] >= 0 ? operand(instruction, static_cast<std::size_t>(updated[leaf])) : nullptr;
      if (target != nullptr && target->size() == 1) versions_[static_cast<std::size_t>(leaves[leaf])].previous = target->front();
    }
    return leaves;
  }

  Leaves looped(int i, const HloInstruction& instruction) {
    Leaves leaves = new_versions(*instruction.shape, i);
    const Leaves* const before = operand(instruction, 0);
    const Need* body = nullptr;
    for (const HloCall& call : instruction.calls) {
      const Need& need = needs_[static_cast<std::size_t>(call.computation)][call.role == HloRole::body ? 0 : 1];
      add_extra(i, need.peak);
      if (call.role == HloRole::body) body = &need;
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
    for (const int version : results) versions_[static_cast<std::size_t>(version)].last_use = end;
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
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      const Version& version = versions_[v];
      buffer_of_[v] = static_cast<int>(v);
      // The place may be that of a parameter that stands behind the value in the text.
      if (version.previous < 0 || version.previous >= static_cast<int>(v)) continue;
      const Version& previous = versions_[static_cast<std::size_t>(version.previous)];
      const int buffer = buffer_of_[static_cast<std::size_t>(version.previous)];
      const Version& begin = versions_[static_cast<std::size_t>(buffer)];
      if (previous.last_use <= version.made && previous.sizes == version.sizes && !(begin.outside && begin.kept)) buffer_of_[v] = buffer;
    }
  }

  [[nodiscard]] Sizes peak() const {
    std::vector<std::array<Wide, 2>> changes(values_.size() + 2);
    std::vector<std::int64_t> last(versions_.size(), no_use);
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      std::int64_t& end = last[static_cast<std::size_t>(buffer_of_[v])];
      end = std::max(end, versions_[v].last_use);
    }
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      const Version& version = versions_[v];
      if (buffer_of_[v] != static_cast<int>(v) || version.outside) continue;
      for (std::size_t s = 0; s < version.sizes.size(); ++s) {
        changes[static_cast<std::size_t>(version.made)][s] += version.sizes[s];
        changes[static_cast<std::size_t>(last[v]) + 1][s] -= version.sizes[s];
      }
    }
    std::array<Wide, 2> live{};
    Sizes most{};
    for (std::size_t i = 0; i < changes.size(); ++i)
      for (std::size_t s = 0; s < live.size(); ++s) {
        live[s] += changes[i][s];
        const Wide now = live[s] + (i < extra_.size() ? extra_[i][s] : 0);
        most[s] = static_cast<std::int64_t>(std::min<Wide>(std::max<Wide>(most[s], now), most_live));
      }
    return most;
  }

  const HloModule& module_;
  const std::vector<std::array<Need, 2>>& needs_;
  const HloComputation& computation_;
  Mode mode_;
  std::vector<Leaves> values_;
  std::vector<Sizes> extra_;
  std::vector<std::vector<std::size_t>> first_leaves_;  // of an instruction's tuple, once it is asked for
  std::vector<Version> versions_;
  std::vector<int> buffer_of_;
  std::size_t leaves_ = 0;
};

}  // namespace

std::optional<HloPeakMemory> peak_memory_of(const HloModule& module) {
  if (module.entry == HloInstruction::missing) return std::nullopt;
  // Which computations control flow runs, as a loop's body or otherwise.
  std::vector<std::array<bool, 2>> runs(module.computations.size());
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      for (const HloCall& call : instruction.calls) {
        const bool control =
            instruction.opcode == HloOpcode::while_ || instruction.opcode == HloOpcode::call || instruction.opcode == HloOpcode::conditional;
        if (control) runs[static_cast<std::size_t>(call.computation)][call.role == HloRole::body ? 0 : 1] = true;
      }
  std::vector<std::array<Need, 2>> needs(module.computations.size());
  for (std::size_t c = 0; c < module.computations.size(); ++c)
    for (const Mode mode : {Mode::loop, Mode::call}) {
      const auto which = static_cast<std::size_t>(mode);
      if (runs[c][which] && !LiveRanges{module, needs, module.computations[c], mode}.measure(needs[c][which])) return std::nullopt;
    }
  Need need;
  const HloComputation& entry = module.entry_computation();
  if (!LiveRanges{module, needs, entry, Mode::entry}.measure(need)) return std::nullopt;
  HloPeakMemory memory{Bytes{need.peak[0]}, {}, Bytes{need.peak[1]}};
  for (const int parameter : entry.parameters) {
    if (parameter == HloInstruction::missing) continue;
    const HloShape& shape = *entry.instructions[static_cast<std::size_t>(parameter)].shape;
    memory.parameters = saturated_sum(memory.parameters, device_bytes_in(shape, HloMemory::hbm));
    memory.vmem = saturated_sum(memory.vmem, device_bytes_in(shape, HloMemory::vmem));
  }
  memory.hbm = saturated_sum(memory.hbm, memory.parameters);
  return memory;
}

}  // namespace podsim
