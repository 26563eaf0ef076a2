#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/file_names.hpp"
#include "sim/base/output_file.hpp"
#include "tools/command/command.hpp"
#include "tools/command/compare_modules.hpp"
#include "tools/command/comparison_options.hpp"
#include "tools/command/expect_option.hpp"
#include "tools/command/nccl_tuner_option.hpp"
#include "tools/console/caller.hpp"
#include "tools/console/progress.hpp"
#include "tools/command/record_option.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/report/differences_report.hpp"
#include "tools/report/verdict.hpp"
#include "tools/sweep/points.hpp"
#include "workloads/scenario/problem_kinds.hpp"

namespace podsim {

namespace {

/// Whether a kind is compared: with others of its kind, or, as a module, with schedules of its product.
bool is_compared(std::string_view field) {
  const ProblemKind* const kind = problem_kind_named(field);
  return kind->variants != nullptr || kind->field == "hlo";
}

OptionGroup compare_options() {
  using enum FieldKind::Group;
  OptionGroup fields = field_options({system, devices, precision, what_if, problem, workload, model, training, hlo}, true);
  std::erase_if(fields, [](const OptionSpec& spec) {  // of kinds that are not compared
    for (const FieldKind& field : scenario_fields())
      if (option_of(field.name) == spec.long_name()) {
        if (problem_kind_named(field.name) != nullptr) return !is_compared(field.name);
        const auto end = std::ranges::find(field.problems, "");
        return end != field.problems.begin() && std::none_of(field.problems.begin(), end, is_compared);
      }
    return false;
  });
  return joined({std::move(fields), comparison_options(), field_options({engine}), threads_option(), record_options(), expect_option(), nccl_tuner_output(), output_options(table_json_csv_markdown)});
}

std::string equal_in(const Options& options) { return options.has("equal") ? options.text("equal") : ""; }

/// --equal. Errors: those of make_equal().
Expected<std::vector<TopologyCost>> on_equal_terms(std::vector<ComparedSystem>& compared, const Options& options) {
  std::vector<System> systems;
  std::vector<std::size_t> topologies;
  for (const ComparedSystem& on : compared) systems.push_back(on.system), topologies.push_back(on.topology);
  auto costs = make_equal(systems, topologies, equal_in(options));
  for (std::size_t s = 0; s < systems.size(); ++s) compared[s].system = std::move(systems[s]);
  return costs;
}

/// Mesh orders are no topologies of their own; one topology has nothing to be compared with unless it is asked for.
void leave_topologies_once(std::vector<TopologyCost>& costs, const Options& options) {
  std::set<std::string> names;
  std::erase_if(costs, [&](const TopologyCost& cost) { return !names.insert(cost.name).second; });
  if (costs.size() == 1 && !options.has("topology") && !options.has("equal")) costs.clear();
}

/// In which terms one verdict over all topologies stands; empty where machine values are varied, as each has its own.
std::string terms_text(const std::vector<TopologyCost>& costs, const Options& options) {
  if (options.given("vary")) return "";
  const std::string terms = terms_of(costs, equal_in(options));
  return terms.starts_with("not") ? terms + " (--equal bisection, ports or injection scales the links)" : terms;
}

/// --crossover, on every system; of a topology whose meshes are searched, on the best mesh.
Expected<std::vector<Crossovers>> crossovers_of(const std::vector<ComparedSystem>& systems, const std::vector<RankedGroup>& ranked, const Options& options, const RunOptions& how) {
  std::vector<Crossovers> crossovers;
  for (const std::string& text : options.texts("crossover")) {
    const auto range = parse_crossover(text, option("crossover"));
    if (!range) return range.error();
    for (const ComparedSystem& on : systems) {
      const auto is_best = [&](const RankedGroup& group) { return &systems[group.system] == &on; };
      if (on.is_mesh_searched && std::ranges::none_of(ranked, is_best)) continue;
      auto found = find_crossovers(on, *range, how);
      if (!found) return found.error();
      crossovers.push_back(*std::move(found));
    }
  }
  return crossovers;
}

/// What rows of CSV have no place for.
void tell_beside_csv(const ComparisonReport& comparisons, Console& console) {
  for (const LeftOut& entry : comparisons.skipped) fmt::print(console.err, "podsim: note: left out: {}: {}\n", entry.what, entry.reason);
  for (const TopologyCost& topology : comparisons.topologies)
    if (topology.scale != 1) fmt::print(console.err, "podsim: note: {}: links are scaled by {:.3g}\n", topology.name, topology.scale);
}

/// That nothing could be simulated, each reason once.
int report_nothing(const std::vector<LeftOut>& skipped, Console& console) {
  std::set<std::string> reasons;
  for (const LeftOut& entry : skipped)
    if (reasons.insert(entry.reason).second) report({{}, entry.what + ": " + entry.reason}, console);
  return exit_bad_input;
}

/// --hlo: the differences between a compiled module and schedules of its product.
Expected<int> compare_module_and_print(const Options& options, Console& console) {
  for (const char* name : {"vary", "crossover", "equal", "top"})
    if (options.given(name)) return Diagnostic{option(name), "belongs to comparisons without --hlo"};
  if (options.texts("mesh").size() > 1) return Diagnostic{option("mesh"), "expected one mesh with --hlo"};
  const Format format = format_of(options);
  if (format == Format::csv || format == Format::markdown) return Diagnostic{option("format"), "expected table or json with --hlo, found " + options.text("format")};
  const Fields fields = compared_fields(options);
  auto how = run_options_of(fields, options, console);
  if (!how) return how.error();
  const auto record = record_request(options);
  if (!record) return record.error();
  ProgressLine line{console, options.flag("quiet")};
  show_on(line, *how);
  const auto comparison = compare_module(fields, *how);
  line.end();
  if (!comparison) return in_options(comparison.error());
  if (comparison->schedules.empty()) {
    std::vector<LeftOut> skipped;
    for (const Skipped& entry : comparison->skipped) skipped.push_back({entry.what, to_text(in_options(entry.why))});
    return report_nothing(skipped, console);
  }
  if (*record != nullptr)
    if (auto ok = write_record(**record, "compare", differences_json(*comparison), options); !ok) return ok.error();
  tell_table([&] { return differences_table(*comparison); }, console);
  return print_output(options, format == Format::json ? differences_json(*comparison) : differences_table(*comparison), console);
}

Expected<int> compare_and_print(const Options& options, Console& console) {
  if (options.given("algorithm") && options.given("algorithms")) return Diagnostic{option("algorithm"), "expected --algorithm or --algorithms, found both"};
  if (options.has("with")) {
    if (!options.has("hlo")) return Diagnostic{option("with"), "expected two modules, --hlo OLD --with NEW, found one"};
    return compare_modules_and_print(options, console);
  }
  if (options.has("expect")) return Diagnostic{option("expect"), "belongs to two modules, --hlo OLD --with NEW"};
  if (options.has("hlo")) return compare_module_and_print(options, console);
  if (format_of(options) == Format::markdown) return Diagnostic{option("format"), "expected table, json or csv, found markdown, which two modules have, --hlo OLD --with NEW"};
  auto how = run_options_of(fields_of(options), options, console);
  if (!how) return how.error();
  const auto record = record_request(options);
  if (!record) return record.error();
  ProgressLine line{console, options.flag("quiet"), 1, ProgressLine::Elsewhere::lines};
  show_on(line, *how);
  how->tell("laying out the systems");
  auto setup = comparison_of(options);
  if (!setup) return setup.error();
  ComparisonReport told;
  told.notes = notes_of(*setup, options);
  const std::vector<std::string> doubts = warn(doubts_about(*setup), console);
  told.notes.insert(told.notes.end(), doubts.begin(), doubts.end());
  if (options.has("topology") || options.has("equal") || setup->topologies > 1) {
    auto costs = on_equal_terms(setup->systems, options);
    if (!costs) return costs.error();
    told.topologies = *std::move(costs);
    if (!options.given("vary")) leave_topologies_once(told.topologies, options);
  }
  std::size_t top = 0;
  if (options.has("top")) {
    const auto most = options.integer("top", 1, 10000);
    if (!most) return most.error();
    top = static_cast<std::size_t>(*most);
  }
  if (options.has("write-nccl-tuner"))  // NCCL has but a few of the algorithms, not the fastest of all
    for (ComparedSystem& on : setup->systems)
      for (Variant& variant : on.variants) variant.unless_long = false;
  auto comparison = compare(setup->systems, *how, top);
  if (!comparison) return comparison.error();
  if (comparison->slower > 0)
    told.notes.push_back(fmt::format("{} more {} longer than the best {}", comparison->slower, comparison->slower == 1 ? "variant takes" : "variants take", top));
  if (comparison->large > 0)
    told.notes.push_back(fmt::format("{} {} not simulated on every mesh: on some {} large (more than two million task instances), or long to simulate and slower than `auto`; --force simulates {} there, too", comparison->large,
                                     comparison->large == 1 ? "variant is" : "variants are", comparison->large == 1 ? "it is" : "they are", comparison->large == 1 ? "it" : "them"));
  told.rows = std::move(comparison->rows);
  for (const auto* skipped : {&setup->skipped, &comparison->skipped})
    for (const Skipped& entry : *skipped) told.skipped.push_back({entry.what, to_text(in_options(entry.why))});
  told.verdicts = verdicts(comparison->by_system, terms_text(told.topologies, options));
  if (!told.rows.empty() && !how->stopped()) {
    auto crossovers = crossovers_of(setup->systems, comparison->by_system, options, *how);
    if (!crossovers) return crossovers.error();
    told.crossovers = *std::move(crossovers);
  }
  line.end();
  const bool interrupted = console.interrupted.requested();
  if (interrupted) fmt::print(console.err, "podsim: interrupted: {} of {} variants simulated\n", told.rows.size(), setup->variants());
  if (told.rows.empty()) return interrupted ? static_cast<int>(exit_interrupted) : report_nothing(told.skipped, console);

  if (options.has("write-nccl-tuner")) {
    const auto tuner = nccl_tuner_table(told.rows);
    if (!tuner) return tuner.error();
    if (auto ok = write_file(options.text("write-nccl-tuner"), *tuner); !ok) return ok.error();
  }
  if (*record != nullptr)
    if (auto ok = write_record(**record, "compare", comparison_json(told), options); !ok) return ok.error();
  if (console.caller != nullptr) {
    console.caller->comparison = std::make_shared<ComparisonReport>(told);
    if (!options.has("output")) return interrupted ? exit_interrupted : exit_done;
  }
  const Format format = format_of(options);
  if (format == Format::csv && !options.flag("quiet")) tell_beside_csv(told, console);
  const std::string text = format == Format::json ? comparison_json(told) : format == Format::csv ? result_csv(told.rows) : comparison_table(told);
  const int status = print_output(options, text, console);
  return interrupted && status == exit_done ? static_cast<int>(exit_interrupted) : status;
}

/// `-b 8 -e 128M -f 2`, as nccl-tests has sizes, as --bytes=8..128M:2. Both ends are 32M where they are left out, as there; each size is twice the one before.
std::vector<std::string> with_range_of_sizes(std::vector<std::string> words) {
  std::map<std::string, std::string> given;  // -b -e -f
  std::vector<std::string> others;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (const std::string& word = words[i]; i + 1 < words.size() && (word == "-b" || word == "-e" || word == "-f"))
      given[word] = words[++i];
    else
      others.push_back(word);
  }
  if (given.empty()) return words;
  const auto end = [&given](const char* option) { return given.contains(option) ? given[option] : "32M"; };
  others.push_back(fmt::format("--bytes={}..{}{}", end("-b"), end("-e"), given.contains("-f") ? ":" + given["-f"] : ""));
  return others;
}

}  // namespace

int compare_verb(const std::vector<std::string>& all_words, Console& console) {
  const std::vector<std::string> arguments = with_range_of_sizes(all_words);
  const bool names_files = std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) { return word == "--msccl" || word.starts_with("--msccl="); });
  const bool begins_with_file = !arguments.empty() && file_exists(arguments.front());  // OLD.hlo NEW.hlo
  const bool begins_with_module = arguments.size() > 1 && arguments.front() == "module" && file_exists(arguments[1]);
  static const OptionGroup described = compare_options();  // programs call it often
  return perform(arguments, described, "compare", console, &compare_and_print, names_files ? "msccl" : begins_with_file || begins_with_module ? "with" : nullptr);
}

}  // namespace podsim
