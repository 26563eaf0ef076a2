// Collectives of modules, plain, asynchronous and fused, as those of schedules.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "sim/base/invariant.hpp"
#include "workloads/hlo/collective_axes.hpp"
#include "workloads/hlo/group_views.hpp"
#include "workloads/hlo/hlo_traffic.hpp"
#include "workloads/hlo/program_scope.hpp"

namespace podsim {

namespace {

std::optional<CollectiveKind> kind_of(HloOpcode opcode) {
  switch (opcode) {
    case HloOpcode::all_gather: return CollectiveKind::all_gather;
    case HloOpcode::all_reduce: return CollectiveKind::all_reduce;
    case HloOpcode::reduce_scatter: return CollectiveKind::reduce_scatter;
    case HloOpcode::all_to_all: return CollectiveKind::all_to_all;
    case HloOpcode::collective_broadcast: return CollectiveKind::broadcast;
    default: return std::nullopt;
  }
}

constexpr int no_dimension = -1;

/// The dimension if it divides, else the first that does, else no_dimension.
int dividing(const Region& region, int wanted, std::int64_t parts) {
  const auto divides = [&](int dim) { return dim >= 0 && dim < static_cast<int>(region.dims.size()) && region.dims[static_cast<std::size_t>(dim)].length % parts == 0; };
  if (divides(wanted)) return wanted;
  for (int dim = 0; dim < static_cast<int>(region.dims.size()); ++dim)
    if (divides(dim)) return dim;
  return no_dimension;
}

}  // namespace

bool ProgramWriter::adds(const HloInstruction& collective) const {
  const HloComputation* sum = called(module_.module(), collective, HloRole::to_apply);
  if (sum == nullptr) return false;
  const HloInstruction& root = sum->instructions[static_cast<std::size_t>(sum->root)];
  const auto is_parameter = [&](int operand) { return sum->instructions[static_cast<std::size_t>(operand)].opcode == HloOpcode::parameter; };
  const bool is_sum = root.opcode == HloOpcode::add && root.operands.size() == 2 && root.operands[0] != root.operands[1] && is_parameter(root.operands[0]) && is_parameter(root.operands[1]);
  return is_sum && (is_float(root.shape->type) || root.shape->type == HloType::s32);
}

Expected<CollectiveGroups> ProgramWriter::groups(const HloInstruction& collective, const HloInstruction& runs_as) const {
  const auto flattened = groups_among(module_.module(), collective, module_.mesh().devices());
  if (!flattened) return flattened.error();
  auto found = collective_groups(*flattened, module_.mesh(), collective.opcode == HloOpcode::all_reduce);
  if (collective.opcode == HloOpcode::collective_broadcast)  // its groups begin with the source, wherever that stands along the axes
    if (const auto with_root = rooted(*flattened))
      if (auto views = views_of(with_root->groups, module_.mesh()); views && found && have_axes_once(*views)) {
        found->views = *std::move(views);
        found->listed.reset();
        found->root = with_root->root;
      }
  if (!found && collective.opcode == HloOpcode::collective_broadcast) found = CollectiveGroups{{}, *flattened, largest_group_of(*flattened), 0, {}};
  if (!found) return module_.problem(collective, fmt::format("expected groups of equal size that have every device of the mesh {} once, found {}", to_text(module_.mesh()), to_text(*flattened)));
  if (const HloStrategy* const strategy = strategy_of(collective, runs_as)) found->algorithm = algorithm_of(*strategy, module_.mesh(), found->views, module_.options().cells);
  return *std::move(found);
}

void ProgramWriter::tell_strategy(const HloInstruction& collective, const HloInstruction& runs_as, const CollectiveGroups& groups) {
  if (const HloStrategy* const strategy = strategy_of(collective, runs_as); strategy != nullptr && groups.devices > 1) module_.stated(*strategy, groups.algorithm);
}

Expected<Edges> ProgramWriter::exchange(const HloInstruction& at, CollectiveKind kind, const CollectiveGroups& groups, const std::vector<Region>& in, const std::vector<Region>& out, int dim,
                                        const Edges& after) {
  const auto is_float = [&](const Region& region) { return builder_.buffer(region.buffer).dtype == DType::f32; };
  const bool adds_up = kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
  if (!module_.options().rewrite_bf16_reductions || !adds_up || !std::ranges::all_of(in, is_float)) return exchange_as_stored(at, kind, groups, in, out, dim, after);
  const std::string label = label_of(at);
  const auto rounded = [&](const std::vector<Region>& regions) {
    std::vector<Region> halves;
    for (const Region& region : regions) halves.push_back(region_of(add_buffer({label + " in bf16", lengths_of(region), DType::bf16, Role::scratch, {}, {}}, true), lengths_of(region)));
    return halves;
  };
  const std::vector<Region> sent = rounded(in), sums = rounded(out);
  Edges ready = after, ended;
  for (std::size_t r = 0; r < in.size(); ++r) ready.push_back(Edge{view("place " + label, {in[r]}, {sent[r]}, after)});
  const auto made = exchange_as_stored(at, kind, groups, sent, sums, dim, ready);
  if (!made) return made;
  for (std::size_t r = 0; r < out.size(); ++r) ended.push_back(Edge{view("place " + label, {sums[r]}, {out[r]}, *made)});
  return ended;
}

Expected<Edges> ProgramWriter::exchange_as_stored(const HloInstruction& at, CollectiveKind kind, const CollectiveGroups& groups, const std::vector<Region>& in, const std::vector<Region>& out, int dim,
                                                  const Edges& after) {
  const std::int64_t parts = groups.devices;
  const auto dtype = [&](const Region& region) { return builder_.buffer(region.buffer).dtype; };
  std::function<Expected<Edges>(const std::string&, const Region&, const Region&, int, const Edges&)> one;
  // Where no dimension divides: the same elements in one dimension.
  const auto flat = [&](const std::string& label, const Region& from, const Region& to, const Edges& waits) -> Expected<Edges> {
    const auto row = [&](const Region& region) { return region_of(add_buffer({label + " in one dimension", {elements_of(region)}, dtype(region), Role::scratch, {}, {}}, true), {elements_of(region)}); };
    const Region sent = row(from), received = row(to);
    view("place " + label, {from}, {sent}, waits);
    const auto made = one(label, sent, received, 0, waits);
    if (!made) return made;
    return Edges{Edge{view("place " + label, {received}, {to}, *made)}};
  };
  one = [&](const std::string& label, const Region& from, const Region& to, int along, const Edges& waits) -> Expected<Edges> {
    Collective op{kind, groups.views, from, to, along};
    op.root = groups.root;
    op.algorithm = groups.algorithm;
    const std::int64_t given = elements_of(from), made = elements_of(to);
    int divided = along;
    switch (kind) {
      case CollectiveKind::all_gather:
        divided = made == given * parts ? dividing(to, along, parts) : no_dimension;
        break;
      case CollectiveKind::reduce_scatter: divided = given == made * parts ? dividing(from, along, parts) : no_dimension; break;
      case CollectiveKind::all_to_all: divided = given == made ? dividing(from, along, parts) : no_dimension; break;
      case CollectiveKind::all_reduce: divided = given == made ? std::max(0, dividing(from, 0, parts)) : no_dimension; break;
      default: break;
    }
    const std::int64_t whole = std::max(given, made), part = std::min(given, made);
    if (divided == no_dimension && !module_.values() && whole == (kind == CollectiveKind::all_to_all ? part : part * parts) && whole % parts == 0) return flat(label, from, to, waits);
    if (divided == no_dimension) return module_.problem(at, fmt::format("expected arrays that {} devices share, found {} and {} elements", parts, given, made));
    op.dim = op.split_dim = divided;
    if (kind == CollectiveKind::all_to_all && op.dim < static_cast<int>(to.dims.size()) && to.dims[static_cast<std::size_t>(op.dim)].length % parts != 0) op.dim = std::max(0, dividing(to, 0, parts));
    if (groups.listed) return in_pairs(at, label, *groups.listed, op, waits);
    return Edges{Edge{task(label, std::move(op), {from.buffer}, {to.buffer}, waits, false)}};
  };
  const bool alike = std::all_of(in.begin(), in.end(), [&](const Region& region) { return dtype(region) == dtype(in.front()); });
  // Of one array made of several, the blocks of a gather or scatter would be parts of all: the same time, other values.
  const bool is_divided = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  const bool combines = in.size() > 1 && alike && (kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_to_all || (is_divided && !module_.values()));
  if (!combines) {
    Edges ended;
    for (std::size_t r = 0; r < in.size(); ++r) {
      const auto edges = one(r == 0 ? label_of(at) : fmt::format("{} {}", label_of(at), r), in[r], out[r], dim, after);
      if (!edges) return edges.error();
      ended.insert(ended.end(), edges->begin(), edges->end());
    }
    return ended;
  }
  // All in one array, as the compiler combined them.
  const auto combined = [&](const std::vector<Region>& regions, const char* what) {
    const std::int64_t elements = std::accumulate(regions.begin(), regions.end(), std::int64_t{0}, [](std::int64_t sum, const Region& region) { return sum + elements_of(region); });
    return region_of(add_buffer({fmt::format("{} {}", at.name, what), {elements}, dtype(regions.front()), Role::scratch, {}, {}}, true), {elements});
  };
  const Region together = combined(in, "operands"), results = kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_to_all ? together : combined(out, "results");
  std::int64_t offset = 0;
  Edges placed = after;
  for (const Region& region : in) {
    const Region part{together.buffer, {span(offset, elements_of(region))}};
    const TaskId id = task("place " + label_of(at), Local{LocalKind::alias, {region}, {part}, 1, Unit::dma}, {region.buffer}, {}, after, false, HloTask::Role::place);
    placed.push_back(Edge{id});
    offset += elements_of(region);
  }
  Region target = results;
  if (kind == CollectiveKind::all_to_all) target = region_of(add_buffer({at.name + " results", {offset}, dtype(in.front()), Role::scratch, {}, {}}, true), {offset});
  const auto made = one(label_of(at), together, target, 0, placed);
  if (!made) return made.error();
  offset = 0;
  Edges ended = *made;
  for (const Region& region : out) {
    const Region part{target.buffer, {span(offset, elements_of(region))}};
    ended.push_back(Edge{task("place " + label_of(at), Local{LocalKind::alias, {part}, {region}, 1, Unit::dma}, {target.buffer}, {region.buffer}, *made, false, HloTask::Role::place)});
    offset += elements_of(region);
  }
  return ended;
}

Expected<Edges> ProgramWriter::permute(const HloInstruction& at, const std::vector<SourceTarget>& pairs, const Region& in, const Region& out, const Edges& after) {
  const Mesh& mesh = module_.mesh();
  if (elements_of(in) != elements_of(out)) return module_.problem(at, fmt::format("expected a result of {} elements, found {}", elements_of(in), elements_of(out)));
  PODSIM_ASSERT(!repeated_pair(pairs));  // check_communication()
  Edges ended;  // also of devices that take no part
  const bool keeps = std::any_of(pairs.begin(), pairs.end(), [](const SourceTarget& pair) { return pair.first == pair.second; });
  if (module_.values() && (keeps || static_cast<int>(pairs.size()) < mesh.devices())) ended.push_back(Edge{keep_own(at, in, out, after)});
  const auto shift = shift_of(pairs, mesh);
  if (shift && shift->fixed.empty() && shift->wraps && mesh.wraps(mesh.whole(shift->axis)))
    return Edges{Edge{task(label_of(at), Shift{mesh.whole(shift->axis), Affine{{}, shift->by, 0}, in, out, Combine::replace, {}}, {in.buffer}, {out.buffer}, after, false)}};
  Collective op{CollectiveKind::permute, {}, in, out};
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) op.axes.push_back(mesh.whole(axis));
  for (const auto& [from, to] : pairs) {
    if (from < 0 || to < 0 || from >= mesh.devices() || to >= mesh.devices()) return module_.problem(at, fmt::format("expected devices below {}, found {} to {}", mesh.devices(), from, to));
    if (from != to) op.pairs.push_back({from, to});
  }
  if (!op.pairs.empty()) ended.push_back(Edge{task(label_of(at), std::move(op), {in.buffer}, {out.buffer}, after, false)});
  if (ended.size() > 1) uses_[out.buffer.index()].writers = ended;  // a device that takes no part waits for its own array
  return ended;
}

