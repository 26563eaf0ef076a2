#include "sim/engine/numeric/task_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "sim/base/invariant.hpp"
#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/factorisation_kernels.hpp"
#include "sim/engine/numeric/row_kernels.hpp"
#include "sim/engine/numeric/training_kernels.hpp"
#include "sim/engine/numeric/transform_kernels.hpp"
#include "sim/engine/numeric/transformer_kernels.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {

namespace {

/// An operand that lies partly in the result is read as a whole first.
View operand(std::span<const Access> accesses, std::span<const View> views, std::size_t i, std::vector<float>& room) {
  return overlap(accesses[i], accesses.back()) && !same_box(accesses[i], accesses.back()) ? packed(views[i], room) : views[i];
}

/// The regions of a Local in memory, reads before writes, as kernels take them.
struct Operands {
  const Local& local;
  std::span<const Access> at;
  std::span<const View> views;
  const DevicePlace& place;
  PackedOperands& workspace;

  /// For kernels that write element by element while they read.
  [[nodiscard]] View left() const { return operand(at, views, 0, workspace.left); }
  [[nodiscard]] View right() const { return operand(at, views, 1, workspace.right); }
  /// For kernels that read everything before they write, and for what is written.
  [[nodiscard]] View box(std::size_t i) const { return views[i]; }
  [[nodiscard]] View tokens(std::size_t i) const { return local.features_first ? tokens_first(views[i]) : views[i]; }
  [[nodiscard]] int split(std::size_t i) const { return split_of(local, i); }
  [[nodiscard]] RowNumbers numbers(std::size_t i) const { return row_numbers(local, i, place.coordinates); }
  [[nodiscard]] Classes classes() const { return {numbers(0), local.classes}; }
  /// For kernels that write line by line along another dimension.
  [[nodiscard]] View lines() const {
    const bool in_place = local.dims[0] == local.dims[1] && same_box(at[0], at.back());
    return overlaps_result(0) && !in_place ? packed(views[0], workspace.out) : views[0];
  }
  [[nodiscard]] bool overlaps_result(std::size_t i) const { return overlap(at[i], at.back()); }
  void solve_triangle(Triangle kind) const { trsm(kind, box(0), split(0), right(), box(2), split(2), overlaps_result(0), workspace); }
};

struct LocalKernel {
  LocalKind kind;
  void (*run)(const Operands&);
  Status (*tried)(const Operands&) = nullptr;  // in its place, of kinds that not all data is right for
};

/// What only takes time is done; results are the source's.
Status opaque(const Operands& o) {
  const int operation = o.local.opaque.operation;
  if (o.place.source == nullptr || operation < 0) {
    const bool writes = std::any_of(o.at.begin(), o.at.end(), [](const Access& access) { return access.write; });
    if (writes) return Diagnostic{{}, "the operation is opaque: what it computes is not known", Cause::data};
    return success();
  }
  std::vector<SourceModule::Values> reads, writes;
  for (std::size_t i = 0; i < o.at.size(); ++i) {
    SourceModule::Values& values = (o.at[i].write ? writes : reads).emplace_back();
    values.reserve(static_cast<std::size_t>(elements_of(o.views[i].layout)));
    if (o.at[i].write) {
      values.resize(values.capacity());
      continue;
    }
    for_each_run<1>({&o.views[i].layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
      for (std::int64_t k = 0; k < count; ++k) values.push_back(number_in(o.views[i].data[at[0].offset() + k * at[0].stride()], o.views[i].dtype));
    });
  }
  if (Status done = o.place.source->execute(operation, o.place.device, reads, writes); !done) return Diagnostic{done.error().where, done.error().message, Cause::data};
  std::size_t next = 0;
  for (std::size_t i = 0; i < o.at.size(); ++i) {
    if (!o.at[i].write) continue;
    const View& view = o.views[i];
    const double* value = writes[next++].data();
    for_each_run<1>({&view.layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
      for (std::int64_t k = 0; k < count; ++k, ++value)
        view.data[at[0].offset() + k * at[0].stride()] = view.dtype == DType::s32 ? std::bit_cast<float>(static_cast<std::int32_t>(*value))
                                                                                  : stored_in(view.dtype, static_cast<float>(*value));
    });
  }
  return success();
}

/// The rows of local_table, each with what it computes.
constexpr std::array<LocalKernel, local_kind_count> local_kernels{{
    {LocalKind::copy, [](const Operands& o) { copy(o.left(), o.box(1)); }},
    {LocalKind::add, [](const Operands& o) { add(o.left(), o.right(), o.box(2)); }},
    {LocalKind::scale, [](const Operands& o) { scale(o.left(), o.local.factor, o.box(1)); }},
    {LocalKind::launch, [](const Operands&) {}},
    {LocalKind::alias, [](const Operands& o) { copy(o.left(), o.box(1)); }},
    {LocalKind::norm_sums, [](const Operands& o) { norm_sums(o.tokens(0), o.tokens(1)); }},
    {LocalKind::norm, [](const Operands& o) { norm(o.local.factor, o.tokens(0), o.tokens(1), o.tokens(2)); }},
    {LocalKind::norm_grad_sums, [](const Operands& o) { norm_grad_sums(o.local.factor, o.tokens(0), o.tokens(1), o.tokens(2), o.tokens(3)); }},
    {LocalKind::norm_grad, [](const Operands& o) { norm_grad(o.local.factor, o.tokens(0), o.tokens(1), o.tokens(2), o.tokens(3), o.tokens(4)); }},
    {LocalKind::gelu, [](const Operands& o) { gelu(o.box(0), o.box(1)); }},
    {LocalKind::gelu_grad, [](const Operands& o) { gelu_grad(o.box(0), o.box(1), o.box(2)); }},
    {LocalKind::swiglu, [](const Operands& o) { swiglu(o.box(0), o.box(1), o.box(2)); }},
    {LocalKind::swiglu_grad, [](const Operands& o) { swiglu_grad(o.box(0), o.box(1), o.box(2), o.box(3), o.box(4)); }},
    {LocalKind::attention, [](const Operands& o) { attention(o.local.causal, o.tokens(0), o.tokens(1)); }},
    {LocalKind::attention_grad, [](const Operands& o) { attention_grad(o.local.causal, o.tokens(0), o.tokens(1), o.tokens(2)); }},
    {LocalKind::expert_gates, [](const Operands& o) { expert_gates(o.box(0), o.box(1)); }},
    {LocalKind::expert_gates_grad, [](const Operands& o) { expert_gates_grad(o.box(0), o.box(1), o.box(2)); }},
    {LocalKind::expert_combine, [](const Operands& o) { expert_combine(o.box(0), o.box(1), o.box(2)); }},
    {LocalKind::expert_combine_grad, [](const Operands& o) { expert_combine_grad(o.box(0), o.box(1), o.box(2), o.box(3), o.box(4)); }},
    {LocalKind::transpose, [](const Operands& o) { transpose(o.local.features_first, o.box(0), o.box(1)); }},
    {LocalKind::join, [](const Operands&) {}},
    {LocalKind::begin_call, [](const Operands&) {}},
    {LocalKind::end_call, [](const Operands&) {}},
    {LocalKind::add_in_switch, [](const Operands& o) { add(o.left(), o.right(), o.box(2)); }},
    {LocalKind::subtract, [](const Operands& o) { subtract(o.left(), o.right(), o.box(2)); }},
    {LocalKind::multiply, [](const Operands& o) { multiply(o.left(), o.right(), o.box(2)); }},
    {LocalKind::divide, [](const Operands& o) { divide(o.left(), o.right(), o.box(2)); }},
    {LocalKind::add_number, [](const Operands& o) { add_number(o.left(), o.local.factor, o.box(1)); }},
    {LocalKind::reciprocal, [](const Operands& o) { reciprocal(o.left(), o.local.factor, o.box(1)); }},
    {LocalKind::relu, [](const Operands& o) { relu(o.left(), o.box(1)); }},
    {LocalKind::maximum, [](const Operands& o) { maximum(o.left(), o.right(), o.box(2)); }},
    {LocalKind::sum_along, [](const Operands& o) { sum_along(o.box(0), o.box(1), o.workspace.out); }},
    {LocalKind::broadcast_in_dim, [](const Operands& o) { broadcast_in_dim(o.box(0), o.box(1), o.workspace.left); }},
    {LocalKind::to_host, [](const Operands& o) { copy(o.left(), o.box(1)); }},
    {LocalKind::from_host, [](const Operands& o) { copy(o.left(), o.box(1)); }},
    {LocalKind::stack, [](const Operands& o) { copy(o.left(), o.box(1)); }},
    {LocalKind::fft, [](const Operands& o) { fft(false, o.local.dims, o.lines(), o.box(1), o.workspace); }},
    {LocalKind::ifft, [](const Operands& o) { fft(true, o.local.dims, o.lines(), o.box(1), o.workspace); }},
    {LocalKind::twiddle, [](const Operands& o) { twiddle(o.local.factor, o.local.dims, o.numbers(0), o.numbers(1), o.left(), o.box(1)); }},
    {LocalKind::iota, [](const Operands& o) { iota(o.numbers(0), o.box(0)); }},
    {LocalKind::getrf_panel,
     {},
     [](const Operands& o) {
       return getrf_panel(o.numbers(0), o.numbers(1).first, o.box(0), o.split(0), o.box(1), o.split(1), o.box(2), o.workspace);
     }},
    {LocalKind::trsm_lower, [](const Operands& o) { o.solve_triangle(Triangle::lower); }},
    {LocalKind::trsm_upper, [](const Operands& o) { o.solve_triangle(Triangle::upper); }},
    {LocalKind::lower_triangle, [](const Operands& o) { lower_triangle(o.numbers(0), o.numbers(1), o.left(), o.split(0), o.box(1), o.split(1)); }},
    {LocalKind::upper_triangle, [](const Operands& o) { upper_triangle(o.numbers(0), o.numbers(1), o.left(), o.split(0), o.box(1), o.split(1)); }},
    {LocalKind::gather_rows,
     {},
     [](const Operands& o) { return gather_rows(o.numbers(0), o.local.factor, o.left(), o.split(0), o.box(1), o.box(2), o.split(2)); }},
    {LocalKind::scatter_rows,
     {},
     [](const Operands& o) {
       const View b = o.right(), index = packed(o.box(2), o.workspace.out);
       copy(o.left(), o.box(3));
       return scatter_rows(o.numbers(0), o.local.factor, b, o.split(1), index, o.box(3), o.split(3));
     }},
    {LocalKind::swap_rows,
     {},
     [](const Operands& o) {
       const View index = packed(o.box(1), o.workspace.right);
       copy(o.left(), o.box(2));
       return swap_rows(o.numbers(0), o.numbers(1), index, o.box(2), o.split(2));
     }},
    {LocalKind::solve, {}, [](const Operands& o) { return solve(o.box(0), o.box(1), o.box(2), o.workspace); }},
    {LocalKind::pack_blocks, [](const Operands& o) { copy_blocks(o.box(0), o.local.dims[0], o.box(1), 0, o.box(1).layout.length[0]); }},
    {LocalKind::unpack_blocks, [](const Operands& o) { copy_blocks(o.box(0), 0, o.box(1), o.local.dims[1], o.box(0).layout.length[0]); }},
    {LocalKind::convert, [](const Operands& o) { copy(o.box(0), o.box(1)); }},
    {LocalKind::mean_square, [](const Operands& o) { mean_square(o.local.factor, o.box(0), o.box(1), o.box(2)); }},
    {LocalKind::mean_square_grad, [](const Operands& o) { mean_square_grad(o.local.factor, o.box(0), o.box(1), o.box(2)); }},
    {LocalKind::softmax_statistics, [](const Operands& o) { softmax_statistics(o.classes(), o.tokens(0), o.box(1)); }},
    {LocalKind::cross_entropy,
     {},
     [](const Operands& o) { return cross_entropy(o.classes(), o.local.factor, o.tokens(0), o.box(1), o.box(2), o.box(3)); }},
    {LocalKind::cross_entropy_grad,
     {},
     [](const Operands& o) { return cross_entropy_grad(o.classes(), o.local.factor, o.tokens(0), o.box(1), o.box(2), o.tokens(3)); }},
    {LocalKind::add_rows,
     {},
     [](const Operands& o) { return add_rows(o.numbers(0), o.local.factor, o.box(0), o.split(0), o.box(1), o.box(2), o.split(2), o.workspace.out); }},
    {LocalKind::one_hot, {}, [](const Operands& o) { return one_hot(o.numbers(0), o.local.factor, o.box(0), o.box(1), o.split(1)); }},
    {LocalKind::sgd, [](const Operands& o) { sgd(o.local.optimiser, o.box(0), o.box(1), o.box(2)); }},
    {LocalKind::adamw, [](const Operands& o) { adamw(o.local.optimiser, o.box(0), o.box(1), o.box(2), o.box(3), o.box(4), o.box(5), o.box(6)); }},
    {LocalKind::opaque, {}, opaque},
}};
static_assert(in_order_of_kinds(local_kernels), "a kernel per row of local_table, in its order");

}  // namespace

