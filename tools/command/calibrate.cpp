#include "validation/calibration/fit/calibrate.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/output_file.hpp"
#include "sim/base/units.hpp"
#include "sim/config/machine_config.hpp"
#include "tools/command/command.hpp"
#include "tools/command/observations.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/command/progress.hpp"
#include "tools/report/run_report.hpp"
#include "tools/report/validation_report.hpp"
#include "tools/report/prediction_plot.hpp"

namespace podsim {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view calibrate_usage =
    R"(usage: podsim calibrate OBSERVATIONS... --base MACHINE --slice AxB [-o machine.textproto] [OPTION...]
       podsim calibrate --from FORM FILE... --observations-only -o observations.csv

Fits the values of a machine to what was measured: launches, overheads, latency, bandwidths, efficiency curves. Prints each value with its interval,
what the measurements cannot tell and what to measure to tell it, and how far the fitted machine is off: on what was fitted, and on every other
observation when the rest is fitted. With -o FILE.textproto the machine is saved. Every run on it says what it was fitted to and how far it is off, or
in what it goes beyond: another operation, another number of devices, other dimensions, other sizes.

nccl-tests: what the programs print, one file or several tests in one; the out-of-place times are taken. Links of the second dimension of a dgx
slice, link[y], are those between the GPUs of a node, link[x] those between nodes. tools/capture measures what is needed on TPUs and GPUs.
meshslice-log: what BenchCollectives2D.py prints, one operation or several in one; its axes are x (rows of devices) and y: --mesh x=4,y=8.

examples:
  podsim calibrate validation/datasets/tpu_v5p_ppermute/observations.csv --base tpu_v5p --slice 2x2 --mesh row=4 -o my_v5p.textproto
  podsim calibrate --from nccl-tests all_reduce.txt --base dgx_h100 --slice 1x8 --prior link[y].bandwidth=0.05 -o mine.textproto
  podsim run --machine mine.textproto --slice 1x8 --collective all-reduce --bytes 64MiB
  podsim calibrate --from nccl-tests all_reduce.txt --observations-only -o all_reduce.csv
)";

constexpr double apart = 0.5;  // the weight below which an observation is said to lie apart

/// A file's name as machine files can have it: bytes that are no UTF-8 are replaced.
std::string as_utf8(const std::string& name) {
  return Json::parse(Json(name).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

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

std::string value_text(const CalibratedValue& value, double amount) {
  if (value.unit == "s") return to_text(Seconds{amount});
  if (value.unit == "B/s") return to_text(BytesPerSecond{amount});
  return fmt::format("{:.4g}", amount);
}

/// A line for all that cannot be told for the same reason.
std::string undetermined_text(const std::vector<Undetermined>& undetermined) {
  std::vector<std::pair<const Undetermined*, std::string>> lines;
  for (const Undetermined& u : undetermined) {
    const std::string path = u.path + (u.at.empty() ? "" : " at " + u.at);
    const auto same =
        std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first->why == u.why && line.first->probe == u.probe; });
    if (same == lines.end())
      lines.emplace_back(&u, path);
    else
      same->second += ", " + path;
  }
  std::string text;
  for (const auto& line : lines) text += fmt::format("  {}: {}; measure {}\n", line.second, line.first->why, line.first->probe);
  return text;
}

/// How far the machine is off, as far as the observations tell.
std::string error_text(const Calibration& found, const std::optional<ErrorSummary>& held_back) {
  std::string text = fmt::format("of what was fitted: median error {}, 95th percentile {} ({} observations)\n", percent(found.median_abs_error),
                                 percent(found.p95_abs_error), found.residuals.size());
  if (held_back)
    return text + fmt::format("of what was held back, every other observation in turn: median error {}, 95th percentile {}\n",
                              percent(held_back->median), percent(held_back->p95));
  return text + "nothing could be held back, there are too few observations for the values: how far other sizes are off is not known\n";
}

