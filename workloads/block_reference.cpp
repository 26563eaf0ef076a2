#include "workloads/block_reference.hpp"

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

using Kind = ReferenceKind;

/// Nodes are activations [tokens, features] unless they say otherwise. Features are in the order in which the devices hold them: of a gated
/// activation [devices along the features, gate | up, own], after a re-layout as relayout() has it.
class BlockGraph {
 public:
  BlockGraph(const Workload& workload, const Plan& plan, const DeviceGrid& grid, Pass pass)
      : workload_{workload},
        plan_{plan},
        grid_{grid},
        forward_{pass != Pass::backward},
        backward_{pass != Pass::forward},
        read_(workload.stages.size(), -1),
        sums_(workload.stages.size(), -1) {}

  ReferenceProgram write() && {
    workload_.data_flows() ? write_chained() : write_apart();
    constexpr std::array<std::string_view, 3> suffix{", forward", ", backward", ", forward and backward"};
    program_.claim = "plain " + workload_.name + std::string{suffix[forward_ ? backward_ ? 2 : 0 : 1]};
    return std::move(program_);
  }

 private:
  // ---- The whole ----

  /// Activations flow forwards and gradients backwards. A residual joins the stream that its branch left; its gradient skips the branch.
  void write_chained() {
    const std::size_t count = workload_.stages.size();
    if (forward_) {
      int at = activations("X", tokens(0), features_into(0), layout(0)), stream = at;
      for (std::size_t s = 0; s < count; ++s) {
        if (turns(s)) at = relayout(s, at);
        if (name(s) == router_stage) {  // what it reads is dispatched, too
          logits_ = forward(s, at);
          continue;
        }
        at = is(s, Stage::Kind::residual) ? stream = add(Kind::add, {at, stream}, extents(at)) : forward(s, at);
      }
      output("Y", at, layout_after(count - 1));
    }
    if (!backward_) return;
    int gradient = activations("dY", tokens(count - 1), features_out_of(count - 1), layout_after(count - 1)), skipped = -1;
    for (std::size_t s = count; s-- > 0;) {
      if (is(s, Stage::Kind::residual))
        skipped = gradient;
      else if (name(s) == router_stage)
        gradient = add(Kind::add, {backward(s, d_logits_), gradient}, extents(gradient));
      else
        gradient = backward(s, gradient);
      if (turns(s)) gradient = relayout_back(s, gradient);
      const bool branch_begins = s == 0 || is(s - 1, Stage::Kind::residual);
      if (branch_begins && skipped >= 0) gradient = add(Kind::add, {gradient, skipped}, extents(gradient));
      if (branch_begins) skipped = -1;
    }
    output("dX", gradient, layout(0));
  }

  /// Every part has tensors of its own.
  void write_apart() {
    for (std::size_t s = 0; s < workload_.stages.size(); ++s) {
      const std::string own = name(s) + ".";
      const bool joins = is(s, Stage::Kind::residual);
      if (turns(s)) {
        const std::string turning = name(s) + " re-layout.";
        if (forward_) output(turning + "Y", relayout(s, activations(turning + "X", tokens(s), features_into(s), other(layout(s)))), layout(s));
        if (backward_)
          output(turning + "dX", relayout_back(s, activations(turning + "dY", tokens(s), features_into(s), layout(s))), other(layout(s)));
      }
      if (forward_) {
        const int x = activations(own + "X", tokens(s), features_into(s), layout(s));
        const int skip = joins ? activations(own + "skip", tokens(s), features_into(s), layout(s)) : -1;
        output(own + "Y", joins ? add(Kind::add, {x, skip}, extents(x)) : forward(s, x), layout_after(s));
      }
      if (backward_) {
        const int dy = activations(own + "dY", tokens(s), features_out_of(s), layout_after(s));
        const int skip = joins ? activations(own + "dskip", tokens(s), features_into(s), layout(s)) : -1;
        output(own + "dX", joins ? add(Kind::add, {dy, skip}, extents(dy)) : backward(s, dy), layout(s));
      }
    }
  }

  // ---- Stages ----

