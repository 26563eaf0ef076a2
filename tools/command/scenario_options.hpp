// The options that say what to run and how, which several verbs share, and the fields of a scenario that they are.
#pragma once

#include "tools/command/options.hpp"
#include "workloads/scenario/fields.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/scenario/run_options.hpp"
#include "workloads/scenario/scenario_config.hpp"

namespace podsim {

// Groups of options. `several`: of compare, which takes lists.
OptionGroup system_options(bool several);   // --machine --slice --wrap --mesh --set ...
OptionGroup mesh_devices_option();          // --devices
OptionGroup precision_option();             // --precision
OptionGroup what_if_options(bool several);  // --topology --pods --fail --degrade --straggler --seed
OptionGroup problem_options(bool several);  // --gemm --collective ... --algorithm ... --program --shape ...
OptionGroup workload_options();             // --workload --only --batch, model_options()
OptionGroup model_options();                // --seq --heads --kv-heads --head-dim --ff --layers
OptionGroup module_options();                 // --hlo --hlo-schedule --trip-count ...
OptionGroup training_options(bool several);  // --training --maxtext --pipeline --remat ...
OptionGroup engine_options();               // --engine --fold --force --threads
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
