// The test writer of HLO. Its claims are tested in hlo_round_trip_test.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "sim/schedule/program_builder.hpp"
#include "workloads/scenario/test_hlo_instructions.hpp"
#include "workloads/scenario/test_schedule_as_hlo.hpp"

namespace podsim::testing {
namespace as_hlo {
namespace {

[[noreturn]] void no_form(const std::string& what) { throw std::logic_error("no HLO form of " + what); }

bool is_constant(const Range& range) { return range.index.terms.empty(); }
std::int64_t begin_of(const Range& range) { return evaluate(range.index, {}) * range.stride + range.offset; }

class Writer {
 public:
  Writer(const Schedule& schedule, Blank blank)
      : schedule_{schedule}, program_{schedule.programs.at(0)}, mesh_{schedule.mesh}, blank_{blank}, at_{name_of(program_.buffers.at(0).dtype)} {
    if (schedule.programs.size() != 1 || !std::holds_alternative<Products>(schedule.computes)) no_form("more than a product by one program");
  }

  WrittenHlo write() {
    pieces_.resize(program_.buffers.size());
    for (std::size_t b = 0; b < program_.buffers.size(); ++b)
      if (program_.buffers[b].role == Role::input) parameter(BufferId{b});
    for (std::size_t t = 0; t < program_.tasks.size(); ++t) task(t);
    while (!waiting_.empty()) flush();
    for (std::size_t b = 0; b < program_.buffers.size(); ++b)
      if (program_.buffers[b].role == Role::output) return finish(BufferId{b});
    no_form("a program without an output");
  }

 private:
  /// A part of a buffer, made where it is first used.
  struct Piece {
    Region region;
    std::function<Array()> make;
    std::optional<Array> made{};
    const Array& array() {
      if (!made) made = make();
      return *made;
    }
  };
  using Pieces = std::vector<std::shared_ptr<Piece>>;

  // ---- Tensors ----

  /// The tensor whose shard a buffer is: dimensions of the buffer that form a dimension of the tensor have its extent together.
  HloTensor tensor_of(const Buffer& buffer) {
    const Product& product = std::get<Products>(schedule_.computes).at(0);
    HloTensor tensor{buffer.tensor, {}, {}};
    if (buffer.tensor == product.out)
      tensor.extents = {product.m, product.n};
    else if (buffer.tensor == product.left)
      tensor.extents = product.transpose_left ? Lengths{product.k, product.m} : Lengths{product.m, product.k};
    else
      tensor.extents = product.transpose_right ? Lengths{product.n, product.k} : Lengths{product.k, product.n};
    std::size_t d = 0;
    for (const std::int64_t extent : tensor.extents) {
      std::vector<std::string>& axes = tensor.sharding.emplace_back();
      for (std::int64_t have = 1; have < extent; ++d) {
        if (d == buffer.extents.size()) no_form("the sharding of " + buffer.name);
        have *= buffer.extents[d];
        for (const AxisView& view : buffer.sharding[d]) have *= view.size, axes.push_back(mesh_.name(view));
      }
    }
    return tensor;
  }
  Lengths shard_of(const HloTensor& tensor) const {
    Lengths shard = tensor.extents;
    for (std::size_t d = 0; d < shard.size(); ++d)
      for (const std::string& axis : tensor.sharding[d]) shard[d] /= mesh_.axis(axis)->size;
    return shard;
  }
  std::string sharding_text(const HloTensor& tensor) const {
    Lengths tiles = tensor.extents, shard = shard_of(tensor);
    for (std::size_t d = 0; d < tiles.size(); ++d) tiles[d] /= shard[d];
    return fmt::format("{{devices=[{}]<=[{}]}}", fmt::join(tiles, ","), mesh_.devices());
  }
  void parameter(BufferId id) {
    const Buffer& buffer = program_.buffers[id.index()];
    const HloTensor tensor = tensor_of(buffer);
    const Array given{buffer.tensor, shard_of(tensor)};
    parameters_ +=
        fmt::format("  %{} = {} parameter({}), sharding={}\n", given.name, at_.shape(given.dims), written_.parameters.size(), sharding_text(tensor));
    signature_ += fmt::format("{}{}: {}", signature_.empty() ? "" : ", ", given.name, at_.shape(given.dims));
    written_.parameters.push_back(tensor);
    put(whole(id), [this, given, extents = buffer.extents] { return at_.as(given, extents); });
  }
  [[nodiscard]] Region whole(BufferId id) const { return whole_buffer(id, program_.buffers[id.index()].extents); }

