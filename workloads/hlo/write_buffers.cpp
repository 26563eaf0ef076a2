// Values as buffers: what uses them, where results are put, and how long they are held.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/hlo/program_scope.hpp"

namespace podsim {

void add_edges(Edges& edges, const Edges& more) { edges.insert(edges.end(), more.begin(), more.end()); }

void keep_each_once(Edges& edges) {
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.task < b.task; });
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
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
  for (const BufferId buffer : reads) add_edges(edges, uses_[buffer.index()].writers);
  for (const BufferId buffer : writes) {
    add_edges(edges, uses_[buffer.index()].writers);
    add_edges(edges, uses_[buffer.index()].readers);
  }
  return edges;
}

TaskId ProgramWriter::add(std::string label, Op op, Edges after, HloTask::Role role, Guard guard) {
  tasks_.push_back({writing_ == nullptr ? nullptr : &known_as(*writing_), role});
  return builder_.add(std::move(label), std::move(op), std::move(after), std::move(guard));
}

TaskId ProgramWriter::task(std::string label, Op op, const std::vector<BufferId>& reads, const std::vector<BufferId>& writes, Edges after, bool on_core, HloTask::Role role) {
  add_edges(after, before(reads, writes));
  if (is_beside_core_ && on_core) {
    if (last_beside_) after.push_back(Edge{*last_beside_});
    if (auto* const local = std::get_if<Local>(&op)) local->unit = Unit::dma;
  }
  keep_each_once(after);
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

}  // namespace podsim
