#include "workloads/sharded/write.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "sim/base/invariant.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

namespace {

/// One device's block of an array: where it is and which tasks make it.
struct Block {
  Region region;
  bool transposed = false;  // stored with its dimensions in reverse
  Tasks ready{};
};

class Writer {
 public:
  Writer(const ShardedProgram& program, const ProgramPlan& plan)
      : program_{program}, plan_{plan}, mesh_{program.mesh}, builder_{program.mesh, every_device(program.mesh)}, blocks_(plan.forms.size()) {
    for (const auto& [operation, form] : plan.outputs) outputs_.insert(form);
    uses_.resize(plan.forms.size());
    const auto count = [this](int f) { ++uses_[static_cast<std::size_t>(f)]; };
    for (const auto& action : plan.actions) {
      if (const auto* planned = std::get_if<PlannedOperation>(&action); planned != nullptr && array(planned->operation).op == ArrayOp::from_blocks && outputs_.contains(planned->result))
        stored_as_.emplace(planned->operands[0], planned->result);
      if (const auto* step = std::get_if<PlannedStep>(&action)) count(step->before);
      else if (const auto* layout = std::get_if<PlannedLayout>(&action)) count(layout->before);
      else std::ranges::for_each(std::get<PlannedOperation>(action).operands, count);
    }
    std::ranges::for_each(outputs_, count);
  }

  Schedule write() {
    for (std::size_t i = 0; i < program_.operations.size(); ++i)
      if (program_.operations[i].op == ArrayOp::input) add_input(static_cast<int>(i));
    for (const auto& action : plan_.actions)
      std::visit([this](const auto& one) { perform(one); }, action);
    for (const auto& [operation, form] : plan_.outputs) finish_output(form);
    return {fmt::format("{}", fmt::join(program_.statements, "; ")), mesh_, {std::move(builder_).finish()}, reference_of(program_)};
  }

 private:
  [[nodiscard]] const Operation& array(int operation) const { return program_.operations[static_cast<std::size_t>(operation)]; }
  [[nodiscard]] const ArrayForm& form(int f) const { return plan_.forms[static_cast<std::size_t>(f)]; }
  [[nodiscard]] Block& block(int f) { return blocks_[static_cast<std::size_t>(f)]; }

  [[nodiscard]] std::vector<AxisView> views(const std::vector<int>& axes) const {
    std::vector<AxisView> all;
    for (const int axis : axes) all.push_back(mesh_.whole(axis));
    return all;
  }
  [[nodiscard]] std::string names(const std::vector<int>& axes) const {
    std::string text;
    for (const int axis : axes) text += (text.empty() ? "" : ",") + mesh_.axes()[static_cast<std::size_t>(axis)].name;
    return text;
  }

  /// The extents of a form's block; a scalar has one element.
  [[nodiscard]] Extents extents_of(int f) const {
    if (!form(f).cyclic.empty()) return stored_block(array(form(f).operation).extents, form(f).sharding, form(f).cyclic, mesh_).extents;
    return block_extents(array(form(f).operation).extents, form(f).sharding, mesh_);
  }
  static Extents stored(Extents extents, bool transposed) {
    if (transposed) std::reverse(extents.begin(), extents.end());
    if (extents.empty()) extents = {1};
    return extents;
  }
  /// The dimension of a block's region that holds a dimension of the array.
  [[nodiscard]] int stored_dim(const Block& of, int dim) const { return of.transposed ? static_cast<int>(of.region.dims.size()) - 1 - dim : dim; }

  Buffer whole_buffer_of(int f, Role role) const {
    const Operation& whole = array(form(f).operation);
    const StoredBlock own = stored_block(whole.extents, form(f).sharding, form(f).cyclic, mesh_);
    Buffer buffer{.name = whole.name, .extents = own.extents, .dtype = whole.dtype, .role = role, .tensor = whole.name, .sharding = {}};
    for (const std::vector<int>& axes : own.axes) buffer.sharding.push_back(views(axes));
    if (own.padded) buffer.unpadded = whole.extents, buffer.grouped = own.grouped;
    if (role == Role::output) buffer.unreduced = views(form(f).sharding.unreduced);
    if (!program_.unpadded.empty()) {
      const Extents& data = program_.unpadded[static_cast<std::size_t>(form(f).operation)];
      if (data != whole.extents) buffer.unpadded = data;
    }
    return buffer;
  }

