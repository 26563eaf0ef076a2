#include "workloads/hlo/hlo_memory.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "workloads/hlo/hlo_header.hpp"
#include "workloads/hlo/hlo_leaves.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_leaves = std::size_t{1} << 24, most_tried = 256;
constexpr std::int64_t no_use = -1, most_live = std::int64_t{1} << 62, most_steps_of_loops = std::int64_t{1} << 40;
__extension__ using Wide = __int128;  // sums of 2^24 sizes of 2^60 bytes

/// Bytes by memory space.
enum Space : std::uint8_t { hbm, vmem, cmem, host, spaces };
using Sizes = std::array<std::int64_t, spaces>;
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

/// A buffer and the steps in which it is live, first and last one included. Steps count the instructions, those of computations that control flow
/// runs in the place of the instruction that runs them.
struct Interval {
  Sizes sizes{};
  std::int64_t begin = 0, end = 0;
};

/// The outputs that stand in the places of operands (`parameter`). None where the text is none of XLA's.
std::vector<HloAlias> operand_aliases_of(const HloAttributes& attributes) {
  std::vector<HloAlias> aliases;
  for (const HloAttribute& attribute : attributes.others) {
    if (attribute.name != "output_to_operand_aliasing" && attribute.name != "output_operand_aliasing") continue;
    HloCursor cursor{attribute.text, 0, {}};
    if (!read_hlo_aliases(cursor, aliases)) return {};
  }
  return aliases;
}

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

/// The work on an element needs only the elements in the same place.
bool in_place(HloOpcode opcode) { return is_elementwise(opcode) || opcode == HloOpcode::bitcast; }

/// Parameters that a fused computation reads only element by element, in the places of its result: one that nothing uses later may be written over.
std::vector<bool> overwritable_parameters(const HloComputation& fused) {
  std::vector<bool> overwritable(fused.parameters.size());
  if (fused.root == HloInstruction::missing) return overwritable;
  const std::size_t count = fused.instructions.size();
  std::vector<bool> aligned(count), elsewhere(count);
  const HloInstruction& root = fused.instructions[static_cast<std::size_t>(fused.root)];
  const bool several = root.opcode == HloOpcode::tuple;
  if (!several) aligned[static_cast<std::size_t>(fused.root)] = true;
  for (std::size_t i = count; i-- > 0;) {
    const HloInstruction& instruction = fused.instructions[i];
    const bool results = several && static_cast<int>(i) == fused.root;
    for (const int operand : instruction.operands) {
      if (operand == HloInstruction::missing) continue;
      const bool same = results || (aligned[i] && !elsewhere[i] && in_place(instruction.opcode) &&
                                    elements_of(*fused.instructions[static_cast<std::size_t>(operand)].shape) == elements_of(*instruction.shape));
      (same ? aligned : elsewhere)[static_cast<std::size_t>(operand)] = true;
    }
  }
  for (std::size_t p = 0; p < fused.parameters.size(); ++p)
    if (const int number = fused.parameters[p]; number != HloInstruction::missing)
      overwritable[p] = aligned[static_cast<std::size_t>(number)] && !elsewhere[static_cast<std::size_t>(number)];
  return overwritable;
}

/// A value: what an instruction makes. `previous` is the value whose place it takes if nothing uses that any more.
struct Version {
  Sizes sizes{};
  std::int64_t made = 0, last_use = no_use;
  int previous = -1;
  std::vector<int> others{};  // further such values, in the order of choice
  std::vector<int> parts{};   // earlier values that lie side by side in its place: it has none of its own
  bool outside = false;       // its place belongs to the caller: a parameter
  bool kept = false;          // such a place that may not be written: a parameter of the entry that is not donated
};

/// While, call and conditional run computations in their own place in the schedule.
bool runs_computations(const HloInstruction& instruction) {
  return instruction.opcode == HloOpcode::while_ || instruction.opcode == HloOpcode::call || instruction.opcode == HloOpcode::conditional;
}

