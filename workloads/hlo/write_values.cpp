// Tasks of modules that say what they compute: for schedules with values.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/invariant.hpp"
#include "workloads/hlo/group_views.hpp"
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
  task(label_of(what), std::move(op), reads.buffers, writes, after, on_core);
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
  const std::string name = label_of(*writing_) + " goes as planned";
  Local local{LocalKind::opaque, std::move(reads.regions), {}};
  local.opaque.operation = module_.add({kind, module_.number_of(scope.computation), std::move(instruction), std::move(reads.operands), {}, branch});
  task(name, std::move(local), reads.buffers, {}, {}, true);
}

TaskId ProgramWriter::keep_own(const HloInstruction& at, const Region& in, const Region& out, const Edges& after) {
  HloKernel operation{HloKernel::Kind::keep_own, 0, at, {{0}}, {0}};
  Local local{LocalKind::opaque, {in}, {out}, 1, Unit::dma};
  local.opaque.operation = module_.add(std::move(operation));
  return task("own of " + label_of(at), std::move(local), {in.buffer}, {out.buffer}, after, false);
}

HloLeaf ProgramWriter::within_type(const HloComputation& entry, int parameter, const HloLeaf& given) {
  HloInstruction copy = entry.instructions[static_cast<std::size_t>(parameter)];
  const HloArrayForm form = module_.form(*copy.shape);
  const HloLeaf made{add_buffer({copy.name + " in its type", form.extents, form.dtype, Role::scratch, {}, {}}, true), form.lengths, {}, 0, {}};
  copy.opcode = HloOpcode::copy;
  copy.operands = {parameter};
  Local local{LocalKind::opaque, {region_of(*given.buffer, given.lengths)}, {region_of(*made.buffer, made.lengths)}, 1, Unit::dma};
  const std::string name = copy.name;
  local.opaque.operation = module_.add({HloKernel::Kind::instruction, module_.number_of(entry), std::move(copy), {{0}}, {0}});
  task(name, std::move(local), {*given.buffer}, {*made.buffer}, {}, false);
  return made;
}

bool ProgramWriter::has_operation(const Scope& scope, int i, const HloInstruction& attributes, const HloShape& result) const {
  if (attributes.opcode == HloOpcode::collective_permute) return true;
  const auto among = groups(attributes, at(scope, i));
  if (!among) return true;  // refused where they are looked at
  if (among->listed || attributes.opcode == HloOpcode::ragged_all_to_all) return false;
  if (attributes.opcode != HloOpcode::all_reduce && attributes.opcode != HloOpcode::reduce_scatter) return true;
  const std::vector<const HloShape*> made = leaves_of(result);
  std::size_t next = 0;
  for (const int operand : at(scope, i).operands)
    for (const HloShape* given : leaves_of(*at(scope, operand).shape))
      if (given->is_array() && next < made.size() && given->type != made[next++]->type) return false;
  return adds(attributes);
}

Expected<HloValue> ProgramWriter::by_definition(Scope& scope, int i, int result_of, const HloShape& result, Edges& ended) {
  const HloInstruction& what = at(scope, i);
  const auto everyone = collective_groups(ReplicaGroups{}, module_.mesh(), false);
  PODSIM_ASSERT(everyone);
  HloKernel kernel{HloKernel::Kind::collective, module_.number_of(scope.computation), what, {}, {}};
  kernel.instruction.phase = HloPhase::whole;
  kernel.instruction.shape = result;
  Local local{LocalKind::opaque, {}, {}, 1, Unit::dma};
  std::vector<BufferId> reads, writes;
  for (std::size_t o = 0; o < what.operands.size(); ++o) {
    const auto shapes = leaves_of(*at(scope, what.operands[o]).shape);
    const HloValue given = operand(scope, i, o);
    std::vector<int>& leaves = kernel.operands.emplace_back();
    for (std::size_t leaf = 0; leaf < given.size(); ++leaf) {
      if (!given[leaf].buffer) {
        leaves.push_back(HloKernel::none);
        continue;
      }
      const HloLeaf there = stored(label_of(what) + " operand", given[leaf], *shapes[leaf]);
      const Region own = region_of(*there.buffer, there.lengths);
      const std::int64_t elements = elements_of(own), devices = module_.mesh().devices();
      const auto row = [&](const char* name, std::int64_t length) {
        return region_of(add_buffer({fmt::format("{} {}", what.name, name), {length}, builder_.buffer(*there.buffer).dtype, Role::scratch, {}, {}}, true), {length});
      };
      Region all = row("operand in a row", elements);
      view("place " + label_of(what), {own}, {all}, text_order());
      if (devices > 1) {
        const Region gathered = row("operands of all devices", elements * devices);
        const auto made = exchange(what, CollectiveKind::all_gather, *everyone, {all}, {gathered}, 0, text_order());
        if (!made) return made.error();
        all = gathered;
      }
      leaves.push_back(static_cast<int>(local.reads.size()));
      reads.push_back(all.buffer);
      local.reads.push_back(all);
    }
  }
  HloValue value = allocate(scope, result_of, result);
  for (const HloLeaf& leaf : value) {
    kernel.results.push_back(leaf.buffer ? static_cast<int>(local.writes.size()) : HloKernel::none);
    if (!leaf.buffer) continue;
    writes.push_back(*leaf.buffer);
    local.writes.push_back(region_of(*leaf.buffer, leaf.lengths));
  }
  local.opaque.operation = module_.add(std::move(kernel));
  ended.push_back(Edge{task(label_of(what), std::move(local), reads, writes, text_order(), false)});
  return value;
}

}  // namespace podsim
