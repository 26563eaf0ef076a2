#include "workloads/hlo/prefetched_gathers.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/reordered.hpp"

namespace podsim {

namespace {

HloInstruction& instruction_of(HloComputation& computation, int i) { return computation.instructions[static_cast<std::size_t>(i)]; }

/// Copies what computes a value to another place, each instruction once.
class Copier {
 public:
  /// `element`: what stands for an element of the computation's parameter.
  Copier(const HloComputation& from, Reordered& to, int place, std::string suffix, std::function<int(int)> element)
      : from_{from}, to_{to}, place_{place}, suffix_{std::move(suffix)}, element_{std::move(element)} {}

  int copy(int i) {
    if (const auto known = copies_.find(i); known != copies_.end()) return known->second;
    HloInstruction made = from_.instructions[static_cast<std::size_t>(i)];
    if (made.opcode == HloOpcode::get_tuple_element && made.operands.front() == from_.parameters.front()) return copies_[i] = element_(static_cast<int>(made.number));
    for (int& operand : made.operands) operand = copy(operand);
    return copies_[i] = add(std::move(made));
  }
  int add(HloInstruction made) {
    made.name += suffix_;
    if (!made.attributes->control_predecessors.empty()) {
      HloAttributes attributes = *made.attributes;
      attributes.control_predecessors.clear();
      made.attributes = std::move(attributes);
    }
    return to_.add(std::move(made), place_);
  }

 private:
  const HloComputation from_;  // as it was: the original changes
  Reordered& to_;
  int place_;
  std::string suffix_;
  std::function<int(int)> element_;
  std::map<int, int> copies_;
};

HloInstruction element_of(const HloInstruction& tuple, int tuple_number, int element, const std::string& name) {
  HloInstruction made;
  made.opcode = HloOpcode::get_tuple_element;
  made.name = name;
  made.line = tuple.line, made.column = tuple.column;
  made.shape = tuple.shape->elements[static_cast<std::size_t>(element)];
  made.operands = {tuple_number};
  made.number = element;
  return made;
}

/// A gather, plain or as a start and its done.
struct Gather {
  int start = 0, done = 0;
};

class LoopPrefetcher {
 public:
  LoopPrefetcher(HloModule& module, HloComputation& caller, int loop, HloComputation& body, HloComputation& condition) : module_{module}, caller_{caller}, loop_{loop}, body_{body}, condition_{condition} {}

