#include "workloads/hlo/program_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "workloads/hlo/list_order.hpp"
#include "workloads/hlo/program_scope.hpp"
#include "workloads/hlo/sliced_all_reduces.hpp"

namespace podsim {

namespace {

void append(Edges& edges, const Edges& more) { edges.insert(edges.end(), more.begin(), more.end()); }

/// Each task once. Edges here are from both halves to both halves.
void make_unique(Edges& edges) {
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.task < b.task; });
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
}

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

// ---- Buffers and what uses them ----

BufferId ProgramWriter::add_buffer(Buffer buffer, bool writable) {
  const BufferId id = builder_.add_buffer(std::move(buffer));
  uses_.resize(id.index() + 1);
  holds_.resize(id.index() + 1, 0);
  writable_.resize(id.index() + 1, true);
  writable_[id.index()] = writable;
  return id;
}

void ProgramWriter::hold(const HloLeaf& leaf, int count) {
  if (leaf.buffer) holds_[leaf.buffer->index()] += count;
  for (const auto& [buffer, bytes] : leaf.from) holds_[buffer.index()] += count;
}

Edges ProgramWriter::before(const std::vector<BufferId>& reads, const std::vector<BufferId>& writes) const {
  Edges edges;
  for (const BufferId buffer : reads) append(edges, uses_[buffer.index()].writers);
  for (const BufferId buffer : writes) {
    append(edges, uses_[buffer.index()].writers);
    append(edges, uses_[buffer.index()].readers);
  }
  return edges;
}

TaskId ProgramWriter::add(std::string label, Op op, Edges after, HloTask::Role role, Guard guard) {
  tasks_.push_back({writing_ == nullptr ? nullptr : &known_as(*writing_), role});
  return builder_.add(std::move(label), std::move(op), std::move(after), std::move(guard));
}

TaskId ProgramWriter::task(std::string label, Op op, const std::vector<BufferId>& reads, const std::vector<BufferId>& writes, Edges after, bool on_core, HloTask::Role role) {
  append(after, before(reads, writes));
  if (is_beside_core_ && on_core) {
    if (last_beside_) after.push_back(Edge{*last_beside_});
    if (auto* const local = std::get_if<Local>(&op)) local->unit = Unit::dma;
  }
  make_unique(after);
  const TaskId id = add(std::move(label), std::move(op), std::move(after), role);
  for (const BufferId buffer : reads) uses_[buffer.index()].readers.push_back(Edge{id});
  for (const BufferId buffer : writes) uses_[buffer.index()] = {{Edge{id}}, {}};
  if (on_core) (is_beside_core_ ? last_beside_ : last_core_) = id;
  return id;
}

TaskId ProgramWriter::view(const std::string& label, const std::vector<Region>& from, const std::vector<Region>& to, Edges after) {
  const auto buffers = [](const std::vector<Region>& regions) {
    std::vector<BufferId> found;
    for (const Region& region : regions)
      if (std::ranges::find(found, region.buffer) == found.end()) found.push_back(region.buffer);
    return found;
  };
  const bool is_copy = from.size() == 1 && to.size() == 1 && elements_of(from.front()) == elements_of(to.front()) &&
                       builder_.buffer(from.front().buffer).dtype == builder_.buffer(to.front().buffer).dtype;
  Local local{is_copy ? LocalKind::alias : LocalKind::opaque, from, to, 1, Unit::dma};
  if (!is_copy) local.opaque.bytes = Bytes{}, local.opaque.time = Seconds{};
  return task(label, std::move(local), buffers(from), buffers(to), std::move(after), false, HloTask::Role::place);
}

Edges ProgramWriter::text_order() const {
  const std::optional<TaskId>& last = is_beside_core_ ? last_beside_ : last_core_;
  return module_.blocks() && last ? Edges{Edge{*last}} : Edges{};
}

void ProgramWriter::wait_for(const std::string& label, const Edges& ended, const HloValue& value) {
  const TaskId id = task(label, Local{LocalKind::join, {}, {}}, {}, {}, ended, true, HloTask::Role::wait);
  for (const HloLeaf& leaf : value)
    if (leaf.buffer) uses_[leaf.buffer->index()].writers.push_back(Edge{id});
}

