#include "tools/report/json.hpp"
#include "validation/calibration/fit/calibrate.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "sim/base/output_file.hpp"
#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/config/machine_config.hpp"
#include "tools/command/command.hpp"
#include "tools/command/observations.hpp"
#include "tools/command/record_option.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/console/caller.hpp"
#include "tools/console/progress.hpp"
#include "tools/report/calibration_report.hpp"
#include "validation/validate/described_rows.hpp"

namespace podsim {

namespace {

/// "PATH" or "PATH=SIGMA", a relative standard deviation.
Expected<NamedPrior> parse_prior(const std::string& text) {
  const std::size_t equals = text.find('=');
  NamedPrior prior;
  prior.path = text.substr(0, equals);
  if (equals == std::string::npos) return prior;
  const auto sigma = parse_number(text.substr(equals + 1), option("prior"));
  if (!sigma) return sigma.error();
  if (!(*sigma > 0 && *sigma <= 10)) return Diagnostic{option("prior"), "expected a relative deviation above 0, found " + quoted(text)};
  prior.relative_sigma = *sigma;
  return prior;
}

OptionGroup calibrate_options() {
  const OptionGroup own{{"base", field_option("machine").value, "the machine to begin with: what is not determined keeps its value"},
                        {"prior", written_as(Form::pairs, words("PATH[=SIGMA]")), "a value of the base that is known, to SIGMA of it (0.05); repeatable"},
                        {"hold", words("PATH"), "a value that stays; repeatable"},
                        {"only", words("PATH"), "a value that is fitted, and no other that is not named so; repeatable"},
                        {"steps", input_file("FILE"), "what the steps and runs are that rows name; left out: validation.textproto beside their file"},
                        {"dataset", word("NAME"), "what the observations are called in the machine; left out: the first file"},
                        {"plot", output_file("FILE.svg"), "draw measured against fitted, and the residuals"},
                        {"no-curves", flag(), "one efficiency for all sizes"},
                        {"observations-only", flag(), "convert to CSV, fit nothing"}};
  return joined({import_options(), field_options({FieldKind::Group::system}), own, threads_option(), record_options(), output_options(table_json)});
}

int print_observations(const Imported& imported, const Options& options, Console& console) {
  if (!options.flag("quiet"))
    for (const std::string& note : imported.notes) fmt::print(console.err, "podsim: note: {}\n", note);
  warn(doubts_about(imported.observations), console);
  return print_output(options, write_observations(imported.observations), console);
}

/// The description of the steps and runs that observations name; none: they name none. Errors: no such file, those of read_steps().
Expected<std::optional<Study>> steps_of(const std::vector<Observation>& observations, const Options& options) {
  const auto row = std::find_if(observations.begin(), observations.end(), is_described);
  if (row == observations.end() && options.has("steps")) return Diagnostic{option("steps"), "expected rows of training-step or run in the observations, found none"};
  if (row == observations.end()) return std::optional<Study>{};
  const std::string file =
      options.has("steps") ? options.text("steps") : (std::filesystem::path{row->where.file}.parent_path() / "validation.textproto").string();
  const auto text = read_file(file, config_limit);
  if (!text && !options.has("steps"))
    return Diagnostic{row->where, "expected a description of the steps and runs that rows name: --steps FILE, or validation.textproto beside this file, found neither"};
  if (!text) return text.error();
  auto study = read_steps(*text, file);
  if (!study) return study.error();
  return std::optional{*std::move(study)};
}

/// --hold --only --prior --dataset --no-curves --threads
Expected<CalibrateOptions> fit_options(const Options& options) {
  CalibrateOptions how;
  how.dataset = as_utf8(options.has("dataset") ? options.text("dataset") : options.texts("observations").front());
  how.hold = options.texts("hold");
  how.only = options.texts("only");
  const auto threads = options.integer("threads", 0, 1024);
  if (!threads) return threads.error();
  how.threads = static_cast<int>(*threads);
  how.curves = !options.flag("no-curves");
  for (const std::string& text : options.texts("prior")) {
    auto prior = parse_prior(text);
    if (!prior) return prior.error();
    how.priors.push_back(*std::move(prior));
  }
  return how;
}

Expected<int> calibrate_and_print(const Options& options, Console& console) {
  auto imported = imported_observations(options);
  if (!imported) return imported.error();
  if (options.flag("observations-only")) return print_observations(*imported, options, console);
  if (options.has("machine")) return Diagnostic{option("machine"), "calibrate begins with --base"};
  const auto record = record_request(options);
  if (!record) return record.error();
  if (!options.has("base")) return Diagnostic{{}, "--base is missing: the machine to begin with"};
  const auto system = system_of(*imported, options, options.text("base"));
  if (!system) return system.error();
  for (std::string& doubt : warn(doubts_about(*imported, system->machine), console)) imported->notes.push_back(std::move(doubt));
  auto how = fit_options(options);
  if (!how) return how.error();
  const auto steps = steps_of(imported->observations, options);
  if (!steps) return steps.error();
  if (*steps) how->described_time = described_time(**steps, *system);
  ProgressLine line{console, options.flag("quiet"), 1, ProgressLine::Elsewhere::lines};
  line.count_seconds();
  how->stop = console.interrupted;
  constexpr std::size_t whole = 2;  // parts of the work: one fit of all observations, and of its halves one each
  line.counting(0, whole + 2);
  line.doing("fitting");
  how->progress = [&line](std::size_t values) { line.doing(fmt::format("fitting {} values", values)); };
  how->counting = [&line](std::size_t done, std::size_t all) { line.counting(whole + done, whole + all); };
  auto found = calibrate(imported->observations, *system, *how);
  if (!found) return found.error();
  how->progress = [&line](std::size_t values) { line.doing(fmt::format("fitting {} values with observations held back", values)); };
  line.doing("fitting with observations held back");
  const auto held_back = held_back_error(imported->observations, *system, *how);
  line.end();
  if (console.interrupted.requested()) return cancelled_work();
  if (held_back) found->machine.trust.error = held_back->median;
  if (console.caller != nullptr) console.caller->machine = std::make_shared<Machine>(found->machine);
  if (options.has("plot"))
    if (auto ok = write_file(options.text("plot"), residual_svg(imported->observations, *found, how->dataset)); !ok) return ok.error();
  if (*record != nullptr)
    if (auto ok = write_record(**record, "calibrate", calibration_json(imported->observations, *found, held_back, imported->notes), options); !ok) return ok.error();
  const auto table = [&] { return calibration_table(imported->observations, *found, held_back, imported->notes); };
  tell_table(table, console);
  const std::string text = format_of(options) == Format::json ? calibration_json(imported->observations, *found, held_back, imported->notes) : table();
  if (!options.has("output") || !options.text("output").ends_with(".textproto")) return print_output(options, text, console);
  if (auto ok = write_file(options.text("output"), write_machine(found->machine)); !ok) return ok.error();
  console.out << text;
  return exit_done;
}

}  // namespace

int calibrate_verb(const std::vector<std::string>& arguments, Console& console) {
  return perform(arguments, calibrate_options(), "calibrate", console, &calibrate_and_print, "observations");
}

}  // namespace podsim