void ProgramWriter::keep_operands(const Scope& scope, std::vector<Region>& in, const Edges& after) {
  for (std::size_t r = 0; r < in.size(); ++r) {
    const BufferId buffer = in[r].buffer;
    const Buffer like = builder_.buffer(buffer);
    const bool is_read_elsewhere = !dies_here(scope, buffer) || !uses_[buffer.index()].readers.empty() || std::ranges::count(in, buffer, &Region::buffer) > 1;
    if (like.role != Role::scratch || !is_read_elsewhere) continue;  // the algorithms copy what is not scratch themselves
    const Region sums = region_of(add_buffer({like.name + " summed", lengths_of(in[r]), like.dtype, Role::scratch, {}, {}}, true), lengths_of(in[r]));
    view("place " + like.name, {in[r]}, {sums}, after);
    in[r] = sums;
  }
}

Expected<HloValue> ProgramWriter::collective(Scope& scope, int i, const HloInstruction& attributes, int result_of, const HloShape& result, Edges& ended, const std::vector<const HloShape*>& operands) {
  const HloInstruction& what = at(scope, i);
  if (module_.values() && !has_operation(scope, i, attributes, result)) return by_definition(scope, i, result_of, result, ended);
  const bool is_ragged = attributes.opcode == HloOpcode::ragged_all_to_all;
  std::vector<Region> in;
  Edges after = text_order();
  std::vector<HloLeaf> given;
  for (std::size_t o = 0; o < (is_ragged ? std::min<std::size_t>(1, what.operands.size()) : what.operands.size()); ++o) {
    const auto shapes = leaves_of(*at(scope, what.operands[o]).shape);
    const HloValue from = operand(scope, i, o);
    for (std::size_t leaf = 0; leaf < from.size(); ++leaf) {
      if (!shapes[leaf]->is_array()) continue;
      const std::string label = label_of(what) + " operand";
      HloLeaf there = stored(label, from[leaf], *shapes[leaf]);
      if (!operands.empty() && from.size() == 1) there = stored(label, std::move(there), *operands[o]);
      given.push_back(there);
      in.push_back(region_of(*there.buffer, there.lengths));
      after.insert(after.end(), from[leaf].ready.begin(), from[leaf].ready.end());
    }
  }
  if (in.empty()) return module_.problem(what, "expected an operand");
  std::vector<BufferId> apart;  // what is sent is not received in its own place
  for (const HloLeaf& leaf : given)
    if (attributes.opcode == HloOpcode::collective_permute) apart.push_back(*leaf.buffer);
  HloValue value = allocate(scope, result_of, result, apart);
  const std::vector<const HloShape*> shapes = leaves_of(result);
  std::vector<Region> out;
  for (std::size_t leaf = 0; leaf < value.size(); ++leaf) {
    if (!shapes[leaf]->is_array()) continue;
    if (!value[leaf].buffer) {  // scalars are sent, too
      const HloArrayForm form = module_.form(*shapes[leaf]);
      value[leaf] = {add_buffer({what.name, form.extents, form.dtype, Role::scratch, {}, {}}, true), form.lengths, {}, 0, {}};
    }
    out.push_back(region_of(*value[leaf].buffer, value[leaf].lengths));
  }
  if (out.size() < in.size()) return module_.problem(what, fmt::format("expected as many results as operands ({}), found {}", in.size(), out.size()));
  out.resize(in.size());
  if (attributes.opcode == HloOpcode::collective_permute) {
    const std::vector<SourceTarget> pairs = pairs_among(module_.module(), attributes, module_.mesh().devices());
    for (std::size_t r = 0; r < in.size(); ++r) {
      auto edges = permute(what, pairs, in[r], out[r], after);
      if (!edges) return edges.error();
      ended.insert(ended.end(), edges->begin(), edges->end());
    }
    return value;
  }
  const auto among = groups(attributes, what);
  if (!among) return among.error();
  tell_strategy(attributes, what, *among);
  if (is_ragged) {
    auto edges = ragged(what, attributes, *among, in.front(), out.front(), after);
    if (!edges) return edges.error();
    ended = *std::move(edges);
    return value;
  }
  auto kind = kind_of(attributes.opcode);
  PODSIM_ASSERT(kind);
  const std::int64_t parts = among->devices;
  if (parts == 1) {
    for (std::size_t r = 0; r < in.size(); ++r) ended.push_back(Edge{view("place " + label_of(what), {in[r]}, {out[r]}, after)});
    return value;
  }
  const std::vector<std::int64_t>& dims = attributes.attributes->dimensions;
  int dim = dims.empty() ? 0 : static_cast<int>(dims.front());
  // A fused all-reduce of which each device keeps its part: along the dimension that differs.
  if (*kind == CollectiveKind::all_reduce && elements_of(in.front()) == elements_of(out.front()) * parts) {
    kind = CollectiveKind::reduce_scatter;
    const std::vector<Range>&from = in.front().dims, &to = out.front().dims;
    while (from.size() == to.size() && dim + 1 < static_cast<int>(from.size()) && from[static_cast<std::size_t>(dim)].length == to[static_cast<std::size_t>(dim)].length) ++dim;
  }
  if (*kind == CollectiveKind::reduce_scatter && !among->listed) keep_operands(scope, in, after);
  // It travels in the type of the operand: the devices convert what arrives.
  std::vector<Region> received = out;
  for (std::size_t r = 0; r < in.size() && !module_.values(); ++r) {
    const DType dtype = builder_.buffer(in[r].buffer).dtype;
    const Buffer like = builder_.buffer(out[r].buffer);
    if (like.dtype == dtype) continue;
    received[r].buffer = add_buffer({what.name + " received", like.extents, dtype, Role::scratch, {}, {}}, true);
  }
  auto edges = exchange(what, *kind, *among, in, received, dim, after);
  if (!edges) return edges.error();
  ended = *std::move(edges);
  for (std::size_t r = 0; r < in.size(); ++r)
    if (received[r].buffer != out[r].buffer) ended.push_back(Edge{view(label_of(what) + " converted", {received[r]}, {out[r]}, {})});
  return value;
}

