// Products of modules as Matmuls, where one can say them; fusions of a product and a sum as products that accumulate.
#include <algorithm>

#include "workloads/hlo/program_scope.hpp"

namespace podsim {

namespace {

/// Behind what passes a value on unchanged.
const HloInstruction& source_of(const HloComputation& body, int i) {
  while (true) {
    const HloInstruction& at = body.instructions[static_cast<std::size_t>(i)];
    if (at.opcode != HloOpcode::bitcast && at.opcode != HloOpcode::reshape) return at;
    i = at.operands.front();
  }
}

/// left . right + sum, by number of the fusion's operand.
struct FusedSum {
  const HloInstruction* dot = nullptr;
  std::int64_t left = 0, right = 0, sum = 0;
};

std::optional<FusedSum> fused_sum(const HloComputation& body) {
  const HloInstruction& root = source_of(body, body.root);
  if (root.opcode != HloOpcode::add || root.operands.size() != 2) return std::nullopt;
  // Nothing else may be computed: it would cost something.
  const auto counts = [&](HloOpcode opcode) { return std::count_if(body.instructions.begin(), body.instructions.end(), [&](const HloInstruction& at) { return at.opcode == opcode; }); };
  const auto known = counts(HloOpcode::parameter) + counts(HloOpcode::bitcast) + counts(HloOpcode::reshape) + 2;
  if (counts(HloOpcode::dot) != 1 || counts(HloOpcode::add) != 1 || known != static_cast<std::ptrdiff_t>(body.instructions.size())) return std::nullopt;
  for (std::size_t o = 0; o < 2; ++o) {
    const HloInstruction &dot = source_of(body, root.operands[o]), &sum = source_of(body, root.operands[1 - o]);
    if (dot.opcode != HloOpcode::dot || sum.opcode != HloOpcode::parameter) continue;
    const HloInstruction &left = source_of(body, dot.operands[0]), &right = source_of(body, dot.operands[1]);
    if (left.opcode != HloOpcode::parameter || right.opcode != HloOpcode::parameter) continue;
    return FusedSum{&dot, left.number, right.number, sum.number};
  }
  return std::nullopt;
}

/// Where the rows of a matrix end whose contracted dimensions are its last ones, in order, or its first ones; 0: they are neither.
int split_at(const std::vector<std::int64_t>& contracted, std::size_t rank, bool& are_first) {
  const auto count = contracted.size();
  const auto from = [&](std::size_t first) {
    for (std::size_t i = 0; i < count; ++i)
      if (contracted[i] != static_cast<std::int64_t>(first + i)) return false;
    return true;
  };
  if (count == 0 || count >= rank) return 0;
  are_first = from(0);
  if (are_first) return static_cast<int>(count);
  return from(rank - count) ? static_cast<int>(rank - count) : 0;
}

struct Contracted {
  std::vector<std::int64_t> left, right;  // dimensions
};
/// Of a dot, and of a convolution without windows that is one: [batch, feature] and [feature, batch] on either side.
std::optional<Contracted> contracted_of(const HloInstruction& product) {
  const HloAttributes& attributes = *product.attributes;
  if (product.opcode == HloOpcode::dot) return Contracted{attributes.lhs_contracting, attributes.rhs_contracting};
  const auto& dims = attributes.convolution;
  if (!dims || !attributes.window.empty() || !dims->input_spatial.empty() || dims->output_batch != 0 || attributes.feature_group_count != 1 || attributes.batch_group_count != 1)
    return std::nullopt;
  return Contracted{{dims->input_feature}, {dims->kernel_input}};
}

/// A dot without batch dimensions.
std::optional<Matmul> matmul_of_dot(const Contracted& dot, int float32_passes, Region left, Region right, Region out) {
  bool left_first = false, right_first = false;
  const int left_split = split_at(dot.left, left.dims.size(), left_first), right_split = split_at(dot.right, right.dims.size(), right_first);
  if (left_split == 0 || right_split == 0) return std::nullopt;
  Matmul matmul{std::move(left), std::move(right), std::move(out)};
  matmul.left_split = left_split, matmul.right_split = right_split;
  matmul.transpose_left = left_first, matmul.transpose_right = !right_first;
  matmul.out_split = static_cast<int>(matmul.left.dims.size() - dot.left.size());
  matmul.float32_passes = float32_passes;
  return matmul;
}

}  // namespace

std::optional<Matmul> ProgramWriter::product(const Scope& scope, int i, const HloLeaf& out) const {
  const HloInstruction& what = at(scope, i);
  if ((what.opcode != HloOpcode::dot && what.opcode != HloOpcode::convolution) || !out.buffer) return std::nullopt;
  return matmul_of(scope.computation, what, operand(scope, i, 0).front(), operand(scope, i, 1).front(), out);
}

std::optional<Matmul> ProgramWriter::matmul_of(const HloComputation& body, const HloInstruction& dot, const HloLeaf& left, const HloLeaf& right, const HloLeaf& out) const {
  const auto product = product_of(module_.module(), body, dot);
  if (!product || product->batch != 1 || !left.buffer || !right.buffer || left.buffer == out.buffer || right.buffer == out.buffer) return std::nullopt;
  const auto dtype = [&](const HloLeaf& leaf) { return builder_.buffer(*leaf.buffer).dtype; };
  const HloProductRate rate = product_rate_of(body, dot);
  if (!is_product_of(dtype(left), dtype(out)) || dtype(right) != dtype(left) || rate.operands != dtype(left) || rate.products != 1) return std::nullopt;
  const auto is_written = [&](const HloInstruction& value) { return module_.form(*value.shape).as_written; };
  const auto operand_of = [&](std::size_t o) -> const HloInstruction& { return body.instructions[static_cast<std::size_t>(dot.operands[o])]; };
  if (!is_written(operand_of(0)) || !is_written(operand_of(1)) || !is_written(dot)) return std::nullopt;
  if (module_.values() && is_complex(dot.shape->type)) return std::nullopt;  // pairs
  if (module_.values()) {
    const auto has_dims = [&](const HloLeaf& leaf, const HloInstruction& value) { return leaf.lengths == module_.form(*value.shape).lengths; };
    if (!has_dims(left, operand_of(0)) || !has_dims(right, operand_of(1))) return std::nullopt;
    const auto contracted = contracted_of(dot);
    if (!contracted) return std::nullopt;
    return matmul_of_dot(*contracted, rate.float32_passes, region_of(*left.buffer, left.lengths), region_of(*right.buffer, right.lengths), region_of(*out.buffer, out.lengths));
  }
  // How many first dimensions have `rows` elements and the others `columns`.
  const auto split = [](const std::vector<std::int64_t>& lengths, std::int64_t rows, std::int64_t columns) -> std::optional<int> {
    std::int64_t before = 1, all_of = 1;
    for (const std::int64_t length : lengths) all_of *= length;
    if (all_of != rows * columns) return std::nullopt;
    for (std::size_t d = 0; d < lengths.size(); ++d) {
      before *= lengths[d];
      if (before == rows && d + 1 < lengths.size()) return static_cast<int>(d) + 1;
    }
    return std::nullopt;
  };
  Matmul matmul{region_of(*left.buffer, left.lengths), region_of(*right.buffer, right.lengths), region_of(*out.buffer, out.lengths)};
  matmul.float32_passes = rate.float32_passes;
  const auto as = [&](const std::vector<std::int64_t>& lengths, std::int64_t rows, std::int64_t columns, int& at_dimension, bool& transposed) {
    transposed = false;
    auto found = split(lengths, rows, columns);
    if (!found) transposed = true, found = split(lengths, columns, rows);
    if (found) at_dimension = *found;
    return found.has_value();
  };
  bool transposed_out = false;
  if (!as(left.lengths, product->m, product->k, matmul.left_split, matmul.transpose_left) ||
      !as(right.lengths, product->k, product->n, matmul.right_split, matmul.transpose_right) ||
      !as(out.lengths, product->m, product->n, matmul.out_split, transposed_out))
    return std::nullopt;
  if (transposed_out) {  // out^T = right^T left^T
    std::swap(matmul.left, matmul.right);
    std::swap(matmul.left_split, matmul.right_split);
    std::swap(matmul.transpose_left, matmul.transpose_right);
    matmul.transpose_left = !matmul.transpose_left, matmul.transpose_right = !matmul.transpose_right;
  }
  return matmul;
}

std::optional<HloValue> ProgramWriter::accumulation(const Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  // With values such a fusion runs as it is: what is passed on in it may be transposed.
  if (!what.shape->is_array() || module_.options().clock_hz || module_.values()) return std::nullopt;
  const HloComputation* const calls = called(module_.module(), what, HloRole::calls);
  if (calls == nullptr) return std::nullopt;
  const HloComputation& body = *calls;
  const auto found = fused_sum(body);
  if (!found || what.operands.size() != 3) return std::nullopt;
  const auto given = [&](std::int64_t number) { return operand(scope, i, static_cast<std::size_t>(number)); };
  const HloValue left = given(found->left), right = given(found->right), sum = given(found->sum);
  if (left.size() != 1 || right.size() != 1 || sum.size() != 1 || !sum.front().buffer || !dies_here(scope, *sum.front().buffer)) return std::nullopt;
  auto matmul = matmul_of(body, *found->dot, left.front(), right.front(), sum.front());
  if (!matmul) return std::nullopt;
  matmul->accumulate = true;
  Edges ready;
  for (const HloLeaf* leaf : {&left.front(), &right.front(), &sum.front()}) ready.insert(ready.end(), leaf->ready.begin(), leaf->ready.end());
  const BufferId out = *sum.front().buffer;
  task(label_of(what), *std::move(matmul), {*left.front().buffer, *right.front().buffer}, {out}, std::move(ready), true);
  return HloValue{sum.front()};
}

}  // namespace podsim