Status perform(const Op& op, std::span<const Access> accesses, std::span<const View> views, const DevicePlace& place, PackedOperands& workspace) {
  if (const auto* matmul = std::get_if<Matmul>(&op)) {
    const bool apart = overlap(accesses[0], accesses[2]) || overlap(accesses[1], accesses[2]);
    multiply(*matmul, views[0], views[1], views[2], apart, workspace);
    return success();
  }
  const auto* local = std::get_if<Local>(&op);
  PODSIM_ASSERT(local != nullptr && "a transfer is delivered, a Collective lowered before");
  const LocalKernel& kernel = local_kernels[static_cast<std::size_t>(local->kind)];
  const Operands operands{*local, accesses, views, place, workspace};
  if (kernel.tried != nullptr) return kernel.tried(operands);
  kernel.run(operands);
  return success();
}

Diagnostic failure_of(const Schedule& lowered, const Activity& activity, const Diagnostic& why) {
  const Program& program = lowered.programs[activity.program];
  return {location_of(program.tasks[activity.task.index()].written_at),
          fmt::format("task {} on device {} ({}): {}", task_name(program, activity.task), activity.device.value,
                      lowered.mesh.name(activity.device), why.message),
          why.cause};
}

void deliver(Combine combine, std::span<const Access> accesses, std::span<const View> views, PackedOperands& workspace) {
  const View source = operand(accesses, views, 0, workspace.left);
  switch (combine) {
    case Combine::replace: return copy(source, views[1]);
    case Combine::add: return add(views[1], source, views[1]);
    case Combine::maximum: return maximum(views[1], source, views[1]);
  }
}

Combine combine_of(const Schedule& lowered, const Activity& transfer) {
  const Op& op = lowered.programs[transfer.receiver_program].tasks[transfer.receiver_task.index()].op;
  if (const auto* shift = std::get_if<Shift>(&op)) return shift->combine;
  return std::get<Recv>(op).combine;
}

}  // namespace podsim