Expected<Edges> ProgramWriter::ragged(const HloInstruction& at, const HloInstruction& collective, const CollectiveGroups& groups, const Region& in, const Region& out, const Edges& after) {
  const auto& told = module_.options().counts.ragged;
  if (const auto named = told.find(at.name), others = told.find(""); named != told.end() || others != told.end()) {
    const auto listed = groups_among(module_.module(), collective, module_.mesh().devices());
    if (!listed) return listed.error();
    return ragged_by_counts(at, *listed, in, out, (named != told.end() ? named : others)->second, after);
  }
  // How much each device sends is data: here all that its operand has room for, as much to each.
  module_.note(fmt::format("{}: each device sends all that its operand has room for, as much to each of {}", at.name, groups.devices));
  const std::int64_t elements = (elements_of(in) + groups.devices - 1) / groups.devices * groups.devices;
  const DType dtype = builder_.buffer(in.buffer).dtype;
  const auto room = [&](const char* what) { return region_of(add_buffer({fmt::format("{} {}", at.name, what), {elements}, dtype, Role::scratch, {}, {}}, true), {elements}); };
  const Region sent = room("sent"), received = room("received");
  view(label_of(at) + " sent", {in}, {sent}, after);
  const auto made = exchange(at, CollectiveKind::all_to_all, groups, {sent}, {received}, 0, after);
  if (!made) return made;
  return Edges{Edge{view(label_of(at) + " received", {received}, {out}, *made)}};
}