void ProgramWriter::place(const HloValue& value, const std::vector<const HloShape*>& shapes, const std::vector<std::optional<BufferId>>& wanted) {
  struct Copy {
    Region from;
    BufferId to;
  };
  const HloInstruction* const written = std::exchange(writing_, nullptr);
  std::vector<Copy> copies;
  for (std::size_t leaf = 0; leaf < value.size(); ++leaf) {
    if (!wanted[leaf] || value[leaf].buffer == wanted[leaf]) continue;
    const HloLeaf made = stored(fmt::format("result {}", leaf), value[leaf], *shapes[leaf]);
    copies.push_back({region_of(*made.buffer, made.lengths), *wanted[leaf]});
  }
  // What is overwritten before it is read goes aside first.
  for (std::size_t c = 0; c < copies.size(); ++c)
    for (std::size_t earlier = 0; earlier < c; ++earlier)
      if (copies[earlier].to == copies[c].from.buffer) {
        const Buffer like = builder_.buffer(copies[c].from.buffer);
        const BufferId aside = add_buffer({fmt::format("{} aside", like.name), like.extents, like.dtype, Role::scratch, {}, {}}, true);
        const Region there = region_of(aside, like.extents), here = builder_.whole(copies[c].from.buffer);
        // Before the copy that overwrites it: that one comes later in this list of tasks.
        task("place " + like.name, Local{LocalKind::alias, {here}, {there}, 1, Unit::dma}, {here.buffer}, {aside}, {}, false, HloTask::Role::place);
        copies[c].from.buffer = aside;
        break;
      }
  for (const Copy& copy : copies) {
    Region to = region_of(copy.to, {});
    for (const Range& range : copy.from.dims) to.dims.push_back(all(range.length));
    const Buffer& buffer = builder_.buffer(copy.to);
    const bool fits = to.dims.size() == buffer.extents.size() && std::ranges::equal(to.dims, buffer.extents, [](const Range& range, std::int64_t extent) { return range.length <= extent; });
    if (!fits || module_.values()) to = builder_.whole(copy.to);
    view("place " + buffer.name, {copy.from}, {to}, {});
  }
  writing_ = written;
}

// ---- Values ----

const HloInstruction& ProgramWriter::at(const Scope& scope, int i) const { return scope.computation.instructions[static_cast<std::size_t>(i)]; }

HloValue ProgramWriter::operand(const Scope& scope, int i, std::size_t position) const {
  return scope.values[static_cast<std::size_t>(at(scope, i).operands[position])];
}

bool ProgramWriter::dies_here(const Scope& scope, BufferId buffer) const {
  const std::vector<BufferId>& dying = scope.dying[static_cast<std::size_t>(scope.position)];
  return writable_[buffer.index()] && holds_[buffer.index()] == static_cast<int>(std::count(dying.begin(), dying.end(), buffer));
}

HloValue ProgramWriter::allocate(Scope& scope, int i, const HloShape& shape, const std::vector<BufferId>& apart) {
  const HloInstruction& made = at(scope, i);
  HloValue value;
  const std::vector<const HloShape*> leaves = leaves_of(shape);
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    HloLeaf& to = value.emplace_back();
    if (!module_.has_buffer(*leaves[leaf])) continue;
    const HloArrayForm form = module_.form(*leaves[leaf]);
    to.lengths = form.lengths;
    const bool in_hbm = leaves[leaf]->layout.memory_space == HloMemory::hbm;
    const auto fits = [&](BufferId buffer) {
      const Buffer& place = builder_.buffer(buffer);
      return place.extents == form.extents && place.dtype == form.dtype && place.on_chip != in_hbm;
    };
    const auto taken = [&](BufferId buffer) { return std::any_of(value.begin(), value.end() - 1, [&](const HloLeaf& other) { return other.buffer == buffer; }) || std::ranges::find(apart, buffer) != apart.end(); };
    if (const auto hint = scope.hints.find({i, leaf}); hint != scope.hints.end() && fits(hint->second) && dies_here(scope, hint->second) && !taken(hint->second)) {
      to.buffer = hint->second;
      continue;
    }
    // In the place of an operand: of an update always the first, of elementwise work any.
    const bool updates = made.opcode == HloOpcode::dynamic_update_slice || made.opcode == HloOpcode::scatter;
    if (updates || is_elementwise(made.opcode) || made.opcode == HloOpcode::fusion)
      for (std::size_t o = 0; o < (updates ? 1 : made.operands.size()) && !to.buffer; ++o)
        for (const HloLeaf& from : operand(scope, i, o))
          if (from.buffer && fits(*from.buffer) && dies_here(scope, *from.buffer) && !taken(*from.buffer)) to.buffer = from.buffer;
    if (to.buffer) continue;
    Buffer buffer{made.name + (leaves.size() > 1 ? fmt::format(".{}", leaf) : ""), form.extents, form.dtype, Role::scratch, {}, {}};
    buffer.on_chip = !in_hbm;
    to.buffer = add_buffer(std::move(buffer), true);
  }
  return value;
}

