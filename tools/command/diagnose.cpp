#include "validation/diagnose/diagnose.hpp"

#include "tools/command/command.hpp"
#include "tools/command/observations.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/console/progress.hpp"
#include "tools/report/diagnosis_report.hpp"

namespace podsim {

namespace {

OptionGroup diagnose_options() {
  const OptionGroup own{{"top", word("N", "10"), "how many hypotheses the table has"}};
  using enum FieldKind::Group;
  return joined({own, import_options(), field_options({system, what_if}), output_options(table_json)});
}

Expected<int> work(const Options& options, Console& console) {
  const auto top = options.integer("top", 1, 1 << 20);
  if (!top) return top.error();
  auto imported = imported_observations(options);
  if (!imported) return imported.error();
  if (!options.has("machine")) return Diagnostic{{}, "--machine is missing: the machine that the times were measured on, as it should be"};
  const auto system = system_of(*imported, options);
  if (!system) return system.error();
  warn(doubts_about(*imported, system->machine), console);
  ProgressLine line{console, options.flag("quiet"), 1, ProgressLine::Elsewhere::lines};
  line.count_seconds();
  ValidateControl control;
  control.stop = console.interrupted;
  control.done = [&line](std::size_t done, std::size_t all) {
    line.counting(done, all);
    line.doing("hypotheses");
  };
  const auto diagnosis = diagnose(imported->observations, *system, control);
  line.end();
  if (!diagnosis) return diagnosis.error();
  return print_output(options, format_of(options) == Format::json ? diagnosis_json(*diagnosis) : diagnosis_table(*diagnosis, static_cast<std::size_t>(*top)), console);
}

}  // namespace

int diagnose_verb(const std::vector<std::string>& arguments, Console& console) { return perform(with_named_words(arguments), diagnose_options(), "diagnose", console, &work, "observations"); }

}  // namespace podsim
