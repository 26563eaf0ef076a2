#include <string>
#include <unordered_map>

#include "sim/base/invariant.hpp"
#include "sim/config/message_file.hpp"
#include "sim/config/schedule.pb.h"
#include "sim/config/schedule_config.hpp"
#include "sim/config/schedule_names.hpp"

namespace podsim {
namespace {

/// Writes only what differs from the default, so that the text stays readable.
class ScheduleWriter {
 public:
  explicit ScheduleWriter(const Schedule& schedule) : schedule_{schedule} {}

  proto::Schedule write() {
    proto::Schedule message;
    message.set_format_version(schedule_format_version);
    if (!schedule_.name.empty()) message.set_name(schedule_.name);
    for (const MeshAxis& axis : schedule_.mesh.axes()) {
      proto::MeshAxis& added = *message.add_mesh();
      added.set_name(axis.name);
      added.set_size(axis.size);
      if (axis.wraps) added.set_wraps(true);
      for (const MeshFactor& factor : axis.factors) {
        added.add_factor()->set_size(factor.size);
        if (factor.wraps) added.mutable_factor()->rbegin()->set_wraps(true);
      }
    }
    for (const Function& function : schedule_.functions) {
      proto::Function& added = *message.add_function();
      added.set_name(function.name);
      if (function.parameters != 0) added.set_parameters(function.parameters);
      write_body(function.body, added);
    }
    for (const Program& program : schedule_.programs) write(program, *message.add_program());
    write_computes(message);
    return message;
  }

 private:
  void write_computes(proto::Schedule& message) {
    if (const Products* products = std::get_if<Products>(&schedule_.computes)) {
      for (const Product& product : *products) write(product, *message.add_product());
    } else if (const Collective* collective = std::get_if<Collective>(&schedule_.computes)) {
      PODSIM_ASSERT(!schedule_.programs.empty());
      enter(schedule_.programs[0]);
      write(*collective, *message.mutable_collective());
    } else if (const ReferenceProgram* reference = std::get_if<ReferenceProgram>(&schedule_.computes)) {
      write(*reference, *message.mutable_reference());
    }
  }

  void write(const ReferenceProgram& reference, proto::Reference& message) const {
    for (const ReferenceNode& node : reference.nodes) write(node, *message.add_node());
    for (const auto& [tensor, node] : reference.outputs) {
      proto::Reference::Output& output = *message.add_output();
      output.set_tensor(tensor);
      output.set_node(node);
    }
    if (!reference.claim.empty()) message.set_claim(reference.claim);
  }

  void write(const ReferenceNode& node, proto::Reference::Node& message) const {
    message.set_kind(static_cast<proto::Reference::Kind>(saved_number(node.kind)));
    for (const int operand : node.operands) message.add_operand(operand);
    for (const std::int64_t extent : node.extents) message.add_extents(extent);
    if (!node.tensor.empty()) message.set_tensor(node.tensor);
    if (!node.name.empty()) message.set_name(node.name);
    if (node.number != 1) message.set_number(node.number);
    if (node.dim != 0) message.set_dim(node.dim);
    if (node.transpose_left) message.set_transpose_left(true);
    if (node.transpose_right) message.set_transpose_right(true);
    for (const int dimension : node.permutation) message.add_permutation(dimension);
    if (node.offset != 0) message.set_offset(node.offset);
    if (node.causal) message.set_causal(true);
    for (const int dimension : node.dims) message.add_dims(dimension);
    if (node.inverse) message.set_inverse(true);
    if (node.complex) message.set_complex(true);
    if (node.below != 0) message.set_below(node.below);
    if (node.kind == ReferenceKind::block_collective) write(node.collective, *message.mutable_blocks());
  }