  void add_input(int operation) {
    const auto own = std::find_if(plan_.forms.begin(), plan_.forms.end(), [&](const ArrayForm& f) { return f.operation == operation; });
    const int f = static_cast<int>(own - plan_.forms.begin());
    block(f).region = builder_.whole(builder_.add_buffer(whole_buffer_of(f, Role::input)));
  }

  /// Memory for a form's block. An output's own form is written where it stays.
  Region room(int f, bool transposed, const std::string& what) {
    const auto home = stored_as_.find(f);
    const int own = home == stored_as_.end() ? f : home->second;
    if (outputs_.contains(own) && !transposed && !made_.contains(own)) {
      made_.insert(own);
      return builder_.whole(builder_.add_buffer(whole_buffer_of(own, Role::output)));
    }
    return scratch(what, stored(extents_of(f), transposed), array(form(f).operation).dtype);
  }
  Region scratch(const std::string& what, Extents extents, DType dtype) {
    const int count = ++names_[what];
    return builder_.scratch(count == 1 ? what : fmt::format("{} {}", what, count), std::move(extents), dtype);
  }
  /// The dtype of what a region holds.
  [[nodiscard]] DType dtype_of(const Block& of) const { return builder_.buffer(of.region.buffer).dtype; }

  // ---- Conversions ----

  /// A reduce-scatter adds up in its input where that is scratch, so what others read of it gets a copy, which is as free as the one that it would make.
  Block block_to_scatter(int f) {
    const Block own = block(f);
    const auto shares = [&](const Block& other) { return !other.region.dims.empty() && other.region.buffer == own.region.buffer; };
    const bool alone = uses_[static_cast<std::size_t>(f)] == 1 && std::ranges::count_if(blocks_, shares) == 1;
    if (alone || builder_.buffer(own.region.buffer).role != Role::scratch) return own;
    const std::string name = "partial sums of " + array(form(f).operation).name;
    const Region copy = scratch(name, lengths_of(own.region), dtype_of(own));
    return {copy, own.transposed, {builder_.alias(name, own.region, copy, own.ready)}};
  }

  void perform(const PlannedStep& step) {
    const Block before = step.step.kind == StepKind::reduce_scatter ? block_to_scatter(step.before) : block(step.before);
    const std::string label = fmt::format("{} {} along {}", name_of(step.step.kind), array(form(step.before).operation).name, names(step.step.axes));
    if (step.step.kind == StepKind::slice) {
      block(step.after) = sliced(before, step.step);
      return;
    }
    if (step.step.kind == StepKind::unreduce) {
      const Region out = room(step.after, before.transposed, label);
      const auto local = [&](LocalKind kind, bool first, double factor) {
        return builder_.add(label, Local{.kind = kind, .reads = {before.region}, .writes = {out}, .factor = factor}, before.ready, first_along(step.step.axes, first));
      };
      block(step.after) = {out, before.transposed, {local(LocalKind::copy, true, 1), local(LocalKind::scale, false, 0)}};
      return;
    }
    Collective collective;
    collective.axes = views(step.step.axes);
    collective.dim = stored_dim(before, step.step.dim);
    switch (step.step.kind) {
      case StepKind::all_gather: collective.kind = CollectiveKind::all_gather; break;
      case StepKind::reduce_scatter: collective.kind = CollectiveKind::reduce_scatter; break;
      case StepKind::all_reduce:
        collective.kind = CollectiveKind::all_reduce;
        collective.dim = cut_dimension(before.region, devices_along(mesh_, step.step.axes));
        break;
      case StepKind::all_to_all:
        collective.kind = CollectiveKind::all_to_all;
        collective.dim = stored_dim(before, step.step.from_dim);
        collective.split_dim = stored_dim(before, step.step.dim);
        break;
      default:
        collective.kind = CollectiveKind::permute;
        collective.dim = 0;
        for (const auto& [sender, receiver] : exchanged_blocks(step.step, mesh_)) collective.pairs.push_back({sender, receiver});
    }
    block(step.after) = run(label, std::move(collective), before, step.after);
  }

  Block run(const std::string& label, Collective collective, const Block& before, int after) {
    collective.input = before.region;
    collective.output = room(after, before.transposed, label);
    const Region out = collective.output;
    const TaskId task = builder_.add(label, std::move(collective), before.ready);
    return {out, before.transposed, {task}};
  }

