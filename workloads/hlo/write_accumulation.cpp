// Fusions of a product and a sum as products that accumulate.
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
  const auto counts = [&](HloOpcode opcode) {
    return std::count_if(body.instructions.begin(), body.instructions.end(), [&](const HloInstruction& at) { return at.opcode == opcode; });
  };
  const auto known = counts(HloOpcode::parameter) + counts(HloOpcode::bitcast) + counts(HloOpcode::reshape) + 2;
  if (counts(HloOpcode::dot) != 1 || counts(HloOpcode::add) != 1 || known != static_cast<std::ptrdiff_t>(body.instructions.size()))
    return std::nullopt;
  for (std::size_t o = 0; o < 2; ++o) {
    const HloInstruction &dot = source_of(body, root.operands[o]), &sum = source_of(body, root.operands[1 - o]);
    if (dot.opcode != HloOpcode::dot || sum.opcode != HloOpcode::parameter) continue;
    const HloInstruction &left = source_of(body, dot.operands[0]), &right = source_of(body, dot.operands[1]);
    if (left.opcode != HloOpcode::parameter || right.opcode != HloOpcode::parameter) continue;
    return FusedSum{&dot, left.number, right.number, sum.number};
  }
  return std::nullopt;
}

}  // namespace

std::optional<HloValue> ProgramWriter::accumulation(const Scope& scope, int i) {
  const HloInstruction& what = at(scope, i);
  if (what.calls.empty() || !what.shape->is_array() || module_.options().clock_hz) return std::nullopt;
  const HloComputation& body = module_.module().computations[static_cast<std::size_t>(called_number(what, HloRole::calls))];
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
  task(what.name, *std::move(matmul), {*left.front().buffer, *right.front().buffer}, {out}, std::move(ready), true);
  return HloValue{sum.front()};
}

}  // namespace podsim
