#include "workloads/hlo/split_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo/reordered.hpp"

namespace podsim {

namespace {

class ComputationSplitter {
 public:
  ComputationSplitter(SplitModule& all, int number) : all_{all}, computation_{all.module.computations[static_cast<std::size_t>(number)]}, order_{computation_}, count_{static_cast<int>(computation_.instructions.size())} {
    users_.resize(static_cast<std::size_t>(count_));
    for (int i = 0; i < count_; ++i)
      for (const int operand : at(i).operands)
        if (operand != HloInstruction::missing) users_[static_cast<std::size_t>(operand)].push_back(i);
  }

  void split() {
    for (int i = 0; i < count_; ++i) {
      if (!can_split(at(i))) continue;
      const int done = at(i).phase == HloPhase::start ? done_of(i) : i;
      if (done != HloInstruction::missing && count_leaves(*at(done).shape) == at(i).operands.size() && (done == i || computation_.root != i)) split(i, done);
    }
    order_.finish();
  }

 private:
  HloInstruction& at(int i) { return computation_.instructions[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const std::vector<int>& users_of(int i) const { return users_[static_cast<std::size_t>(i)]; }

  bool can_split(const HloInstruction& what) {
    if (what.opcode != HloOpcode::all_reduce && what.opcode != HloOpcode::all_gather && what.opcode != HloOpcode::reduce_scatter) return false;
    if ((what.phase != HloPhase::whole && what.phase != HloPhase::start) || what.operands.size() < 2) return false;
    if (called(all_.module, what, HloRole::calls) != nullptr || !what.attributes->control_predecessors.empty() || what.attributes->across_slices) return false;
    return std::ranges::all_of(what.operands, [&](int operand) { return operand != HloInstruction::missing && at(operand).shape->is_array(); });
  }

  int done_of(int start) {
    const std::vector<int>& users = users_of(start);
    return users.size() == 1 && at(users.front()).phase == HloPhase::done && at(users.front()).attributes->control_predecessors.empty() ? users.front() : HloInstruction::missing;
  }

  /// Those of element `number` of the results, and the instructions that take it out.
  struct Element {
    std::vector<int> taken, users;
  };
  Element element_of(int done, std::int64_t number) {
    Element element;
    for (const int user : users_of(done)) {
      if (at(user).opcode != HloOpcode::get_tuple_element || at(user).number != number) continue;
      element.taken.push_back(user);
      element.users.insert(element.users.end(), users_of(user).begin(), users_of(user).end());
    }
    return element;
  }

  void split(int start, int done) {
    const bool is_pair = start != done;
    const std::vector<int> operands = at(start).operands;
    std::vector<HloShape> arrays;
    for (const HloShape* const array : leaves_of(*at(done).shape)) arrays.push_back(*array);
    const bool all_taken = computation_.root != done && std::ranges::all_of(users_of(done), [&](int user) { return at(user).opcode == HloOpcode::get_tuple_element && computation_.root != user; });
    int first = HloInstruction::missing;
    std::vector<int> results;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Element element = element_of(done, static_cast<std::int64_t>(k));
      HloInstruction one = at(start);
      one.name += fmt::format(".{}", k);
      one.operands = {operands[k]};
      one.shape = arrays[k];
      if (is_pair && one.opcode != HloOpcode::all_reduce) {
        HloShape both;
        both.elements = {*at(operands[k]).shape, arrays[k]};
        one.shape = std::move(both);
      }
      int result = order_.add(std::move(one), is_pair ? 0 : start);
      if (k == 0) first = result;
      if (is_pair) {
        HloInstruction end = at(done);
        end.name += fmt::format(".{}", k);
        end.operands = {result};
        end.shape = arrays[k];
        const auto user = std::ranges::min_element(element.users);
        result = order_.add(std::move(end), user == element.users.end() || !all_taken ? done : *user);
      }
      results.push_back(result);
      for (const int user : element.users)
        if (all_taken) std::ranges::replace_if(at(user).operands, [&](int operand) { return std::ranges::find(element.taken, operand) != element.taken.end(); }, result);
      for (const int taken : element.taken)
        if (all_taken) order_.remove(taken, result);
    }
    if (all_taken) {
      order_.remove(done, results.front());
    } else {
      HloInstruction& whole = at(done);
      whole.opcode = HloOpcode::tuple;
      whole.phase = HloPhase::whole;
      whole.operands = results;
      whole.calls.clear();
      whole.attributes = SharedValue<HloAttributes>{};
    }
    if (is_pair) order_.remove(start, first);
    ++all_.before;
    all_.after += static_cast<std::int64_t>(operands.size());
  }

  SplitModule& all_;
  HloComputation& computation_;
  Reordered order_;
  int count_;
  std::vector<std::vector<int>> users_;  // by instruction
};

}  // namespace

SplitModule split_collectives(const HloModule& module) {
  SplitModule all{module};
  const std::vector<bool> runs = runs_in_order(module);
  for (int c = 0; c < static_cast<int>(module.computations.size()); ++c)
    if (runs[static_cast<std::size_t>(c)]) ComputationSplitter{all, c}.split();
  return all;
}

}  // namespace podsim
