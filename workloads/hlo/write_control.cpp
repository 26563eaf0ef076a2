// Calls, conditionals and loops of modules: computations within computations.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/hlo/program_scope.hpp"

namespace podsim {

Expected<HloValue> ProgramWriter::nested(Scope& scope, const HloComputation& callee, const std::vector<int>& operands, int result_of) {
  std::vector<HloValue> arguments;
  std::vector<std::optional<BufferId>> wanted;
  for (const int from : operands) arguments.push_back(scope.values[static_cast<std::size_t>(from)]);
  const std::size_t leaves = count_leaves(*at(scope, result_of).shape);
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
    const auto hint = scope.hints.find({result_of, leaf});
    wanted.push_back(hint == scope.hints.end() ? std::nullopt : std::optional{hint->second});
  }
  release(scope);  // the callee may write over what only it needs
  return write(callee, arguments, wanted);
}

Expected<HloValue> ProgramWriter::branch(Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  std::size_t branches = 0;
  while (called(module_.module(), what, HloRole::branch, branches) != nullptr) ++branches;
  if (branches == 0 || what.operands.size() != branches + 1) return module_.problem(what, "expected a branch for each operand but the first");
  std::size_t chosen = 0;
  if (const auto told = module_.options().counts.branches.find(what.name); told != module_.options().counts.branches.end()) {
    if (told->second < 0 || static_cast<std::size_t>(told->second) >= branches)
      return module_.problem(what, fmt::format("expected branch 0 to {}, found {}", branches - 1, told->second));
    chosen = static_cast<std::size_t>(told->second);
  } else if (module_.values()) {
    return every_branch(scope, i);
  } else {
    const auto longest = module_.longest_branch(scope.computation, i);
    if (!longest) return longest.error();
    chosen = *longest;
    module_.note(fmt::format("{}: branch {} of {}, the longest", what.name, chosen, branches));
  }
  if (module_.values()) expect_branch(scope, i, static_cast<std::int64_t>(chosen));
  return nested(scope, *called(module_.module(), what, HloRole::branch, chosen), {what.operands[chosen + 1]}, i);
}

Expected<HloValue> ProgramWriter::every_branch(Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  if (std::ranges::none_of(what.calls, [&](const HloCall& call) { return module_.communicates(call.computation); })) return execute(scope, i, what, i, true, text_order());
  module_.note(fmt::format("{}: each device's branch by the definition of its collectives; `branch` {}=N says one that all take, whose collectives are then proven", what.name, what.name));
  Edges ended;
  auto value = by_definition(scope, i, i, *what.shape, ended);
  if (value) wait_for("wait for " + label_of(what), ended, *value);
  return value;
}

Expected<Edges> ProgramWriter::write_condition(Scope& scope, int i, const HloValue& state) {
  const int number = called_number(at(scope, i), HloRole::condition);
  const HloComputation& condition = module_.module().computations[static_cast<std::size_t>(number)];
  const auto makes_array = [](const HloInstruction& instruction) { return instruction.opcode != HloOpcode::parameter && instruction.shape->is_array() && instruction.shape->rank() > 0; };
  if (!module_.communicates(number) && std::ranges::none_of(condition.instructions, makes_array)) return Edges{};
  for (const HloLeaf& leaf : state) hold(leaf);  // the loop goes on with it
  const auto goes_on = write(condition, {state}, {std::nullopt});
  for (const HloLeaf& leaf : state) hold(leaf, -1);
  if (!goes_on) return goes_on.error();
  return goes_on->front().ready;
}