  /// How many gathers begin earlier, and how many cannot.
  std::pair<std::int64_t, std::int64_t> prefetch() {
    const std::int64_t others = find();
    if (gathers_.empty()) return {0, others};
    Reordered in_body{body_}, in_caller{caller_};
    const HloInstruction loop = instruction_of(caller_, loop_);
    const int given = loop.operands.front(), parameter = body_.parameters.front();
    const HloInstruction carried = instruction_of(body_, parameter);
    const auto count = static_cast<int>(carried.shape->elements.size());
    const HloInstruction begun = instruction_of(caller_, given);
    // The loop's tuple, with the gathered arrays behind it.
    std::vector<int> first;
    for (int e = 0; e < count; ++e)
      first.push_back(begun.opcode == HloOpcode::tuple ? begun.operands[static_cast<std::size_t>(e)] : in_caller.add(element_of(begun, given, e, loop.name + ".given." + std::to_string(e)), loop_));
    Copier before_loop{body_, in_caller, loop_, ".first", [&](int e) { return first[static_cast<std::size_t>(e)]; }};
    // Of this trip, and of the next one.
    std::map<int, int> elements;
    const auto now = [&](int e) {
      const auto known = elements.find(e);
      return known != elements.end() ? known->second : elements[e] = in_body.add(element_of(carried, parameter, e, carried.name + ".early." + std::to_string(e)), 0);
    };
    Copier this_trip{body_, in_body, 0, ".trip", now};
    const std::vector<int> returned = instruction_of(body_, body_.root).operands;
    Copier next_trip{body_, in_body, 0, ".next", [&](int e) { return counts_.contains(e) ? this_trip.copy(returned[static_cast<std::size_t>(e)]) : now(e); }};
    HloShape shape = *carried.shape;
    std::vector<int> at_end;
    const int last = static_cast<int>(body_.instructions.size());
    for (std::size_t g = 0; g < gathers_.size(); ++g) {
      const HloInstruction start = instruction_of(body_, gathers_[g].start), done = instruction_of(body_, gathers_[g].done);
      first.push_back(gather(start, done, before_loop, in_caller, loop_));
      at_end.push_back(gather(start, done, next_trip, in_body, last));
      // In its place what the trip before gathered.
      if (gathers_[g].start == gathers_[g].done) left_.insert(left_.end(), start.operands.begin(), start.operands.end());
      HloInstruction taken = element_of(carried, parameter, 0, done.name);
      taken.number = count + static_cast<std::int64_t>(g), taken.shape = done.shape;
      taken.line = done.line, taken.column = done.column;
      instruction_of(body_, gathers_[g].done) = std::move(taken);
      shape.elements.push_back(*done.shape);
    }
    HloInstruction& root = instruction_of(body_, body_.root);
    root.operands.insert(root.operands.end(), at_end.begin(), at_end.end());
    const SharedValue<HloShape> shared{std::move(shape)};
    root.shape = instruction_of(body_, parameter).shape = instruction_of(condition_, condition_.parameters.front()).shape = shared;
    HloInstruction tuple;
    tuple.opcode = HloOpcode::tuple;
    tuple.name = loop.name + ".given";
    tuple.line = loop.line, tuple.column = loop.column;
    tuple.operands = first;
    tuple.shape = shared;
    const int whole = in_caller.add(std::move(tuple), loop_);
    instruction_of(caller_, loop_).operands = {whole};
    instruction_of(caller_, loop_).shape = shared;
    remove_unused(in_body);
    in_body.finish();
    in_caller.finish();
    return {static_cast<std::int64_t>(gathers_.size()), others};
  }

 private:
  [[nodiscard]] const HloInstruction& at(int i) const { return body_.instructions[static_cast<std::size_t>(i)]; }

  /// A start and a done of the gather, whose operands `copier` copies. A plain one becomes such a pair.
  int gather(HloInstruction start, HloInstruction done, Copier& copier, Reordered& into, int end) const {
    if (start.phase == HloPhase::whole) {
      HloShape shape;
      for (const int operand : start.operands) shape.elements.push_back(*shapes_[static_cast<std::size_t>(operand)]);
      const HloShape given = shape.elements.size() == 1 ? shape.elements.front() : shape;
      shape.elements = {given, *done.shape};
      start.shape = std::move(shape);
      start.phase = HloPhase::start;
    }
    for (int& operand : start.operands) operand = copier.copy(operand);
    start.name += "-start";
    const int begun = copier.add(start);
    done.opcode = start.opcode;
    done.phase = HloPhase::done;
    done.operands = {begun};
    done.calls.clear();
    done.attributes = SharedValue<HloAttributes>{};
    done.name += begun_name(start);
    return into.add(std::move(done), end);
  }
  static std::string begun_name(const HloInstruction& start) { return start.name.ends_with("-start") ? "-done.prefetched" : ".prefetched"; }

  [[nodiscard]] bool is_element(const HloInstruction& instruction) const { return instruction.opcode == HloOpcode::get_tuple_element && instruction.operands.front() == body_.parameters.front(); }