namespace {

/// Whether a fusion is its collective of several arrays, and no work: the collective takes the parameters as they come, and gives a result for each.
bool takes_parameters(const InsideCollective& inside, const HloInstruction& fusion) {
  const std::vector<int>& operands = inside.collective->operands;
  if (operands.size() != fusion.operands.size() || leaves_of(*fusion.shape).size() != operands.size()) return false;
  for (std::size_t o = 0; o < operands.size(); ++o) {
    const HloInstruction& operand = inside.computation->instructions[static_cast<std::size_t>(operands[o])];
    if (operand.opcode != HloOpcode::parameter || operand.number != static_cast<std::int64_t>(o)) return false;
  }
  return true;
}

}  // namespace

Expected<HloValue> ProgramWriter::fused_collective(Scope& scope, int i, const InsideCollective& inside, Edges& ended) {
  const HloInstruction& what = at(scope, i);
  const HloInstruction& collective_inside = *inside.collective;
  if (module_.values()) return nested(scope, *called(module_.module(), what, HloRole::calls), what.operands, i);
  std::vector<const HloShape*> given;
  for (const int operand : collective_inside.operands) given.push_back(&*inside.computation->instructions[static_cast<std::size_t>(operand)].shape);
  const bool are_arrays = std::ranges::all_of(given, &HloShape::is_array) && std::ranges::all_of(what.operands, [&](int operand) { return at(scope, operand).shape->is_array(); });
  const bool is_of_one = given.size() == 1 && what.operands.size() == 1 && what.shape->is_array();
  if (are_arrays && (is_of_one || takes_parameters(inside, what))) return collective(scope, i, collective_inside, i, *what.shape, ended, given);
  // Work and communication in one: the work, then the exchange of as much as its result has, or as its largest operand.
  auto made = work(scope, i);
  if (!made) return made.error();
  const auto among = groups(collective_inside, what);
  if (!among) return among.error();
  const std::int64_t parts = among->devices;
  const auto kind = kind_of(collective_inside.opcode);
  if (!kind || parts == 1) return made;
  tell_strategy(collective_inside, what, *among);
  const auto dims = collective_inside.attributes->dimensions;
  const auto dim = dims.empty() ? std::size_t{0} : static_cast<std::size_t>(dims.front());
  std::vector<Region> in, out;
  for (const HloShape* const shape : leaves_of(*collective_inside.shape)) {
    const HloArrayForm form = module_.form(*shape);
    std::vector<std::int64_t> from = form.lengths;
    if (dim >= from.size()) return module_.problem(what, "expected a dimension of its result");
    if (*kind == CollectiveKind::all_gather) from[dim] = std::max<std::int64_t>(1, from[dim] / parts);
    if (*kind == CollectiveKind::reduce_scatter) from[dim] *= parts;
    in.push_back(region_of(add_buffer({what.name + " operand", from, form.dtype, Role::scratch, {}, {}}, true), from));
    out.push_back(region_of(add_buffer({what.name + " exchanged", form.lengths, form.dtype, Role::scratch, {}, {}}, true), form.lengths));
  }
  auto edges = exchange(what, *kind, *among, in, out, static_cast<int>(dim), text_order());
  if (!edges) return edges.error();
  ended = *std::move(edges);
  for (const HloLeaf& leaf : *made)
    if (leaf.buffer) uses_[leaf.buffer->index()].writers.insert(uses_[leaf.buffer->index()].writers.end(), ended.begin(), ended.end());
  return made;
}