Expected<HloValue> ProgramWriter::loop(Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  const HloComputation* body = called(module_.module(), what, HloRole::body);
  if (body == nullptr) return module_.problem(what, "expected a body, a computation");
  if (called(module_.module(), what, HloRole::condition) == nullptr) return module_.problem(what, "expected a condition, a computation");
  const auto trips = trip_count_of(module_.module(), scope.computation, what, module_.options().counts.trip_counts);
  if (!trips) return trips.error();
  if (trips->by_condition)
    module_.note(fmt::format("{}: runs {} times, as its known_trip_count says; by its condition it would be {}", what.name, trips->count, *trips->by_condition));
  const std::vector<const HloShape*> shapes = leaves_of(*what.shape);
  const std::vector<bool> invariant = invariant_leaves(*body);
  HloValue state = operand(scope, i, 0);
  std::vector<bool> is_stored;
  std::vector<std::optional<BufferId>> places(state.size());
  for (std::size_t leaf = 0; leaf < state.size(); ++leaf) {
    is_stored.push_back(module_.has_buffer(*shapes[leaf]));
    if (!is_stored.back()) continue;
    const HloArrayForm form = module_.form(*shapes[leaf]);
    const auto fits = [&](BufferId buffer) { return builder_.buffer(buffer).extents == form.extents && builder_.buffer(buffer).dtype == form.dtype; };
    const std::optional<BufferId>& given = state[leaf].buffer;
    const bool is_alone = std::ranges::count(state, given, &HloLeaf::buffer) == 1;  // else one of the values would be updated with the other
    const bool in_place = given && fits(*given) && (invariant[leaf] || (is_alone && dies_here(scope, *given) && holds_[given->index()] == 1));
    if (in_place) {
      places[leaf] = given;
      continue;
    }
    if (!given && state[leaf].from.empty() && state[leaf].vector == 0) {  // what is always there
      places[leaf] = stored(fmt::format("{}.{}", label_of(what), leaf), state[leaf], *shapes[leaf]).buffer;
      continue;
    }
    Buffer buffer{fmt::format("{}.{}", what.name, leaf), form.extents, form.dtype, Role::scratch, {}, {}};
    buffer.on_chip = shapes[leaf]->layout.memory_space != HloMemory::hbm;
    if (const auto hint = scope.hints.find({i, leaf}); hint != scope.hints.end() && fits(hint->second) && dies_here(scope, hint->second) &&
        std::ranges::count(state, std::optional{hint->second}, &HloLeaf::buffer) == 0)
      places[leaf] = hint->second;
    else
      places[leaf] = add_buffer(std::move(buffer), true);
  }
  place(state, shapes, places);
  HloValue result(state.size());
  for (std::size_t leaf = 0; leaf < state.size(); ++leaf)
    if (is_stored[leaf]) result[leaf] = {places[leaf], module_.form(*shapes[leaf]).lengths, {}, 0, {}};
  Edges last;
  for (std::size_t leaf = 0; leaf < state.size(); ++leaf) last.insert(last.end(), state[leaf].ready.begin(), state[leaf].ready.end());
  const auto decide = [&](bool is_true) -> Status {
    if (module_.values()) return expect_condition(scope, i, is_true, result), success();
    const auto decided = write_condition(scope, i, result);
    if (!decided) return decided.error();
    last.insert(last.end(), decided->begin(), decided->end());
    return success();
  };
  if (in_function_ || is_beside_core_) {  // functions have no calls, and calls run on the core
    release(scope);
    for (std::int64_t trip = 0; trip < trips->count; ++trip) {
      std::vector<std::optional<BufferId>> wanted(state.size());
      for (std::size_t leaf = 0; leaf < state.size(); ++leaf)
        if (!invariant[leaf]) wanted[leaf] = places[leaf];
      if (const auto ok = decide(true); !ok) return ok.error();
      const auto made = write(*body, {result}, wanted);
      if (!made) return made.error();
      place(*made, shapes, wanted);
    }
    if (const auto ok = decide(false); !ok) return ok.error();
    return result;
  }
  const auto function = module_.body(*body, called_number(what, HloRole::body), is_stored);
  if (!function) return function.error();
  Call call{(*function)->function, {}};
  std::vector<BufferId> reads, writes;
  for (std::size_t leaf = 0; leaf < state.size(); ++leaf) {
    if (!is_stored[leaf]) continue;
    call.arguments.push_back(*places[leaf]);
    ((*function)->written[leaf] ? writes : reads).push_back(*places[leaf]);
  }
  for (std::int64_t trip = 0; trip < trips->count; ++trip) {
    if (builder_.task_count() > most_hlo_tasks) return module_.problem(what, fmt::format("expected at most {} tasks", most_hlo_tasks));
    if (const auto ok = decide(true); !ok) return ok.error();
    last = {Edge{task(fmt::format("{} {}", what.name, trip), call, reads, writes, last, true, HloTask::Role::trip)}};
    tasks_.back().trip = trip;
  }
  if (const auto ok = decide(false); !ok) return ok.error();
  for (std::size_t leaf = 0; leaf < state.size(); ++leaf)
    if (!is_stored[leaf]) result[leaf].ready = last;
  return result;
}

}  // namespace podsim