  WrittenHlo finish(BufferId id) {
    const Buffer& buffer = program_.buffers[id.index()];
    written_.result = tensor_of(buffer);
    const Lengths shard = shard_of(written_.result);
    const Array state = read(whole(id));
    const Array result = at_.as(state, shard);
    written_.text = fmt::format("HloModule schedule, is_scheduled=true, num_partitions={}\n\n", mesh_.devices()) + computations_ +
                    fmt::format("ENTRY %main ({}) -> {} {{\n{}{}}}\n", signature_, at_.shape(shard), parameters_, at_.with_root(result.name));
    return written_;
  }

  // ---- Regions ----

  /// Whether two regions of a buffer share elements on any device.
  [[nodiscard]] bool meet(const Region& a, const Region& b) const {
    for (int d = 0; d < mesh_.devices(); ++d) {
      const Coordinates at = mesh_.coordinates(DeviceId{static_cast<std::size_t>(d)});
      if (overlap(evaluate(a, at), evaluate(b, at))) return true;
    }
    return false;
  }
  [[nodiscard]] bool covers(const Region& outer, const Region& inner) const {
    for (int d = 0; d < mesh_.devices(); ++d) {
      const Coordinates at = mesh_.coordinates(DeviceId{static_cast<std::size_t>(d)});
      if (!contains(evaluate(outer, at), evaluate(inner, at))) return false;
    }
    return true;
  }

  void put(const Region& region, std::function<Array()> make) {
    Pieces& pieces = pieces_[region.buffer.index()];
    std::erase_if(pieces, [&](const std::shared_ptr<Piece>& old) { return covers(region, old->region); });
    pieces.push_back(std::make_shared<Piece>(Piece{region, std::move(make)}));
  }
  void put(const Region& region, Array array) {
    put(region, [made = std::move(array)] { return made; });
  }

  /// What a region holds now, to be made later.
  std::function<Array()> plan(const Region& region) {
    const Pieces& pieces = pieces_[region.buffer.index()];
    Pieces parts;  // newest first
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      if (!meet((*piece)->region, region)) continue;
      if (parts.empty() && (*piece)->region == region) return [part = *piece] { return part->array(); };
      if (parts.empty() && covers((*piece)->region, region))
        return [this, part = *piece, region] { return slice(part->array(), part->region, region); };
      parts.push_back(*piece);
      if (!covers(region, (*piece)->region)) no_form("a part of " + program_.buffers[region.buffer.index()].name + " that several tasks wrote");
    }
    if (parts.empty()) no_form("reading " + program_.buffers[region.buffer.index()].name + " before it is written");
    return [this, parts, region] { return concatenate(parts, region); };
  }
  Array read(const Region& region) { return plan(region)(); }

  Array slice(const Array& from, const Region& have, const Region& region) {
    const Lengths lengths = lengths_of(region);
    const bool is_static = std::all_of(region.dims.begin(), region.dims.end(), is_constant);
    if (is_static) return at_.array("slice", lengths, fmt::format("slice(%{}), slice={}", from.name, bounds(have, region)));
    std::string operands = '%' + from.name;
    for (std::size_t d = 0; d < region.dims.size(); ++d) {
      const Range &range = region.dims[d], &outer = have.dims[d];
      const bool same = range == outer;
      if (!same && !is_constant(outer)) no_form("a block of a block");
      operands += ", %" + (same ? at_.number(0) : place(range, is_constant(outer) ? begin_of(outer) : 0));
    }
    return at_.array("dynamic-slice", lengths, fmt::format("dynamic-slice({}), dynamic_slice_sizes={{{}}}", operands, fmt::join(lengths, ",")));
  }
  [[nodiscard]] static std::string bounds(const Region& have, const Region& region) {
    std::string text;
    for (std::size_t d = 0; d < region.dims.size(); ++d) {
      const bool same = region.dims[d] == have.dims[d];
      const std::int64_t begin = same ? 0 : begin_of(region.dims[d]) - begin_of(have.dims[d]);
      text += fmt::format("{}[{}:{}]", d == 0 ? "" : ", ", begin, begin + region.dims[d].length);
    }
    return '{' + text + '}';
  }