/// What a computation needs beside its parameters, and where it is called beside its results.
struct Need {
  std::vector<Interval> intervals{};
  std::int64_t steps = 1;
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
      case HloOpcode::reshape:
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
      case HloOpcode::custom_call: {
        // Arrays that lie side by side in one place.
        Leaves leaves = aliased(i, instruction);
        if (instruction.attributes->custom_call_target == "ConcatBitcast") {
          for (const int version : leaves) versions_[static_cast<std::size_t>(version)].sizes = {};
          if (!leaves.empty()) versions_[static_cast<std::size_t>(leaves.front())].parts = all_operands(instruction);
        }
        return leaves;
      }
      default: {
        Leaves leaves = aliased(i, instruction);
        // XLA's CanShareBufferHint has the all-reduce: it may write over its operand.
        if (is_elementwise(instruction.opcode) || instruction.opcode == HloOpcode::all_reduce)
          for (const int value : all_operands(instruction)) offer(leaves, value);
        return leaves;
      }
    }
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
    if (instruction.opcode == HloOpcode::all_reduce)
      for (const int value : operands) offer(leaves, value);
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
    Leaves leaves = aliased(i, instruction);
    const HloComputation* const inside = called(module_, instruction, HloRole::calls);
    if (inside == nullptr) return leaves;
    const std::vector<int> updated = updated_parameters(*inside);
    for (std::size_t leaf = 0; leaf < std::min(leaves.size(), updated.size()); ++leaf) {
      const Leaves* const target = updated[leaf] >= 0 ? operand(instruction, static_cast<std::size_t>(updated[leaf])) : nullptr;
      if (target != nullptr && target->size() == 1 && leaves[leaf] != target->front())
        versions_[static_cast<std::size_t>(leaves[leaf])].previous = target->front();
    }
    const std::vector<bool> overwritable = overwritable_parameters(*inside);
    for (std::size_t n = 0; n < std::min(overwritable.size(), instruction.operands.size()); ++n)
      if (const Leaves* const target = operand(instruction, n); overwritable[n] && target != nullptr && target->size() == 1)
        offer(leaves, target->front());
    return leaves;
  }

  /// The leaves may lie in the place of a value that nothing uses later.
  void offer(const Leaves& leaves, int value) {
    for (const int leaf : leaves)
      if (leaf > value && versions_[static_cast<std::size_t>(leaf)].sizes == versions_[static_cast<std::size_t>(value)].sizes)
        versions_[static_cast<std::size_t>(leaf)].others.push_back(value);
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
    for (const int version : results) versions_[static_cast<std::size_t>(version)].last_use = end;
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
    std::vector<bool> taken(versions_.size());
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
      if (!take(version.previous)) std::any_of(version.others.begin(), version.others.end(), take);
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
    std::vector<std::int64_t> last(versions_.size(), no_use);
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      std::int64_t& end = last[static_cast<std::size_t>(buffer_of_[v])];
      end = std::max({end, versions_[v].last_use, versions_[v].made});
    }
    for (std::size_t v = 0; v < versions_.size(); ++v) {
      const Version& version = versions_[v];
      if (buffer_of_[v] != static_cast<int>(v) || version.outside || version.sizes == Sizes{}) continue;
      need.intervals.push_back({version.sizes, step[static_cast<std::size_t>(version.made)], step[static_cast<std::size_t>(last[v]) + 1] - 1});
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      std::int64_t begin = step[i] + 1;
      bool small = true;
      for_each_run(computation_.instructions[i], [&](const Need& run) {
        small = small && need.intervals.size() + run.intervals.size() <= most_leaves;
        if (!small) return;
        for (const Interval& inside : run.intervals) need.intervals.push_back({inside.sizes, begin + inside.begin, begin + inside.end});
        begin += run.steps;
      });
      if (!small) return false;
    }
    return true;
  }

  const HloModule& module_;
  const std::vector<std::array<Need, 2>>& needs_;
  const HloComputation& computation_;
  Mode mode_;
  std::vector<Leaves> values_;
  std::vector<std::vector<std::size_t>> first_leaves_;  // of an instruction's tuple, once it is asked for
  std::vector<Version> versions_;
  std::vector<int> buffer_of_;
  std::size_t leaves_ = 0;
};

