#include "tools/report/calibration_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/units.hpp"
#include "tools/report/json.hpp"
#include "tools/report/prediction_plot.hpp"
#include "tools/report/run_report.hpp"
#include "tools/report/table.hpp"
#include "tools/report/validation_report.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_lines = 200;  // of observations; of more, the few that are off most
constexpr std::size_t few_lines = 20;
constexpr double apart = 0.5;  // the weight below which an observation is said to lie apart

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
std::string error_text(const std::vector<Observation>& observations, const Calibration& found, const std::optional<ErrorSummary>& held_back) {
  std::string text = fmt::format("of what was fitted: median error {}, 95th percentile {} ({} observations)\n", percent(found.median_abs_error),
                                 percent(found.p95_abs_error), found.residuals.size());
  if (held_back)
    return text + fmt::format("of what was held back, every other {} in turn: median error {}, 95th percentile {}\n",
                              std::all_of(observations.begin(), observations.end(), is_training_step) ? "step with all its rows" : "observation", percent(held_back->median), percent(held_back->p95));
  return text + "nothing could be held back, there are too few observations for the values: how far other sizes are off is not known\n";
}

}  // namespace

std::string calibration_table(const std::vector<Observation>& observations, const Calibration& found, const std::optional<ErrorSummary>& held_back,
                              const std::vector<std::string>& notes) {
  std::vector<std::vector<std::string>> rows{{"value", "at", "fitted", "from", "to", ""}};
  for (const CalibratedValue& value : found.parameters)
    rows.push_back({value.path, value.at, value_text(value, value.value), value_text(value, value.low), value_text(value, value.high),
                    std::string{name_of(value.origin)}});
  std::string text = table(rows, 2);
  for (const CalibratedValue& value : found.parameters)
    if (value.beyond_specification())
      text += fmt::format("{}{} is {:.3g} times the specified {}, more than such a part can do: an effective value. What was observed\n"
                          "ran otherwise than the fit takes it to, so do not carry it to other operations or other numbers of devices.\n",
                          value.path, value.at.empty() ? "" : " at " + value.at, value.value / *value.specified, value_text(value, *value.specified));
  if (!found.undetermined.empty()) text += "\nnot determined by these observations:\n" + undetermined_text(found.undetermined);
  if (!found.choices.empty()) text += "\nhow the fit was found:\n";
  for (const std::string& choice : found.choices) text += fmt::format("  {}\n", choice);
  rows = {{"observation", "measured", "predicted", "error", ""}};
  std::vector<Residual> shown = found.residuals;
  if (shown.size() > most_lines) {
    const auto more = [](const Residual& a, const Residual& b) { return std::abs(std::log1p(a.error)) > std::abs(std::log1p(b.error)); };
    std::stable_sort(shown.begin(), shown.end(), more);
    shown.resize(few_lines);
    text += fmt::format("\nthe {} observations that are off most, of {} (--format json has all):", few_lines, found.residuals.size());
  }
  for (const Residual& residual : shown) {
    const Observation& o = observations[residual.observation];
    rows.push_back(
        {observation_text(o), to_text(o.time), to_text(residual.predicted), signed_percent(residual.error), residual.weight < apart ? "apart" : ""});
  }
  text += "\n" + table(rows, 1);
  const auto is_apart = [](const Residual& residual) { return residual.weight < apart; };
  if (std::any_of(found.residuals.begin(), found.residuals.end(), is_apart))
    text += "apart: counted less than half, as nothing brings it near the others\n";
  text += "\n" + error_text(observations, found, held_back);
  for (const std::string& note : notes) text += fmt::format("note: {}\n", note);
  return text;
}

std::string calibration_json(const std::vector<Observation>& observations, const Calibration& found, const std::optional<ErrorSummary>& held_back,
                             const std::vector<std::string>& notes) {
  Json parameters = Json::array(), undetermined = Json::array(), residuals = Json::array();
  for (const CalibratedValue& v : found.parameters)
    parameters.push_back(Json{{"path", v.path},
                              {"at", or_null(v.at)},
                              {"value", v.value},
                              {"unit", v.unit},
                              {"low", v.low},
                              {"high", v.high},
                              {"specified", or_null(v.specified)},
                              {"beyond_specification", v.beyond_specification()},
                              {"origin", name_of(v.origin)}});
  for (const Undetermined& u : found.undetermined)
    undetermined.push_back(Json{{"path", u.path}, {"at", or_null(u.at)}, {"why", u.why}, {"probe", u.probe}});
  for (const Residual& r : found.residuals) {
    const Observation& o = observations[r.observation];
    Json residual{{"op", name_of(o.op)},
                  {"devices", o.devices},
                  {"bytes", o.bytes.count()},
                  {"measured_s", o.time.count()},
                  {"predicted_s", r.predicted.count()},
                  {"error", r.error},
                  {"weight", r.weight}};
    if (is_training_step(o)) {
      residual.set("step", o.step);
      residual.set("pods", o.pods);
    }
    if (is_run(o)) residual.set("run", o.run);
    residuals.push_back(std::move(residual));
  }
  return Json{{"parameters", parameters},
              {"median_abs_error", found.median_abs_error},
              {"p95_abs_error", found.p95_abs_error},
              {"held_back", held_back ? Json{{"median_abs_error", held_back->median}, {"p95_abs_error", held_back->p95}} : Json()},
              {"undetermined", undetermined},
              {"choices", found.choices},
              {"residuals", residuals},
              {"notes", notes}}
             .dump(2) +
         "\n";
}

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

}  // namespace podsim
