#include "tools/command/scenario_options.hpp"

#include <algorithm>
#include <array>

#include "sim/base/invariant.hpp"
#include "tools/console/caller.hpp"
#include "tools/sweep/points.hpp"
#include "workloads/chakra/trace.hpp"
#include "workloads/scenario/alignment.hpp"
#include "workloads/scenario/problem_kinds.hpp"

namespace podsim {

namespace {

/// The first trace tells them apart from other files of the command line.
std::vector<std::string> chakra_files(const std::string& prefix) { return {chakra_file(prefix, 0)}; }

/// `compared`: as comparisons take it.
OptionSpec option_for(const FieldKind& field, bool compared) {
  OptionValue value{field.form == Form::flag ? OptionValue::Kind::flag : OptionValue::Kind::one, std::string{field.placeholder}, {}};
  value.form = field.form;
  value.names = field.names;
  if (field.check == nullptr) value.choices = words_of(field);  // or it may be a list of them
  std::string_view otherwise = field.otherwise;
  if (field.repeated || field.form == Form::mesh || (compared && field.compared.repeated)) value.kind = OptionValue::Kind::many;
  if (compared && !field.compared.suffix.empty()) {
    value.name += field.compared.suffix;
    value.choices.clear();
    if (field.form == Form::word || field.form == Form::name) value.form = Form::text;
  }
  if (compared && !field.compared.otherwise.empty()) otherwise = field.compared.otherwise;
  if (!otherwise.empty()) value.otherwise = std::string{otherwise};
  if (names_files(field.form)) value.files = field.name == "chakra" ? chakra_files : compared && !field.compared.suffix.empty() ? files_between_commas : one_file;
  return {option_of(field.name), std::move(value), help_of(field, compared), field.usual};
}

/// All of them, made once: a program calls thousands of commands.
const OptionGroup& options_of_fields(bool compared) {
  static const std::array<OptionGroup, 2> all = [] {
    std::array<OptionGroup, 2> made;
    for (const FieldKind& field : scenario_fields())
      for (const bool as_compared : {false, true}) made[as_compared ? 1 : 0].push_back(option_for(field, as_compared));
    return made;
  }();
  return all[compared ? 1 : 0];
}

}  // namespace

OptionGroup field_options(std::initializer_list<FieldKind::Group> groups, bool compared) {
  OptionGroup options;
  for (const FieldKind::Group group : groups)
    for (std::size_t f = 0; f < scenario_fields().size(); ++f)
      if (scenario_fields()[f].group == group) options.push_back(options_of_fields(compared)[f]);
  return options;
}

OptionSpec field_option(std::string_view name, bool compared) {
  const FieldKind* field = scenario_field(name);
  PODSIM_ASSERT(field != nullptr);
  return options_of_fields(compared)[static_cast<std::size_t>(field - scenario_fields().data())];
}

OptionGroup scenario_option() {
  return {{"scenario", input_file("FILE"), "what to run, where options do not say otherwise: a textproto of their names (workloads/scenario/scenario.proto)"}};
}

OptionGroup threads_option() {
  return {{"threads", word("N", "0"),
                          "runs at a time, where there are several; 0: all cores. The results do not depend on it"}};
}

const char* words_of_training(const std::vector<std::string>& arguments) {
  const bool reads_keys = std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) { return word == "--maxtext" || word.starts_with("--maxtext="); });
  return reads_keys ? "training" : nullptr;
}

Fields fields_of(const Options& options) {
  Fields fields;
  if (options.caller != nullptr) fields.known = options.caller->known;
  for (const FieldKind& field : scenario_fields()) {
    const std::string name = option_of(field.name);
    if (!options.gives_field(name)) continue;
    if (field.form == Form::flag) fields.set(field.name, "true", option(name));
    for (std::string& text : options.texts(name)) fields.add(field.name, std::move(text), option(name));
  }
  return fields;
}

Expected<Fields> system_fields(const Options& options, const std::string& default_machine) {
  if (options.texts("mesh").size() > 1) return Diagnostic{option("mesh"), "expected one mesh; compare takes several"};
  Fields fields = fields_of(options);
  if (options.has("scenario")) {
    const auto rest = load_scenario(options.text("scenario"));
    if (!rest) return rest.error();
    fields.complete(*rest);
  }
  auto whole = with_plan(std::move(fields));
  if (!whole) return whole;
  Fields otherwise;
  if (!default_machine.empty()) otherwise.set("machine", default_machine, option("machine"));
  return with_module(*std::move(whole), otherwise);
}

Expected<System> system_of(const Options& options, const std::string& default_machine) {
  const auto fields = system_fields(options, default_machine);
  if (!fields) return fields.error();
  return read_system(*fields);
}

Expected<AskedProblem> problem_of(const Fields& fields, DType default_dtype) {
  auto system = read_system(fields);
  if (!system) return system.error();
  auto problem = read_problem(fields, *system, default_dtype);
  if (!problem) return problem.error();
  return AskedProblem{*std::move(system), *std::move(problem)};
}

Expected<AskedProblem> problem_of(const Options& options, DType default_dtype, const std::string& default_machine) {
  const auto fields = system_fields(options, default_machine);
  if (!fields) return fields.error();
  return problem_of(*fields, default_dtype);
}

RunOptions run_options_of(const Console& console, int threads) {
  RunOptions options;
  options.threads = threads;
  options.control.stop = console.interrupted;
  return options;
}

Expected<RunOptions> run_options_of(const Fields& fields, const Options& options, const Console& console) {
  auto how = read_run_options(fields);
  const auto threads = options.integer("threads", 0, 1024);
  if (!threads) return threads.error();
  if (how) how->threads = static_cast<int>(*threads);
  if (how) how->control.stop = console.interrupted;
  return how;
}

Status no_workload_options(const Options& options) {
  for (const FieldKind& field : scenario_fields())
    if (const std::string name = option_of(field.name); field.problems.front() == "workload" && options.given(name)) return Diagnostic{option(name), "belongs to --workload"};
  return success();
}

std::vector<std::string> alignment_notes(const System& system) {
  std::vector<std::string> notes;
  for (const auto& [note, aligned] : misalignments(system))
    notes.push_back(note + (aligned.empty() ? ""
                                            : "; along whole dimensions: " + aligned +
                                                  (system.mesh.axes().size() == 2 ? " (compare --mesh all tries every mesh)" : "")));
  return notes;
}

}  // namespace podsim
