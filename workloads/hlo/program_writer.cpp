#include "workloads/hlo/program_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "workloads/hlo/list_order.hpp"
#include "workloads/hlo/program_scope.hpp"
#include "workloads/hlo/sliced_all_reduces.hpp"

namespace podsim {

namespace {

/// The instruction and leaf that a leaf of a result is, behind what passes values on; `loops` are those on the way.
std::pair<int, std::size_t> origin_of(const HloComputation& computation, int i, std::size_t leaf, std::vector<std::pair<int, std::size_t>>& loops) {
  while (true) {
    const HloInstruction& at = computation.instructions[static_cast<std::size_t>(i)];
    switch (at.opcode) {
      case HloOpcode::tuple: {
        std::size_t element = 0;
        for (;; ++element) {
          const std::size_t count = count_leaves(at.shape->elements[element]);
          if (leaf < count) break;
          leaf -= count;
        }
        i = at.operands[element];
        break;
      }
      case HloOpcode::get_tuple_element: {
        const HloInstruction& tuple = computation.instructions[static_cast<std::size_t>(at.operands.front())];
        leaf += first_leaf(*tuple.shape, static_cast<std::size_t>(at.number));
        i = at.operands.front();
        break;
      }
      case HloOpcode::bitcast:
      case HloOpcode::reshape:
      case HloOpcode::opt_barrier: i = at.operands.front(); break;
      case HloOpcode::while_:
        loops.emplace_back(i, leaf);
        i = at.operands.front();
        break;
      default: return {i, leaf};
    }
  }
}

}  // namespace

std::vector<bool> invariant_leaves(const HloComputation& body) {
  const HloInstruction& root = body.instructions[static_cast<std::size_t>(body.root)];
  std::vector<bool> invariant(count_leaves(*root.shape), false);
  for (std::size_t leaf = 0; leaf < invariant.size(); ++leaf) {
    int i = body.root;
    std::size_t at = leaf;
    // A loop inside may change what it passes on.
    while (true) {
      const HloInstruction& instruction = body.instructions[static_cast<std::size_t>(i)];
      if (instruction.opcode == HloOpcode::while_) break;
      const bool passes = instruction.opcode == HloOpcode::tuple || instruction.opcode == HloOpcode::get_tuple_element || instruction.opcode == HloOpcode::opt_barrier;
      if (!passes) break;
      if (instruction.opcode == HloOpcode::tuple) {
        std::size_t element = 0;
        for (;; ++element) {
          const std::size_t count = count_leaves(instruction.shape->elements[element]);
          if (at < count) break;
          at -= count;
        }
        i = instruction.operands[element];
      } else {
        const HloInstruction& from = body.instructions[static_cast<std::size_t>(instruction.operands.front())];
        if (instruction.opcode == HloOpcode::get_tuple_element) at += first_leaf(*from.shape, static_cast<std::size_t>(instruction.number));
        i = instruction.operands.front();
      }
    }
    invariant[leaf] = body.instructions[static_cast<std::size_t>(i)].opcode == HloOpcode::parameter && at == leaf;
  }
  return invariant;
}

ProgramWriter::Scope::Scope(const HloComputation& of, std::vector<int> in_order, const std::vector<HloValue>& given, const std::vector<std::optional<BufferId>>& wanted)
    : computation{of}, arguments{given}, users{of}, order{std::move(in_order)}, last_uses{of, order}, values(of.instructions.size()), dying(of.instructions.size() + 1) {
  for (std::size_t leaf = 0; leaf < wanted.size(); ++leaf)
    if (wanted[leaf]) {
      std::vector<std::pair<int, std::size_t>> places;
      places.push_back(origin_of(of, of.root, leaf, places));
      for (const auto& place : places) hints.try_emplace(place, *wanted[leaf]);  // a value that is wanted twice is copied to the second place
    }
}

Expected<HloValue> ProgramWriter::write(const HloComputation& computation, const std::vector<HloValue>& arguments, const std::vector<std::optional<BufferId>>& wanted) {
  std::vector<int> order(computation.instructions.size());
  std::iota(order.begin(), order.end(), 0);
  if (!module_.blocks() && !module_.module().is_scheduled) {
    auto listed = list_order(module_.module(), computation, HloUsers{computation}, module_.costs(), module_.options().rates);
    if (!listed) return listed.error();
    order = *std::move(listed);
  }
  Scope scope{computation, std::move(order), arguments, wanted};
  const std::map<int, int> waiting = sliced_all_reduces(module_.module(), computation, scope.users, false);
  for (const auto& [all_reduce, slice] : waiting) module_.wait_for_rewrite(at(scope, all_reduce).name);
  if (module_.options().rewrite_reduce_scatter) scope.own_blocks = waiting;
  const HloInstruction* const caller = writing_;
  for (std::size_t p = 0; p < scope.order.size(); ++p) {
    scope.position = static_cast<int>(p);
    const int i = scope.order[p];
    writing_ = &at(scope, i);
    if (builder_.task_count() > most_hlo_tasks) return module_.problem(at(scope, i), fmt::format("expected at most {} tasks", most_hlo_tasks));
    if (auto ok = instruction(scope, i); !ok) return ok.error();
    release(scope);
  }
  writing_ = caller;
  scope.position = static_cast<int>(scope.order.size());
  release(scope);
  return scope.values[static_cast<std::size_t>(computation.root)];
}

// ---- Instructions ----

Status ProgramWriter::instruction(Scope& scope, int i) {
  auto value = made(scope, i);
  if (!value) return value.error();
  if (const std::size_t arrays = count_leaves(*at(scope, i).shape); value->size() != arrays)
    return module_.problem(at(scope, i), fmt::format("expected {} arrays, as its operands have, got a shape of {}", value->size(), arrays));
  bind(scope, i, *std::move(value));
  return success();
}

Expected<HloValue> ProgramWriter::made(Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  const auto nothing = [&] { return HloValue(count_leaves(*what.shape)); };
  if (what.phase == HloPhase::start) return start(scope, i);
  if (what.phase == HloPhase::update) return scope.values[static_cast<std::size_t>(what.operands.front())];
  if (what.opcode == HloOpcode::send || what.opcode == HloOpcode::recv) return unmatched(scope, i);
  if (what.phase == HloPhase::done) return done(scope, i);
  if (is_collective(what.opcode)) {
    if (const auto slice = scope.own_blocks.find(i); slice != scope.own_blocks.end()) return own_block(scope, i, slice->second);
    Edges ended;
    auto value = collective(scope, i, what, i, *what.shape, ended);
    if (value && module_.blocks()) wait_for("wait for " + label_of(what), ended, *value);
    return value;
  }
  if (const auto taken = scope.slices.find(i); taken != scope.slices.end()) return taken->second;
  switch (what.opcode) {
    case HloOpcode::parameter: return scope.arguments[static_cast<std::size_t>(what.number)];
    case HloOpcode::after_all: return nothing();
    case HloOpcode::constant:
    case HloOpcode::partition_id:
    case HloOpcode::replica_id:
    case HloOpcode::get_dimension_size: return module_.values() ? work(scope, i) : nothing();
    case HloOpcode::tuple: {
      HloValue value;
      for (std::size_t o = 0; o < what.operands.size(); ++o)
        for (HloLeaf& leaf : operand(scope, i, o)) value.push_back(std::move(leaf));
      return value;
    }
    case HloOpcode::get_tuple_element: {
      const HloValue tuple = operand(scope, i, 0);
      const auto first = static_cast<std::ptrdiff_t>(first_leaf(*at(scope, what.operands.front()).shape, static_cast<std::size_t>(what.number)));
      return HloValue(tuple.begin() + first, tuple.begin() + first + static_cast<std::ptrdiff_t>(count_leaves(*what.shape)));
    }
    case HloOpcode::bitcast_convert:
    case HloOpcode::bitcast:
      if (module_.values()) return work(scope, i);  // a layout may make it a transpose
      return operand(scope, i, 0);
    case HloOpcode::reshape:
      if (module_.module().is_scheduled && !module_.values()) return work(scope, i);  // of those that move nothing the compiler made bitcasts
      return operand(scope, i, 0);
    case HloOpcode::opt_barrier:
    case HloOpcode::add_dependency:
    case HloOpcode::domain: return operand(scope, i, 0);
    case HloOpcode::while_: return loop(scope, i);
    case HloOpcode::conditional: return branch(scope, i);
    case HloOpcode::call: {
      const HloComputation* callee = called(module_.module(), what, HloRole::to_apply);
      if (callee == nullptr) return module_.problem(what, "expected to_apply, a computation");
      return nested(scope, *callee, what.operands, i);
    }
    case HloOpcode::infeed:
    case HloOpcode::outfeed: return unmatched(scope, i);
    case HloOpcode::copy: {
      const int from = at(scope, what.operands.front()).shape->layout.memory_space, to = what.shape->layout.memory_space;
      if (module_.values() || (from == HloMemory::host) == (to == HloMemory::host)) return work(scope, i);
      Edges ended;
      HloValue value = host_copy(scope, i, i, to == HloMemory::host, ended);
      if (module_.blocks()) wait_for("wait for " + label_of(what), ended, value);
      return value;
    }
    case HloOpcode::custom_call: {
      if (module_.values()) return work(scope, i);
      const HloCustomCall known = custom_call_of(scope.computation, what, module_.options().counts.custom_calls);
      if (known.kind == HloCustomCall::Kind::to_host || known.kind == HloCustomCall::Kind::to_device) {
        Edges ended;
        return host_copy(scope, i, i, known.kind == HloCustomCall::Kind::to_host, ended);
      }
      return known.kind == HloCustomCall::Kind::free ? side_by_side(scope, i) : work(scope, i);
    }
    case HloOpcode::fusion: {
      const InsideCollective inside = collective_inside(module_.module(), what);
      if (inside.collective == nullptr) return work(scope, i);
      Edges ended;
      auto value = fused_collective(scope, i, inside, ended);
      if (value && module_.blocks()) wait_for("wait for " + label_of(what), ended, *value);
      return value;
    }
    default: return work(scope, i);
  }
}

bool ProgramWriter::is_fused(const Scope& scope, int i) const {
  const HloInstruction& what = at(scope, i);
  if (!what.shape->is_array() || what.shape->rank() == 0) return false;
  const bool is_made_anywhere = what.opcode == HloOpcode::broadcast || what.opcode == HloOpcode::iota;
  if (is_made_anywhere) return true;
  if (!is_elementwise(what.opcode) && what.opcode != HloOpcode::copy) return false;
  const std::vector<int>& users = scope.users.of(i);
  if (users.size() != 1) return false;
  const HloInstruction& user = at(scope, users.front());
  return is_elementwise(user.opcode) || user.opcode == HloOpcode::reduce || user.opcode == HloOpcode::broadcast;
}

Expected<HloValue> ProgramWriter::work(Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  auto found = module_.costs().of(scope.computation, i);  // looks at shapes, too
  if (!found) return found.error();
  if (module_.values()) return execute(scope, i, what, i, true, {});
  HloTaskCost cost = *found;
  Edges ready;
  HloLeaf sources;  // of what is made where it is used
  std::vector<BufferId> reads;
  std::vector<std::vector<std::int64_t>> lengths;
  for (std::size_t o = 0; o < what.operands.size(); ++o) {
    const auto shapes = leaves_of(*at(scope, what.operands[o]).shape);
    const HloValue from = operand(scope, i, o);
    for (std::size_t leaf = 0; leaf < from.size(); ++leaf) {
      add_edges(ready, from[leaf].ready);
      if (from[leaf].buffer) {
        if (std::find(reads.begin(), reads.end(), *from[leaf].buffer) != reads.end()) continue;
        reads.push_back(*from[leaf].buffer);
        lengths.push_back(from[leaf].lengths);
        sources.from.emplace_back(*from[leaf].buffer, static_cast<double>(device_bytes_in(*shapes[leaf], HloMemory::hbm).count()));
        continue;
      }
      double made_from = 0;
      for (const auto& [buffer, bytes] : from[leaf].from) {
        made_from += bytes;
        sources.from.emplace_back(buffer, bytes);
        if (std::find(reads.begin(), reads.end(), buffer) != reads.end()) continue;
        reads.push_back(buffer);
        lengths.push_back(builder_.buffer(buffer).extents);
      }
      cost.bytes = std::max(0.0, cost.bytes + made_from - static_cast<double>(device_bytes_in(*shapes[leaf], HloMemory::hbm).count()));
      cost.vector += from[leaf].vector;
    }
  }
  keep_each_once(ready);
  sources.ready = ready;
  sources.vector = cost.vector;
  const std::vector<const HloShape*> leaves = leaves_of(*what.shape);
  const bool is_scalar = leaves.size() == 1 && leaves.front()->is_array() && leaves.front()->rank() == 0;
  if (is_light_scalar(what, cost) || (!module_.module().is_scheduled && is_fused(scope, i))) {
    if (is_scalar) sources.vector = 0;
    return HloValue{sources};
  }
  if (cost.evidence == HloEvidence::unknown) module_.opaque(what, cost.bytes);
  if (what.opcode == HloOpcode::fusion && !is_beside_core_)
    if (auto sum = accumulation(scope, i)) return *std::move(sum);

  HloValue value = allocate(scope, i, *what.shape);
  std::vector<BufferId> writes;
  for (const HloLeaf& leaf : value)
    if (leaf.buffer) writes.push_back(*leaf.buffer);
  Op op;
  const auto matmul = value.size() == 1 && !module_.options().clock_hz && !is_beside_core_ ? product(scope, i, value.front()) : std::nullopt;
  if (matmul) {
    op = *matmul;
  } else {
    Local local{LocalKind::opaque, {}, {}};
    for (std::size_t r = 0; r < reads.size(); ++r) local.reads.push_back(region_of(reads[r], lengths[r]));
    for (const HloLeaf& leaf : value)
      if (leaf.buffer) local.writes.push_back(region_of(*leaf.buffer, leaf.lengths));
    local.opaque = opaque_cost_of(cost);
    if (cost.core > Seconds{} && cost.core > arithmetic_time(*module_.options().machine, local.opaque, cost.bytes)) local.opaque.time = time_of(cost, *module_.options().machine);
    if (const auto& cycles = what.attributes->estimated_cycles; cycles && module_.options().clock_hz && *cycles > 0 && *cycles < std::int64_t{1} << 62)
      local.opaque.time = Seconds{static_cast<double>(*cycles) / *module_.options().clock_hz};
    if (local.opaque.time) local.opaque.launch = std::min(local.opaque.launch, *local.opaque.time);  // the compiler's estimate may be less than the wait for the memory
    op = std::move(local);
  }
  const TaskId id = task(label_of(what), std::move(op), reads, writes, std::move(ready), true);
  for (HloLeaf& leaf : value)
    if (!leaf.buffer) leaf.ready = {Edge{id}};
  return value;
}

Expected<HloValue> ProgramWriter::unmatched(Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  if (module_.values()) return module_.problem(what, opcode_text(what) + " is not executed: its other end is not in the module");
  if (what.phase == HloPhase::done) {  // of a recv: the data and a token
    HloValue value(count_leaves(*what.shape));
    if (const HloValue begun = operand(scope, i, 0); what.opcode == HloOpcode::recv && !begun.empty()) value.front() = begun.front();
    return value;
  }
  double bytes = static_cast<double>(device_bytes(*what.shape).count());
  for (const int from : what.operands) bytes = std::max(bytes, static_cast<double>(device_bytes(*at(scope, from).shape).count()));
  module_.opaque(what, bytes);
  return allocate(scope, i, *what.shape);
}

HloValue ProgramWriter::side_by_side(Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  if (what.operands.empty()) return allocate(scope, i, *what.shape);
  if (what.operands.size() == 1)
    if (HloValue value = operand(scope, i, 0); value.size() == count_leaves(*what.shape)) return value;
  std::vector<Region> from, to;
  Edges ready;
  for (std::size_t o = 0; o < what.operands.size(); ++o) {
    const auto shapes = leaves_of(*at(scope, what.operands[o]).shape);
    const HloValue given = operand(scope, i, o);
    for (std::size_t leaf = 0; leaf < given.size(); ++leaf) {
      add_edges(ready, given[leaf].ready);
      if (!given[leaf].buffer && !module_.has_buffer(*shapes[leaf])) continue;
      const HloLeaf there = stored(label_of(what) + " operand", given[leaf], *shapes[leaf]);
      from.push_back(region_of(*there.buffer, there.lengths));
    }
  }
  HloValue value = allocate(scope, i, *what.shape);
  for (const HloLeaf& leaf : value)
    if (leaf.buffer) to.push_back(region_of(*leaf.buffer, leaf.lengths));
  if (!to.empty()) view(label_of(what), from, to, std::move(ready));
  return value;
}

HloValue ProgramWriter::host_copy(Scope& scope, int i, int result_of, bool to_host, Edges& ended) {
  const HloInstruction& what = at(scope, i);
  const HloShape& given = *at(scope, what.operands.front()).shape;
  const HloLeaf from = stored(label_of(what) + " operand", operand(scope, i, 0).front(), *leaves_of(given).front());
  HloValue value = allocate(scope, result_of, *at(scope, result_of).shape);
  for (const HloLeaf& leaf : value) {
    if (!leaf.buffer) continue;
    // A part of an array crosses as much as the part has.
    const Region to = region_of(*leaf.buffer, leaf.lengths);
    Region crossing = region_of(*from.buffer, from.lengths);
    if (elements_of(crossing) != elements_of(to) || builder_.buffer(crossing.buffer).dtype != builder_.buffer(to.buffer).dtype) {
      const Buffer like = builder_.buffer(*leaf.buffer);
      crossing = region_of(add_buffer({what.name + " part", like.extents, like.dtype, Role::scratch, {}, {}}, true), leaf.lengths);
      view(label_of(what) + " part", {region_of(*from.buffer, from.lengths)}, {crossing}, {});
    }
    Edges after = text_order();
    std::optional<TaskId>& last = last_host_[to_host ? 1 : 0];
    if (last) after.push_back(Edge{*last});
    add_edges(after, from.ready);
    last = task(label_of(what), Local{to_host ? LocalKind::to_host : LocalKind::from_host, {crossing}, {to}, 1, Unit::dma}, {crossing.buffer}, {to.buffer}, std::move(after), false);
    ended.push_back(Edge{*last});
  }
  return value;
}

}  // namespace podsim
