// A program with its inserted collectives: which steps, in what order, and why.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "workloads/sharded/insertion.hpp"
#include "workloads/sharded/kernels.hpp"
#include "workloads/sharded/reshard.hpp"

namespace podsim {

/// How to choose among alternatives: the rules' default; the one with the fewest bytes received per device (ties: fewer collectives, then the order of
/// the rules); the fastest.
enum class Choose { by_default, bytes, time };
std::string_view name_of(Choose choose);  // "default"

/// An array in one sharding. An array may exist in several.
struct ArrayForm {
  int operation = 0;
  Sharding sharding;
  CyclicBlocks cyclic{};
};

/// Between blocks that are contiguous and blocks that are dealt out to the devices in turn; the sharding stays.
struct PlannedLayout {
  int before = 0, after = 0;  // forms
  int operation = 0;          // that wants it; the array's own, where an output is converted
};

struct PlannedStep {
  int before = 0, after = 0;  // forms
  ReshardStep step;
  int operation = 0;          // that wants it; the array's own, where an output is converted
  std::string reason;
};

struct PlannedOperation {
  int operation = 0;
  std::vector<int> operands;  // forms
  int result = 0;             // a form
  std::optional<KernelWay> kernel{};
};

/// An alternative and what its conversions cost: those of the operands, and of the result to what is asked for; without that, its sums are added up.
struct CostedAlternative {
  ShardingAlternative alternative;
  ReshardCost cost;
  std::string collectives{};  // "all-gather A along x; all-reduce C along y"; of those that PlannedChoice keeps
};

/// What was chosen where there was a choice.
struct PlannedChoice {
  int operation = 0;
  CostedAlternative chosen;
  std::optional<CostedAlternative> next;  // the best other one
};

struct ProgramPlan {
  std::vector<ArrayForm> forms;
  std::vector<std::variant<PlannedStep, PlannedLayout, PlannedOperation>> actions;
  std::vector<PlannedChoice> choices;
  std::map<int, int> outputs;  // operation -> form
  [[nodiscard]] ReshardCost cost() const;
};

/// Picks one of the alternatives of an operation whose operands have these shardings. Errors end the plan.
using AlternativeChooser = std::function<Expected<std::size_t>(const Operation& operation, const std::vector<Sharding>& operands,
                                                               const std::vector<CostedAlternative>& alternatives)>;

/// Inserts collectives. Arrays are converted where they are used first and stay converted for later uses. `fastest` is needed for Choose::time alone.
/// Errors: those of `fastest`; a transform or linear system whose algorithm does not suit its operands.
Expected<ProgramPlan> plan_program(const ShardedProgram& program, Choose choose, const AlternativeChooser& fastest = {});

/// One operation on inputs with these shardings as a program of its own; its output is `asked`, or has no pending sums.
ShardedProgram program_of(const ShardedProgram& program, const Operation& operation, const std::vector<Sharding>& operands, const std::optional<Sharding>& asked);

}  // namespace podsim
