// The options that say what to run and how, which several verbs share, and the fields of a scenario that they are.
#pragma once

#include "tools/command/options.hpp"
#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/scenario/run_options.hpp"
#include "workloads/scenario/scenario_config.hpp"

namespace podsim {

/// The options that are the fields of these groups, one group after the other. `compared`: as comparisons take them, several of which are lists.
OptionGroup field_options(std::initializer_list<FieldKind::Group> groups, bool compared = false);
/// The option that is this field: asserted to be one.
OptionSpec field_option(std::string_view name, bool compared = false);
OptionGroup scenario_option();
OptionGroup threads_option();

/// The option that words without one belong to: with --maxtext its keys. nullptr: none.
const char* words_of_training(const std::vector<std::string>& arguments);

/// Those given that are fields of a scenario.
Fields fields_of(const Options& options);
/// The same with what --scenario says, and of the system what --plan does; one mesh at most. `default_machine`: where none is named; may be empty.
Expected<Fields> system_fields(const Options& options, const std::string& default_machine = "");

/// The system of run, check and show.
Expected<System> system_of(const Options& options, const std::string& default_machine = "");

/// A problem on its system, as a command line says it.
struct AskedProblem {
  System system;
  ProblemSpec problem;
};
Expected<AskedProblem> problem_of(const Options& options, DType default_dtype, const std::string& default_machine = "");
/// The same of fields.
Expected<AskedProblem> problem_of(const Fields& fields, DType default_dtype);

/// With the console's interrupt as `stop`. Errors: no such engine, values out of range.
Expected<RunOptions> run_options_of(const Fields& fields, const Options& options, const Console& console);
/// Of verbs that simulate only to choose what is left open: by des.
RunOptions run_options_of(const Console& console, int threads = 0);

/// Errors: an option of --workload without it.
Status no_workload_options(const Options& options);

/// What a user should know of a mesh, in sentences.
std::vector<std::string> alignment_notes(const System& system);

}  // namespace podsim
