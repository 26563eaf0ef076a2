#include "validation/validate/validate.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "sim/base/output_file.hpp"
#include "sim/base/units.hpp"
#include "tools/command/command.hpp"
#include "tools/command/observations.hpp"
#include "tools/command/record_option.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/console/progress.hpp"
#include "tools/report/validation_report.hpp"

namespace podsim {

namespace {

/// "5%" or 0.05.
Expected<double> share_of(const Options& options, const std::string& name) {
  std::string text = options.text(name);
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  const auto number = parse_number(text, option(name));
  if (!number) return number.error();
  if (!(*number > 0)) return Diagnostic{option(name), "expected a share above 0, as 5%, found " + quoted(options.text(name))};
  return percent ? *number / 100 : *number;
}

Expected<std::vector<DatasetValidation>> of_observations(const Options& options, Console& console) {
  auto imported = imported_observations(options);
  if (!imported) return imported.error();
  if (imported->observations.empty())
    return Diagnostic{{options.texts("observations").front(), 1, 1}, "expected observations, found none"};
  if (!options.has("machine")) return Diagnostic{{}, "--machine is missing: the machine that --observations are predicted on"};
  const auto system = system_of(*imported, options);
  if (!system) return system.error();
  warn(doubts_about(*imported, system->machine), console);
  std::optional<ErrorBound> bound;
  if (options.has("bound")) {
    const auto median = share_of(options, "bound");
    if (!median) return median.error();
    bound = ErrorBound{*median, std::numeric_limits<double>::infinity()};
  }
  auto found = validate_on(imported->observations, *system, bound);
  if (!found) return found.error();
  return std::vector<DatasetValidation>{{options.texts("observations").front(), {*std::move(found)}}};
}

/// Shows how many of how many `parts` are done. The line outlives its use.
ValidateControl control_on(ProgressLine& line, const char* parts, Console& console) {
  ValidateControl control;
  control.stop = console.interrupted;
  control.done = [&line, parts](std::size_t done, std::size_t all) {
    line.counting(done, all);
    line.doing(parts);
  };
  return control;
}

int explain_observations(const Options& options, Console& console) {
  if (!options.has("observations") || !options.has("machine"))
    return report({option("explain"), "expected --observations and --machine: what is explained, and on which machine"}, console);
  if (format_of(options) == Format::csv) return report({option("explain"), "prints a table or json"}, console);
  const auto record = record_request(options);
  if (!record) return report(record.error(), console);
  auto imported = imported_observations(options);
  if (!imported) return report(imported.error(), console);
  const auto system = system_of(*imported, options);
  if (!system) return report(system.error(), console);
  warn(doubts_about(*imported, system->machine), console);
  ProgressLine line{console, options.flag("quiet")};
  line.count_seconds();
  const auto rows = explain_rows(imported->observations, *system, control_on(line, "explaining rows", console));
  line.end();
  if (!rows) return report(rows.error(), console);
  if (*record != nullptr)
    if (auto ok = write_record(**record, "validate", explained_json(*rows), options); !ok) return report(ok.error(), console);
  tell_table([&] { return explained_table(*rows); }, console);
  return print_output(options, format_of(options) == Format::json ? explained_json(*rows) : explained_table(*rows), console);
}

Expected<std::vector<DatasetValidation>> of_datasets(const Options& options, Console& console) {
  for (const char* name : {"machine", "slice", "mesh", "set", "bound"})
    if (options.given(name)) return Diagnostic{option(name), "belongs to --observations: a dataset says itself what it is predicted on"};
  std::vector<std::string> names = options.texts("dataset");
  if (names.empty()) names = shipped_datasets();
  std::vector<Dataset> datasets;
  for (const std::string& name : names) {
    auto dataset = find_dataset(name);
    if (!dataset) return dataset.error();
    datasets.push_back(*std::move(dataset));
  }
  const auto threads = options.integer("threads", 0, 1024);
  if (!threads) return threads.error();
  ProgressLine line{console, options.flag("quiet")};
  line.count_seconds();
  ValidateControl control = control_on(line, "fits", console);
  control.threads = static_cast<int>(*threads);
  return validate(datasets, control);
}

OptionGroup validate_options() {
  const OptionGroup own{{"dataset", input_files("NAME|FOLDER", files_of_dataset), "repeatable, --dataset may be left out; none: all that come with podsim"},
                        {"bound", word("SHARE"), "of --observations: the largest median error, as 5%"},
                        {"rows", flag(), "print every row, not only figures"},
                        {"explain", flag(), "of --observations: the bound of every row, the times of all algorithms, and a sentence"},
                        {"plot", output_file("FILE.svg"), "draw measured against predicted"},
                        {"threads", word("N", "0"), "0: as many as the machine has"}};
  return joined({own, import_options(), field_options({FieldKind::Group::system}), record_options(), output_options(table_json_csv)});
}

}  // namespace

int validate_verb(const std::vector<std::string>& arguments, Console& console) {
  const Parsed parsed = parse(with_named_words(arguments), validate_options(), usage_of("validate"), console, "dataset");
  if (parsed.status) return *parsed.status;
  const Options& options = *parsed.options;
  if (options.has("observations") && options.has("dataset"))
    return report({option("observations"), "expected datasets or --observations, found both"}, console);
  if (options.flag("explain")) return explain_observations(options, console);
  const auto record = record_request(options);
  if (!record) return report(record.error(), console);
  const auto validations = options.has("observations") ? of_observations(options, console) : of_datasets(options, console);
  if (!validations) return report(validations.error(), console);
  if (*record != nullptr)
    if (auto ok = write_record(**record, "validate", validation_json(*validations), options); !ok) return report(ok.error(), console);
  const Format format = format_of(options);
  tell_table([&] { return validation_table(*validations, options.flag("rows")); }, console);
  const std::string text = format == Format::json  ? validation_json(*validations)
                           : format == Format::csv ? validation_csv(*validations)
                                                   : validation_table(*validations, options.flag("rows"));
  if (const int status = print_output(options, text, console); status != exit_done) return status;
  if (options.has("plot"))
    if (auto ok = write_file(options.text("plot"), validation_svg(*validations)); !ok) return report(ok.error(), console);
  const bool ok = std::ranges::all_of(*validations, [](const DatasetValidation& validation) { return validation.ok(); });
  return ok ? exit_done : exit_false;
}

}  // namespace podsim
