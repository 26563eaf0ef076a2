#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "sim/config/files.hpp"
#include "tools/command/command.hpp"
#include "tools/command/record_option.hpp"
#include "tools/report/diff_report.hpp"
#include "tools/console/progress.hpp"
#include "tools/report/run_operations.hpp"
#include "tools/command/scenario_options.hpp"
#include "workloads/scenario/faults.hpp"
#include "validation/calibration/importers/profile_operations.hpp"

namespace podsim {

namespace {

/// --measured, in the form of --from, or as the name of the file ends.
Expected<ProfileFiles> measured_profile(const Options& options) {
  auto found = find_profile(options.text("measured"), options.has("from") ? options.text("from") : "");
  if (found && found->form.empty())
    return Diagnostic{option("measured"),
                      "expected a folder, a file name that ends in .pb, .json or .csv, or --from beside it, found " + quoted(options.text("measured"))};
  return found;
}

Expected<ProfileOptions> profile_options(const Options& options) {
  ProfileOptions how;
  const auto set = [&](const char* name, std::int64_t most, int& field) -> Status {
    if (!options.has(name)) return success();
    const auto value = options.integer(name, 1, most);
    if (!value) return value.error();
    field = static_cast<int>(*value);
    return success();
  };
  if (auto ok = set("steps", 1 << 24, how.steps); !ok) return ok.error();
  if (auto ok = set("devices", 1 << 24, how.devices); !ok) return ok.error();
  if (auto ok = set("cores", 64, how.cores); !ok) return ok.error();
  if (auto ok = set("layers", most_layers, how.layers); !ok) return ok.error();
  return how;
}

Expected<PredictedStep> simulated_step(const Options& options, const RunOptions& how, Console& console) {
  how.tell("laying out the system");
  auto fields = system_fields(options);
  if (!fields) return fields.error();
  fields->erase("layers");  // of the profile
  if (options.has("hlo")) {
    fields->set("hlo", options.text("hlo"), option("hlo"));
    fields = with_module(*std::move(fields), {});
    if (!fields) return fields.error();
  }
  const auto asked = problem_of(*fields, DType::bf16);
  if (!asked) return asked.error();
  warn(doubts_about(asked->system.machine), console);
  const auto run = simulate(asked->system, asked->problem, how);
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();
  return PredictedStep{step_of(*run), run->row.problem.blocks, asked->system.machine.name, collective_ledger(*run)};
}

/// A plan or a module is simulated; the JSON of a run, which begins with a brace, is read.
Expected<PredictedStep> predicted_step(const Options& options, const RunOptions& how, Console& console) {
  if (options.has("hlo")) return simulated_step(options, how, console);
  const auto text = read_file(options.text("plan"), list_limit);
  if (!text) return text.error();
  const std::size_t first = text->find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return Diagnostic{{options.text("plan"), 1, 1}, "expected a plan or the JSON of a run, found an empty file"};
  if ((*text)[first] != '{' && (*text)[first] != '[') return simulated_step(options, how, console);
  for (const char* name : {"machine", "slice", "mesh", "set"})
    if (options.given(name)) return Diagnostic{option(name), "belongs to a plan, which is simulated; the JSON of a run is read as it is"};
  return read_run_step(*text, options.text("plan"));
}

OptionGroup diff_options() {
  const OptionGroup own{{"measured", input_file("PROFILE", files_of_profile),
                         "what was measured: *.xplane.pb, *.trace.json[.gz], a table of HLO op statistics as *.csv, or the folder that TensorBoard shows, of which the last run counts"},
                        {"plan", input_file("PLAN|RUN.json"), "what was predicted; --plan may be left out"},
                        {"hlo", no_field(input_file("MODULE")), "what was predicted, in place of a plan: a module that XLA compiled, which is simulated on --machine"},
                        {"from", word("xplane|trace-json|hlo-stats|nsys"), "the form of the profile; left out: as its name ends"},
                        {"steps", no_field(word("N")),
                         "how many steps the profile has; left out: its line Steps, how often its main module ran, or how often most operations occur"},
                        {"layers", word("N"), "blocks in a step of the profile; left out: as many as the plan has layers"},
                        {"devices", no_field(word("N")), "hlo-stats: devices that the table sums over"},
                        {"cores", word("N"), "cores of a device, whose FLOPs and rows profiles tell one by one; left out: 1"}};
  return joined({own, field_options({FieldKind::Group::system, FieldKind::Group::engine}), threads_option(), record_options(), output_options(table_json_csv)});
}

Expected<int> diff_and_print(const Options& options, Console& console) {
  if (!options.has("measured")) return Diagnostic{{}, "--measured is missing: the profile of what was measured"};
  if (options.has("plan") == options.has("hlo"))
    return options.has("hlo") ? Diagnostic{option("hlo"), "the prediction is a module or a plan, not both"} : Diagnostic{{}, "expected a plan, the JSON of a run or --hlo, found none"};
  const auto record = record_request(options);
  if (!record) return record.error();
  const auto measured = measured_profile(options);
  if (!measured) return measured.error();
  auto profiled = profile_options(options);
  if (!profiled) return profiled.error();
  auto how = run_options_of(fields_of(options), options, console);
  if (!how) return how.error();
  ProgressLine line{console, options.flag("quiet")};
  show_on(line, *how);
  const auto predicted = predicted_step(options, *how, console);
  if (!predicted) return predicted.error();
  if (!options.has("layers")) profiled->layers = static_cast<int>(predicted->layers);
  how->tell("reading " + options.text("measured"));
  auto profile = profile_operations(*measured, *profiled);
  if (!profile) return profile.error();
  line.end();
  DiffReport report{diff_steps(predicted->block, step_of(*profile), profiled->layers), {}, {}, std::move(profile->notes), std::move(profile->warnings)};
  // Tables of operations have no timeline: then nothing is told of ranks.
  if (const auto step = profile_step(*measured, *profiled)) {
    report.late = late_ranks(*step);
    std::ranges::copy(report.late.notes, std::back_inserter(report.notes));
  }
  const StepDiff& diff = report.diff;
  report.coverage = coverage_of(diff);
  report.collectives = collective_diff(diff, *predicted);
  if (profile->has_operators)
    report.notes.insert(report.notes.begin(), "PyTorch's operators are no instructions of the prediction: both are compared by category; collectives have a counterpart of equal bytes");
  else if (std::string warning = warning_of(report.coverage); !warning.empty())
    report.warnings.push_back(std::move(warning));
  if (!profile->machines.empty())
    report.notes.insert(report.notes.begin(), fmt::format("measured on {}{}", fmt::join(profile->machines, ", "), predicted->machine.empty() ? "" : ", predicted for " + predicted->machine));
  for (std::vector<std::string>* texts : {&report.notes, &report.warnings})
    for (std::string& text : *texts) text = in_options(std::move(text));
  if (diff.layers > 1)
    report.notes.push_back(fmt::format("the predicted step is {} times the block, {}; what is outside of the blocks has no counterpart", diff.layers,
                                       options.has("layers") ? "as told" : "the plan's layers (--layers 1 for a profile of one block)"));
  if (*record != nullptr)
    if (auto ok = write_record(**record, "diff", diff_json(report), options); !ok) return ok.error();
  const Format format = format_of(options);
  if (format == Format::csv && !options.flag("quiet"))
    for (const std::string& note : report.notes) fmt::print(console.err, "podsim: note: {}\n", note);
  for (const std::string& warning : report.warnings) fmt::print(console.err, "podsim: warning: {}\n", warning);
  tell_table([&] { return diff_table(report); }, console);
  return print_output(options, format == Format::json ? diff_json(report) : format == Format::csv ? diff_csv(report) : diff_table(report), console);
}

}  // namespace

int diff_verb(const std::vector<std::string>& arguments, Console& console) {
  return perform(arguments, diff_options(), "diff", console, &diff_and_print, "plan");
}

}  // namespace podsim