  /// Which gathers may begin a trip ahead; how many others there are.
  int find() {
    const auto count = static_cast<int>(body_.instructions.size());
    const HloInstruction& root = at(body_.root);
    for (const HloInstruction& instruction : body_.instructions) shapes_.push_back(instruction.shape);
    for (int e = 0; e < static_cast<int>(root.operands.size()); ++e) {
      const HloInstruction& result = at(root.operands[static_cast<std::size_t>(e)]);
      if (is_element(result) && result.number == e) invariant_.insert(e);
    }
    for (int e = 0; e < static_cast<int>(root.operands.size()); ++e) {
      const HloInstruction& result = at(root.operands[static_cast<std::size_t>(e)]);
      if (invariant_.contains(e) || !result.shape->is_array() || result.shape->rank() > 0 || !is_integer(result.shape->type)) continue;
      counts_.insert(e);  // if it follows from itself alone
      if (!follows(root.operands[static_cast<std::size_t>(e)], e)) counts_.erase(e);
    }
    std::vector<int> dones(static_cast<std::size_t>(count), HloInstruction::missing);
    for (int i = 0; i < count; ++i)
      if (at(i).phase == HloPhase::done) dones[static_cast<std::size_t>(at(i).operands.front())] = i;
    int others = 0;
    for (int i = 0; i < count; ++i) {
      if (at(i).opcode != HloOpcode::all_gather || (at(i).phase != HloPhase::whole && at(i).phase != HloPhase::start)) continue;
      const int done = at(i).phase == HloPhase::start ? dones[static_cast<std::size_t>(i)] : i;
      const bool is_plain = called(module_, at(i), HloRole::calls) == nullptr && done != HloInstruction::missing && at(done).opcode == HloOpcode::all_gather && done != body_.root;
      if (is_plain && std::ranges::all_of(at(i).operands, [&](int operand) { return follows(operand, any_count); }))
        gathers_.push_back({i, done});
      else
        ++others;
    }
    return others;
  }

  static constexpr int any_count = -1;

  /// Whether a value follows from what all trips have alike and from the count `of`, without communication and loops.
  bool follows(int i, int of) {
    std::vector<int> open{i};
    std::set<int> seen;
    while (!open.empty()) {
      const int next = open.back();
      open.pop_back();
      if (next == HloInstruction::missing) return false;
      if (!seen.insert(next).second) continue;
      const HloInstruction& instruction = at(next);
      if (is_element(instruction)) {
        const auto e = static_cast<int>(instruction.number);
        if (!invariant_.contains(e) && !(of == any_count ? counts_.contains(e) : e == of)) return false;
        continue;
      }
      if (!is_copied(instruction)) return false;
      open.insert(open.end(), instruction.operands.begin(), instruction.operands.end());
    }
    return true;
  }

  [[nodiscard]] bool is_copied(const HloInstruction& instruction) const {
    if (instruction.phase != HloPhase::whole || is_collective(instruction.opcode)) return false;
    switch (instruction.opcode) {
      case HloOpcode::constant:
      case HloOpcode::iota:
      case HloOpcode::partition_id:
      case HloOpcode::replica_id:
      case HloOpcode::bitcast:
      case HloOpcode::reshape:
      case HloOpcode::broadcast:
      case HloOpcode::slice:
      case HloOpcode::dynamic_slice:
      case HloOpcode::transpose:
      case HloOpcode::copy: return true;
      case HloOpcode::fusion:
        return std::ranges::none_of(called(module_, instruction, HloRole::calls)->instructions, [](const HloInstruction& inside) { return is_collective(inside.opcode) || inside.opcode == HloOpcode::custom_call || inside.opcode == HloOpcode::fusion; });
      default: return is_elementwise(instruction.opcode);
    }
  }

  /// What led to the gathers alone.
  void remove_unused(Reordered& order) {
    std::vector<int> users(body_.instructions.size(), 0);
    for (const HloInstruction& instruction : body_.instructions) {
      for (const int operand : instruction.operands) ++users[static_cast<std::size_t>(operand)];
      for (const int before : instruction.attributes->control_predecessors) ++users[static_cast<std::size_t>(before)];
    }
    std::vector<int> open;
    const auto drop = [&](int i, int instead) {
      order.remove(i, instead);
      for (const int operand : at(i).operands)
        if (--users[static_cast<std::size_t>(operand)] == 0) open.push_back(operand);
      for (const int before : at(i).attributes->control_predecessors) --users[static_cast<std::size_t>(before)];
    };
    for (const Gather& gather : gathers_)
      if (gather.start != gather.done) drop(gather.start, gather.done);
    for (const int operand : left_)
      if (users[static_cast<std::size_t>(operand)] == 0) open.push_back(operand);
    while (!open.empty()) {
      const int i = open.back();
      open.pop_back();
      if (users[static_cast<std::size_t>(i)] == 0 && i != body_.root && at(i).opcode != HloOpcode::parameter && removed_.insert(i).second) drop(i, body_.root);
    }
  }

