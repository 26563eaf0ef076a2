#include "sim/schedule/text.hpp"

#include <fmt/format.h>

namespace podsim {

namespace {

std::string_view half_name(Half half, std::string_view first, std::string_view second) {
  return half == Half::both ? "both" : half == Half::send ? first : second;
}

class Printer {
 public:
  explicit Printer(const Schedule& schedule) : schedule_{schedule}, mesh_{schedule.mesh} {}

  std::string print() {
    line("schedule {} on {}", quoted(schedule_.name), to_text(mesh_));
    if (const auto* products = std::get_if<Products>(&schedule_.computes))
      for (const Product& product : *products)
        line("computes {}[{},{}] = {}{} . {}{} over {}", product.out, product.m, product.n, product.left, product.transpose_left ? "^T" : "",
             product.right, product.transpose_right ? "^T" : "", product.k);
    if (const auto* reference = std::get_if<ReferenceProgram>(&schedule_.computes)) print(*reference);
    for (const Function& function : schedule_.functions) print(function);
    for (std::size_t p = 0; p < schedule_.programs.size(); ++p) print(p);
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void print(const ReferenceProgram& reference) {
    line("computes {}", claim_of(reference));
    for (std::size_t n = 0; n < reference.nodes.size(); ++n) {
      const ReferenceNode& node = reference.nodes[n];
      std::string how;
      for (std::size_t i = 0; i < node.operands.size(); ++i)
        how += fmt::format(" {}{}", node.operands[i], (i == 0 ? node.transpose_left : node.transpose_right) ? "^T" : "");
      if (!node.permutation.empty()) how += fmt::format(" permutation {}", fmt::join(node.permutation, ","));
      const ReferenceTraits& traits = traits_of(node.kind);
      if (node.kind == ReferenceKind::scale || node.kind == ReferenceKind::add_number || node.kind == ReferenceKind::reciprocal)
        how += fmt::format(" number {}", node.number);
      if (node.kind == ReferenceKind::sum || node.kind == ReferenceKind::concatenate || node.kind == ReferenceKind::iota) how += fmt::format(" dim {}", node.dim);
      if (node.kind == ReferenceKind::slice) how += fmt::format(" dim {} from {}", node.dim, node.offset);
      if (node.below != 0) how += fmt::format(" below {}", node.below);
      if (node.causal) how += " causal";
      if (!node.dims.empty()) how += fmt::format(" along {}", fmt::join(node.dims, ","));
      if (node.inverse) how += " inverse";
      if (node.complex) how += " complex";
      if (node.kind == ReferenceKind::block_collective) how += describe(reference, n);
      const std::string& name = node.kind == ReferenceKind::input ? node.tensor : node.name;
      line("  {:>4} {}[{}] {}{}", n, name, fmt::join(node.extents, ","), traits.name, how);
    }
    for (const auto& [tensor, node] : reference.outputs) line("  output {} is {}", tensor, node);
  }

  std::string describe(const ReferenceProgram& reference, std::size_t n) const {
    const ReferenceNode& node = reference.nodes[n];
    const BlockCollective& collective = node.collective;
    std::string axes;
    for (const int axis : collective.axes) axes += (axes.empty() ? "" : "+") + axis_name(axis);
    const auto sharding = [&](const Sharding& of, std::size_t rank) {
      std::string text;
      for (std::size_t d = 0; d < rank; ++d) {
        std::string entry;
        if (d < of.dims.size())
          for (const int axis : of.dims[d]) entry += (entry.empty() ? "" : "+") + axis_name(axis);
        text += (d == 0 ? "" : ",") + (entry.empty() ? std::string{"-"} : entry);
      }
      return text;
    };
    const std::size_t operand = node.operands.empty() ? 0 : static_cast<std::size_t>(node.operands[0]);
    const std::size_t rank = operand < reference.nodes.size() ? reference.nodes[operand].extents.size() : 0;
    std::string pairs = collective.reduction == Reduction::maximum ? " maximum" : "";
    for (const auto& [from, to] : collective.pairs) pairs += fmt::format(" {}>{}", from, to);
    return fmt::format(" {} over {} dim {} split {} shift {}{}: ({}) -> ({})", name_of(collective.kind), axes, collective.dim, collective.split_dim,
                       collective.shift, pairs, sharding(collective.from, rank), sharding(collective.to, node.extents.size()));
  }
  std::string axis_name(int axis) const {
    return axis >= 0 && static_cast<std::size_t>(axis) < mesh_.axes().size() ? mesh_.axes()[static_cast<std::size_t>(axis)].name : "?";
  }

  void print(const Function& function) {
    std::string parameters;
    for (std::size_t b = 0; b < static_cast<std::size_t>(function.parameters); ++b)
      parameters += (b == 0 ? "" : ", ") + function.body.buffers[b].name;
    line("function {}({})", function.name, parameters);
    for (const Buffer& buffer : function.body.buffers) print(buffer);
    for (std::size_t t = 0; t < function.body.tasks.size(); ++t) print(function.body, t);
  }

  void print(std::size_t p) {
    const Program& program = schedule_.programs[p];
    std::string devices;
    for (const DeviceSet::Interval& interval : program.devices.intervals) devices += fmt::format(" {}..{}", interval.first, interval.last - 1);
    line("program {} on devices{}", p, devices);
    if (const auto* collective = std::get_if<Collective>(&schedule_.computes); collective && p == 0)
      line("  computes {}", describe(program, *collective));
    for (const Buffer& buffer : program.buffers) print(buffer);
    for (std::size_t t = 0; t < program.tasks.size(); ++t) print(program, t);
  }

  void print(const Buffer& buffer) {
    std::string tensor;
    if (buffer.role != Role::scratch) {
      for (const auto& views : buffer.sharding) {
        std::string names;
        for (const AxisView& view : views) names += (names.empty() ? "" : "+") + mesh_.name(view);
        tensor += (tensor.empty() ? "" : ",") + (names.empty() ? std::string{"-"} : names);
      }
      tensor = fmt::format(" of {}({})", buffer.tensor, tensor);
      std::string sums;
      for (const AxisView& view : buffer.unreduced) sums += (sums.empty() ? "" : "+") + mesh_.name(view);
      if (!sums.empty()) tensor += " partial sums along " + sums;
      if (!buffer.unpadded.empty()) tensor += fmt::format(" padded from [{}]", fmt::join(buffer.unpadded, ","));
      if (!buffer.grouped.empty()) tensor += fmt::format(" grouped {}", fmt::join(buffer.grouped, "+"));
    }
    line("  buffer {} {}[{}] {}{}", buffer.name, name_of(buffer.dtype), fmt::join(buffer.extents, ","),
         buffer.role == Role::input    ? "input"
         : buffer.role == Role::output ? "output"
                                       : "scratch",
         tensor + (buffer.on_host ? " on the host" : ""));
  }

  std::string region(const Program& program, const Region& r) const { return to_text(mesh_, program, r); }

  std::string describe(const Program& program, const Collective& collective) const {
    std::string axes;
    for (const AxisView& view : collective.axes) axes += (axes.empty() ? "" : "+") + mesh_.name(view);
    std::string how;
    switch (collective.kind) {
      case CollectiveKind::all_gather:
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_reduce: how = fmt::format("dim {}", collective.dim); break;
      case CollectiveKind::all_to_all: how = fmt::format("from dim {} to dim {}", collective.split_dim, collective.dim); break;
      case CollectiveKind::broadcast:
      case CollectiveKind::reduce: how = fmt::format("root {}", collective.root); break;
      case CollectiveKind::permute:
        for (const Collective::Pair& pair : collective.pairs) how += fmt::format("{}{}>{}", how.empty() ? "" : " ", pair.from, pair.to);
    }
    if (collective.reduction == Reduction::maximum) how += ", maximum";
    return fmt::format("{} over {} {}: {} -> {}", name_of(collective.kind), axes, how, region(program, collective.input),
                       region(program, collective.output));
  }

  std::string describe(const Program& program, const Call& call) const {
    std::string arguments;
    for (const BufferId argument : call.arguments) arguments += (arguments.empty() ? "" : ", ") + program.buffers[argument.index()].name;
    return fmt::format("call {}({})", schedule_.functions[static_cast<std::size_t>(call.function)].name, arguments);
  }

  std::string describe(const Program& program, const Op& op) const {
    const auto operand = [&](const Region& r, int split, bool transposed) {
      return fmt::format("{}{}", region(program, r), transposed ? "^T" : "") + (r.dims.size() == 2 && split == 1 ? "" : fmt::format("|{}", split));
    };
    const auto peer = [&](const Peer& coordinates) {
      std::string text;
      for (std::size_t a = 0; a < coordinates.size(); ++a)
        text += fmt::format("{}{}={}", a == 0 ? "" : ",", a < mesh_.axes().size() ? mesh_.axes()[a].name : "?", to_text(mesh_, coordinates[a]));
      return text;
    };
    return std::visit(Overloaded{
                          [&](const Matmul& m) {
                            return fmt::format("matmul {} {} {} . {}", operand(m.out, m.out_split, false), m.accumulate ? "+=" : "=",
                                               operand(m.left, m.left_split, m.transpose_left), operand(m.right, m.right_split, m.transpose_right));
                          },
                          [&](const Local& l) {
                            std::string text = fmt::format("{} {}", l.unit == Unit::core ? "core" : "dma", traits_of(l.kind).name);
                            for (const Region& r : l.reads) text += " " + region(program, r);
                            for (const Region& r : l.writes) text += " -> " + region(program, r);
                            if (l.factor != 1 || traits_of(l.kind).factor) text += fmt::format(" factor {}", l.factor);
                            if (l.features_first) text += " features-first";
                            if (l.causal) text += " causal";
                            if (l.dims != std::array<int, 2>{}) text += fmt::format(" dims {}", fmt::join(l.dims, ","));
                            if (!l.splits.empty()) text += fmt::format(" splits {}", fmt::join(l.splits, ","));
                            for (const Numbering& n : l.numbering) {
                              text += " numbered from " + to_text(mesh_, n.first);
                              if (n.block != 0) text += fmt::format(" by {} in {}", n.block, n.apart);
                            }
                            if (l.classes != 0) text += fmt::format(" classes {}", l.classes);
                            return text + describe(l.optimiser) + describe(l.opaque);
                          },
                          [&](const Shift& s) {
                            return fmt::format("shift {} by {}{}: {} {} {}{}{}", mesh_.name(s.axis), to_text(mesh_, s.by), s.by_dimension ? " by dimension" : "", region(program, s.source),
                                               arrow(s.combine), region(program, s.target), route(s.route_order),
                                               s.in_switch == InSwitch::none ? "" : fmt::format(", {} in the switch", name_of(s.in_switch)));
                          },
                          [&](const Send& s) {
                            return fmt::format("send channel {} to {}: {}{}", s.channel, peer(s.to), region(program, s.source), route(s.route_order));
                          },
                          [&](const Recv& r) {
                            return fmt::format("recv channel {} from {}: {} {}", r.channel, peer(r.from), arrow(r.combine),
                                               region(program, r.target));
                          },
                          [&](const Collective& c) { return describe(program, c); },
                          [&](const Call& c) { return describe(program, c); },
                      },
                      op);
  }

  static std::string_view arrow(Combine combine) { return combine == Combine::add ? "->+" : combine == Combine::maximum ? "->max" : "->"; }
  static std::string describe(const Optimiser& of) {
    if (of == Optimiser{}) return "";
    return fmt::format(" learning rate {} betas {},{} epsilon {} weight decay {} step {}", of.learning_rate, of.beta1, of.beta2, of.epsilon,
                       of.weight_decay, of.step);
  }
  static std::string describe(const OpaqueCost& cost) {
    if (cost == OpaqueCost{}) return "";
    std::string text = fmt::format(" flops {} {} vector {}", cost.matrix.count(), name_of(cost.dtype), cost.vector.count());
    if (cost.product) text += fmt::format(" of products {}x{}x{}", cost.product->m, cost.product->n, cost.product->k);
    if (cost.attention) text += " of attention";
    if (cost.bytes) text += fmt::format(" bytes {}", cost.bytes->count());
    if (cost.time) text += fmt::format(" time {} s", cost.time->count());
    if (cost.launch != Seconds{} || cost.rest != Seconds{}) text += fmt::format(" without memory {} s and {} s", cost.launch.count(), cost.rest.count());
    return text;
  }
  static std::string route(const std::vector<int>& order) { return order.empty() ? "" : fmt::format(" route {}", fmt::join(order, ",")); }

  void print(const Program& program, std::size_t t) {
    const Task& task = program.tasks[t];
    std::string tail;
    for (const Edge& edge : task.after) {
      tail += fmt::format("{}{}", tail.empty() ? " after " : ", ", edge.task.value);
      if (edge.done != Half::both) tail += fmt::format(".{}", half_name(edge.done, "sent", "received"));
      if (edge.gates != Half::both) tail += fmt::format(" gates {}", half_name(edge.gates, "send", "receive"));
    }
    for (std::size_t i = 0; i < task.where.size(); ++i)
      tail +=
          fmt::format("{}{} <= {} < {}", i == 0 ? " where " : " and ", task.where[i].low, to_text(mesh_, task.where[i].value), task.where[i].high);
    if (task.origin) tail += fmt::format(" of {} {} on {}", name_of(task.origin->kind), task.origin->collective, mesh_.name(task.origin->axis));
    if (task.recompute) tail += " recompute";
    line("  {:>4} {:<20} {}{}", t, task.label, describe(program, task.op), tail);
  }

  const Schedule& schedule_;
  const Mesh& mesh_;
  std::string text_;
};

}  // namespace

std::string to_text(const Mesh& mesh, const Affine& affine) {
  std::string text;
  for (const AxisTerm& term : affine.terms) {
    if (term.coefficient < 0)
      text += "-";
    else if (!text.empty())
      text += "+";
    if (const auto magnitude = term.coefficient < 0 ? -term.coefficient : term.coefficient; magnitude != 1) text += fmt::format("{}*", magnitude);
    text += term.add == 0 ? mesh.name(term.axis) : fmt::format("({}{:+})%{}", mesh.name(term.axis), term.add, term.axis.size);
  }
  if (affine.constant != 0 || text.empty()) text += fmt::format("{}{}", affine.constant >= 0 && !text.empty() ? "+" : "", affine.constant);
  return affine.modulus == 0 ? text : fmt::format("({})%{}", text, affine.modulus);
}

std::string to_text(const Mesh& mesh, const Program& program, const Region& region) {
  const Buffer& buffer = program.buffers[region.buffer.index()];
  std::string text = buffer.name + "[";
  for (std::size_t i = 0; i < region.dims.size(); ++i) {
    const Range& range = region.dims[i];
    if (i > 0) text += ",";
    if (range.index.terms.empty()) {  // a constant place
      const std::int64_t begin = range.offset + evaluate(range.index, {}) * range.stride;
      text += begin == 0 && i < buffer.extents.size() && range.length == buffer.extents[i] ? ":"
              : range.length == 1                                                          ? fmt::format("{}", begin)
                                                                                           : fmt::format("{}:{}", begin, begin + range.length);
      continue;
    }
    std::string at = to_text(mesh, range.index);
    if (range.stride != 1) at = fmt::format("{}*{}", range.index.modulus == 0 ? "(" + at + ")" : at, range.stride);
    if (range.offset != 0) at += fmt::format("{:+}", range.offset);
    text += range.length == 1 ? at : fmt::format("{}:+{}", at, range.length);
  }
  return text + "]";
}

WrittenAt file_of(const Schedule& schedule) {
  for (const Program& program : schedule.programs) {
    if (!program.tasks.empty()) return {program.tasks.front().written_at.file, 0, 0};
    if (!program.buffers.empty()) return {program.buffers.front().written_at.file, 0, 0};
  }
  return {};
}

std::string task_name(const Program& program, TaskId task) { return fmt::format("{} {}", task.value, quoted(program.tasks[task.index()].label)); }

std::string to_text(const Schedule& schedule) { return Printer{schedule}.print(); }

}  // namespace podsim