  int forward(std::size_t s, int x) {
    read_[s] = x;
    switch (workload_.stages[s].kind) {
      case Stage::Kind::product:
        if (has_experts(s)) return flat(s, add(Kind::product, {by_expert(s, x), expert_weights(s)}, {experts(), tokens(s) / experts(), features_out_of(s)}));
        return add(Kind::product, {x, weights(s)}, {tokens(s), features_out_of(s)});
      case Stage::Kind::norm: sums_[s] = add(Kind::norm_sums, {x}, {tokens(s), sums_of_token()}); return add(Kind::norm, {x, sums_[s]}, extents(x));
      case Stage::Kind::attention: return flat(s, attention(s, Kind::attention, {heads(s, x)}, queries(s)));
      case Stage::Kind::activation: return activation(s, x);
      case Stage::Kind::dispatch: return dispatch(s, x);
      case Stage::Kind::combine: return combine(x);
      case Stage::Kind::residual: break;
    }
    PODSIM_ASSERT(false && "a residual has two operands");
    return x;
  }

  int backward(std::size_t s, int dy) {
    switch (workload_.stages[s].kind) {
      case Stage::Kind::product: {
        if (has_experts(s)) return expert_gradients(s, dy);
        const int x = read(s), w = weights(s);
        const int dw = add(Kind::product, {x, dy}, {features_into(s), features_out_of(s)});
        program_.nodes[static_cast<std::size_t>(dw)].transpose_left = true;
        program_.outputs.emplace_back(name(s) + ".dW", turned_weights(s) ? turned(dw) : dw);
        const int dx = add(Kind::product, {dy, w}, {tokens(s), features_into(s)});
        program_.nodes[static_cast<std::size_t>(dx)].transpose_right = true;
        return dx;
      }
      case Stage::Kind::norm: {
        const int x = read(s);
        if (sums_[s] < 0) sums_[s] = activations(name(s) + ".sums", tokens(s), sums_of_token(), layout(s));
        return add(Kind::norm_grad, {dy, x, sums_[s]}, extents(x));
      }
      case Stage::Kind::attention: {
        const int x = read(s), d_o = add(Kind::reshape, {dy}, head_extents(s, queries(s)));
        return flat(s, attention(s, Kind::attention_grad, {d_o, heads(s, x)}, queries(s) + 2));
      }
      case Stage::Kind::activation: return activation_gradient(s, dy, read(s));
      case Stage::Kind::dispatch: return dispatch_back(s, dy);
      case Stage::Kind::combine: return combine_back(dy);
      case Stage::Kind::residual: break;
    }
    PODSIM_ASSERT(false && "a residual hands its gradient on");
    return dy;
  }

  [[nodiscard]] std::int64_t sums_of_token() const { return workload_.block->norm == Norm::layer ? 2 : 1; }

  int attention(std::size_t s, Kind kind, std::vector<int> operands, std::int64_t heads_of_result) {
    const int node = add(kind, std::move(operands), head_extents(s, heads_of_result));
    program_.nodes[static_cast<std::size_t>(node)].causal = workload_.block->causal;
    return node;
  }
  [[nodiscard]] std::int64_t queries(std::size_t s) const { return workload_.block->heads / groups(layout(s)); }
  [[nodiscard]] Extents head_extents(std::size_t s, std::int64_t heads_of_group) const {
    const TransformerBlock& block = *workload_.block;
    return {tokens(s) / block.sequence, block.sequence, groups(layout(s)), heads_of_group, block.head_dim};
  }
  int heads(std::size_t s, int x) { return add(Kind::reshape, {x}, head_extents(s, queries(s) + 2)); }
  /// Heads side by side as the features of each token.
  int flat(std::size_t s, int node) { return add(Kind::reshape, {node}, {tokens(s), element_count(extents(node)) / tokens(s)}); }