Expected<HloValue> ProgramWriter::own_block(Scope& scope, int i, int slice) {
  const HloInstruction& what = at(scope, i);
  Edges ended;
  auto value = collective(scope, i, what, slice, *at(scope, slice).shape, ended);
  if (!value) return value;
  if (module_.blocks()) wait_for("wait for " + label_of(what), ended, *value);
  scope.slices[slice] = *value;
  return value;  // what lies between is of the same buffer
}

// ---- Asynchronous operations ----

Expected<HloValue> ProgramWriter::beside_core(Scope& scope, int i, int done, Edges& ended) {
  const HloInstruction& what = at(scope, i);
  const HloComputation* const callee = called(module_.module(), what, HloRole::calls);
  if (callee == nullptr) return module_.problem(what, "expected a computation that it calls");
  const Edges begin = text_order();
  const auto works = [](const HloInstruction& instruction) { return !is_free(instruction.opcode); };
  const bool has_one = std::ranges::count_if(callee->instructions, works) == 1;
  const HloInstruction* const was_work = std::exchange(only_work_, has_one ? &*std::ranges::find_if(callee->instructions, works) : nullptr);
  const HloInstruction* const was_started_by = std::exchange(started_by_, &what);
  const bool was_beside = std::exchange(is_beside_core_, true);
  const std::optional<TaskId> before = std::exchange(last_beside_, begin.empty() ? std::nullopt : std::optional{begin.front().task});
  auto value = nested(scope, *callee, what.operands, done);
  if (last_beside_) ended.push_back(Edge{*last_beside_});
  is_beside_core_ = was_beside;
  only_work_ = was_work, started_by_ = was_started_by;
  last_beside_ = before;
  if (!value) return value;
  for (const HloLeaf& leaf : *value) {
    ended.insert(ended.end(), leaf.ready.begin(), leaf.ready.end());
    if (!leaf.buffer) continue;
    const Edges& writers = uses_[leaf.buffer->index()].writers;
    ended.insert(ended.end(), writers.begin(), writers.end());
  }
  return value;
}