  /// The outermost dimension that P divides, else the longest: where an all-reduce cuts.
  static int cut_dimension(const Region& region, std::int64_t P) {
    std::size_t longest = 0;
    for (std::size_t d = 0; d < region.dims.size(); ++d) {
      if (region.dims[d].length % P == 0) return static_cast<int>(d);
      if (region.dims[d].length > region.dims[longest].length) longest = d;
    }
    return static_cast<int>(longest);
  }

  [[nodiscard]] Block sliced(Block whole, const ReshardStep& step) const {
    Range& range = whole.region.dims[static_cast<std::size_t>(stored_dim(whole, step.dim))];
    for (const int axis : step.axes) {
      const AxisView view = mesh_.whole(axis);
      const std::int64_t length = range.length / view.size;
      for (AxisTerm& term : range.index.terms) term.coefficient *= range.stride / length;
      range.index.terms.push_back({view, 1, 0});
      range.stride = range.length = length;
    }
    return whole;
  }

  void perform(const PlannedLayout& layout) {
    const ArrayForm &before = form(layout.before), &after = form(layout.after);
    const Operation& whole = array(before.operation);
    const bool to_cyclic = before.cyclic.empty();
    const std::string label = fmt::format("re-lay {} out", whole.name);
    const Block from = in_order(block(layout.before), whole.name);
    const Region out = room(layout.after, false, label);
    const ArrayForm &cyclic = to_cyclic ? after : before, &contiguous = to_cyclic ? before : after;
    const CyclicArray dealt{mesh_, whole.extents, cyclic.cyclic, cyclic.sharding, contiguous.sharding, whole.dtype};
    block(layout.after) = {out, false, (to_cyclic ? write_cyclic : write_contiguous)(builder_, dealt, label, from.region, out, from.ready)};
  }

  // ---- Operations ----

  void compute(const PlannedOperation& planned) {
    const Operation& operation = array(planned.operation);
    KernelBlocks blocks;
    Tasks after;
    for (const int operand : planned.operands) {
      const Block own = in_order(block(operand), operation.name);
      blocks.operands.push_back(own.region);
      after.insert(after.end(), own.ready.begin(), own.ready.end());
    }
    if (!std::holds_alternative<LuMethod>(planned.kernel->method)) {
      blocks.results.push_back(room(planned.result, false, operation.name));
      block(planned.result) = {blocks.results[0], false, write_kernel(builder_, program_, operation, *planned.kernel, blocks, after)[0]};
      return;
    }
    // One factorisation makes P, L and U, when the first of them is wanted.
    if (!block(planned.result).ready.empty()) return;
    std::vector<int> factors;
    for (const auto& action : plan_.actions)
      if (const auto* other = std::get_if<PlannedOperation>(&action); other != nullptr && other->kernel &&
          array(other->operation).statement == operation.statement && array(other->operation).op >= ArrayOp::lu_pivots && array(other->operation).op <= ArrayOp::lu_upper)
        factors.push_back(other->result);
    PODSIM_ASSERT(factors.size() == 3 && "a statement assigns all three");
    for (const int f : factors) blocks.results.push_back(room(f, false, array(form(f).operation).name));
    const std::vector<Tasks> made = write_kernel(builder_, program_, operation, *planned.kernel, blocks, after);
    for (std::size_t i = 0; i < 3; ++i) block(factors[i]) = {blocks.results[i], false, made[i]};
  }

  void perform(const PlannedOperation& planned) {
    const Operation& operation = array(planned.operation);
    if (planned.kernel) return compute(planned);
    const int f = planned.result;
    if (operation.op == ArrayOp::axis_index) return number_device(f, operation);
    const Block first = operation.op == ArrayOp::psum_scatter ? block_to_scatter(planned.operands[0]) : block(planned.operands[0]);
    switch (operation.op) {
      case ArrayOp::input: PODSIM_ASSERT(false && "an input is not computed"); break;
      case ArrayOp::product: return multiply(planned);
      case ArrayOp::add:
      case ArrayOp::subtract:
      case ArrayOp::multiply:
      case ArrayOp::divide: return combine(planned);
      case ArrayOp::scale:
        if (operation.number == 1) block(f) = first;
        else elementwise(f, operation, LocalKind::scale, {first});
        return;
      case ArrayOp::add_number: return add_number(f, operation, first);
      case ArrayOp::reciprocal: return elementwise(f, operation, LocalKind::reciprocal, {first});
      case ArrayOp::relu: return elementwise(f, operation, LocalKind::relu, {first});
      case ArrayOp::gelu: return elementwise(f, operation, LocalKind::gelu, {first});
      case ArrayOp::transpose:
        block(f) = first;
        block(f).transposed = first.transposed != (operation.extents.size() == 2);
        return;
      case ArrayOp::sum: return sum(f, operation, planned.operands[0]);
      case ArrayOp::reshard:
      case ArrayOp::to_blocks:
      case ArrayOp::from_blocks: block(f) = first; return;
      case ArrayOp::expand_dims:
      case ArrayOp::squeeze: return reshape(f, operation, first);
      case ArrayOp::process_allgather: return to_host(f, operation, first);
      default: return local_collective(f, operation, first);
    }
  }