  int activation(std::size_t s, int x) {
    if (!workload_.block->gated) return add(Kind::gelu, {x}, extents(x));
    const int gate = half(s, x, 0), up = half(s, x, 1);
    const int silu = add(Kind::silu, {gate}, extents(gate));
    return flat(s, add(Kind::multiply, {silu, up}, extents(up)));
  }
  int activation_gradient(std::size_t s, int dy, int x) {
    if (!workload_.block->gated) {
      const int slope = add(Kind::gelu_slope, {x}, extents(x));
      return add(Kind::multiply, {dy, slope}, extents(x));
    }
    const int gate = half(s, x, 0), up = half(s, x, 1);
    const Extents each = extents(gate);
    const int d_product = add(Kind::reshape, {dy}, each);
    const int d_up = add(Kind::multiply, {d_product, add(Kind::silu, {gate}, each)}, each);
    const int d_silu = add(Kind::multiply, {d_product, up}, each);
    const int d_gate = add(Kind::multiply, {d_silu, add(Kind::silu_slope, {gate}, each)}, each);
    Extents both = each;
    both[2] = 2;
    const int joined = add(Kind::concatenate, {d_gate, d_up}, both);
    program_.nodes[static_cast<std::size_t>(joined)].dim = 2;
    return flat(s, joined);
  }
  /// Gate or up: [tokens, devices along the features, 1, own].
  int half(std::size_t s, int x, std::int64_t which) {
    const std::int64_t P = across(layout(s)), own = features_into(s) / (2 * P);
    const int apart = add(Kind::reshape, {x}, {tokens(s), P, 2, own});
    const int part = add(Kind::slice, {apart}, {tokens(s), P, 1, own});
    program_.nodes[static_cast<std::size_t>(part)].dim = 2;
    program_.nodes[static_cast<std::size_t>(part)].offset = which;
    return part;
  }

  // ---- Experts ----

  // Tokens are [D, G, C]: D blocks that are routed apart, in each G groups of C tokens that have the same k experts. At the experts their copies are [G, k, D, C].

  [[nodiscard]] std::int64_t experts() const { return workload_.block->experts; }
  [[nodiscard]] std::int64_t each() const { return workload_.block->experts_per_token; }
  [[nodiscard]] std::int64_t blocks() const { return workload_.block->routed_apart; }
  [[nodiscard]] std::int64_t groups_of_experts() const { return experts() / each(); }
  [[nodiscard]] std::int64_t all_tokens() const { return tokens(0); }
  [[nodiscard]] std::int64_t tokens_of_group() const { return all_tokens() / (blocks() * groups_of_experts()); }
  [[nodiscard]] std::int64_t width() const { return workload_.block->hidden; }
  [[nodiscard]] bool has_experts(std::size_t s) const { return workload_.stages[s].experts > 1; }

  int reshaped(int node, Extents to) { return add(Kind::reshape, {node}, std::move(to)); }
  int transposed(int node, std::vector<int> permutation) {
    Extents to;
    for (const int dim : permutation) to.push_back(extents(node)[static_cast<std::size_t>(dim)]);
    const int made = add(Kind::transpose, {node}, std::move(to));
    program_.nodes[static_cast<std::size_t>(made)].permutation = std::move(permutation);
    return made;
  }
  int summed(int node, int dim) {
    Extents to = extents(node);
    to.erase(to.begin() + dim);
    const int made = add(Kind::sum, {node}, std::move(to));
    program_.nodes[static_cast<std::size_t>(made)].dim = dim;
    return made;
  }

  int dispatch(std::size_t s, int x) {
    const std::int64_t D = blocks(), G = groups_of_experts(), C = tokens_of_group(), N = width();
    const int group = reshaped(transposed(reshaped(x, {D, G, C, N}), {1, 0, 2, 3}), {G, 1, D * C * N});
    int copies = group;
    for (std::int64_t j = 1; j < each(); ++j) {
      copies = add(Kind::concatenate, {copies, group}, {G, j + 1, D * C * N});
      program_.nodes[static_cast<std::size_t>(copies)].dim = 1;
    }
    return reshaped(copies, {tokens(s), N});
  }
  int dispatch_back(std::size_t, int dy) {
    const std::int64_t D = blocks(), G = groups_of_experts(), C = tokens_of_group(), N = width();
    return reshaped(transposed(summed(reshaped(dy, {G, each(), D, C, N}), 1), {1, 0, 2, 3}), {all_tokens(), N});
  }