  void write(const BlockCollective& collective, proto::Reference::Blocks& message) const {
    const auto name = [&](int axis) { return schedule_.mesh.axes().at(static_cast<std::size_t>(axis)).name; };
    message.set_kind(static_cast<proto::Collective::Kind>(saved_number(collective.kind)));
    for (const int axis : collective.axes) message.add_axis(name(axis));
    if (collective.dim != 0) message.set_dim(collective.dim);
    if (collective.split_dim != 0) message.set_split_dim(collective.split_dim);
    if (collective.shift != 0) message.set_shift(collective.shift);
    for (const std::vector<int>& axes : collective.from.dims) {
      proto::Reference::Axes& added = *message.add_from();
      for (const int axis : axes) added.add_axis(name(axis));
    }
    for (const std::vector<int>& axes : collective.to.dims) {
      proto::Reference::Axes& added = *message.add_to();
      for (const int axis : axes) added.add_axis(name(axis));
    }
    if (collective.reduction != Reduction::sum) message.set_reduction(static_cast<proto::Collective::Reduction>(collective.reduction));
    for (const auto& [from, to] : collective.pairs) {
      proto::Collective::Pair& added = *message.add_pair();
      added.set_from(from);
      added.set_to(to);
    }
  }

  static void write(const Product& product, proto::Product& message) {
    const Product standard;
    if (product.out != standard.out) message.set_out(product.out);
    if (product.left != standard.left) message.set_left(product.left);
    if (product.right != standard.right) message.set_right(product.right);
    message.set_m(product.m);
    message.set_n(product.n);
    message.set_k(product.k);
    if (product.transpose_left) message.set_transpose_left(true);
    if (product.transpose_right) message.set_transpose_right(true);
  }

  /// Regions are written with the buffers of this program.
  void enter(const Program& program) {
    program_ = &program;
    uses_.clear();
    for (const Buffer& buffer : program.buffers) ++uses_[buffer.name];
  }

  /// Of a program or function.
  template <class Message>
  void write_body(const Program& program, Message& message) {
    enter(program);
    for (const Buffer& buffer : program.buffers) write(buffer, *message.add_buffer());
    for (const Task& task : program.tasks) write(task, *message.add_task());
  }

  void write(const Program& program, proto::Program& message) {
    if (program.devices != every_device(schedule_.mesh)) {
      proto::DeviceSet& devices = *message.mutable_devices();
      for (const DeviceSet::Interval& interval : program.devices.intervals) {
        proto::DeviceSet::Range& range = *devices.add_range();
        range.set_first(interval.first);
        range.set_last(interval.last);
      }
    }
    write_body(program, message);
  }

  void write(const Buffer& buffer, proto::Buffer& message) const {
    if (!buffer.name.empty()) message.set_name(buffer.name);
    for (const std::int64_t extent : buffer.extents) message.add_extents(extent);
    message.set_dtype(static_cast<proto::DType::Name>(saved_number(buffer.dtype)));
    if (buffer.role != Role::scratch) message.set_role(static_cast<proto::Buffer::Role>(buffer.role));
    if (!buffer.tensor.empty()) message.set_tensor(buffer.tensor);
    for (const std::vector<AxisView>& axes : buffer.sharding) {
      proto::Buffer::Sharding& sharding = *message.add_sharding();
      for (const AxisView& axis : axes) write(axis, *sharding.add_axis());
    }
    for (const std::int64_t extent : buffer.unpadded) message.add_unpadded(extent);
    for (const int dims : buffer.grouped) message.add_grouped(dims);
    for (const AxisView& axis : buffer.unreduced) write(axis, *message.add_unreduced());
    if (buffer.on_host) message.set_on_host(true);
    if (buffer.on_chip) message.set_on_chip(true);
  }

  void write(const AxisView& view, proto::AxisView& message) const {
    const MeshAxis& axis = schedule_.mesh.axes().at(static_cast<std::size_t>(view.axis));
    message.set_name(axis.name);
    if (view.stride != 1) message.set_stride(view.stride);
    if (view.size != axis.size) message.set_size(view.size);
  }

  void write(const Affine& affine, proto::Affine& message) const {
    for (const AxisTerm& term : affine.terms) {
      proto::Affine::Term& added = *message.add_term();
      write(term.axis, *added.mutable_axis());
      if (term.coefficient != 1) added.set_coefficient(term.coefficient);
      if (term.add != 0) added.set_add(term.add);
    }
    if (affine.constant != 0) message.set_constant(affine.constant);
    if (affine.modulus != 0) message.set_modulus(affine.modulus);
  }

  /// By its name where no other buffer has it.
  template <class Message>
  void write_buffer(BufferId id, Message& message) const {
    const Buffer& buffer = program_->buffers.at(id.index());
    if (!buffer.name.empty() && uses_.at(buffer.name) == 1) {
      message.set_buffer(buffer.name);
    } else {
      message.set_position(id.value);
    }
  }