std::string calibration_table(const std::vector<Observation>& observations, const Calibration& found, const std::optional<ErrorSummary>& held_back,
                              const std::vector<std::string>& notes) {
  std::vector<std::vector<std::string>> rows{{"value", "at", "fitted", "from", "to", ""}};
  for (const CalibratedValue& value : found.parameters)
    rows.push_back({value.path, value.at, value_text(value, value.value), value_text(value, value.low), value_text(value, value.high),
                    std::string{name_of(value.origin)}});
  std::string text = table(rows, 2);
  for (const CalibratedValue& value : found.parameters)
    if (value.beyond_specification())
      text += fmt::format("{}{} is {:.2g} times the specified {}, more than such a part can do: an effective value. What was observed\n"
                          "ran otherwise than the fit takes it to, so do not carry it to other operations or other numbers of devices.\n",
                          value.path, value.at.empty() ? "" : " at " + value.at, value.value / *value.specified, value_text(value, *value.specified));
  if (!found.undetermined.empty()) text += "\nnot determined by these observations:\n" + undetermined_text(found.undetermined);
  rows = {{"observation", "measured", "predicted", "error", ""}};
  for (const Residual& residual : found.residuals) {
    const Observation& o = observations[residual.observation];
    rows.push_back(
        {observation_text(o), to_text(o.time), to_text(residual.predicted), signed_percent(residual.error), residual.weight < apart ? "apart" : ""});
  }
  text += "\n" + table(rows, 1);
  const auto is_apart = [](const Residual& residual) { return residual.weight < apart; };
  if (std::any_of(found.residuals.begin(), found.residuals.end(), is_apart))
    text += "apart: counted less than half, as nothing brings it near the others\n";
  text += "\n" + error_text(found, held_back);
  for (const std::string& note : notes) text += fmt::format("note: {}\n", note);
  return text;
}

std::string calibration_json(const std::vector<Observation>& observations, const Calibration& found, const std::optional<ErrorSummary>& held_back,
                             const std::vector<std::string>& notes) {
  Json parameters = Json::array(), undetermined = Json::array(), residuals = Json::array();
  for (const CalibratedValue& v : found.parameters)
    parameters.push_back(Json{{"path", v.path},
                              {"at", v.at.empty() ? Json() : Json(v.at)},
                              {"value", v.value},
                              {"unit", v.unit},
                              {"low", v.low},
                              {"high", v.high},
                              {"specified", or_null(v.specified)},
                              {"beyond_specification", v.beyond_specification()},
                              {"origin", name_of(v.origin)}});
  for (const Undetermined& u : found.undetermined)
    undetermined.push_back(Json{{"path", u.path}, {"at", u.at.empty() ? Json() : Json(u.at)}, {"why", u.why}, {"probe", u.probe}});
  for (const Residual& r : found.residuals) {
    const Observation& o = observations[r.observation];
    residuals.push_back(Json{{"op", name_of(o.op)},
                             {"devices", o.devices},
                             {"bytes", o.bytes.count()},
                             {"measured_s", o.time.count()},
                             {"predicted_s", r.predicted.count()},
                             {"error", r.error},
                             {"weight", r.weight}});
  }
  return Json{{"parameters", parameters},
              {"median_abs_error", found.median_abs_error},
              {"p95_abs_error", found.p95_abs_error},
              {"held_back", held_back ? Json{{"median_abs_error", held_back->median}, {"p95_abs_error", held_back->p95}} : Json()},
              {"undetermined", undetermined},
              {"residuals", residuals},
              {"notes", notes}}
             .dump(2) +
         "\n";
}

