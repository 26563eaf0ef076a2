#include "tools/command/show_targets.hpp"

#include "tools/report/program_report.hpp"
#include "workloads/scenario/plan_choice.hpp"

namespace podsim {

Expected<std::string> show_program(const Options& options, Format format, const RunOptions& how) {
  if (!options.has("program") && !options.has("scenario")) return Diagnostic{{}, "--program is missing: statements as 'C = A @ B', or a file of them"};
  const auto asked = problem_of(options, DType::bf16, "ideal");
  if (!asked) return asked.error();
  if (!std::holds_alternative<ProgramSpec>(asked->problem)) return Diagnostic{{}, "expected --program, found another problem"};
  const auto posed = pose(asked->system, asked->problem, how);
  if (!posed) return posed.error();
  const ProgramSummary& summary = *posed->problem.summary.program;
  return format == Format::json ? program_json(summary).dump(2) + "\n" : program_table(summary) + program_drawings(summary, asked->system.mesh);
}

}  // namespace podsim
