#include "workloads/sharded/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace podsim {

namespace {

class Summary {
 public:
  Summary(const ShardedProgram& program, const ProgramPlan& plan) : program_{program}, plan_{plan} {}

  ProgramSummary make() {
    for (const auto& action : plan_.actions)
      std::visit([this](const auto& one) { add(one); }, action);
    for (const ProgramCollective& collective : summary_.collectives) {
      summary_.cost = summary_.cost + ReshardCost{collective.received, static_cast<int>(collective.count)};
      summary_.contains_all_gather |= collective.kind == name_of(StepKind::all_gather);
    }
    for (const auto& [operation, form] : plan_.outputs) {
      Sharding sharding = plan_.forms[static_cast<std::size_t>(form)].sharding;
      const std::vector<std::string> unreduced = names(sharding.unreduced);
      sharding.unreduced.clear();
      summary_.outputs.push_back({array(operation).name, array(operation).extents, to_text(sharding, program_.mesh, array(operation).extents.size()), unreduced,
                                  std::string{name_of(array(operation).dtype)}, is_real(array(operation).dtype), plan_.forms[static_cast<std::size_t>(form)].cyclic});
      if (array(operation).op == ArrayOp::from_blocks && unreduced.empty()) summary_.outputs.back().of_blocks = sharding;
    }
    count_padding();
    return std::move(summary_);
  }

 private:
  [[nodiscard]] const Operation& array(int operation) const { return program_.operations[static_cast<std::size_t>(operation)]; }
  [[nodiscard]] std::vector<std::string> names(const std::vector<int>& axes) const {
    std::vector<std::string> all;
    for (const int axis : axes) all.push_back(program_.mesh.axes()[static_cast<std::size_t>(axis)].name);
    return all;
  }
  [[nodiscard]] std::string statement_of(int operation) const {
    // The search of a chain converts operands before any statement wants them.
    const int statement = program_.statements.size() == 1 ? 0 : array(operation).statement;
    return statement < 0 ? array(operation).name : program_.statements[static_cast<std::size_t>(statement)];
  }

  void add(const PlannedStep& planned) {
    const ReshardStep& step = planned.step;
    const Operation& of = array(plan_.forms[static_cast<std::size_t>(planned.before)].operation);
    ProgramCollective collective{statement_of(planned.operation), std::string{name_of(step.kind)}, of.name, names(step.axes), step.dim,
                                 to_text(step.before, program_.mesh, of.extents.size()), to_text(step.after, program_.mesh, of.extents.size()), step.input, step.received,
                                 planned.reason};
    const auto choice = std::find_if(plan_.choices.begin(), plan_.choices.end(), [&](const PlannedChoice& c) { return c.operation == planned.operation; });
    if (choice != plan_.choices.end() && choice->next) {
      collective.alternative = choice->next->collectives;
      collective.alternative_bytes = choice->next->cost.received;
      collective.chosen_bytes = choice->chosen.cost.received;
    }
    (is_collective(step.kind) ? summary_.collectives : summary_.slices).push_back(std::move(collective));
  }

  void add(const PlannedLayout& planned) {
    const ArrayForm &before = plan_.forms[static_cast<std::size_t>(planned.before)], &after = plan_.forms[static_cast<std::size_t>(planned.after)];
    const Operation& of = array(before.operation);
    const bool to_cyclic = before.cyclic.empty();
    const ArrayForm &cyclic = to_cyclic ? after : before, &contiguous = to_cyclic ? before : after;
    const auto text = [&](const ArrayForm& form) {
      const std::string spec = to_text(form.sharding, program_.mesh, of.extents.size());
      return form.cyclic.empty() ? spec : fmt::format("{} in blocks of {}", spec, fmt::join(form.cyclic, "x"));
    };
    for (const CyclicStep& step : steps_of({program_.mesh, of.extents, cyclic.cyclic, cyclic.sharding, contiguous.sharding, of.dtype}, to_cyclic)) {
      const StepKind kind = step.kind == CyclicStep::Kind::exchange ? StepKind::all_to_all : step.kind == CyclicStep::Kind::gather ? StepKind::all_gather : StepKind::slice;
      (is_collective(kind) ? summary_.collectives : summary_.slices)
          .push_back({statement_of(planned.operation), std::string{name_of(kind)}, of.name, names(step.axes), step.dim, text(before), text(after), step.input, step.received,
                      to_cyclic ? "the factorisation deals blocks out to the devices in turn" : "blocks that were dealt out in turn are put together"});
    }
  }