HloValue ProgramWriter::moved_by_dma(Scope& scope, int i, int result_of, Edges& ended) {
  const HloInstruction& what = at(scope, i);
  const HloShape& result = *at(scope, result_of).shape;
  const auto is_on_host = [](const HloShape& shape) { return std::ranges::any_of(leaves_of(shape), [](const HloShape* leaf) { return leaf->layout.memory_space == HloMemory::host; }); };
  if (what.operands.empty()) return allocate(scope, result_of, result);
  if (const bool from_host = is_on_host(*at(scope, what.operands.front()).shape); from_host != is_on_host(result)) return host_copy(scope, i, result_of, !from_host, ended);
  std::vector<BufferId> reads, writes;
  Local local{LocalKind::opaque, {}, {}, 1, Unit::dma};
  Edges after = text_order();
  for (std::size_t o = 0; o < what.operands.size(); ++o)
    for (const HloLeaf& leaf : operand(scope, i, o)) {
      after.insert(after.end(), leaf.ready.begin(), leaf.ready.end());
      if (!leaf.buffer) continue;
      reads.push_back(*leaf.buffer);
      local.reads.push_back(region_of(*leaf.buffer, leaf.lengths));
    }
  HloInstruction whole = what;
  whole.phase = HloPhase::whole;
  whole.shape = at(scope, result_of).shape;
  const HloTraffic::Amount moved = HloTraffic{module_.module()}.of(scope.computation, whole);
  HloValue value = allocate(scope, result_of, result);
  for (const HloLeaf& leaf : value)
    if (leaf.buffer) writes.push_back(*leaf.buffer), local.writes.push_back(region_of(*leaf.buffer, leaf.lengths));
  local.opaque.bytes = saturated_sum(moved.read, moved.written);
  ended.push_back(Edge{task(label_of(what), std::move(local), reads, writes, after, false)});
  return value;
}

