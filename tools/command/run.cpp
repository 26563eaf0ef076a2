#include <fmt/ostream.h>

#include <algorithm>
#include <set>

#include "sim/base/units.hpp"
#include "sim/config/result_config.hpp"
#include "tools/command/answers.hpp"
#include "tools/command/chakra_option.hpp"
#include "tools/command/command.hpp"
#include "tools/command/expect_option.hpp"
#include "tools/command/nccl_tuner_option.hpp"
#include "tools/console/caller.hpp"
#include "tools/console/progress.hpp"
#include "tools/command/record_option.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/trace_option.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/report/run_report.hpp"
#include "workloads/advice/gemm_choice.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/problem_kinds.hpp"

namespace podsim {

namespace {

OptionGroup run_options() {
  using enum FieldKind::Group;
  const OptionGroup telling{{"explain", flag(), "the critical path, what each machine value would change, and a sentence", true},
                            {"advise", no_field(flag()), "what would help, each simulated: other collectives, orders, meshes, schedules, the best three together, and how fast links would have to be", true},
                            {"strict", no_field(flag()), "with --hlo: status 1 where the cost of an instruction is unknown, or known only as a lower bound"},
                            {"per", word("device,link"), "the time and traffic of every device, every link"}};
  return joined({field_options({system, devices, precision, what_if, problem}), scenario_option(), field_options({workload, model, training, hlo, engine}), threads_option(), telling, expect_option(), trace_options(), record_options(), chakra_options(), nccl_tuner_input(),
                 output_options(table_json_csv)});
}

/// What is known of a run that was told to stop.
int interrupted(const Run& run, Console& console) {
  const auto all = static_cast<double>(run.model.deployment.activities());
  fmt::print(console.err, "podsim: interrupted: simulated {} of the run, {} of {} task instances ({:.0f} %)\n",
             to_text(to_seconds(run.timeline.makespan)), run.timeline.finished, run.model.deployment.activities(),
             all > 0 ? 100 * static_cast<double>(run.timeline.finished) / all : 0);
  return exit_interrupted;
}

/// --per. Errors: neither device nor link.
Expected<std::set<std::string>> asked_per(const Options& options) {
  std::set<std::string> asked;
  for (const std::string& what : options.has("per") ? split(options.text("per")) : std::vector<std::string>{}) {
    if (what != "device" && what != "link") return Diagnostic{option("per"), "expected device or link, found " + quoted(what)};
    asked.insert(what);
  }
  return asked;
}

/// Whether slow or broken parts make a run faster by more than rounding, though it runs as the healthy one does: a ring that is opened behind a broken cable
/// is another algorithm, which may be the better one.
bool is_scheduling_anomaly(const Run& run, double healthy_s) {
  return run.row.rings.empty() && run.row.result.makespan_s < healthy_s * (1 - 1e-9) - 2e-12;
}

std::string anomaly_note(double makespan_s, double healthy_s) {
  return fmt::format("{:.2g} % faster than the healthy system: a scheduling anomaly. Transfers that start later share their links with fewer others.",
                     100 * (1 - makespan_s / healthy_s));
}

/// Where a slow cable costs more than a broken one: a note; else empty.
std::string slow_cable_note(const Run& run, const System& system, const ProblemSpec& problem, double healthy_s, const RunOptions& how) {
  if (system.faults.slow_cables.empty() || run.row.result.makespan_s <= healthy_s * (1 + 1e-9)) return {};
  Faults without = system.faults;
  for (const SlowCable& slow : without.slow_cables) without.broken.push_back(slow.cable);
  without.slow_cables.clear();
  const auto around = with_faults(system, std::move(without));
  if (!around) return {};
  const auto rerouted = simulate(*around, problem, how);  // may be cut off from each other
  if (!rerouted || rerouted->timeline.interrupted || rerouted->row.result.makespan_s >= run.row.result.makespan_s) return {};
  return fmt::format("without the slow cables it takes {} (--fail in place of --degrade): transfers keep to their routes over a slow cable, so all wait for those that cross it; around a broken one they take another way", to_text(Seconds{rerouted->row.result.makespan_s}));
}

/// What is told beside the figures. `any_cable`: --fail any.
Expected<Details> details_of(const Run& run, const System& system, const ProblemSpec& problem, bool any_cable, const Options& options,
                             const RunOptions& how) {
  Details details;
  details.notes = alignment_notes(system);
  if (!system.faults.none()) {
    const auto healthy = healthy_makespan(system, problem, how);
    if (!healthy) return healthy.error();
    details.healthy_s = *healthy;
    if (std::string note = slow_cable_note(run, system, problem, *healthy, how); !note.empty()) details.notes.push_back(std::move(note));
    if (is_scheduling_anomaly(run, *healthy)) details.notes.push_back(anomaly_note(run.row.result.makespan_s, *healthy));
  }
  if (any_cable) {
    auto losses = lose_any_cable(system, problem, how);
    if (!losses) return losses.error();
    details.losses = *std::move(losses);
  }
  const auto per = asked_per(options);
  if (!per) return per.error();
  if (per->contains("device")) details.devices = measure_devices(run.model, run.timeline);
  if (per->contains("link")) details.links = measure_links(run.model, run.timeline);
  if (!options.flag("explain")) return details;
  auto explanation = explain(run, how);
  if (!explanation) return explanation.error();
  details.explanation = *std::move(explanation);
  return details;
}

std::string text_of(const Run& run, const Details& details, const Options& options, const Console& console) {
  const std::string path = options.has("output") ? options.text("output") : "";
  if (path.ends_with(".textproto")) return write_result(run.row.result, Encoding::text);
  if (path.ends_with(".pb")) return write_result(run.row.result, Encoding::binary);
  const Format format = format_of(options);
  return format == Format::json ? result_json(run, details) : format == Format::csv ? result_csv({run.row}) : result_table(run, details, {path.empty() && console.columns > 0, path.empty() && console.colours});
}

Expected<int> simulate_and_print(const Options& options, Console& console) {
  auto fields = system_fields(options);
  if (!fields) return fields.error();
  auto how = run_options_of(*fields, options, console);
  if (!how) return how.error();
  const auto per = asked_per(options);
  if (!per) return per.error();
  const auto expected = expectations(options);
  if (!expected) return expected.error();
  if (per->contains("link") || options.flag("explain")) how->inline_calls = true;  // both look into calls
  ProgressLine line{console, options.flag("quiet")};
  show_on(line, *how);
  const bool any_cable = fields->texts("fail").size() == 1 && fields->text("fail") == "any";
  if (any_cable) fields->erase("fail");
  how->tell("laying out the system");
  const auto system = read_system(*fields);
  if (!system) return system.error();
  const std::vector<std::string> doubts = warn(doubts_about(*system), console);
  auto trace = trace_request(options, *system);
  if (!trace) return trace.error();
  const auto chakra = chakra_request(options);
  if (!chakra) return chakra.error();
  if (*chakra) how->fold = false, how->inline_calls = how->write_out_calls = true;  // every task of every device
  auto record = record_request(options);
  if (!record) return record.error();
  how->control.record = *trace || *chakra || *record != nullptr || !per->empty() || options.flag("explain") || console.caller != nullptr;
  std::vector<std::string> choices;
  auto tuned = with_nccl_tuner(*fields, options, *system, choices);
  if (!tuned) return tuned.error();
  *fields = *std::move(tuned);
  if (fields->has("gemm") && !fields->has("algorithm")) {
    const auto chosen = fastest_gemm_algorithm(*fields, *system, *how);
    if (!chosen) return chosen.error();
    const Remedy choice{"", chosen->changes};
    *fields = with(*std::move(fields), choice);
    choices.push_back(fmt::format("{}, the fastest of {} that were simulated; --algorithm names another, podsim compare ranks them", words_of(choice), chosen->simulated));
  }
  const auto problem = read_problem(*fields, *system, DType::bf16);
  if (!problem) return problem.error();
  const auto other_order = other_order_makespan(*system, *problem, *how);  // first, so that its memory is free again
  if (!other_order && how->stopped()) return other_order.error();
  auto run = simulate(*system, *problem, *how);
  if (!run) {
    Diagnostic why = run.error();
    if (const std::vector<std::string> notes = alignment_notes(*system); !notes.empty() && why.cause == Cause::too_large)
      why.message += ". A mesh whose axes are whole dimensions of the slice folds: " + notes.front();
    return why;
  }
  if (run->timeline.interrupted) {
    line.end();
    if (console.caller != nullptr) return console.caller->run = std::make_shared<RunAnswer>(RunAnswer{*std::move(run), Details{}}), exit_interrupted;
    return interrupted(*run, console);
  }
  if (run->row.training != nullptr && !how->force && !options.flag("advise"))
    if (std::string why = why_too_large(*run->row.training, run->row.problem.training->given); !why.empty())
      return Diagnostic{{}, why + ". --force tells the times all the same"};
  if (*trace) {
    how->tell("writing the trace");
    if (auto ok = write_trace(**trace, *run, how->counting); !ok) return ok.error();
  }
  if (*chakra) {
    how->tell("writing the Chakra traces");
    if (auto ok = write_chakra(**chakra, *run); !ok) return ok.error();
  }
  auto details = details_of(*run, *system, *problem, any_cable, options, *how);
  if (!details) return details.error();
  details->notes.insert(details->notes.end(), choices.begin(), choices.end());
  if (options.flag("advise")) {
    auto advice = advise(*fields, *run, *how);
    if (!advice) return advice.error();
    details->advice = *std::move(advice);
  }
  const std::vector<Judged> judged = judge(*expected, run->row);
  for (const Judged& one : judged) details->notes.push_back(one.sentence);
  details->notes.insert(details->notes.end(), doubts.begin(), doubts.end());
  if (*trace) details->notes.insert(details->notes.end(), (*trace)->warnings.begin(), (*trace)->warnings.end());
  if (*record != nullptr) {
    how->tell("writing the record");
    if (auto ok = write_record(**record, *run, *details, options, *how); !ok) return ok.error();
  }
  if (!other_order) return other_order.error();
  if (*other_order) details->orders = both_orders(*problem, run->row.result.makespan_s, **other_order);
  line.end();
  if (*trace && !options.flag("quiet"))
    for (const std::string& note : (*trace)->notes) fmt::print(console.err, "podsim: note: {}\n", note);
  if (*trace)
    for (const std::string& warning : (*trace)->warnings) fmt::print(console.err, "podsim: warning: {}\n", warning);
  const auto answer = std::make_shared<RunAnswer>(RunAnswer{*std::move(run), *std::move(details)});
  if (console.caller != nullptr) {
    console.caller->run = answer;
    if (!options.has("output")) return exit_done;
  }
  const int printed = print_output(options, text_of(answer->run, answer->details, options, console), console);
  const bool are_kept = std::ranges::all_of(judged, &Judged::is_kept);
  for (const Judged& one : judged)
    if (!one.is_kept) fmt::print(console.err, "podsim: {}\n", one.sentence);
  if (printed == exit_done && !are_kept) return exit_false;
  const auto& module = answer->run.row.problem.hlo;
  if (printed == exit_done && options.flag("strict") && module != nullptr && !why_at_least(module->trust.coverage).empty()) return exit_false;
  return printed;
}

}  // namespace

int run_verb(const std::vector<std::string>& arguments, Console& console) {
  static const OptionGroup described = run_options();  // programs call it often
  return perform(arguments, described, "run", console, &simulate_and_print, words_of_training(arguments));
}

}  // namespace podsim