  Array concatenate(Pieces parts, const Region& region) {
    std::optional<std::size_t> along;
    for (std::size_t d = 0; d < region.dims.size(); ++d)
      if (parts.front()->region.dims[d] != region.dims[d]) {
        if (along) no_form("parts of a region that lie in two dimensions");
        along = d;
      }
    const std::size_t dim = along.value();
    const auto begin = [&](const std::shared_ptr<Piece>& part) { return begin_of(part->region.dims[dim]); };
    std::sort(parts.begin(), parts.end(), [&](const auto& a, const auto& b) { return begin(a) < begin(b); });
    std::int64_t at = begin_of(region.dims[dim]);
    std::string operands;
    for (const auto& part : parts) {
      if (begin(part) != at) no_form("a region of which a part is not written");
      at += part->region.dims[dim].length;
      operands += fmt::format("{}%{}", operands.empty() ? "" : ", ", part->array().name);
    }
    if (at != begin_of(region.dims[dim]) + region.dims[dim].length) no_form("a region of which a part is not written");
    return at_.array("concatenate", lengths_of(region), fmt::format("concatenate({}), dimensions={{{}}}", operands, dim));
  }

  // ---- Numbers that depend on the device ----

  std::string whole_number(const std::string& operation, const std::string& a, std::int64_t b) {
    return at_.add(operation, "s32[]", fmt::format("{}(%{}, %{})", operation, a, at_.number(b)));
  }
  std::string coordinate(const AxisView& view) {
    std::string& name = coordinates_[view];
    if (!name.empty()) return name;
    std::int64_t below = view.stride;
    for (std::size_t axis = static_cast<std::size_t>(view.axis) + 1; axis < mesh_.axes().size(); ++axis) below *= mesh_.axes()[axis].size;
    if (device_.empty()) device_ = at_.add("convert", "s32[]", fmt::format("convert(%{})", at_.add("partition-id", "u32[]", "partition-id()")));
    return name = whole_number("remainder", whole_number("divide", device_, below), view.size);
  }
  /// HLO's remainder has the sign of the dividend: everything is kept at 0 or above.
  std::string value(const Affine& affine) {
    const auto positive = [](std::int64_t n, std::int64_t modulus) { return modulus == 0 ? n : (n % modulus + modulus) % modulus; };
    std::string sum = at_.number(positive(affine.constant, affine.modulus));
    for (const AxisTerm& term : affine.terms) {
      std::string position = coordinate(term.axis);
      if (term.add != 0) position = whole_number("remainder", whole_number("add", position, positive(term.add, term.axis.size)), term.axis.size);
      const std::int64_t coefficient = positive(term.coefficient, affine.modulus);
      if (coefficient != 1) position = whole_number("multiply", position, coefficient);
      sum = at_.add("add", "s32[]", fmt::format("add(%{}, %{})", sum, position));
    }
    return affine.modulus == 0 ? sum : whole_number("remainder", sum, affine.modulus);
  }
  /// Where a range begins, counted from `from`.
  std::string place(const Range& range, std::int64_t from) {
    if (is_constant(range)) return at_.number(begin_of(range) - from);
    std::string at = value(range.index);
    if (range.stride != 1) at = whole_number("multiply", at, range.stride);
    return range.offset == from ? at : whole_number("add", at, range.offset - from);
  }

  // ---- Tasks ----

  void task(std::size_t t) {
    const Task& task = program_.tasks[t];
    const auto* local = std::get_if<Local>(&task.op);
    if (!is_alias(task)) wait_for(task.after);
    if (!task.where.empty() && !(local && local->kind == LocalKind::alias && task.where.size() == 1)) no_form("the guard of " + task.label);
    std::visit(Overloaded{[&](const Matmul& op) { matmul(op); },  //
                          [&](const Local& op) { this->local(op, task.where); }, [&](const Shift& op) { shift(t, op); },
                          [&](const Collective& op) { collective(t, op); }, [&](const auto&) { no_form(task.label); }},
               task.op);
  }