  HloModule& module_;
  HloComputation& caller_;
  int loop_;
  HloComputation &body_, &condition_;
  std::vector<Gather> gathers_;
  std::set<int> invariant_, counts_;  // elements of the tuple: what all trips have alike, and what counts them
  std::vector<SharedValue<HloShape>> shapes_;
  std::vector<int> left_;   // operands of plain gathers, which have lost a user
  std::set<int> removed_;
};

/// Whether one instruction alone calls it.
std::vector<int> callers_of(const HloModule& module) {
  std::vector<int> callers(module.computations.size());
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      for (const HloCall& call : instruction.calls) ++callers[static_cast<std::size_t>(call.computation)];
  return callers;
}

/// The computation of a role, as a number.
int number_of(const HloInstruction& loop, HloRole role) {
  const auto found = std::ranges::find(loop.calls, role, &HloCall::role);
  return found == loop.calls.end() ? HloInstruction::missing : found->computation;
}

/// A loop over a tuple, of which everything that uses it takes elements.
bool can_be_longer(const HloModule& module, const HloComputation& caller, int i, const std::vector<int>& callers) {
  const HloInstruction& loop = caller.instructions[static_cast<std::size_t>(i)];
  const int body = number_of(loop, HloRole::body), condition = number_of(loop, HloRole::condition);
  if (i == caller.root || body == HloInstruction::missing || condition == HloInstruction::missing || callers[static_cast<std::size_t>(body)] != 1 || callers[static_cast<std::size_t>(condition)] != 1) return false;
  const HloComputation& inside = module.computations[static_cast<std::size_t>(body)];
  const int parameter = inside.parameters.front();
  if (inside.instructions[static_cast<std::size_t>(inside.root)].opcode != HloOpcode::tuple || !loop.shape->is_tuple()) return false;
  const auto only_elements = [](const HloComputation& computation, int of) {
    return std::ranges::all_of(computation.instructions, [&](const HloInstruction& user) { return std::ranges::count(user.operands, of) == 0 || user.opcode == HloOpcode::get_tuple_element; });
  };
  const HloComputation& decides = module.computations[static_cast<std::size_t>(condition)];
  return only_elements(caller, i) && only_elements(inside, parameter) && only_elements(decides, decides.parameters.front());
}

}  // namespace

PrefetchedModule prefetch_gathers(const HloModule& module) {
  PrefetchedModule all{module};
  const std::vector<bool> runs = runs_in_order(module);
  const std::vector<int> callers = callers_of(module);
  for (std::size_t c = 0; c < module.computations.size(); ++c) {
    if (!runs[c]) continue;
    HloComputation& caller = all.module.computations[c];
    std::set<std::string> seen;  // numbers change with every loop
    const auto next = [&] {
      for (int i = 0; i < static_cast<int>(caller.instructions.size()); ++i)
        if (caller.instructions[static_cast<std::size_t>(i)].opcode == HloOpcode::while_ && seen.insert(caller.instructions[static_cast<std::size_t>(i)].name).second) return i;
      return HloInstruction::missing;
    };
    for (int i = next(); i != HloInstruction::missing; i = next()) {
      if (!can_be_longer(all.module, caller, i, callers)) continue;
      const HloInstruction& loop = caller.instructions[static_cast<std::size_t>(i)];
      HloComputation &body = all.module.computations[static_cast<std::size_t>(number_of(loop, HloRole::body))], &condition = all.module.computations[static_cast<std::size_t>(number_of(loop, HloRole::condition))];
      const auto [gathers, others] = LoopPrefetcher{all.module, caller, i, body, condition}.prefetch();
      all.gathers += gathers, all.others += others;
      all.loops += gathers > 0 ? 1 : 0;
    }
  }
  return all;
}

}  // namespace podsim
