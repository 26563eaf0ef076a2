#include "tools/report/collective_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "tools/report/ledger_report.hpp"
#include "validation/calibration/importers/kernel_category.hpp"

namespace podsim {

namespace {

/// What is known of a collective: its row of the ledger, else what its operation says.
LedgerRow row_for(const StepOperation& operation, const LedgerRow* known) {
  if (known != nullptr) return *known;
  LedgerRow row;
  row.name = operation.name;
  row.path = operation.provenance;
  row.kind = operation.category;
  row.devices = operation.devices;
  row.bytes = operation.bytes;
  return row;
}

void add(std::optional<DiffSide>& sum, const DiffSide& side) {
  if (!sum) sum.emplace();
  for (const std::string& name : side.names)
    if (std::ranges::find(sum->names, name) == sum->names.end()) sum->names.push_back(name);
  sum->count += side.count;
  sum->time += side.time;
  sum->beside += side.beside;
}

DiffSide side_of(const StepOperation& operation) { return {{operation.name}, {}, operation.count, operation.time, operation.beside}; }

class CollectiveRows {
 public:
  explicit CollectiveRows(const PredictedStep& predicted) : predicted_{predicted} {}

  void add_all(const StepDiff& diff) {
    for (const DiffRow& row : diff.operations) {
      if (!is_collective_category(row.category)) continue;
      std::vector<const StepOperation*> operations;
      for (const std::size_t p : row.predicted.of) operations.push_back(&predicted_.block.operations[p]);
      CollectiveDiff& entry = entry_for(operations, row.category, true, true);
      add(entry.predicted, row.predicted);
      add(entry.measured, row.measured);
    }
    for (const auto& [measured, operation] : diff.unmatched)
      if (is_collective_category(operation.category)) {
        CollectiveDiff& entry = entry_for({&operation}, operation.category, !measured, measured);
        add(measured ? entry.measured : entry.predicted, side_of(operation));
      }
  }

  std::vector<CollectiveDiff> rows{};

 private:
  /// What has a counterpart stands apart from what has none, so that both sides of a row are of the same executions.
  CollectiveDiff& entry_for(const std::vector<const StepOperation*>& operations, const std::string& kind, bool predicted, bool measured) {
    std::vector<const LedgerRow*> known;
    for (const StepOperation* operation : operations)
      if (const LedgerRow* const row = predicted ? ledger_row_of(predicted_.collectives, operation->name, kind, operation->bytes) : nullptr; row != nullptr && std::ranges::find(known, row) == known.end())
        known.push_back(row);
    const StepOperation& first = *operations.front();
    const auto [at, is_new] = known_.try_emplace({known, known.empty() ? first.name : "", kind, predicted, measured}, rows.size());
    if (is_new) rows.push_back({row_for(first, known.empty() ? nullptr : known.front()), known.empty() ? 0 : known.size() - 1});
    return rows[at->second];
  }

  const PredictedStep& predicted_;
  std::map<std::tuple<std::vector<const LedgerRow*>, std::string, std::string, bool, bool>, std::size_t> known_;
};

std::string time_cell(const std::optional<DiffSide>& side, Seconds DiffSide::*time) { return side ? to_text((*side).*time) : "-"; }

Seconds gap_of(const CollectiveDiff& one) { return one.measured->time - one.predicted->time; }

}  // namespace

std::string gap_text(Seconds gap) { return (gap < Seconds{} ? "-" : "+") + to_text(Seconds{std::abs(gap.count())}); }

std::vector<CollectiveDiff> collective_diff(const StepDiff& diff, const PredictedStep& predicted) {
  CollectiveRows found{predicted};
  found.add_all(diff);
  std::ranges::stable_sort(found.rows, [](const CollectiveDiff& a, const CollectiveDiff& b) { return std::tuple{b.exposed(), a.row.name} < std::tuple{a.exposed(), b.row.name}; });
  return std::move(found.rows);
}

Json collective_diff_json(const std::vector<CollectiveDiff>& collectives, Seconds measured_step) {
  Json all = Json::array();
  for (const CollectiveDiff& one : collectives) {
    const auto of = [](const std::optional<DiffSide>& side, auto value) { return side ? Json(value(*side)) : Json(); };
    const auto names = [](const DiffSide& side) { return side.names; };
    const auto count = [](const DiffSide& side) { return side.count; };
    const auto exposed = [](const DiffSide& side) { return side.time.count(); };
    const auto hidden = [](const DiffSide& side) { return side.beside.count(); };
    all.push_back(Json{{"name", one.row.name},
                       {"path", or_null(one.row.path)},
                       {"source", or_null(one.row.source)},
                       {"kind", one.row.kind},
                       {"axis", axes_text(one.row)},
                       {"devices", one.row.devices},
                       {"bytes", one.row.bytes.count()},
                       {"predicted", of(one.predicted, names)},
                       {"measured", of(one.measured, names)},
                       {"predicted_count", of(one.predicted, count)},
                       {"measured_count", of(one.measured, count)},
                       {"predicted_exposed_s", of(one.predicted, exposed)},
                       {"measured_exposed_s", of(one.measured, exposed)},
                       {"gap_s", one.predicted && one.measured ? Json(gap_of(one).count()) : Json()},
                       {"predicted_hidden_s", of(one.predicted, hidden)},
                       {"measured_hidden_s", of(one.measured, hidden)},
                       {"share", one.measured && measured_step > Seconds{} ? Json(one.measured->time.count() / measured_step.count()) : Json()}});
  }
  return all;
}

CollectiveDiffCells collective_diff_cells(const std::vector<CollectiveDiff>& collectives, Seconds measured_step) {
  if (collectives.empty()) return {};
  CollectiveDiffCells cells{{{"collective", "kind", "axis", "from", "exposed, measured", "predicted", "gap", "of the step", "hidden, measured", "predicted"}}, 4};
  for (const CollectiveDiff& one : collectives)
    cells.rows.push_back({one.row.name + (one.others == 0 ? "" : fmt::format(" and {} more", one.others)), one.row.kind, axes_text(one.row), origin_text(one.row), time_cell(one.measured, &DiffSide::time), time_cell(one.predicted, &DiffSide::time),
                          one.predicted && one.measured ? gap_text(gap_of(one)) : "-",
                          one.measured && measured_step > Seconds{} ? percent(one.measured->time.count() / measured_step.count()) : "-", time_cell(one.measured, &DiffSide::beside), time_cell(one.predicted, &DiffSide::beside)});
  for (const std::size_t column : {std::size_t{3}, std::size_t{2}})  // what no row says
    if (std::all_of(cells.rows.begin() + 1, cells.rows.end(), [&](const auto& row) { return row[column].empty(); })) {
      for (std::vector<std::string>& row : cells.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
      --cells.texts;
    }
  return cells;
}

}  // namespace podsim