  static bool is_alias(const Task& task) {
    const auto* local = std::get_if<Local>(&task.op);
    return local != nullptr && local->kind == LocalKind::alias;
  }
  void wait_for(const std::vector<Edge>& edges) {
    for (const Edge& edge : edges)
      if (edge.done != Half::send) finished(edge.task.index());
  }
  /// Waits for an asynchronous task; for what an alias waits for.
  void finished(std::size_t t) {
    if (is_alias(program_.tasks[t])) wait_for(program_.tasks[t].after);
    const auto found = started_.find(t);
    if (found == started_.end()) return;
    found->second->array();
    while (!waiting_.empty() && waiting_.front().after <= t) flush();
  }
  /// An update of the result that waits for what it writes.
  void flush() {
    const Update update = waiting_.front();
    waiting_.erase(waiting_.begin());
    update.run();
  }

  void local(const Local& op, const Guard& where) {
    switch (op.kind) {
      case LocalKind::alias: {
        if (where.empty()) {
          put(op.writes[0], [this, value = plan(op.reads[0]), lengths = lengths_of(op.writes[0])] { return at_.as(value(), lengths); });
          return;
        }
        later([this, op, where, value = plan(op.reads[0])] { keep(where.front(), value(), op.writes[0]); });
        return;
      }
      case LocalKind::copy: {
        const Region &from = op.reads[0], &to = op.writes[0];
        if (program_.buffers[to.buffer.index()].role == Role::output) {
          update(to, read(from), true);
          return;
        }
        put(to, cut(from, to));
        return;
      }
      case LocalKind::add: {
        const Array a = read(op.reads[0]), b = read(op.reads[1]);
        store(op.writes[0], at_.array("add", a.dims, fmt::format("add(%{}, %{})", a.name, at_.as(b, a.dims).name)));
        return;
      }
      default: no_form(std::string{traits_of(op.kind).name});
    }
  }

  /// A part of a matrix, cut by one fusion.
  Array cut(const Region& from, const Region& to) {
    for (const auto& piece : pieces_[from.buffer.index()])
      if (covers(piece->region, from) && std::all_of(from.dims.begin(), from.dims.end(), is_constant)) {
        const Array source = piece->array();
        Instructions body{at_.dtype()};
        const Array given = body.array("p", source.dims, "parameter(0)");
        const Array part = body.array("slice", lengths_of(from), fmt::format("slice(%{}), slice={}", given.name, bounds(piece->region, from)));
        const Array shaped = body.array("bitcast", lengths_of(to), fmt::format("bitcast(%{})", part.name));
        return at_.array("fusion", lengths_of(to), fmt::format("fusion(%{}), kind=kLoop, calls=%{}", source.name, computation("cut", body, shaped)));
      }
    no_form("a copy of what several tasks wrote");
  }

  void matmul(const Matmul& op) {
    const MatmulExtents extents = extents_of(op);
    const Lengths left_dims = op.transpose_left ? Lengths{extents.k, extents.m} : Lengths{extents.m, extents.k},
                  right_dims = op.transpose_right ? Lengths{extents.n, extents.k} : Lengths{extents.k, extents.n}, out_dims{extents.m, extents.n};
    const Array left = at_.as(read(op.left), left_dims), right = at_.as(read(op.right), right_dims);
    const std::string how =
        fmt::format("lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", op.transpose_left ? 0 : 1, op.transpose_right ? 1 : 0);
    Array product;
    if (op.accumulate) {
      const Array sum = at_.as(read(op.out), out_dims);
      Instructions body{at_.dtype()};
      const Array a = body.array("left", left.dims, "parameter(0)"), b = body.array("right", right.dims, "parameter(1)"),
                  c = body.array("sum", out_dims, "parameter(2)");
      const Array dot = body.array("dot", out_dims, fmt::format("dot(%{}, %{}), {}", a.name, b.name, how));
      const Array total = body.array("add", out_dims, fmt::format("add(%{}, %{})", c.name, dot.name));
      product = at_.array(
          "fusion", out_dims,
          fmt::format("fusion(%{}, %{}, %{}), kind=kOutput, calls=%{}", left.name, right.name, sum.name, computation("accumulate", body, total)));
    } else {
      product = at_.array("dot", out_dims, fmt::format("dot(%{}, %{}), {}", left.name, right.name, how));
    }
    store(op.out, at_.as(product, lengths_of(op.out)));
  }

  /// A result of the core in its place.
  void store(const Region& to, const Array& array) {
    const Array shaped = at_.as(array, lengths_of(to));
    if (program_.buffers[to.buffer.index()].role == Role::output && to != whole(to.buffer))
      update(to, shaped, false);
    else
      put(to, shaped);
  }