void ProgramWriter::release(Scope& scope) {
  std::vector<BufferId>& dying = scope.dying[static_cast<std::size_t>(scope.position)];
  for (const BufferId buffer : dying) --holds_[buffer.index()];
  dying.clear();
}

HloLeaf ProgramWriter::stored(const std::string& label, HloLeaf leaf, const HloShape& shape) {
  const HloArrayForm form = module_.form(shape);
  if (leaf.buffer) {
    const Buffer& in = builder_.buffer(*leaf.buffer);
    if (leaf.lengths == form.lengths && (module_.values() || (in.extents == form.extents && in.dtype == form.dtype))) return leaf;
    Buffer other{label, form.extents, form.dtype, Role::scratch, {}, {}};
    other.on_chip = in.on_chip;
    const BufferId buffer = add_buffer(std::move(other), true);
    view(label, {region_of(*leaf.buffer, leaf.lengths)}, {region_of(buffer, form.lengths)}, {});
    return {buffer, form.lengths, {}, 0, {}};
  }
  const BufferId buffer = add_buffer({label, form.extents, form.dtype, Role::scratch, {}, {}}, true);
  Local local{LocalKind::opaque, {}, {region_of(buffer, form.lengths)}};
  double bytes = static_cast<double>(device_bytes_in(shape, HloMemory::hbm).count());
  std::vector<BufferId> reads;
  for (const auto& [from, read] : leaf.from) {
    bytes += read;
    reads.push_back(from);
    local.reads.push_back(builder_.whole(from));
  }
  local.opaque.vector = Flops{leaf.vector};
  local.opaque.bytes = Bytes{static_cast<std::int64_t>(bytes)};
  task("make " + label, std::move(local), reads, {buffer}, leaf.ready, true, HloTask::Role::operand);
  return {buffer, form.lengths, {}, 0, {}};
}

void ProgramWriter::bind(Scope& scope, int i, HloValue value) {
  for (std::size_t leaf = 0; leaf < value.size(); ++leaf) {
    const int last = scope.last_uses.of(i, leaf);
    if (last < 0) continue;
    hold(value[leaf]);
    std::vector<BufferId>& dying = scope.dying[static_cast<std::size_t>(last)];
    if (value[leaf].buffer) dying.push_back(*value[leaf].buffer);
    for (const auto& [buffer, bytes] : value[leaf].from) dying.push_back(buffer);
  }
  scope.values[static_cast<std::size_t>(i)] = std::move(value);
}

Expected<HloValue> ProgramWriter::write(const HloComputation& computation, const std::vector<HloValue>& arguments, const std::vector<std::optional<BufferId>>& wanted) {
  std::vector<int> order(computation.instructions.size());
  std::iota(order.begin(), order.end(), 0);
  if (!module_.blocks()) {
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
      append(ready, from[leaf].ready);
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
  make_unique(ready);
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
    if (cost.core > Seconds{}) local.opaque.time = time_of(cost, *module_.options().machine);
    if (const auto& cycles = what.attributes->estimated_cycles; cycles && module_.options().clock_hz && *cycles > 0 && *cycles < std::int64_t{1} << 62)
      local.opaque.time = Seconds{static_cast<double>(*cycles) / *module_.options().clock_hz};
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
      append(ready, given[leaf].ready);
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
    append(after, from.ready);
    last = task(label_of(what), Local{to_host ? LocalKind::to_host : LocalKind::from_host, {crossing}, {to}, 1, Unit::dma}, {crossing.buffer}, {to.buffer}, std::move(after), false);
    ended.push_back(Edge{*last});
  }
  return value;
}

}  // namespace podsim