std::int64_t saturated(Wide bytes) { return static_cast<std::int64_t>(std::min<Wide>(bytes, most_live)); }

/// The largest live set of each memory space.
Sizes peaks_of(const std::vector<Interval>& intervals) {
  std::vector<std::pair<std::int64_t, std::size_t>> begins, ends;
  for (std::size_t n = 0; n < intervals.size(); ++n) {
    begins.push_back({intervals[n].begin, n});
    ends.push_back({intervals[n].end, n});
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  std::array<Wide, spaces> live{};
  Sizes most{};
  std::size_t ended = 0;
  for (const auto& [begin, n] : begins) {
    for (; ended < ends.size() && ends[ended].first < begin; ++ended)
      for (std::size_t s = 0; s < spaces; ++s) live[s] -= intervals[ends[ended].second].sizes[s];
    for (std::size_t s = 0; s < spaces; ++s) {
      live[s] += intervals[n].sizes[s];
      most[s] = std::max(most[s], saturated(live[s]));
    }
  }
  return most;
}

/// Places buffers in a heap, one after the other, each in the smallest gap that is free for as long as it lives, or on top. Source: openxla/xla,
/// xla/service/heap_simulator, GlobalDecreasingSizeBestFitHeap.
class Heap {
 public:
  explicit Heap(const std::vector<Interval>& intervals) : intervals_{intervals} {
    for (const Interval& interval : intervals) last_ = std::max(last_, interval.end);
    buckets_.resize(most_buckets);
    seen_.resize(intervals.size());
    places_.resize(intervals.size());
  }

  /// Bytes of the heap, buffers in the order of `before`.
  template <class Before>
  std::int64_t pack(Before before) {
    std::vector<std::size_t> order;
    for (std::size_t n = 0; n < intervals_.size(); ++n)
      if (size(n) > 0) order.push_back(n);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return before(intervals_[a], intervals_[b]) || (!before(intervals_[b], intervals_[a]) && a < b); });
    Wide top = 0;
    for (const std::size_t n : order) {
      places_[n] = place(n);
      top = std::max(top, places_[n] + size(n));
      for (std::size_t b = bucket(intervals_[n].begin); b <= bucket(intervals_[n].end); ++b) buckets_[b].push_back(n);
    }
    return saturated(top);
  }

 private:
  static constexpr std::size_t most_buckets = 1024;  // of steps, so that a short buffer is compared only with those near it

  [[nodiscard]] std::int64_t size(std::size_t n) const { return intervals_[n].sizes[hbm]; }
  [[nodiscard]] std::size_t bucket(std::int64_t step) const { return static_cast<std::size_t>(Wide{step} * most_buckets / (Wide{last_} + 1)); }

  Wide place(std::size_t n) {
    const Interval& interval = intervals_[n];
    taken_.clear();
    for (std::size_t b = bucket(interval.begin); b <= bucket(interval.end); ++b)
      for (const std::size_t other : buckets_[b]) {
        if (seen_[other] == n + 1 || intervals_[other].end < interval.begin || intervals_[other].begin > interval.end) continue;
        seen_[other] = n + 1;
        taken_.push_back({places_[other], places_[other] + size(other)});
      }
    std::sort(taken_.begin(), taken_.end());
    Wide free = 0, best = -1, best_gap = 0;
    for (const auto& [begin, end] : taken_) {
      const Wide gap = begin - free;
      if (gap >= size(n) && (best < 0 || gap < best_gap)) {
        best = free;
        best_gap = gap;
      }
      free = std::max(free, end);
    }
    return best < 0 ? free : best;
  }

  const std::vector<Interval>& intervals_;
  std::int64_t last_ = 0;
  std::vector<std::vector<std::size_t>> buckets_;
  std::vector<std::size_t> seen_;  // the buffer plus one that was last compared with it
  std::vector<Wide> places_;
  std::vector<std::pair<Wide, Wide>> taken_;
};