  static std::string label_of(const Operation& operation) { return fmt::format("{}: {}", operation.name, name_of(operation.op)); }

  /// Element `i` of the batch dimensions of a region.
  static Region batch_element(Region region, std::int64_t i) {
    for (std::size_t d = region.dims.size() - 2; d-- > 0;) {
      Range& range = region.dims[d];
      range.offset += i % range.length;
      i /= range.length;
      range.length = 1;
    }
    return region;
  }

  void multiply(const PlannedOperation& planned) {
    const Operation& operation = array(planned.operation);
    const Block left = block(planned.operands[0]), right = block(planned.operands[1]);
    const Region out = room(planned.result, false, operation.name);
    Tasks after = left.ready;
    after.insert(after.end(), right.ready.begin(), right.ready.end());
    const int split = static_cast<int>(out.dims.size()) - 1;
    std::int64_t batch = 1;
    for (std::size_t d = 0; d + 2 < out.dims.size(); ++d) batch *= out.dims[d].length;
    Tasks made;
    for (std::int64_t i = 0; i < batch; ++i) {
      Matmul matmul;
      matmul.left = batch_element(left.region, i);
      matmul.right = batch_element(right.region, i);
      matmul.out = batch_element(out, i);
      matmul.left_split = matmul.right_split = matmul.out_split = split;
      matmul.transpose_left = left.transposed;
      matmul.transpose_right = right.transposed;
      made.push_back(builder_.add(label_of(operation), std::move(matmul), after));
    }
    block(planned.result) = {out, false, std::move(made)};
  }

  /// The block with its dimensions in order.
  Block in_order(const Block& from, const std::string& name) {
    if (!from.transposed) return from;
    Extents extents = lengths_of(from.region);
    std::reverse(extents.begin(), extents.end());
    const Region out = scratch(name + ".T", extents, dtype_of(from));
    return {out, false, {builder_.add(name + ": transpose", Local{.kind = LocalKind::transpose, .reads = {from.region}, .writes = {out}}, from.ready)}};
  }

  /// The block stretched to `extents`.
  Block stretched(Block from, const Extents& extents, const std::string& name) {
    if (lengths_of(from.region) == extents) return from;
    Extents aligned(extents.size(), 1);
    const Extents own = lengths_of(from.region);
    // A scalar's one dimension may be missing in the result, too.
    for (std::size_t d = 0; d < std::min(own.size(), extents.size()); ++d) aligned[extents.size() - 1 - d] = own[own.size() - 1 - d];
    if (own != aligned) {
      const Region out = scratch(name + " aligned", aligned, dtype_of(from));
      from = {out, false, {builder_.alias(name + ": align", from.region, out, from.ready)}};
    }
    if (aligned == extents) return from;
    const Region out = scratch(name + " stretched", extents, dtype_of(from));
    return {out, false, {builder_.add(name + ": broadcast", Local{.kind = LocalKind::broadcast_in_dim, .reads = {from.region}, .writes = {out}}, from.ready)}};
  }

  TaskId local(const Operation& operation, LocalKind kind, const std::vector<Block>& operands, const Region& out, Guard where = {}, double factor = 1) {
    Local op{.kind = kind, .reads = {}, .writes = {out}, .factor = factor};
    Tasks after;
    for (const Block& operand : operands) {
      op.reads.push_back(operand.region);
      after.insert(after.end(), operand.ready.begin(), operand.ready.end());
    }
    return builder_.add(label_of(operation), std::move(op), after, std::move(where));
  }

