#include "tools/command/compare_modules.hpp"

#include <fmt/ostream.h>

#include <algorithm>

#include "tools/command/command.hpp"
#include "tools/command/expect_option.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/console/progress.hpp"
#include "tools/report/module_change_report.hpp"
#include "workloads/scenario/faults.hpp"

namespace podsim {

namespace {

/// A module's run, and what its core waits for.
struct SimulatedModule {
  ComparedModule module;
  std::vector<LedgerRow> collectives;
};

Expected<SimulatedModule> simulated(Fields fields, const std::string& file, const char* named_by, RunOptions how, Console& console) {
  how.tell("laying out " + file);
  fields.set("hlo", file, option(named_by));
  auto whole = with_module(std::move(fields));
  if (!whole) return whole.error();
  const auto asked = problem_of(*whole, DType::bf16);
  if (!asked) return asked.error();
  warn(doubts_about(asked->system.machine), console);
  how.control.record = true;  // the ledger looks at every task
  const auto run = simulate(asked->system, asked->problem, how);
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();
  return SimulatedModule{{file, run->row}, collective_ledger(*run)};
}

}  // namespace

Expected<int> compare_modules_and_print(const Options& options, Console& console) {
  if (options.texts("mesh").size() > 1) return Diagnostic{option("mesh"), "expected one mesh for two modules"};
  for (const char* name : {"vary", "crossover", "equal", "top", "algorithm", "algorithms", "record"})
    if (options.given(name)) return Diagnostic{option(name), "belongs to comparisons of schedules, not to two modules"};
  if (format_of(options) == Format::csv) return Diagnostic{option("format"), "expected table, json or markdown for two modules, found csv"};
  const auto expected = expectations(options);
  if (!expected) return expected.error();
  const Fields fields = fields_of(options);
  auto how = run_options_of(fields, options, console);
  if (!how) return how.error();
  ProgressLine line{console, options.flag("quiet")};
  show_on(line, *how);
  auto before = simulated(fields, options.text("hlo"), "hlo", *how, console);
  if (!before) return before.error();
  auto after = simulated(fields, options.text("with"), "with", *how, console);
  if (!after) return after.error();
  line.end();
  ModuleChange change{std::move(before->module), std::move(after->module), ledger_changes(before->collectives, after->collectives)};
  const std::vector<Judged> judged = judge(*expected, change.after.row);
  for (const Judged& one : judged) change.notes.push_back(one.sentence);
  const Format format = format_of(options);
  tell_table([&] { return module_change_table(change); }, console);
  const int printed = print_output(options, format == Format::json ? module_change_json(change) : format == Format::markdown ? module_change_markdown(change) : module_change_table(change), console);
  for (const Judged& one : judged)
    if (!one.is_kept) fmt::print(console.err, "podsim: {}\n", one.sentence);
  return printed == exit_done && !std::ranges::all_of(judged, &Judged::is_kept) ? static_cast<int>(exit_false) : printed;
}

}  // namespace podsim
