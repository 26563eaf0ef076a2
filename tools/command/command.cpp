#include "tools/command/command.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <exception>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file_names.hpp"
#include "tools/build_info.hpp"
#include "tools/command/known_files.hpp"
#include "tools/command/options.hpp"
#include "tools/report/shell_word.hpp"
#include "tools/report/table.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

void print_help(std::ostream& out) {
  fmt::print(out,
             "podsim simulates meshes of TPUs and GPUs: the algorithm schedules that real kernels run, on modelled pods.\n\n"
             "usage: podsim VERB [KIND WHAT] [OPTION...]\n       podsim FILE       what the file is, and the commands that make sense on it\n\n");
  for (const Verb& verb : verbs()) fmt::print(out, "  {:<10} {}\n", verb.name, verb.summary);
  fmt::print(out,
             "  help       this page; `podsim help VERB` (or `podsim VERB --help`) lists a verb's options with examples\n\n"
             "  version    the version; also -V and --version\n\n"
             "first steps:\n"
             "  podsim run --machine tpu_v4 --slice 4x4x4 --mesh row=16,col=4 --gemm m=65536,n=16384,k=16384 \\\n"
             "             --algorithm meshslice --slice-count 8\n"
             "  podsim check --mesh row=4,col=2 --gemm m=512,n=1024,k=256 --algorithm meshslice --slice-count 4\n"
             "  podsim tune --machine tpu_v4 --chips 64 --workload gpt3-block\n"
             "  podsim show machine --machine tpu_v4\n\n"
             "exit status: 0 done, 1 the thing checked is false, 2 bad input or output that cannot be written, 3 internal error,\n"
             "130 interrupted (Ctrl-C, SIGTERM)\n");
}

bool asks_for_help(const std::string& word) { return word == "help" || word == "--help" || word == "-h"; }

/// `help`, or `help VERB...`, which is `VERB... --help`.
int help(std::vector<std::string> arguments, Console& console) {
  if (arguments.empty() || asks_for_help(arguments.front())) {
    print_help(console.out);
    return exit_done;
  }
  arguments.emplace_back("--help");
  return run_command(arguments, console);
}

}  // namespace

std::span<const Verb> verbs() {
  static constexpr std::array<Verb, 11> table{{
      {"run", "simulate one thing: a GEMM, a collective, a saved schedule", &run_verb},
      {"check", "execute it numerically and prove it right, free of races and deadlocks", &check_verb},
      {"compare", "simulate many variants and rank them", &compare_verb},
      {"tune", "search the best mesh, dataflow, algorithm and slice count for a workload", &tune_verb},
      {"sweep", "simulate every combination in a file, and store the results", &sweep_verb},
      {"calibrate", "fit a machine to measurements, and say how sure and how wrong it is", &calibrate_verb},
      {"validate", "predict what was measured and not fitted, and say how far off that is", &validate_verb},
      {"diagnose", "what could be wrong with a machine whose collectives take too long, and what to measure next", &diagnose_verb},
      {"diff", "hold a profile against a plan or a run: where is the step slower than predicted?", &diff_verb},
      {"report", "a page about runs, for a browser: where the time goes, and why", &report_verb},
      {"show", "a machine, a topology, a mesh, a sharding, a schedule, a plan or a program", &show_verb},
  }};
  return table;
}

std::span<const Verb> hidden_verbs() {
  static constexpr std::array<Verb, 2> table{{
      {"complete", "what may follow a command line, for the completion of shells", &complete_verb},
      {"man-pages", "write the manual", &man_pages_verb},
  }};
  return table;
}

namespace {

void tell_internal_error(std::string_view what, const std::vector<std::string>& arguments, Console& console) {
  std::string line = "podsim";
  for (const std::string& word : arguments) line += " " + shell_word(word);
  fmt::print(console.err,
             "podsim: internal error: {}\n"
             "This is a fault of podsim, not of its input. Please report it with the files that this command line names:\n  {}\n",
             what, line);
}

/// ", did you mean `podsim run --explain`?" for what is no verb but has a command.
std::string near_verb(std::string_view name) {
  std::string_view test = name.substr(name.rfind('/') + 1);
  if (test.ends_with("_perf")) {  // of nccl-tests
    test.remove_suffix(5);
    if (const auto kind = parse_collective_kind(std::string{test}, {})) return fmt::format(", did you mean `podsim compare {} -b 8 -e 128M -f 2 h100:1x8`?", name_of(*kind));
  }
  if (problem_kind_named(name) != nullptr || parse_collective_kind(std::string{name}, {})) return fmt::format(", did you mean `podsim run {}`?", name);
  return name == "explain" || name == "advise" ? fmt::format(", did you mean `podsim run ... --{}`?", name) : "";
}

}  // namespace

int run_command(const std::vector<std::string>& arguments, Console& console) {
  const auto writes_file = [](const std::string& word) { return word == "-o" || word.starts_with("-o=") || word == "--output" || word.starts_with("--output="); };
  const ScreenWidth screen{std::ranges::any_of(arguments, writes_file) ? 0 : console.columns};
  try {
    if (arguments.empty()) {
      print_help(console.err);
      return exit_bad_input;
    }
    const std::string& name = arguments.front();
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    if (asks_for_help(name)) return help(rest, console);
    if (name == "--version" || name == "-V" || name == "version") {
      fmt::print(console.out, "podsim {}\n", version_and_build());
      return exit_done;
    }
    std::vector<std::string> names{"help", "version"};
    for (const Verb& verb : verbs()) {
      if (verb.name == name) return verb.run(rest, console);
      names.emplace_back(verb.name);
    }
    for (const Verb& verb : hidden_verbs())
      if (verb.name == name) return verb.run(rest, console);
    const bool is_verb_like = name.find_first_of("./") == std::string::npos;
    if (const bool is_file = name == "-" || !is_verb_like || file_exists(name); is_file) {
      if (!rest.empty()) return report({{}, fmt::format("`podsim {}` takes nothing behind the file, found {}: it says what the file is, and the commands that take it", name, quoted(rest.front()))}, console);
      const auto about = about_file(name);
      if (!about) return report(about.error(), console);
      return console.out << *about, exit_done;
    }
    std::string near = did_you_mean(name, names);
    for (std::size_t i = 0; i < std::min<std::size_t>(arguments.size(), 2) && near.empty(); ++i)  // machines, list machines
      for (const Verb& target : show_targets())
        if (arguments[i] == target.name || arguments[i] == fmt::format("{}s", target.name)) near = fmt::format(", did you mean `podsim show {}`?", target.name);
    if (near.empty()) near = near_verb(name);
    return report({{}, "unknown verb " + quoted(name) + near + "; `podsim help` lists the verbs"}, console);
  } catch (const std::bad_alloc&) {
    return report({{}, "there is not enough memory", Cause::environment}, console);
  } catch (const std::exception& error) {  // an InternalError; nothing else is thrown on purpose
    tell_internal_error(error.what(), arguments, console);
    return exit_internal;
  }
}

}  // namespace podsim