Expected<HloValue> ProgramWriter::start(Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  const int done = done_of(scope.computation, scope.users.all(), i);
  PODSIM_ASSERT(done != HloInstruction::missing);  // check_communication()
  Pending pending;
  // A collective whose -start calls a computation is what that computation does.
  const bool calls = what.opcode == HloOpcode::async || (is_collective(what.opcode) && called(module_.module(), what, HloRole::calls) != nullptr);
  if (is_collective(what.opcode) && !calls) {
    auto value = collective(scope, i, what, done, *at(scope, done).shape, pending.ended);
    if (!value) return value.error();
    pending.value = *std::move(value);
  } else if (calls) {
    auto value = beside_core(scope, i, done, pending.ended);
    if (!value) return value.error();
    pending.value = *std::move(value);
  } else if (module_.values()) {
    HloInstruction whole = what;
    whole.phase = HloPhase::whole;
    whole.shape = at(scope, done).shape;
    pending.value = execute(scope, i, std::move(whole), done, false, text_order());
  } else {
    pending.value = moved_by_dma(scope, i, done, pending.ended);
  }
  for (const HloLeaf& leaf : pending.value) hold(leaf);  // until it is done
  const bool blocks = what.attributes->is_sync;
  if (blocks) wait_for("wait for " + label_of(what), pending.ended, pending.value);
  scope.pending[i] = std::move(pending);
  return HloValue(count_leaves(*what.shape));
}

Expected<HloValue> ProgramWriter::done(Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  int from = what.operands.front();
  while (at(scope, from).phase == HloPhase::update) from = at(scope, from).operands.front();
  const auto pending = scope.pending.find(from);
  PODSIM_ASSERT(pending != scope.pending.end());  // check_communication()
  Pending taken = std::move(pending->second);
  scope.pending.erase(pending);
  for (const HloLeaf& leaf : taken.value) hold(leaf, -1);
  if (module_.blocks())
    wait_for(label_of(what), taken.ended, taken.value);
  return taken.value;
}

}  // namespace podsim