  /// [1, G, 1, G, 1]: 1 where both groups are one.
  int own_group() {
    const std::int64_t G = groups_of_experts();
    return reshaped(add(Kind::one_hot, {add(Kind::iota, {}, {G})}, {G, G}), {1, G, 1, G, 1});
  }
  int combine(int y) {
    const std::int64_t D = blocks(), G = groups_of_experts(), C = tokens_of_group(), k = each();
    const int of_all = reshaped(logits_, {D, G, C, G, k});
    const int own = summed(add(Kind::multiply, {of_all, own_group()}, {D, G, C, G, k}), 3);
    gates_ = add(Kind::softmax, {own}, {D, G, C, k});
    combined_ = transposed(reshaped(y, {G, k, D, C, width()}), {2, 0, 3, 1, 4});
    return reshaped(summed(add(Kind::multiply, {combined_, reshaped(gates_, {D, G, C, k, 1})}, {D, G, C, k, width()}), 3), {all_tokens(), width()});
  }
  int combine_back(int dy) {
    PODSIM_ASSERT(gates_ >= 0 && "experts are proven with their forward pass");
    const std::int64_t D = blocks(), G = groups_of_experts(), C = tokens_of_group(), k = each(), N = width();
    const int slope = reshaped(dy, {D, G, C, 1, N});
    const int d_gates = summed(add(Kind::multiply, {combined_, slope}, {D, G, C, k, N}), 4);
    const int mean = reshaped(summed(add(Kind::multiply, {gates_, d_gates}, {D, G, C, k}), 3), {D, G, C, 1});
    const int d_own = add(Kind::multiply, {gates_, add(Kind::subtract, {d_gates, mean}, {D, G, C, k})}, {D, G, C, k});
    d_logits_ = reshaped(add(Kind::multiply, {reshaped(d_own, {D, G, C, 1, k}), own_group()}, {D, G, C, G, k}), {all_tokens(), experts()});
    const int d_copies = add(Kind::multiply, {slope, reshaped(gates_, {D, G, C, k, 1})}, {D, G, C, k, N});
    return reshaped(transposed(d_copies, {1, 3, 0, 2, 4}), {all_tokens() * k, N});
  }

  int by_expert(std::size_t s, int x) { return reshaped(x, {experts(), tokens(s) / experts(), extents(x)[1]}); }
  int expert_weights(std::size_t s) {
    return reshaped(input(name(s) + ".W", {experts() * features_into(s), features_out_of(s)}), {experts(), features_into(s), features_out_of(s)});
  }
  int expert_gradients(std::size_t s, int dy) {
    const int x = by_expert(s, read(s)), slope = by_expert(s, dy), w = expert_weights(s);
    const int dw = add(Kind::product, {x, slope}, {experts(), features_into(s), features_out_of(s)});
    program_.nodes[static_cast<std::size_t>(dw)].transpose_left = true;
    program_.outputs.emplace_back(name(s) + ".dW", reshaped(dw, {experts() * features_into(s), features_out_of(s)}));
    const int dx = add(Kind::product, {slope, w}, {experts(), tokens(s) / experts(), features_into(s)});
    program_.nodes[static_cast<std::size_t>(dx)].transpose_right = true;
    return flat(s, dx);
  }

  // ---- Re-layouts ----

  /// Between P devices along the features afterwards and Q before: feature (q, p, own) comes to place (p, q, own).
  int relayout(std::size_t s, int x) { return exchanged(s, x, across(other(layout(s))), across(layout(s))); }
  int relayout_back(std::size_t s, int dy) { return exchanged(s, dy, across(layout(s)), across(other(layout(s)))); }
  int exchanged(std::size_t s, int x, std::int64_t first, std::int64_t second) {
    const std::int64_t T = tokens(s), own = features_into(s) / (first * second);
    const int apart = add(Kind::reshape, {x}, {T, first, second, own});
    const int swapped = add(Kind::transpose, {apart}, {T, second, first, own});
    program_.nodes[static_cast<std::size_t>(swapped)].permutation = {0, 2, 1, 3};
    return flat(s, swapped);
  }

  // ---- Tensors ----

  int activations(const std::string& tensor, std::int64_t tokens, std::int64_t features, ActivationLayout stored) {
    const bool by_row = stored == ActivationLayout::tokens_by_row;
    const int node = input(tensor, by_row ? Extents{tokens, features} : Extents{features, tokens});
    return by_row ? node : turned(node);
  }
  void output(const std::string& tensor, int node, ActivationLayout stored) {
    program_.outputs.emplace_back(tensor, stored == ActivationLayout::tokens_by_row ? node : turned(node));
  }
  /// What a stage read in the forward pass, or is given without one.
  int read(std::size_t s) {
    if (read_[s] < 0) read_[s] = activations(name(s) + ".X", tokens(s), features_into(s), layout(s));
    return read_[s];
  }