/// A group per operation; what counted less is hollow.
std::string residual_svg(const std::vector<Observation>& observations, const Calibration& found, const std::string& dataset) {
  std::map<ObservedOp, PlottedGroup> groups;
  for (const Residual& residual : found.residuals) {
    const Observation& o = observations[residual.observation];
    PlottedGroup& group = groups[o.op];
    group.name = name_of(o.op);
    group.points.push_back({o.time, residual.predicted, observation_text(o), residual.weight < apart});
  }
  std::vector<PlottedGroup> drawn;
  for (auto& [op, group] : groups) drawn.push_back(std::move(group));
  return prediction_svg("Fitted to " + dataset, drawn);
}

OptionGroup calibrate_options() {
  const OptionGroup own{{"base", input_file("NAME|FILE"), "the machine to begin with: what is not determined keeps its value"},
                        {"prior", words("PATH[=SIGMA]"), "a value of the base that is known, to SIGMA of it (0.05); repeatable"},
                        {"hold", words("PATH"), "a value that stays; repeatable"},
                        {"dataset", word("NAME"), "what the observations are called in the machine; left out: the first file"},
                        {"plot", output_file("FILE.svg"), "draw measured against fitted, and the residuals"},
                        {"no-curves", flag(), "one efficiency for all sizes"},
                        {"observations-only", flag(), "convert to CSV, fit nothing"}};
  return joined({import_options(), system_options(false), own, output_options(table_json)});
}

int print_observations(const Imported& imported, const Options& options, Console& console) {
  if (!options.flag("quiet"))
    for (const std::string& note : imported.notes) fmt::print(console.err, "podsim: note: {}\n", note);
  return print_output(options, write_observations(imported.observations), console);
}

/// --hold --prior --dataset --no-curves
Expected<CalibrateOptions> fit_options(const Options& options) {
  CalibrateOptions how;
  how.dataset = as_utf8(options.has("dataset") ? options.text("dataset") : options.texts("observations").front());
  how.hold = options.texts("hold");
  how.curves = !options.flag("no-curves");
  for (const std::string& text : options.texts("prior")) {
    auto prior = parse_prior(text);
    if (!prior) return prior.error();
    how.priors.push_back(*std::move(prior));
  }
  return how;
}

Expected<int> calibrate_and_print(const Options& options, Console& console) {
  const auto imported = imported_observations(options);
  if (!imported) return imported.error();
  if (options.flag("observations-only")) return print_observations(*imported, options, console);
  if (options.has("machine")) return Diagnostic{option("machine"), "calibrate begins with --base"};
  if (!options.has("base")) return Diagnostic{{}, "--base is missing: the machine to begin with"};
  const auto system = system_of(options, options.text("base"));
  if (!system) return system.error();
  auto how = fit_options(options);
  if (!how) return how.error();
  ProgressLine line{console, options.flag("quiet")};
  line.count_seconds();
  how->progress = [&line](std::size_t values) { line.doing(fmt::format("fitting {} values", values)); };
  auto found = calibrate(imported->observations, *system, *how);
  if (!found) return found.error();
  line.doing("fitting with observations held back");
  const auto held_back = held_back_error(imported->observations, *system, *how);
  line.end();
  if (held_back) found->machine.trust.error = held_back->median;
  if (options.has("plot"))
    if (auto ok = write_file(options.text("plot"), residual_svg(imported->observations, *found, how->dataset)); !ok) return ok.error();
  const std::string text = format_of(options) == Format::json ? calibration_json(imported->observations, *found, held_back, imported->notes)
                                                              : calibration_table(imported->observations, *found, held_back, imported->notes);
  if (!options.has("output") || !options.text("output").ends_with(".textproto")) return print_output(options, text, console);
  if (auto ok = write_file(options.text("output"), write_machine(found->machine)); !ok) return ok.error();
  console.out << text;
  return exit_done;
}

}  // namespace

int calibrate_verb(const std::vector<std::string>& arguments, Console& console) {
  const Parsed parsed = parse(arguments, calibrate_options(), calibrate_usage, console, "observations");
  if (parsed.status) return *parsed.status;
  const auto status = calibrate_and_print(*parsed.options, console);
  return status ? *status : report(status.error(), console);
}

}  // namespace podsim
