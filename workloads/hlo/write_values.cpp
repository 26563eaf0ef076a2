// Tasks of modules that say what they compute: for schedules with values.
#include <algorithm>

#include "workloads/hlo/program_scope.hpp"

namespace podsim {

ProgramWriter::OperationReads ProgramWriter::reads_of(const std::vector<HloValue>& operands) const {
  OperationReads reads;
  for (const HloValue& value : operands) {
    std::vector<int>& leaves = reads.operands.emplace_back();
    for (const HloLeaf& leaf : value) {
      if (!leaf.buffer) {
        leaves.push_back(HloKernel::none);
        continue;
      }
      // Values of one buffer have the same elements in row-major order, whatever their dimensions.
      const auto known = std::find(reads.buffers.begin(), reads.buffers.end(), *leaf.buffer);
      leaves.push_back(static_cast<int>(known - reads.buffers.begin()));
      if (known != reads.buffers.end()) continue;
      reads.buffers.push_back(*leaf.buffer);
      reads.regions.push_back(region_of(*leaf.buffer, leaf.lengths));
    }
  }
  return reads;
}

HloValue ProgramWriter::execute(Scope& scope, int i, HloInstruction instruction, int result_of, bool on_core, const Edges& after) {
  const HloInstruction& what = at(scope, i);
  std::vector<HloValue> operands;
  for (std::size_t o = 0; o < what.operands.size(); ++o) operands.push_back(operand(scope, i, o));
  OperationReads reads = reads_of(operands);
  HloValue value = allocate(scope, result_of, *at(scope, result_of).shape);
  std::vector<BufferId> writes;
  HloKernel operation{HloKernel::Kind::instruction, module_.number_of(scope.computation), std::move(instruction), std::move(reads.operands), {}};
  Local local{LocalKind::opaque, std::move(reads.regions), {}, 1, on_core ? Unit::core : Unit::dma};
  for (const HloLeaf& leaf : value) {
    operation.results.push_back(leaf.buffer ? static_cast<int>(local.writes.size()) : HloKernel::none);
    if (!leaf.buffer) continue;
    writes.push_back(*leaf.buffer);
    local.writes.push_back(region_of(*leaf.buffer, leaf.lengths));
  }
  Op op;
  if (auto matmul = value.size() == 1 && on_core && !is_beside_core_ ? product(scope, i, value.front()) : std::nullopt) {
    op = *std::move(matmul);
  } else {
    local.opaque.operation = module_.add(std::move(operation));
    op = std::move(local);
  }
  task(what.name, std::move(op), reads.buffers, writes, after, on_core);
  return value;
}

void ProgramWriter::expect_branch(const Scope& scope, int i, std::int64_t branch) {
  expect(scope, HloKernel::Kind::is_branch, at(scope, i), operand(scope, i, 0), branch);
}

void ProgramWriter::expect_condition(const Scope& scope, int i, bool is_true, const HloValue& state) {
  const HloInstruction& loop = at(scope, i);
  HloInstruction call = loop;
  call.opcode = HloOpcode::call;
  call.calls = {{HloRole::to_apply, called_number(loop, HloRole::condition)}};
  const HloComputation& condition = module_.module().computations[static_cast<std::size_t>(call.calls.front().computation)];
  call.shape = condition.instructions[static_cast<std::size_t>(condition.root)].shape;
  expect(scope, is_true ? HloKernel::Kind::is_true : HloKernel::Kind::is_false, std::move(call), state, 0);
}

void ProgramWriter::expect(const Scope& scope, HloKernel::Kind kind, HloInstruction instruction, const HloValue& operand, std::int64_t branch) {
  OperationReads reads = reads_of({operand});
  const std::string name = instruction.name + " goes as planned";
  Local local{LocalKind::opaque, std::move(reads.regions), {}};
  local.opaque.operation = module_.add({kind, module_.number_of(scope.computation), std::move(instruction), std::move(reads.operands), {}, branch});
  task(name, std::move(local), reads.buffers, {}, {}, true);
}

TaskId ProgramWriter::keep_own(const HloInstruction& at, const Region& in, const Region& out, const Edges& after) {
  HloKernel operation{HloKernel::Kind::keep_own, 0, at, {{0}}, {0}};
  Local local{LocalKind::opaque, {in}, {out}, 1, Unit::dma};
  local.opaque.operation = module_.add(std::move(operation));
  return task("own of " + at.name, std::move(local), {in.buffer}, {out.buffer}, after, false);
}

}  // namespace podsim