  void elementwise(int f, const Operation& operation, LocalKind kind, std::vector<Block> operands) {
    const bool transposed = operands[0].transposed && !outputs_.contains(f);
    if (!transposed)
      for (Block& operand : operands) operand = in_order(operand, operation.name);
    const Region out = room(f, transposed, operation.name);
    block(f) = {out, transposed, {local(operation, kind, operands, out, {}, traits_of(kind).factor ? operation.number : 1)}};
  }

  /// The position of the device along the axes, first most significant.
  [[nodiscard]] Affine position_along(const std::vector<int>& axes) const {
    Affine position;
    std::int64_t P = 1;
    for (std::size_t a = axes.size(); a-- > 0;) {
      const AxisView view = mesh_.whole(axes[a]);
      position.terms.push_back({view, P, 0});
      P *= view.size;
    }
    return position;
  }
  /// The guard of the first device along the axes, or of all others.
  [[nodiscard]] Guard first_along(const std::vector<int>& axes, bool first) const {
    return {first ? Condition{position_along(axes), 0, 1} : Condition{position_along(axes), 1, devices_along(mesh_, axes)}};
  }

  /// A number counts once in partial sums: on the first device along their axes.
  void add_number(int f, const Operation& operation, const Block& first) {
    const std::vector<int>& pending = form(f).sharding.unreduced;
    if (pending.empty()) return elementwise(f, operation, LocalKind::add_number, {first});
    const Block operand = in_order(first, operation.name);
    const Region out = room(f, false, operation.name);
    const TaskId added = local(operation, LocalKind::add_number, {operand}, out, first_along(pending, true), operation.number);
    const TaskId kept = local(operation, LocalKind::copy, {operand}, out, first_along(pending, false));
    block(f) = {out, false, {added, kept}};
  }

  void combine(const PlannedOperation& planned) {
    const Operation& operation = array(planned.operation);
    const int f = planned.result;
    const Extents extents = stored(extents_of(f), false);
    std::vector<Block> operands;
    for (const int operand : planned.operands)
      operands.push_back(stretched(in_order(block(operand), operation.name), extents, operation.name));
    const Region out = room(f, false, operation.name);
    const LocalKind kind = operation.op == ArrayOp::add        ? LocalKind::add
                           : operation.op == ArrayOp::subtract ? LocalKind::subtract
                           : operation.op == ArrayOp::multiply ? LocalKind::multiply
                                                               : LocalKind::divide;
    const std::vector<int>&a = form(planned.operands[0]).sharding.unreduced, &b = form(planned.operands[1]).sharding.unreduced;
    const bool sums = kind == LocalKind::add || kind == LocalKind::subtract;
    if (!sums || a == b) {
      block(f) = {out, false, {local(operation, kind, operands, out)}};
      return;
    }
    // What has no partial sums along an axis counts once, on the first device along it.
    const bool left_pending = a.size() > b.size();
    std::vector<int> once;
    const std::vector<int>&more = left_pending ? a : b, &fewer = left_pending ? b : a;
    std::set_difference(more.begin(), more.end(), fewer.begin(), fewer.end(), std::back_inserter(once));
    const TaskId both = local(operation, kind, operands, out, first_along(once, true));
    const bool negative = !left_pending && kind == LocalKind::subtract;
    const TaskId alone = local(operation, negative ? LocalKind::scale : LocalKind::copy, {operands[left_pending ? 0 : 1]}, out, first_along(once, false), negative ? -1 : 1);
    block(f) = {out, false, {both, alone}};
  }

  /// Every chip hands the whole array to its host.
  void to_host(int f, const Operation& operation, const Block& whole) {
    const Block from = in_order(whole, operation.name);
    const Region out = room(f, false, operation.name);
    block(f) = {out, false, {builder_.add(label_of(operation), Local{.kind = LocalKind::to_host, .reads = {from.region}, .writes = {out}, .unit = Unit::dma}, from.ready)}};
  }

  void sum(int f, const Operation& operation, int operand) {
    const Block from = block(operand);
    Extents kept = lengths_of(from.region);
    kept[static_cast<std::size_t>(stored_dim(from, operation.dim))] = 1;
    const Region sums = scratch(operation.name + " sums", kept, dtype_of(from));
    const TaskId summed = builder_.add(label_of(operation), Local{.kind = LocalKind::sum_along, .reads = {from.region}, .writes = {sums}}, from.ready);
    const Region out = room(f, false, operation.name);
    block(f) = {out, false, {builder_.alias(operation.name + ": without the dimension", sums, out, Tasks{summed})}};
  }

