#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"
#include <limits>

#include "tools/command/command.hpp"
#include "tools/command/progress.hpp"
#include "tools/report/table.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "tools/command/scenario_options.hpp"

namespace podsim {

namespace {

constexpr std::string_view check_usage =
    R"(usage: podsim check (--mesh row=R,col=C | --slice AxB) (--gemm ... | --collective ... | --schedule FILE) [OPTION...]

Executes the schedule on real numbers, in program order and in random legal orders, and proves that it is matched, free of races and of
deadlocks, and computes what it says. The proof runs on integers that are exact whatever the dtype, and compares bit by bit; the error on
uniform data, in the schedule's own dtype, is told beside it. Exit status 1 if any of that is false, or if the schedule does not say what
it computes, so that nothing was compared. --edges tells what every edge is for (small meshes).

examples:
  podsim check --mesh row=4,col=2 --gemm m=512,n=1024,k=256 --algorithm meshslice --slice-count 4
  podsim check --slice 8 --collective reduce-scatter --axis row --bytes 64KiB --algorithm line --wrap none
)";

std::string yes(bool value) { return value ? "yes" : "NO"; }

std::string report_table(const CheckReport& report) {
  std::vector<std::vector<std::string>> rows{
      {"devices", std::to_string(report.devices)},
      {"matched", yes(report.matched)},
      {"deadlock-free", yes(report.deadlock_free)},
      {"race-free", yes(report.race_free)},
      {"orders tried", std::to_string(report.orders_tried)},
      {"compared with", report.compared},
  };
  if (report.compared_something()) {
    rows.push_back({"bit-equal on integers", yes(report.bit_equal)});
    rows.push_back({"largest error on uniform data", fmt::format("{:.3g} absolute, {:.3g} of the largest value (allowed {:.3g})",
                                                                 report.max_abs_error, report.max_rel_error, report.tolerance)});
  }
  rows.push_back({"ok", yes(report.ok)});
  std::string text = table(rows, 2);
  for (const Diagnostic& problem : report.problems) text += to_text(problem) + "\n";
  return text;
}

std::string_view name_of(EdgePurpose purpose) {
  switch (purpose) {
    case EdgePurpose::implied: return "implied by other edges";
    case EdgePurpose::ordering: return "orders a race";
    case EdgePurpose::timing: return "benign: timing only";
  }
  return "";
}

struct NamedEdge {
  std::string from, to, purpose, race;
};

Expected<std::vector<NamedEdge>> named_edges(const Schedule& lowered, Cancellation stop) {
  const auto audits = audit_edges(lowered, stop);
  if (!audits) return audits.error();
  std::vector<NamedEdge> named;
  for (const EdgeAudit& audit : *audits) {
    const Program& program = lowered.programs[audit.program];
    named.push_back({task_name(program, program.tasks[audit.task.index()].after[audit.edge].task), task_name(program, audit.task),
                     std::string{name_of(audit.purpose)}, audit.race.message});
  }
  return named;
}

std::string edges_table(const std::vector<NamedEdge>& edges) {
  std::vector<std::vector<std::string>> rows{{"edge from", "to", "purpose", "without it"}};
  for (const NamedEdge& edge : edges) rows.push_back({edge.from, edge.to, edge.purpose, edge.race.empty() ? "-" : edge.race});
  return table(rows, 4);
}

/// In JSON what was not compared has no value.
std::string report_json(const CheckReport& report, const std::vector<NamedEdge>* edges) {
  using Json = nlohmann::ordered_json;
  const auto of_comparison = [&](auto value) { return report.compared_something() ? Json(value) : Json(); };
  Json json{{"compared", report.compared},
            {"devices", report.devices},
            {"orders_tried", report.orders_tried},
            {"bit_equal", of_comparison(report.bit_equal)},
            {"max_abs_error", of_comparison(report.max_abs_error)},
            {"max_rel_error", of_comparison(report.max_rel_error)},
            {"tolerance", of_comparison(report.tolerance)},
            {"matched", report.matched},
            {"deadlock_free", report.deadlock_free},
            {"race_free", report.race_free},
            {"ok", report.ok}};
  json["problems"] = Json::array();
  for (const Diagnostic& problem : report.problems) json["problems"].push_back(to_text(problem));
  if (edges)
    for (const NamedEdge& edge : *edges)
      json["edges"].push_back({{"from", edge.from}, {"to", edge.to}, {"purpose", edge.purpose}, {"race", edge.race}});
  return json.dump(2) + "\n";
}

Expected<CheckOptions> check_options(const Options& options) {
  const auto orders = options.integer("orders", 0, 1000);
  const auto seed = options.integer("seed", 0, std::numeric_limits<std::int64_t>::max());
  const auto threads = options.integer("threads", 0, 1024);
  for (const auto* number : {&orders, &seed, &threads})
    if (!*number) return number->error();
  CheckOptions result;
  result.seed = static_cast<std::uint64_t>(*seed);
  result.random_orders = static_cast<int>(*orders);
  result.threads = static_cast<int>(*threads);
  result.structure_only = options.flag("structure-only");
  return result;
}

Expected<CheckReport> check_with_progress(const Schedule& lowered, CheckOptions check_options, ProgressLine& line, Cancellation stop) {
  check_options.stop = stop;
  check_options.progress = [&](const CheckProgress& progress) {
    line.doing(progress.has_part ? fmt::format("{}: {:.0f} %", progress.doing, 100 * progress.part) : std::string{progress.doing});
  };
  return check(lowered, check_options);
}

OptionGroup check_options_described() {
  const OptionGroup own{{"orders", word("N", "3"), "random legal orders to try besides program order"},
                        {"seed", word("N", "1"), "of the inputs and the random orders"},
                        {"threads", word("N", "0"), "devices computed in parallel; 0: all cores"},
                        {"structure-only", flag(), "matching, races and deadlock alone: no numbers, and no claim asked for"},
                        {"edges", flag(), "tell of every edge whether it orders a race, is implied, or is\nproven to be about timing only"}};
  return joined({system_options(false), problem_options(false), workload_options(), own, output_options(table_json)});
}

/// As it is checked.
Expected<Schedule> lowered_schedule(const Options& options, const RunOptions& how) {
  how.tell("laying out the mesh");
  const auto fields = system_fields(options, "ideal");
  if (!fields) return fields.error();
  const auto system = read_system(*fields);
  if (!system) return system.error();
  const auto problem = read_problem(*fields, *system, DType::f32);
  if (!problem) return problem.error();
  const auto posed = pose(*system, *problem, how);
  if (!posed) return posed.error();
  auto lowered = lower_problem(posed->system, posed->problem, how);
  if (!lowered) return lowered.error();
  return std::move(lowered->lowered);
}

Expected<int> check_and_print(const Options& options, Console& console) {
  const auto given = check_options(options);
  if (!given) return given.error();
  RunOptions how = run_options_of(console, given->threads);
  ProgressLine line{console, options.flag("quiet")};
  show_on(line, how);
  const auto lowered = lowered_schedule(options, how);
  if (!lowered) return lowered.error();
  const auto found = check_with_progress(*lowered, *given, line, console.interrupted);
  if (!found) return found.error();
  std::vector<NamedEdge> edges;
  const bool audited = options.flag("edges") && found->matched && found->race_free && found->deadlock_free;
  if (audited) {
    how.tell("looking at every edge");
    auto named = named_edges(*lowered, console.interrupted);
    if (!named) return named.error();
    edges = *std::move(named);
  }
  line.end();
  const int status = print_output(options, format_of(options) == Format::json ? report_json(*found, audited ? &edges : nullptr)
                                                                              : report_table(*found) + (audited ? "\n" + edges_table(edges) : ""),
                                  console);
  return status == exit_done && !found->ok ? static_cast<int>(exit_false) : status;
}

}  // namespace

int check_verb(const std::vector<std::string>& arguments, Console& console) {
  const Parsed parsed = parse(arguments, check_options_described(), check_usage, console);
  if (parsed.status) return *parsed.status;
  const auto status = check_and_print(*parsed.options, console);
  return status ? *status : report(status.error(), console);
}

}  // namespace podsim