  [[nodiscard]] bool turned_weights(std::size_t s) const {
    const ProductChoice& choice = *plan_.stages[s].product;
    return weights_transposed(choice.dataflow, choice.transposed);
  }
  /// [inputs, outputs]
  int weights(std::size_t s) {
    const std::int64_t inputs = features_into(s), outputs = features_out_of(s);
    if (!turned_weights(s)) return input(name(s) + ".W", {inputs, outputs});
    return turned(input(name(s) + ".W", {outputs, inputs}));
  }

  int input(const std::string& tensor, Extents extents) {
    for (std::size_t n = 0; n < program_.nodes.size(); ++n)
      if (program_.nodes[n].tensor == tensor) return static_cast<int>(n);
    const int node = add(Kind::input, {}, std::move(extents));
    program_.nodes.back().tensor = tensor;
    return node;
  }
  int turned(int node) {
    const Extents& of = extents(node);
    return add(Kind::transpose, {node}, {of[1], of[0]});
  }
  int add(Kind kind, std::vector<int> operands, Extents extents) {
    ReferenceNode node;
    node.kind = kind, node.operands = std::move(operands), node.extents = std::move(extents);
    program_.nodes.push_back(std::move(node));
    return static_cast<int>(program_.nodes.size()) - 1;
  }

  // ---- Extents ----

  [[nodiscard]] Extents extents(int node) const { return program_.nodes[static_cast<std::size_t>(node)].extents; }
  [[nodiscard]] const std::string& name(std::size_t s) const { return workload_.stages[s].name; }
  [[nodiscard]] bool is(std::size_t s, Stage::Kind kind) const { return workload_.stages[s].kind == kind; }
  [[nodiscard]] std::int64_t tokens(std::size_t s) const { return workload_.stages[s].tokens; }
  [[nodiscard]] ActivationLayout layout(std::size_t s) const { return plan_.stages[s].layout; }
  [[nodiscard]] ActivationLayout layout_after(std::size_t s) const {
    const auto& product = plan_.stages[s].product;
    return product ? output_layout(product->dataflow, product->transposed) : layout(s);
  }
  [[nodiscard]] bool turns(std::size_t s) const { return workload_.layouts_meet() && s > 0 && layout_after(s - 1) != layout(s); }
  /// Devices along the features.
  [[nodiscard]] std::int64_t across(ActivationLayout of) const { return of == ActivationLayout::tokens_by_row ? grid_.columns : grid_.rows; }
  /// Of heads; more devices than these hold copies of keys and values.
  [[nodiscard]] std::int64_t groups(ActivationLayout of) const {
    return attention_groups(*workload_.block, across(of)).value_or(workload_.block->kv_heads);
  }
  [[nodiscard]] std::int64_t features_into(std::size_t s) const {
    return is(s, Stage::Kind::attention) ? qkv_features(*workload_.block, groups(layout(s))) : workload_.stages[s].inputs;
  }
  [[nodiscard]] std::int64_t features_out_of(std::size_t s) const {
    const bool writes_qkv = workload_.block && workload_.block->attention && is(s, Stage::Kind::product) && name(s) == qkv_stage;
    return writes_qkv ? qkv_features(*workload_.block, groups(layout_after(s))) : workload_.stages[s].outputs;
  }

  const Workload& workload_;
  const Plan& plan_;
  DeviceGrid grid_;
  bool forward_, backward_;
  std::vector<int> read_, sums_;  // by stage; -1: not known
  int logits_ = -1, d_logits_ = -1, gates_ = -1, combined_ = -1;  // of experts: [tokens, E]; [D, G, C, k]; their outputs [D, G, C, k, N]
  ReferenceProgram program_;
};

}  // namespace

ReferenceProgram block_reference(const Workload& workload, const Plan& plan, const DeviceGrid& grid, Pass pass) {
  return BlockGraph{workload, plan, grid, pass}.write();
}

}  // namespace podsim