  void write(const Region& region, proto::Region& message) const {
    write_buffer(region.buffer, message);
    for (const Range& range : region.dims) {
      proto::Range& dim = *message.add_dim();
      if (range.index != Affine{}) write(range.index, *dim.mutable_index());
      if (range.stride != 1) dim.set_stride(range.stride);
      if (range.offset != 0) dim.set_offset(range.offset);
      dim.set_length(range.length);
    }
  }

  void write(const Task& task, proto::Task& message) const {
    if (!task.label.empty()) message.set_label(task.label);
    std::visit(Overloaded{
                   [&](const Matmul& op) { write(op, *message.mutable_matmul()); },
                   [&](const Local& op) { write(op, *message.mutable_local()); },
                   [&](const Shift& op) { write(op, *message.mutable_shift()); },
                   [&](const Send& op) { write(op, *message.mutable_send()); },
                   [&](const Recv& op) { write(op, *message.mutable_recv()); },
                   [&](const Collective& op) { write(op, *message.mutable_collective()); },
                   [&](const Call& op) { write(op, *message.mutable_call()); },
               },
               task.op);
    for (const Edge& edge : task.after) {
      proto::Edge& after = *message.add_after();
      after.set_task(edge.task.value);
      if (edge.done != Half::both) after.set_done(static_cast<proto::Edge::Done::Half>(edge.done));
      if (edge.gates != Half::both) after.set_gates(static_cast<proto::Edge::Gates::Half>(edge.gates));
    }
    for (const Condition& condition : task.where) {
      proto::Condition& where = *message.add_where();
      write(condition.value, *where.mutable_value());
      where.set_low(condition.low);
      where.set_high(condition.high);
    }
    if (task.origin) write(*task.origin, *message.mutable_origin());
    if (task.recompute) message.set_recompute(true);
  }

  void write(const Matmul& op, proto::Matmul& message) const {
    write(op.left, *message.mutable_left());
    write(op.right, *message.mutable_right());
    write(op.out, *message.mutable_out());
    if (op.left_split != 1) message.set_left_split(op.left_split);
    if (op.right_split != 1) message.set_right_split(op.right_split);
    if (op.out_split != 1) message.set_out_split(op.out_split);
    if (op.transpose_left) message.set_transpose_left(true);
    if (op.transpose_right) message.set_transpose_right(true);
    if (op.accumulate) message.set_accumulate(true);
    if (op.float32_passes != 0) message.set_float32_passes(op.float32_passes);
  }

  void write(const Local& op, proto::Local& message) const {
    message.set_kind(static_cast<proto::Local::Kind>(saved_number(op.kind)));
    for (const Region& region : op.reads) write(region, *message.add_read());
    for (const Region& region : op.writes) write(region, *message.add_write());
    if (op.factor != 1) message.set_factor(op.factor);
    if (op.unit != Unit::core) message.set_unit(static_cast<proto::Local::Unit>(op.unit));
    if (op.features_first) message.set_features_first(true);
    if (op.causal) message.set_causal(true);
    if (op.dims != std::array<int, 2>{})
      for (const int dim : op.dims) message.add_dims(dim);
    for (const int split : op.splits) message.add_splits(split);
    for (const Numbering& numbering : op.numbering) {
      proto::Local::Numbering& added = *message.add_numbering();
      if (numbering.first != Affine{}) write(numbering.first, *added.mutable_first());
      if (numbering.block != 0) added.set_block(numbering.block);
      if (numbering.apart != 1) added.set_apart(numbering.apart);
    }
    if (op.classes != 0) message.set_classes(op.classes);
    if (op.optimiser != Optimiser{}) write(op.optimiser, *message.mutable_optimiser());
    if (op.opaque != OpaqueCost{}) write(op.opaque, *message.mutable_opaque_cost());
  }

  static void write(const Optimiser& optimiser, proto::Local::Optimiser& message) {
    message.set_learning_rate(optimiser.learning_rate);
    if (optimiser.beta1 != 0) message.set_beta1(optimiser.beta1);
    if (optimiser.beta2 != 0) message.set_beta2(optimiser.beta2);
    if (optimiser.epsilon != 0) message.set_epsilon(optimiser.epsilon);
    if (optimiser.weight_decay != 0) message.set_weight_decay(optimiser.weight_decay);
    if (optimiser.step != 1) message.set_step(optimiser.step);
  }