  void local_collective(int f, const Operation& operation, const Block& from) {
    const std::int64_t P = devices_along(mesh_, operation.axes);
    if (is_in_place(operation, mesh_)) {
      block(f) = from;
      return;
    }
    Collective collective;
    collective.axes = views(operation.axes);
    collective.dim = from.region.dims.empty() ? 0 : stored_dim(from, operation.dim);
    switch (operation.op) {
      case ArrayOp::pmax: collective.reduction = Reduction::maximum; [[fallthrough]];
      case ArrayOp::psum:
        collective.kind = CollectiveKind::all_reduce;
        collective.dim = cut_dimension(from.region, P);
        break;
      case ArrayOp::all_gather: collective.kind = CollectiveKind::all_gather; break;
      case ArrayOp::psum_scatter: collective.kind = CollectiveKind::reduce_scatter; break;
      case ArrayOp::ppermute:
        collective.kind = CollectiveKind::permute;
        collective.dim = 0;
        for (const auto& [from_position, to_position] : operation.pairs) collective.pairs.push_back({from_position, to_position});
        for (std::int64_t p = 0; p < P && operation.pairs.empty(); ++p) collective.pairs.push_back({p, ((p + operation.shift) % P + P) % P});
        break;
      default:
        collective.kind = CollectiveKind::all_to_all;
        collective.split_dim = stored_dim(from, operation.split_dim);
    }
    const std::string label = fmt::format("{}: {} along {}", operation.name, name_of(operation.op), names(operation.axes));
    std::vector<bool> receives(static_cast<std::size_t>(P), collective.pairs.empty());
    for (const Collective::Pair& pair : collective.pairs) receives[static_cast<std::size_t>(pair.to)] = true;
    block(f) = run(label, std::move(collective), from, f);
    // Who receives nothing has zeros.
    for (std::size_t p = 0, end = 0; p < receives.size(); p = end) {
      while (end < receives.size() && receives[end] == receives[p]) ++end;
      if (!receives[p])
        block(f).ready.push_back(builder_.add(label + " zeros", Local{.kind = LocalKind::subtract, .reads = {from.region, from.region}, .writes = {block(f).region}}, from.ready,
                                              {Condition{position_along(operation.axes), static_cast<std::int64_t>(p), static_cast<std::int64_t>(end)}}));
    }
  }

  /// The position of the device along the axes.
  void number_device(int f, const Operation& operation) {
    const Region out = room(f, false, operation.name);
    Local number{.kind = LocalKind::iota, .reads = {}, .writes = {out}};
    number.numbering = {{.first = position_along(operation.axes)}};
    block(f) = {out, false, {builder_.add(label_of(operation), std::move(number), Tasks{})}};
  }

  void reshape(int f, const Operation& operation, const Block& first) {
    const Block from = in_order(first, operation.name);
    const Region out = room(f, false, operation.name);
    block(f) = {out, false, {builder_.alias(label_of(operation), from.region, out, from.ready)}};
  }

  /// An output that is part of another array, or the same, gets memory of its own.
  void finish_output(int f) {
    if (made_.contains(f)) return;
    const Block from = block(f);
    const std::string& name = array(form(f).operation).name;
    const Region out = room(f, false, name);
    if (from.transposed)
      builder_.add(name + ": transpose", Local{.kind = LocalKind::transpose, .reads = {from.region}, .writes = {out}}, from.ready);
    else
      builder_.alias(name + ": output", from.region, out, from.ready);
  }

  const ShardedProgram& program_;
  const ProgramPlan& plan_;
  const Mesh& mesh_;
  ProgramBuilder builder_;
  std::vector<Block> blocks_;  // per form
  std::vector<int> uses_;      // per form: what reads it
  std::set<int> outputs_, made_;  // forms that are outputs; those with memory
  std::map<int, int> stored_as_;  // a block inside of shard_map by the form of the output that it is
  std::map<std::string, int> names_;
};

}  // namespace

Schedule write_program(const ShardedProgram& program, const ProgramPlan& plan) { return Writer{program, plan}.write(); }

}  // namespace podsim