/// Results of the entry have places of their own throughout. Buffers that are not larger lie in them while they are free, the largest first, each in
/// the last of the results that takes it; the heap has only the others. Source: openxla/xla, xla/service/buffer_assignment.cc, AssignSingleHloBuffer.
void reuse_results(Need& need) {
  struct Result {
    std::int64_t size = 0;
    std::map<std::int64_t, std::int64_t> taken{};  // first and last step
  };
  const auto is_result = [&](const Interval& interval) { return interval.end == need.steps - 1; };
  const auto size = [&](std::size_t n) { return need.intervals[n].sizes[hbm]; };
  std::vector<std::size_t> order;
  for (std::size_t n = 0; n < need.intervals.size(); ++n)
    if (size(n) > 0) order.push_back(n);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool first = is_result(need.intervals[a]), second = is_result(need.intervals[b]);
    return std::tuple{-size(a), !first, a} < std::tuple{-size(b), !second, b};
  });
  std::vector<Result> results;
  for (const std::size_t n : order) {
    Interval& interval = need.intervals[n];
    if (is_result(interval)) {
      results.push_back({size(n), {{interval.begin, interval.end}}});
      interval.begin = 0;
      continue;
    }
    const std::size_t tried = std::min(results.size(), most_tried);
    for (auto result = results.rbegin(); result != results.rbegin() + static_cast<std::ptrdiff_t>(tried); ++result) {
      const auto next = result->taken.upper_bound(interval.end);
      if (next != result->taken.begin() && std::prev(next)->second >= interval.begin) continue;
      result->taken.emplace(interval.begin, interval.end);
      interval.sizes[hbm] = 0;
      break;
    }
  }
}

/// XLA packs by size and by time and keeps the smaller heap.
std::int64_t heap_of(const std::vector<Interval>& intervals) {
  const auto length = [](const Interval& interval) { return interval.end - interval.begin; };
  const auto by_size = [&](const Interval& a, const Interval& b) { return std::pair{a.sizes[hbm], length(a)} > std::pair{b.sizes[hbm], length(b)}; };
  const auto by_time = [&](const Interval& a, const Interval& b) { return std::pair{length(a), a.sizes[hbm]} > std::pair{length(b), b.sizes[hbm]}; };
  return std::min(Heap{intervals}.pack(by_size), Heap{intervals}.pack(by_time));
}

}  // namespace

std::optional<HloPeakMemory> peak_memory_of(const HloModule& module) {
  if (module.entry == HloInstruction::missing) return std::nullopt;
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
  const HloComputation& entry = module.entry_computation();
  if (!LiveRanges{module, needs, entry, Mode::entry}.measure(need)) return std::nullopt;
  HloPeakMemory memory;
  reuse_results(need);
  const Bytes heap{heap_of(need.intervals)};
  for (const int parameter : entry.parameters) {
    if (parameter == HloInstruction::missing) continue;
    const HloShape& shape = *entry.instructions[static_cast<std::size_t>(parameter)].shape;
    memory.parameters = saturated_sum(memory.parameters, device_bytes_in(shape, HloMemory::hbm));
    for (const HloShape* const leaf : leaves_of(shape)) need.intervals.push_back({sizes_of(*leaf), 0, need.steps});
  }
  if (entry.root != HloInstruction::missing) {
    const HloShape& results = *entry.instructions[static_cast<std::size_t>(entry.root)].shape;
    const std::vector<const HloShape*> leaves = leaves_of(results);
    memory.outputs = device_bytes_in(results, HloMemory::hbm);
    for (const HloAlias& alias : module.aliases)
      if (const auto leaf = leaf_at(results, alias.output))
        memory.aliased = saturated_sum(memory.aliased, device_bytes_in(*leaves[*leaf], HloMemory::hbm));
  }
  const Sizes peaks = peaks_of(need.intervals);
  memory.hbm = Bytes{peaks[hbm]};
  memory.vmem = Bytes{peaks[vmem]};
  memory.cmem = Bytes{peaks[cmem]};
  memory.host = Bytes{peaks[host]};
  memory.temporary = std::max(Bytes{}, Bytes{heap.count() - memory.outputs.count() + memory.aliased.count()});
  memory.allocated = std::max(memory.hbm, saturated_sum(memory.parameters, heap));
  return memory;
}

}  // namespace podsim
