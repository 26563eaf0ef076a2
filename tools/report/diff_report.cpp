#include "tools/report/diff_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>

#include "sim/base/csv.hpp"
#include "sim/base/units.hpp"
#include "tools/report/comparison_report.hpp"
#include "tools/report/json.hpp"
#include "tools/report/late_ranks_report.hpp"
#include "tools/report/run_report.hpp"

namespace podsim {

namespace {

constexpr std::size_t shown = 20;  // rows of a table that a screen takes

std::string share_text(const std::optional<double>& share) {
  if (!share) return "-";
  return percent(std::abs(*share) < 5e-4 ? 0 : *share);  // no "-0.0 %"
}
std::string count_text(double count) { return fmt::format("{:.4g}", count); }
std::string beside_text(Seconds beside) { return beside > Seconds{} ? to_text(beside) : "-"; }

/// "ff1: gather W and 2 more"
std::string names_text(const std::vector<std::string>& names) {
  if (names.empty()) return "-";
  return names.front() + (names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "");
}

/// Those of one name, side and category as one: a kernel that a command buffer runs at several places. Longest first, without those that take no time.
std::vector<UnmatchedOperation> added_up(const std::vector<UnmatchedOperation>& unmatched) {
  std::vector<UnmatchedOperation> sums;
  std::map<std::tuple<bool, std::string_view, std::string_view>, std::size_t> known;
  for (const UnmatchedOperation& one : unmatched) {
    if (!(one.operation.time > Seconds{} || one.operation.beside > Seconds{})) continue;
    const auto [at, is_new] = known.try_emplace({one.measured, one.operation.name, one.operation.category}, sums.size());
    if (is_new) {
      sums.push_back(one);
      continue;
    }
    sums[at->second].operation.time += one.operation.time;
    sums[at->second].operation.count += one.operation.count;
  }
  std::ranges::stable_sort(sums, std::greater{}, [](const UnmatchedOperation& one) { return one.operation.time; });
  return sums;
}

/// At most `shown` rows below the heading.
std::string cut_table(std::vector<std::vector<std::string>> rows, std::size_t left) {
  const std::size_t more = rows.size() > shown + 1 ? rows.size() - shown - 1 : 0;
  rows.resize(rows.size() - more);
  return table(rows, left) + (more > 0 ? fmt::format("... {} more; --format json or csv has them\n", more) : "");
}

Json row_json(const DiffRow& row) {
  return Json{{"predicted_s", row.predicted.time.count()},
              {"measured_s", row.measured.time.count()},
              {"gap_s", row.gap().count()},
              {"share", or_null(row.share)},
              {"predicted_overlapped_s", row.predicted.beside.count()},
              {"measured_overlapped_s", row.measured.beside.count()}};
}

Json matching_json(const MatchCoverage& coverage) {
  Json json = Json::object(), nearest = Json::array();
  for (const auto& [name, side] : {std::pair{"predicted", &coverage.predicted}, {"measured", &coverage.measured}})
    json.set(name, Json{{"matched", side->matched}, {"of", side->all}, {"matched_s", side->matched_time.count()}, {"time_s", side->time.count()}});
  for (const MatchCoverage::Pair& pair : coverage.nearest) {
    Json entry = Json::object();
    for (const auto& [name, one] : {std::pair{"predicted", &pair.predicted}, {"measured", &pair.measured}})
      entry.set(name, Json{{"name", one->name}, {"category", one->category}, {"flops", one->flops.count()}, {"bytes", one->bytes.count()}});
    nearest.push_back(std::move(entry));
  }
  json.set("nearest", std::move(nearest));
  return json;
}

/// Names come from profiles: what is no UTF-8 is replaced.
std::string dumped(const Json& json) { return json.dump(2) + "\n"; }

}  // namespace

std::string diff_table(const DiffReport& report) {
  const StepDiff& diff = report.diff;
  std::string text = diff.sentence + "\n" + to_text(report.coverage) + "\n\n";
  std::vector<std::vector<std::string>> rows{{"category", "predicted", "measured", "gap", "of the gap", "hidden, predicted", "hidden, measured"}};
  for (const DiffRow& row : diff.categories)
    rows.push_back({row.name, to_text(row.predicted.time), to_text(row.measured.time), gap_text(row.gap()), share_text(row.share),
                    beside_text(row.predicted.beside), beside_text(row.measured.beside)});
  rows.push_back({"step", to_text(diff.predicted), to_text(diff.measured), gap_text(diff.measured - diff.predicted), "", "", ""});
  text += table(rows, 1);
  if (auto [cells, texts] = collective_diff_cells(report.collectives, diff.measured); !cells.empty()) text += "\n" + cut_table(std::move(cells), texts);
  if (!diff.operations.empty()) {
    rows = {{"operation", "measured as", "category", "predicted", "measured", "gap", "of the gap"}};
    for (const DiffRow& row : diff.operations)
      rows.push_back({names_text(row.predicted.names), names_text(row.measured.names), row.category, to_text(row.predicted.time),
                      to_text(row.measured.time), gap_text(row.gap()), share_text(row.share)});
    text += "\n" + cut_table(std::move(rows), 3);
  }
  if (!diff.unmatched.empty()) {
    rows = {{"without a counterpart", "side", "category", "time", "count"}};
    for (const UnmatchedOperation& one : added_up(diff.unmatched))
      rows.push_back({one.operation.name, one.measured ? "measured" : "predicted", one.operation.category, to_text(one.operation.time),
                      count_text(one.operation.count)});
    text += "\n" + cut_table(std::move(rows), 3);
  }
  if (const std::string late = late_ranks_table(report.late); !late.empty()) text += "\n" + late;
  for (const std::string& note : report.notes) text += fmt::format("{}note: {}\n", &note == &report.notes.front() ? "\n" : "", note);
  return text;
}

std::string diff_json(const DiffReport& report) {
  const StepDiff& diff = report.diff;
  Json categories = Json::array(), ops = Json::array(), unmatched = Json::array();
  for (const DiffRow& row : diff.categories) {
    Json entry{{"name", row.name}};
    entry.update(row_json(row));
    categories.push_back(std::move(entry));
  }
  for (const DiffRow& row : diff.operations) {
    Json entry{{"name", row.name}, {"category", row.category}};
    entry.update(row_json(row));
    entry.update(Json{{"predicted_count", row.predicted.count},
                      {"measured_count", row.measured.count},
                      {"predicted", row.predicted.names},
                      {"measured", row.measured.names}});
    ops.push_back(std::move(entry));
  }
  for (const UnmatchedOperation& one : diff.unmatched)
    unmatched.push_back(Json{{"side", one.measured ? "measured" : "predicted"},
                             {"name", one.operation.name},
                             {"category", one.operation.category},
                             {"count", one.operation.count},
                             {"time_s", one.operation.time.count()},
                             {"overlapped_s", one.operation.beside.count()}});
  return dumped(Json{{"layers", diff.layers},
                     {"predicted_s", diff.predicted.count()},
                     {"measured_s", diff.measured.count()},
                     {"gap_s", (diff.measured - diff.predicted).count()},
                     {"matching", matching_json(report.coverage)},
                     {"categories", categories},
                     {"collectives", collective_diff_json(report.collectives, diff.measured)},
                     {"ops", ops},
                     {"unmatched", unmatched},
                     {"late_ranks", late_ranks_json(report.late)},
                     {"sentence", diff.sentence},
                     {"notes", report.notes},
                     {"warnings", report.warnings}});
}

std::string diff_csv(const DiffReport& report) {
  const StepDiff& diff = report.diff;
  const auto number = [](Seconds time) { return fmt::format("{}", time.count()); };
  std::string text = csv_row({"kind", "name", "category", "predicted_s", "measured_s", "gap_s", "share"});
  const auto add = [&](const char* kind, const DiffRow& row) {
    text += csv_row({kind, row.name, row.category, number(row.predicted.time), number(row.measured.time), number(row.gap()),
                 row.share ? fmt::format("{}", *row.share) : ""});
  };
  text += csv_row({"step", "", "", number(diff.predicted), number(diff.measured), number(diff.measured - diff.predicted), ""});
  for (const DiffRow& row : diff.categories) add("category", row);
  for (const DiffRow& row : diff.operations) add("op", row);
  for (const auto& [measured, operation] : diff.unmatched)
    text += csv_row(
        {"unmatched", operation.name, operation.category, measured ? "" : number(operation.time), measured ? number(operation.time) : "", "", ""});
  return text;
}

}  // namespace podsim
