#include "workloads/hlo/combined_collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "workloads/hlo/collective_strategy.hpp"
#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo/reordered.hpp"

namespace podsim {

namespace {

bool is_combined(HloOpcode opcode) { return opcode == HloOpcode::all_reduce || opcode == HloOpcode::all_gather || opcode == HloOpcode::reduce_scatter; }

/// One that may be a part of another: a plain collective, or a -start with its -done.
struct Member {
  int start = 0, done = 0;  // the same of a plain one
  Bytes bytes;              // of its results
};

class ComputationCombiner {
 public:
  ComputationCombiner(CombinedModule& all, int number, Bytes threshold) : all_{all}, number_{number}, threshold_{threshold} {}

  void combine() {
    std::set<std::string> kinds;
    for (const HloInstruction& instruction : computation().instructions)
      if (auto kind = kind_of(instruction)) kinds.insert(*std::move(kind));
    // One kind after the other: a group of one kind may need a group of another, which then must not need it.
    for (const std::string& kind : kinds) {
      const std::map<int, std::vector<Member>> lists = members_of(kind);
      Reordered order{computation()};
      for (const auto& [level, members] : lists) combine(order, members);
      order.finish();
    }
  }

 private:
  [[nodiscard]] HloComputation& computation() { return all_.module.computations[static_cast<std::size_t>(number_)]; }
  HloInstruction& at(int i) { return computation().instructions[static_cast<std::size_t>(i)]; }

  /// What two collectives have alike that may be one; nullopt: it is one that stays as it is.
  std::optional<std::string> kind_of(const HloInstruction& what) {
    const HloAttributes& attributes = *what.attributes;
    if (!is_combined(what.opcode) || (what.phase != HloPhase::whole && what.phase != HloPhase::start)) return std::nullopt;
    if (called(all_.module, what, HloRole::calls) != nullptr || !attributes.control_predecessors.empty() || attributes.across_slices || what.operands.empty()) return std::nullopt;
    std::string sum;
    if (const HloComputation* const reduction = called(all_.module, what, HloRole::to_apply)) {
      for (const HloInstruction& inside : reduction->instructions) sum += fmt::format("{} {} ({}), ", opcode_text(inside), name_of(inside.shape->type), fmt::join(inside.operands, " "));
    }
    HloType type{};
    for (const int operand : what.operands) {
      if (operand == HloInstruction::missing || !at(operand).shape->is_array()) return std::nullopt;
      if (operand != what.operands.front() && at(operand).shape->type != type) return std::nullopt;
      type = at(operand).shape->type;
    }
    return fmt::format("{} {} {} {} {} {} {} {} {}", opcode_text(what), name_of(type), attributes.replica_groups ? to_text(*attributes.replica_groups) : "", static_cast<int>(group_mode_of(what)),
                       fmt::join(attributes.dimensions, ","), attributes.is_sync, attributes.strategy ? to_text(*attributes.strategy) : "", at(what.operands.front()).shape->layout.memory_space, sum);
  }

  /// By how many of that kind come before them, one needing the other: those of one list do not need each other.
  std::map<int, std::vector<Member>> members_of(const std::string& kind) {
    const auto count = computation().instructions.size();
    std::vector<bool> is_member(count);
    std::vector<int> dones(count, HloInstruction::missing), level(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const HloInstruction& what = computation().instructions[i];
      is_member[i] = kind_of(what) == kind;
      if (what.phase == HloPhase::done && !what.operands.empty() && what.operands.front() != HloInstruction::missing) dones[static_cast<std::size_t>(what.operands.front())] = static_cast<int>(i);
      const auto after = [&](int before) {
        if (before != HloInstruction::missing) level[i] = std::max(level[i], level[static_cast<std::size_t>(before)] + (is_member[static_cast<std::size_t>(before)] ? 1 : 0));
      };
      for (const int operand : what.operands) after(operand);
      for (const int before : what.attributes->control_predecessors) after(before);
    }
    std::map<int, std::vector<Member>> lists;
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_member[i]) continue;
      const int start = static_cast<int>(i), done = at(start).phase == HloPhase::start ? dones[i] : start;
      if (done != HloInstruction::missing && at(done).opcode == at(start).opcode) lists[level[i]].push_back({start, done, logical_bytes(*at(done).shape)});
    }
    return lists;
  }

  void combine(Reordered& order, const std::vector<Member>& members) {
    for (std::size_t first = 0; first < members.size();) {
      std::size_t end = first;
      for (Bytes sum; end < members.size() && sum + members[end].bytes <= threshold_; ++end) sum += members[end].bytes;
      if (end > first + 1) make_one(order, {members.begin() + static_cast<std::ptrdiff_t>(first), members.begin() + static_cast<std::ptrdiff_t>(end)});
      first = std::max(end, first + 1);
    }
  }

  void make_one(Reordered& order, const std::vector<Member>& members) {
    const Member &first = members.front(), &last = members.back();
    HloInstruction one = at(first.start);
    one.name += ".combined";
    one.operands.clear();
    HloShape given, made;
    for (const Member& member : members) {
      for (const int operand : at(member.start).operands) {
        one.operands.push_back(operand);
        given.elements.push_back(*at(operand).shape);
      }
      for (const HloShape* const array : leaves_of(*at(member.done).shape)) made.elements.push_back(*array);
    }
    const bool is_pair = first.start != first.done, is_alone = one.opcode == HloOpcode::all_reduce;
    if (is_pair && !is_alone) {
      HloShape both;
      both.elements = {given, made};
      one.shape = std::move(both);
    } else {
      one.shape = made;
    }
    int result = order.add(one, last.start);
    if (is_pair) {
      HloInstruction done = at(first.done);
      done.name += ".combined";
      done.operands = {result};
      done.shape = made;
      const int latest = std::ranges::max(members, {}, &Member::done).done;
      result = order.add(std::move(done), latest);
    }
    std::int64_t number = 0;
    for (const Member& member : members) {
      const auto arrays = leaves_of(*at(member.done).shape);
      std::vector<int> elements;
      for (const HloShape* const array : arrays) {
        HloInstruction element;
        element.opcode = HloOpcode::get_tuple_element;
        element.name = fmt::format("{}.{}", at(member.done).name, elements.size());
        element.line = at(member.done).line, element.column = at(member.done).column;
        element.shape = *array;
        element.operands = {result};
        element.number = number++;
        elements.push_back(HloInstruction::missing);
        if (at(member.done).shape->is_array()) {
          element.name = at(member.done).name;
          at(member.done) = std::move(element);
        } else {
          elements.back() = order.add(std::move(element), member.done);
        }
      }
      if (!at(member.done).shape->is_array()) {
        HloInstruction& done = at(member.done);
        done.opcode = HloOpcode::tuple;
        done.phase = HloPhase::whole;
        done.operands = elements;
        done.calls.clear();
        done.attributes = SharedValue<HloAttributes>{};
      }
      if (is_pair) order.remove(member.start, result);
    }
    all_.before += static_cast<std::int64_t>(members.size());
    ++all_.after;
  }

  CombinedModule& all_;
  int number_;
  Bytes threshold_;
};

}  // namespace

CombinedModule combine_collectives(const HloModule& module, Bytes threshold) {
  CombinedModule all{module};
  const std::vector<bool> runs = runs_in_order(module);
  for (int c = 0; c < static_cast<int>(module.computations.size()); ++c)
    if (runs[static_cast<std::size_t>(c)]) ComputationCombiner{all, c, threshold}.combine();
  return all;
}

}  // namespace podsim