  /// Writes a part of the result into the whole.
  void update(const Region& to, const Array& part, bool fused) {
    const Region all = whole(to.buffer);
    if (pieces_[to.buffer.index()].empty()) put(all, blank(lengths_of(all)));
    const Array state = read(all);
    const auto write = [&](Instructions& at, const Array& target, const Array& given) {
      const Array shaped = at.as(given, lengths_of(to));
      std::string operands = fmt::format("%{}, %{}", target.name, shaped.name);
      for (const Range& range : to.dims) {
        if (!is_constant(range)) no_form("an update whose place depends on the device");
        operands += ", %" + at.number(begin_of(range));
      }
      return at.array("dynamic-update-slice", target.dims, fmt::format("dynamic-update-slice({})", operands));
    };
    if (!fused) {
      put(all, write(at_, state, part));
      return;
    }
    Instructions body{at_.dtype()};
    const Array target = body.array("whole", state.dims, "parameter(0)"), given = body.array("part", part.dims, "parameter(1)");
    const Array updated = write(body, target, given);
    put(all, at_.array("fusion", state.dims,
                       fmt::format("fusion(%{}, %{}), kind=kLoop, calls=%{}", state.name, part.name, computation("join", body, updated))));
  }
  Array blank(const Lengths& dims) {
    if (blank_ == Blank::allocated) return at_.array("custom-call", dims, "custom-call(), custom_call_target=\"AllocateBuffer\"");
    return at_.array("broadcast", dims, fmt::format("broadcast(%{}), dimensions={{}}", at_.add("zero", at_.shape({}), "constant(0)")));
  }
  /// Keeps a value on the devices of a condition alone.
  void keep(const Condition& condition, const Array& value, const Region& to) {
    if (condition.high != condition.low + 1) no_form("a guard with several values");
    if (pieces_[to.buffer.index()].empty()) put(whole(to.buffer), blank(lengths_of(whole(to.buffer))));
    const Array old = read(to), made = at_.as(value, old.dims);
    const std::string is_here =
        at_.add("compare", "pred[]", fmt::format("compare(%{}, %{}), direction=EQ", this->value(condition.value), at_.number(condition.low)));
    const Array everywhere{
        at_.add("broadcast", "pred" + at_.shape(old.dims).substr(at_.dtype().size()), fmt::format("broadcast(%{}), dimensions={{}}", is_here)),
        old.dims};
    update(to, at_.array("select", old.dims, fmt::format("select(%{}, %{}, %{})", everywhere.name, made.name, old.name)), false);
  }

  // ---- Communication ----

  void shift(std::size_t t, const Shift& op) {
    if (op.combine != Combine::replace || !op.by.terms.empty() || !op.route_order.empty()) no_form("a shift that adds, or by different distances");
    const Array given = read(op.source);
    std::string pairs;
    for (int d = 0; d < mesh_.devices(); ++d)
      pairs +=
          fmt::format("{}{{{},{}}}", d == 0 ? "" : ",", d, mesh_.shifted(DeviceId{static_cast<std::size_t>(d)}, op.axis, op.by.constant).index());
    const Lengths dims = lengths_of(op.target);
    start(t, "collective-permute", fmt::format("({}, {}, u32[], u32[])", at_.shape(given.dims), at_.shape(given.dims)), given, given.dims,
          fmt::format("source_target_pairs={{{}}}", pairs), op.target);
  }

