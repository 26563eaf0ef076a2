#include "workloads/scenario/program_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "workloads/scenario/simulate.hpp"
#include "workloads/sharded/write.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_timed = 12;

RunOptions quiet_des(const RunOptions& options) {
  RunOptions own;
  own.threads = options.threads;
  own.control.stop = options.control.stop;
  return own;
}

Expected<double> time_of(const System& system, const ShardedProgram& program, const ProgramPlan& plan, const CollectivePolicy& policy, const RunOptions& options) {
  const auto run = simulate(system, write_program(program, plan), quiet_des(options), policy);
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();
  return run->row.result.makespan_s;
}

/// The fastest way, each as a schedule of its own; ties: the fewest bytes, then the order of the rules.
AlternativeChooser by_time(const System& system, const ProgramSpec& spec, const RunOptions& options) {
  return [&](const Operation& operation, const std::vector<Sharding>& operands, const std::vector<CostedAlternative>& ways) -> Expected<std::size_t> {
    std::vector<std::size_t> order(ways.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return less(ways[a].cost, ways[b].cost, Objective::bytes); });
    order.resize(std::min(order.size(), most_timed));
    const auto& operations = spec.program.operations;
    const auto own = std::find_if(operations.begin(), operations.end(), [&](const Operation& one) { return one.name == operation.name; });
    const auto out = spec.program.out.find(static_cast<int>(own - operations.begin()));
    std::size_t best = order.front();
    double least = 0;
    for (const std::size_t way : order) {
      options.tell(fmt::format("choosing the collectives of {}: {} ways", operation.name, order.size()));
      const ShardedProgram alone = program_of(spec.program, operation, operands, out == spec.program.out.end() ? std::nullopt : std::optional{out->second});
      const AlternativeChooser this_one = [&](const Operation&, const std::vector<Sharding>&, const std::vector<CostedAlternative>& same) -> Expected<std::size_t> {
        const auto found = std::find_if(same.begin(), same.end(), [&](const CostedAlternative& one) { return one.alternative == ways[way].alternative; });
        return found == same.end() ? std::size_t{0} : static_cast<std::size_t>(found - same.begin());
      };
      const auto plan = plan_program(alone, Choose::time, this_one);
      if (!plan) return plan.error();
      const auto time = time_of(system, alone, *plan, spec.collectives, options);
      if (!time) return time.error();
      if (way == order.front() || *time < least) {
        best = way;
        least = *time;
      }
    }
    return best;
  };
}

std::vector<std::pair<std::string, std::string>> shards_of_inputs(const ShardedProgram& program) {
  std::vector<std::pair<std::string, std::string>> shards;
  for (const Operation& operation : program.operations)
    if (operation.op == ArrayOp::input) shards.emplace_back(operation.name, to_text(*operation.sharding, program.mesh, operation.extents.size()));
  return shards;
}

std::string text_of(const std::vector<std::pair<std::string, std::string>>& shards) {
  std::string text;
  for (const auto& [name, sharding] : shards) text += fmt::format("{}{}={}", text.empty() ? "" : "; ", name, sharding);
  return text;
}

/// "fft=pencil,solve=block": of each function once.
std::string methods_in(const ProgramSummary& summary) {
  std::vector<std::string> methods;
  for (const ProgramKernel& kernel : summary.kernels) {
    std::string method = fmt::format("{}={}", kernel.function, kernel.algorithm);
    if (std::find(methods.begin(), methods.end(), method) == methods.end()) methods.push_back(std::move(method));
  }
  return fmt::format("{}", fmt::join(methods, ","));
}

Expected<PlannedProgram> chained(const System& system, const ProgramSpec& spec, const RunOptions& options) {
  ChainRequest request{spec.program, spec.chain->fixed, spec.chain->replicate, spec.chain->minimise, options.control.stop};
  options.tell("searching the chain");
  const ChainTimer timer = [&](const Chain& chain) { return time_of(system, chain.program, chain.plan, spec.collectives, options); };
  auto chain = find_chain(request, timer);
  if (!chain) return chain.error();
  PlannedProgram planned{std::move(chain->program), std::move(chain->plan), spec.collectives, {}, "chain"};
  planned.summary = summary_of(planned.program, planned.plan);
  planned.summary.association = chain->association;
  planned.summary.shards = shards_of_inputs(planned.program);
  if (chain->replicated && spec.chain->fixed.empty()) planned.summary.note = "every operand is replicated: no device needs another one's data, and each does all the work";
  if (!spec.program.iterated) return planned;
  planned.summary.per_iteration = chain->cost.received;
  if (chain->cost.collectives == 0) return planned;
  // Whether anything is free of communication, if it may be replicated.
  for (const Operation& operation : spec.program.operations)
    if (operation.op == ArrayOp::input) request.replicate.insert(operation.name);
  request.minimise = Minimise::collectives;
  const auto free = find_chain(request);
  if (!free && free.error().cause == Cause::cancelled) return free.error();
  planned.summary.note = free && free->cost.collectives == 0 ? "an iteration without any collective: " + text_of(shards_of_inputs(free->program))
                                                             : "no sharding of the free operands, replicated ones included, makes an iteration without a collective";
  return planned;
}

}  // namespace

Expected<PlannedProgram> choose_program_plan(const System& system, const ProgramSpec& spec, const RunOptions& options) {
  if (spec.chain) return chained(system, spec, options);
  auto plan = plan_program(spec.program, spec.choose, spec.choose == Choose::time ? by_time(system, spec, options) : AlternativeChooser{});
  if (!plan) return plan.error();
  PlannedProgram planned{spec.program, *std::move(plan), spec.collectives, {}, fmt::format("program by {}", name_of(spec.choose))};
  planned.summary = summary_of(planned.program, planned.plan);
  if (!planned.summary.kernels.empty()) planned.chosen_by = methods_in(planned.summary);
  return planned;
}

}  // namespace podsim
