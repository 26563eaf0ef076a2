#include "tools/report/diagnosis_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "tools/report/json.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

constexpr std::string_view healthy = "healthy";
constexpr std::size_t most_columns = 4;  // of rows

std::string row_text(const Observation& row) { return fmt::format("{} {}", name_of(row.op), to_text(tensor_bytes(row))); }

/// The program of nccl-tests that measures it.
std::string program_of(ObservedOp op) {
  switch (op) {
    case ObservedOp::all_to_all: return "alltoall_perf";
    case ObservedOp::permute: return "sendrecv_perf";
    default: {
      std::string name{name_of(op)};
      std::ranges::replace(name, '-', '_');
      return name + "_perf";
    }
  }
}

std::string sentence_of(const Diagnosis& diagnosis) {
  constexpr double as_well = 0.01, fits_well = 0.15;
  const HypothesisFit& best = diagnosis.fits.front();
  const auto well = std::ranges::find(diagnosis.fits, healthy, &HypothesisFit::name);
  if (best.name == healthy)
    return fmt::format("Nothing fits better than a healthy system, which is {} off{}.", percent(best.error), best.error > fits_well ? ": what is wrong is none of the hypotheses, or the machine's values are" : "");
  std::string text = fmt::format("{} fits best: {} off, where a healthy system is {} off.", best.name, percent(best.error), percent(well->error));
  std::vector<std::string_view> others;
  for (const HypothesisFit& fit : diagnosis.fits)
    if (&fit != &best && fit.error < best.error + as_well) others.push_back(fit.name);
  if (!others.empty()) text += fmt::format("\nThese times do not tell it apart from: {}.", fmt::join(others, "; "));
  if (best.option.find("--degrade") != std::string::npos || best.option.find("--fail") != std::string::npos) {
    text += "\nThe part that is named stands for any like it";
    if (best.share)
      text += fmt::format("; from {:.2f} to {:.2f} of its rate fits as well, within 2 %.", best.share->first, best.share->second);
    else
      text += ", and its share for the nearest of 3/4, 1/2, 1/4 and 0, which are tried.";
  }
  if (best.error > fits_well) text += "\nNothing fits well: there may be two faults, or one that is not among the hypotheses.";
  return text;
}

}  // namespace

std::string diagnosis_table(const Diagnosis& diagnosis, std::size_t most) {
  const std::vector<Observation>& rows = diagnosis.observations;
  std::vector<std::size_t> shown;  // the first, the last and some between
  for (std::size_t i = 0; i < std::min(rows.size(), most_columns); ++i) shown.push_back(rows.size() <= most_columns ? i : i * (rows.size() - 1) / (most_columns - 1));
  std::vector<std::vector<std::string>> lines{{"hypothesis", "error", "furthest off"}, {"measured", "", ""}};
  for (const std::size_t i : shown) lines[0].push_back(row_text(rows[i])), lines[1].push_back(to_text(rows[i].time));
  lines[0].emplace_back("to simulate it");
  lines[1].emplace_back("");
  for (std::size_t f = 0; f < diagnosis.fits.size(); ++f) {
    const HypothesisFit& fit = diagnosis.fits[f];
    if (f >= most && fit.name != healthy) continue;
    std::vector<std::string> line{fit.name, percent(fit.error), signed_percent(fit.largest)};
    for (const std::size_t i : shown) line.push_back(to_text(fit.predicted[i]));
    line.push_back(fit.option);
    lines.push_back(std::move(line));
  }
  std::string text = sentence_of(diagnosis) + "\n\n" + table(lines, 1);
  if (diagnosis.fits.size() > most) text += fmt::format("({} hypotheses in all: --top N)\n", diagnosis.fits.size());
  if (diagnosis.next) {
    const NextMeasurement& next = *diagnosis.next;
    const bool second = next.other == diagnosis.fits[1].name;
    text += fmt::format("\nNext: {} of {} on {} devices{} tells {}: {} by the first, {} by the other.\n", program_of(next.observation.op), to_text(tensor_bytes(next.observation)),
                        next.observation.devices, next.left_out.empty() ? "" : ", without " + next.left_out + ",",
                        second ? "the first two apart" : fmt::format("the first from \"{}\" (those between give the same times)", next.other), to_text(next.first), to_text(next.second));
  } else if (diagnosis.fits.size() > 1) {
    text += "\nNo collective that was tried tells the first apart from the next by more than 5 %: measure parts of the slice, with and without what the first names.\n";
  }
  if (!diagnosis.without_effect.empty()) text += fmt::format("note: makes no difference here: {}\n", fmt::join(diagnosis.without_effect, "; "));
  for (const std::string& note : diagnosis.notes) text += "note: " + note + "\n";
  return text;
}

std::string diagnosis_json(const Diagnosis& diagnosis) {
  Json rows = Json::array(), fits = Json::array();
  for (const Observation& row : diagnosis.observations)
    rows.push_back(Json{{"op", std::string{name_of(row.op)}}, {"devices", row.devices}, {"bytes", row.bytes.count()}, {"measured_s", row.time.count()}});
  for (const HypothesisFit& fit : diagnosis.fits) {
    Json times = Json::array();
    for (const Seconds time : fit.predicted) times.push_back(time.count());
    Json json{{"name", fit.name}, {"option", fit.option}, {"error", fit.error}, {"largest_error", fit.largest}, {"predicted_s", std::move(times)}};
    if (fit.share) json.set("share", Json{{"low", fit.share->first}, {"high", fit.share->second}});
    fits.push_back(std::move(json));
  }
  Json json{{"rows", std::move(rows)}, {"hypotheses", std::move(fits)}, {"without_effect", diagnosis.without_effect}, {"notes", diagnosis.notes}, {"sentence", sentence_of(diagnosis)}};
  if (diagnosis.next) {
    const Observation& row = diagnosis.next->observation;
    json.set("next", Json{{"op", std::string{name_of(row.op)}}, {"devices", row.devices}, {"bytes", row.bytes.count()}, {"left_out", diagnosis.next->left_out}, {"other", diagnosis.next->other}, {"first_s", diagnosis.next->first.count()}, {"second_s", diagnosis.next->second.count()}});
  } else {
    json.set("next", Json());
  }
  return json.dump(2) + "\n";
}

}  // namespace podsim
