#include "sim/engine/numeric/task_kernels.hpp"

#include "sim/engine/numeric/transformer_kernels.hpp"

namespace podsim {

namespace {

/// An operand that lies partly in the result is read as a whole first.
View operand(std::span<const Access> accesses, std::span<const View> views, std::size_t i, std::vector<float>& room) {
  return overlap(accesses[i], accesses.back()) && !same_box(accesses[i], accesses.back()) ? packed(views[i], room) : views[i];
}

void perform(const Local& local, std::span<const Access> at, std::span<const View> views, PackedOperands& workspace) {
  const auto left = [&] { return operand(at, views, 0, workspace.left); };
  const auto box = [&](std::size_t i) { return views[i]; };  // these kernels read everything before they write
  const auto tokens = [&](std::size_t i) { return local.features_first ? tokens_first(views[i]) : views[i]; };
  switch (local.kind) {
    case LocalKind::copy:
    case LocalKind::place: return copy(left(), views[1]);
    case LocalKind::add: return add(left(), operand(at, views, 1, workspace.right), views[2]);
    case LocalKind::scale: return scale(left(), local.factor, views[1]);
    case LocalKind::launch:
    case LocalKind::join: return;
    case LocalKind::norm_sums: return norm_sums(tokens(0), tokens(1));
    case LocalKind::norm: return norm(local.factor, tokens(0), tokens(1), tokens(2));
    case LocalKind::norm_grad_sums: return norm_grad_sums(local.factor, tokens(0), tokens(1), tokens(2), tokens(3));
    case LocalKind::norm_grad: return norm_grad(local.factor, tokens(0), tokens(1), tokens(2), tokens(3), tokens(4));
    case LocalKind::gelu: return gelu(box(0), box(1));
    case LocalKind::gelu_grad: return gelu_grad(box(0), box(1), box(2));
    case LocalKind::swiglu: return swiglu(box(0), box(1), box(2));
    case LocalKind::swiglu_grad: return swiglu_grad(box(0), box(1), box(2), box(3), box(4));
    case LocalKind::attention: return attention(local.causal, tokens(0), tokens(1));
    case LocalKind::attention_grad: return attention_grad(local.causal, tokens(0), tokens(1), tokens(2));
    case LocalKind::transpose: return transpose(local.features_first, box(0), box(1));
  }
}

}  // namespace

void perform(const Op& op, std::span<const Access> accesses, std::span<const View> views, PackedOperands& workspace) {
  if (const auto* matmul = std::get_if<Matmul>(&op)) {
    const bool apart = overlap(accesses[0], accesses[2]) || overlap(accesses[1], accesses[2]);
    return multiply(*matmul, views[0], views[1], views[2], apart, workspace);
  }
  const auto* local = std::get_if<Local>(&op);
  assert(local != nullptr && "a transfer is delivered, a Collective lowered before");
  perform(*local, accesses, views, workspace);
}

void deliver(Combine combine, std::span<const Access> accesses, std::span<const View> views, PackedOperands& workspace) {
  const View source = operand(accesses, views, 0, workspace.left);
  combine == Combine::add ? add(views[1], source, views[1]) : copy(source, views[1]);
}

Combine combine_of(const Schedule& lowered, const Activity& transfer) {
  const Op& op = lowered.programs[transfer.receiver_program].tasks[transfer.receiver_task.index()].op;
  if (const auto* shift = std::get_if<Shift>(&op)) return shift->combine;
  return std::get<Recv>(op).combine;
}

}  // namespace podsim