  static void write(const OpaqueCost& cost, proto::Local::OpaqueCost& message) {
    if (cost.matrix != Flops{}) message.set_matrix_flops(cost.matrix.count());
    if (cost.vector != Flops{}) message.set_vector_flops(cost.vector.count());
    if (cost.dtype != DType::bf16) message.set_dtype(static_cast<proto::DType::Name>(saved_number(cost.dtype)));
    if (cost.bytes) message.set_bytes(cost.bytes->count());
    if (cost.time) message.set_time_s(cost.time->count());
    if (cost.launch != Seconds{}) message.set_launch_s(cost.launch.count());
    if (cost.rest != Seconds{}) message.set_rest_s(cost.rest.count());
    if (cost.float32_passes != 0) message.set_float32_passes(cost.float32_passes);
    if (cost.attention) message.set_attention(true);
    if (cost.product)
      for (const std::int64_t extent : {cost.product->m, cost.product->n, cost.product->k}) message.add_product(extent);
  }

  void write(const Shift& op, proto::Shift& message) const {
    write(op.axis, *message.mutable_axis());
    write(op.by, *message.mutable_by());
    write(op.source, *message.mutable_source());
    write(op.target, *message.mutable_target());
    if (op.combine != Combine::replace) message.set_combine(static_cast<proto::Combine::Mode>(op.combine));
    for (const int dimension : op.route_order) message.add_route_order(dimension);
    if (op.by_dimension) message.set_by_dimension(true);
    if (op.in_switch != InSwitch::none) message.set_in_switch(static_cast<proto::InSwitch::Role>(op.in_switch));
  }

  void write(const Send& op, proto::Send& message) const {
    if (op.channel != 0) message.set_channel(op.channel);
    for (const Affine& coordinate : op.to) write(coordinate, *message.add_to());
    write(op.source, *message.mutable_source());
    for (const int dimension : op.route_order) message.add_route_order(dimension);
  }

  void write(const Recv& op, proto::Recv& message) const {
    if (op.channel != 0) message.set_channel(op.channel);
    for (const Affine& coordinate : op.from) write(coordinate, *message.add_from());
    write(op.target, *message.mutable_target());
    if (op.combine != Combine::replace) message.set_combine(static_cast<proto::Combine::Mode>(op.combine));
  }

  void write(const Collective& op, proto::Collective& message) const {
    message.set_kind(static_cast<proto::Collective::Kind>(saved_number(op.kind)));
    for (const AxisView& axis : op.axes) write(axis, *message.add_axis());
    write(op.input, *message.mutable_input());
    write(op.output, *message.mutable_output());
    if (op.dim != 0) message.set_dim(op.dim);
    if (op.split_dim != 0) message.set_split_dim(op.split_dim);
    if (op.root != 0) message.set_root(op.root);
    for (const Collective::Pair& pair : op.pairs) {
      proto::Collective::Pair& added = *message.add_pair();
      added.set_from(pair.from);
      added.set_to(pair.to);
    }
    if (!op.algorithm.empty()) message.set_algorithm(op.algorithm);
    if (op.reduction != Reduction::sum) message.set_reduction(static_cast<proto::Collective::Reduction>(op.reduction));
  }

  void write(const Call& op, proto::Call& message) const {
    message.set_function(schedule_.functions.at(static_cast<std::size_t>(op.function)).name);
    for (const BufferId argument : op.arguments) write_buffer(argument, *message.add_argument());
  }

  void write(const Origin& origin, proto::Origin& message) const {
    message.set_collective(origin.collective);
    message.set_kind(static_cast<proto::Collective::Kind>(saved_number(origin.kind)));
    write(origin.axis, *message.mutable_axis());
    message.set_input_bytes(origin.input_bytes.count());
    if (origin.own_block > Bytes{}) message.set_own_block(origin.own_block.count());
    if (origin.in_switch) message.set_in_switch(true);
  }

  const Schedule& schedule_;
  const Program* program_ = nullptr;
  std::unordered_map<std::string, int> uses_;  // of each buffer name
};

}  // namespace

std::string write_schedule(const Schedule& schedule, Encoding encoding) {
  return encode(ScheduleWriter{schedule}.write(), schedule_format, encoding);
}

}  // namespace podsim
