#include <fmt/format.h>
#include <fmt/ostream.h>

#include <limits>

#include "tools/command/command.hpp"
#include "tools/command/record_option.hpp"
#include "tools/console/progress.hpp"
#include "tools/report/check_report.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "tools/command/scenario_options.hpp"

namespace podsim {

namespace {

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
  if (options.text("data") != "random") result.data = options.text("data") == "ones" ? InputData::ones : InputData::arange;
  return result;
}

/// Says how much there is to compute, if that takes long. Errors: more than a minute or so of one core, without --force; compiled modules, which are bounded by their memory, are proven however long that takes.
Status work_is_bearable(const Schedule& lowered, const CheckOptions& check_options, const Options& options, Console& console) {
  constexpr double most = 2e10, told_from = 2e9;
  const double work = work_of_check(lowered, check_options);
  const bool is_module = std::holds_alternative<SourceResults>(lowered.computes);
  if (work > most && !is_module && !options.flag("force"))
    return Diagnostic{{}, fmt::format("the proof takes about {:.2g} multiply-adds in {} orders, more than {:.0g}; expected a smaller problem, fewer --orders, --structure-only or --force",
                                      work, check_options.random_orders + 1, most)};
  if (work <= told_from || options.flag("quiet")) return success();
  fmt::print(console.err, "podsim: note: the proof takes about {:.2g} multiply-adds in {} orders\n", work, check_options.random_orders + 1);
  console.err.flush();
  return success();
}

Expected<CheckReport> check_with_progress(const Schedule& lowered, CheckOptions check_options, ProgressLine& line, Cancellation stop) {
  check_options.stop = stop;
  // In percent, so that a step has its rate and time left.
  check_options.progress = [&](const CheckProgress& progress) {
    line.counting(progress.has_part ? static_cast<std::size_t>(100 * progress.part) : 0, progress.has_part ? 100 : 0);
    line.doing(std::string{progress.doing});
  };
  return check(lowered, check_options);
}

OptionGroup check_options_described() {
  const OptionValue data_kinds{.kind = OptionValue::Kind::one, .name = "KIND", .otherwise = "random", .choices = {"random", "arange", "ones"}};
  const OptionGroup own{{"orders", word("N", "3"), "random legal orders to try besides program order"},
                        {"seed", word("N", "1"), "of the inputs and the random orders"},
                        {"threads", word("N", "0"), "devices computed in parallel; 0: all cores"},
                        {"data", data_kinds,
                         "inputs: random|arange|ones; arange counts row-major from 0 over each tensor. With arange and ones outputs of at "
                         "most 64 elements are printed"},
                        {"force", flag(), "prove however much there is to compute"},
                        {"structure-only", flag(), "matching, races and deadlock alone: no numbers, and no claim asked for"},
                        {"edges", flag(), "tell of every edge whether it orders a race, is implied, or is proven to be about timing only"}};
  using enum FieldKind::Group;
  return joined({field_options({system, devices, problem}), scenario_option(), field_options({workload, model, training, hlo, FieldKind::Group::check}), own, record_options(), output_options(table_json)});
}

/// As it is checked, with the description of its problem. `of_itself`: a module beside its own meaning, whatever --equals says.
Expected<LoweredProblem> lowered_problem(const Fields& fields, const Options& options, const RunOptions& how, bool of_itself, Console& console) {
  how.tell("laying out the mesh");
  auto asked = problem_of(fields, DType::f32);
  if (!asked) return asked.error();
  if (!of_itself) warn(doubts_about(asked->system.machine), console);
  if (auto* module = std::get_if<HloSpec>(&asked->problem)) {
    module->options.values = !options.flag("structure-only");
    if (of_itself) module->equals.reset();
  }
  const auto posed = pose(asked->system, asked->problem, how);
  if (!posed) return posed.error();
  auto lowered = lower_problem(posed->system, posed->problem, how);
  if (!lowered) return lowered.error();
  return lowered;
}

Expected<int> check_and_print(const Options& options, Console& console) {
  const auto given = check_options(options);
  if (!given) return given.error();
  const auto record = record_request(options);
  if (!record) return record.error();
  RunOptions how = run_options_of(console, given->threads);
  how.inline_calls = true;  // proofs look at every task
  ProgressLine line{console, options.flag("quiet"), 1, ProgressLine::Elsewhere::lines};
  show_on(line, how);
  const auto fields = system_fields(options, "ideal");
  if (!fields) return fields.error();
  auto problem = lowered_problem(*fields, options, how, false, console);
  if (!problem) return problem.error();
  if (auto ok = work_is_bearable(problem->lowered, *given, options, console); !ok) return ok.error();
  if (options.has("equals")) {  // of a schedule that does not do what the module says, a proof would say nothing of the module
    auto itself = lowered_problem(*fields, options, how, true, console);
    if (!itself) return itself.error();
    const auto same = check_with_progress(itself->lowered, *given, line, console.interrupted);
    if (!same) return same.error();
    if (!same->ok) problem = std::move(itself);
  }
  const Schedule* const lowered = &problem->lowered;
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
  const auto& step = problem->problem.summary.training;
  const auto training = step != nullptr ? training_check(*found, step->outputs) : std::nullopt;
  const auto& program = problem->problem.summary.program;
  const std::optional<Bytes> received = program ? std::optional{program->cost.received} : std::nullopt;
  const auto& module = problem->problem.summary.hlo;
  const std::vector<std::string> not_checked = module != nullptr ? module->not_checked : std::vector<std::string>{};
  const auto table = [&] { return check_table(*found, training, not_checked) + (audited ? "\n" + edges_table(edges) : ""); };
  const auto json = [&] { return check_json(*found, audited ? &edges : nullptr, training, received, not_checked); };
  if (*record != nullptr)
    if (auto ok = write_record(**record, "check", json(), options); !ok) return ok.error();
  tell_table(table, console);
  const int status = print_output(options, format_of(options) == Format::json ? json() : table(), console);
  return status == exit_done && !found->ok ? static_cast<int>(exit_false) : status;
}

}  // namespace

int check_verb(const std::vector<std::string>& arguments, Console& console) {
  static const OptionGroup described = check_options_described();  // programs call it often
  return perform(arguments, described, "check", console, &check_and_print, words_of_training(arguments));
}

}  // namespace podsim