  /// The collectives of its own algorithm.
  void add_kernel(const PlannedOperation& planned) {
    const Operation& operation = array(planned.operation);
    if (operation.op == ArrayOp::lu_lower || operation.op == ArrayOp::lu_upper) return;  // with the pivots
    summary_.kernels.push_back({operation.name, std::string{name_of(operation.op)}, std::string{name_of_method(*planned.kernel)}, kernel_note(operation, *planned.kernel)});
    for (const KernelCollectives& one : collectives_of(program_, operation, *planned.kernel)) {
      ProgramCollective collective{statement_of(planned.operation), std::string{name_of(one.kind)}, operation.name, names(one.axes), 0, "", "", one.input, one.received,
                                   fmt::format("{} by {}", name_of(operation.op), name_of_method(*planned.kernel))};
      collective.count = one.count;
      summary_.collectives.push_back(std::move(collective));
    }
  }

  [[nodiscard]] std::string kernel_note(const Operation&, const KernelWay& way) const {
    for (const CyclicBlocks& blocks : way.cyclic)
      if (!blocks.empty()) return fmt::format("block-cyclic, blocks of {}", fmt::join(blocks, "x"));
    return {};
  }

  /// What the text itself says.
  void add(const PlannedOperation& planned) {
    const Operation& operation = array(planned.operation);
    if (planned.kernel) return add_kernel(planned);
    if (!is_local(operation.op)) return;
    const std::int64_t P = devices_along(program_.mesh, operation.axes);
    if (is_in_place(operation, program_.mesh)) return;
    const ArrayForm& from = plan_.forms[static_cast<std::size_t>(planned.operands[0])];
    const Operation& of = array(from.operation);
    const std::int64_t input = block_bytes({of.extents, size_of(of.dtype)}, from.sharding, program_.mesh).count();
    const std::int64_t part = input - input / P;
    StepKind kind = StepKind::permute;
    std::int64_t received = input;
    switch (operation.op) {
      case ArrayOp::pmax:
      case ArrayOp::psum: kind = StepKind::all_reduce; received = 2 * part; break;
      case ArrayOp::all_gather: kind = StepKind::all_gather; received = input * (P - 1); break;
      case ArrayOp::psum_scatter: kind = StepKind::reduce_scatter; received = part; break;
      case ArrayOp::all_to_all: kind = StepKind::all_to_all; received = part; break;
      default: break;
    }
    const Sharding& after = plan_.forms[static_cast<std::size_t>(planned.result)].sharding;
    summary_.collectives.push_back({statement_of(planned.operation), std::string{name_of(kind)}, of.name, names(operation.axes),
                                    operation.op == ArrayOp::all_to_all ? operation.split_dim : operation.dim,
                                    of.varying ? block_text(of, program_.mesh) : to_text(from.sharding, program_.mesh, of.extents.size()),
                                    operation.varying ? block_text(operation, program_.mesh) : to_text(after, program_.mesh, operation.extents.size()), Bytes{input}, Bytes{received}, "the program says it", "", {}, {}, true});
  }

  void count_padding() {
    if (program_.unpadded.empty()) return;
    const auto elements = [](const Extents& extents) {
      double count = 1;
      for (const std::int64_t extent : extents) count *= static_cast<double>(extent);
      return count;
    };
    double bytes = 0, work = 0, data = 0;
    for (std::size_t i = 0; i < program_.operations.size(); ++i) {
      const Operation& operation = program_.operations[i];
      const bool output = std::find(program_.outputs.begin(), program_.outputs.end(), static_cast<int>(i)) != program_.outputs.end();
      if (operation.op == ArrayOp::input || output)
        bytes += (elements(operation.extents) - elements(program_.unpadded[i])) * static_cast<double>(size_of(operation.dtype).count());
      if (operation.op != ArrayOp::product) continue;
      const auto left = static_cast<std::size_t>(operation.operands[0]);
      work += elements(operation.extents) * static_cast<double>(program_.operations[left].extents.back());
      data += elements(program_.unpadded[i]) * static_cast<double>(program_.unpadded[left].back());
    }
    summary_.padded = Bytes{static_cast<std::int64_t>(bytes)};
    summary_.padding = work > 0 ? 1 - data / work : 0;
  }

  const ShardedProgram& program_;
  const ProgramPlan& plan_;
  ProgramSummary summary_;
};

}  // namespace

ProgramSummary summary_of(const ShardedProgram& program, const ProgramPlan& plan) { return Summary{program, plan}.make(); }

}  // namespace podsim