  void collective(std::size_t t, const Collective& op) {
    if (op.axes.size() != 1) no_form("a collective along several axes");
    const AxisView& axis = op.axes.front();
    const auto dim = static_cast<std::size_t>(op.dim);
    Lengths given = lengths_of(op.input), made = lengths_of(op.output);
    const auto run = [&](const std::string& name, bool wrapped, std::int64_t first, const std::string& attributes) {
      const Array input = at_.as(read(op.input), given);
      const std::string operand = at_.shape(given), result = at_.shape(made);
      const std::string shape = name == "all-reduce" ? result
                                : wrapped            ? fmt::format("(({}), {})", operand, result)
                                                     : fmt::format("({}, {})", operand, result);
      start(t, name, shape, input, made, fmt::format("replica_groups={}{}", groups(axis, first), attributes), op.output);
    };
    switch (op.kind) {
      case CollectiveKind::all_gather:
        given = made;
        given[dim] /= axis.size;
        run("all-gather", false, 0, fmt::format(", dimensions={{{}}}, use_global_device_ids=true", dim));
        return;
      case CollectiveKind::reduce_scatter:
        made = given;
        made[dim] /= axis.size;
        run("reduce-scatter", true, 0, fmt::format(", dimensions={{{}}}, use_global_device_ids=true, to_apply=%sum", dim));
        return;
      case CollectiveKind::all_reduce: run("all-reduce", false, 0, ", use_global_device_ids=true, to_apply=%sum"); return;
      case CollectiveKind::broadcast:
        given = made;
        run("collective-broadcast", true, op.root, "");
        return;
      default: no_form(std::string{name_of(op.kind)});
    }
  }

  /// All groups along an axis; position `first` of each stands first.
  [[nodiscard]] std::string groups(const AxisView& axis, std::int64_t first) const {
    std::string text;
    for (int d = 0; d < mesh_.devices(); ++d) {
      const DeviceId device{static_cast<std::size_t>(d)};
      if (mesh_.coordinate(device, axis) != 0) continue;
      std::vector<std::size_t> group;
      for (std::int64_t position = 0; position < axis.size; ++position) group.push_back(mesh_.shifted(device, axis, position).index());
      std::swap(group[0], group[static_cast<std::size_t>(first)]);
      text += fmt::format("{}{{{}}}", text.empty() ? "" : ",", fmt::join(group, ","));
    }
    return '{' + text + '}';
  }

  void start(std::size_t t, const std::string& name, const std::string& shape, const Array& input, const Lengths& made, const std::string& attributes,
             const Region& to) {
    const std::string started =
        at_.add(name + "-start", shape, fmt::format("{}-start(%{}), channel_id={}, {}", name, input.name, ++channels_, attributes));
    auto done = std::make_shared<Piece>(Piece{to, [this, name, started, made, lengths = lengths_of(to)] {
                                                return at_.as(at_.array(name + "-done", made, fmt::format("{}-done(%{})", name, started)), lengths);
                                              }});
    started_[t] = done;
    const bool is_part_of_result = program_.buffers[to.buffer.index()].role == Role::output && to != whole(to.buffer);
    if (is_part_of_result)
      later([this, to, done] { update(to, done->array(), false); }, t);
    else
      put(to, [done] { return done->array(); });
  }
  void later(std::function<void()> run, std::optional<std::size_t> after = {}) {
    waiting_.push_back({after.value_or(program_.tasks.size()), std::move(run)});
  }

  std::string computation(const std::string& base, const Instructions& body, const Array& root) {
    const std::string name = fmt::format("{}.{}", base, fused_++);
    computations_ += fmt::format("%{} {{\n{}}}\n\n", name, body.with_root(root.name));
    return name;
  }

  struct Update {
    std::size_t after;  // the task that it waits for
    std::function<void()> run;
  };

  const Schedule& schedule_;
  const Program& program_;
  const Mesh& mesh_;
  Blank blank_;
  Instructions at_;  // of the entry
  WrittenHlo written_;
  std::string parameters_, signature_;
  std::string computations_;
  std::vector<Pieces> pieces_;                             // by buffer, oldest first
  std::map<std::size_t, std::shared_ptr<Piece>> started_;  // by task
  std::vector<Update> waiting_;                            // of parts of the result
  std::map<AxisView, std::string> coordinates_;
  std::string device_;
  int channels_ = 0, fused_ = 0;
};

}  // namespace
}  // namespace as_hlo

WrittenHlo schedule_as_hlo(const Schedule& schedule, Blank blank) {
  WrittenHlo written = as_hlo::Writer{schedule, blank}.write();
  const std::string dtype{name_of(schedule.programs.at(0).buffers.at(0).dtype)};
  const std::string sum = fmt::format(
      "%sum (a: {0}[], b: {0}[]) -> {0}[] {{\n  %a = {0}[] parameter(0)\n  %b = {0}[] parameter(1)\n  ROOT %s = {0}[] add(%a, %b)\n}}\n\n", dtype);
  written.text.insert(written.text.find("\n\n") + 2, sum);
  return written;
}

}  // namespace podsim::testing
