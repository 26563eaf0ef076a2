#include "tools/report/ledger_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/units.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

double in_seconds(Picoseconds duration) { return to_seconds(duration).count(); }

double share_of(Picoseconds part, const Run& run) { return run.metrics.makespan > Picoseconds{} ? in_seconds(part) / in_seconds(run.metrics.makespan) : 0; }

}  // namespace

std::string axes_text(const LedgerRow& row) { return fmt::format("{}", fmt::join(row.axes, ",")); }

std::string origin_text(const LedgerRow& row) {
  constexpr std::size_t most = 40;
  if (!row.source.empty()) return row.source.size() <= most ? row.source : "..." + row.source.substr(row.source.size() - most);
  return row.path.size() <= most ? row.path : "..." + row.path.substr(row.path.size() - most);
}

Json ledger_json(const Run& run, const std::vector<OperationMetrics>& operations) {
  Json collectives = Json::array();
  for (const LedgerRow& row : collective_ledger(run, operations))
    collectives.push_back(Json{{"name", row.name},
                               {"path", or_null(row.path)},
                               {"source", or_null(row.source)},
                               {"kind", row.kind},
                               {"axis", axes_text(row)},
                               {"devices", row.devices},
                               {"bytes", row.bytes.count()},
                               {"count", row.count},
                               {"in_flight_s", in_seconds(row.in_flight)},
                               {"exposed_s", in_seconds(row.exposed)},
                               {"hidden_s", in_seconds(row.hidden)},
                               {"share", share_of(row.exposed, run)}});
  return collectives;
}

std::string ledger_table(const Run& run) {
  const std::vector<LedgerRow> ledger = collective_ledger(run);
  if (ledger.empty()) return {};
  constexpr std::size_t most_rows = 10;
  const std::size_t shown = ledger.size() <= most_rows + 1 ? ledger.size() : most_rows;
  const bool from_program = std::ranges::any_of(ledger, [](const LedgerRow& row) { return !origin_text(row).empty(); });
  std::vector<std::vector<std::string>> rows{{"collective", "kind", "axis", "from", "exposed", "of the run", "hidden", "count", "bytes"}};
  for (std::size_t r = 0; r < shown; ++r) {
    const LedgerRow& row = ledger[r];
    rows.push_back({row.name, row.kind, axes_text(row), origin_text(row), to_text(to_seconds(row.exposed)), percent(share_of(row.exposed, run)), to_text(to_seconds(row.hidden)), std::to_string(row.count), to_text(row.bytes)});
  }
  Picoseconds rest, hidden;
  for (std::size_t r = shown; r < ledger.size(); ++r) rest = rest + ledger[r].exposed, hidden = hidden + ledger[r].hidden;
  if (shown < ledger.size())
    rows.push_back({fmt::format("{} others", ledger.size() - shown), "", "", "", to_text(to_seconds(rest)), percent(share_of(rest, run)), to_text(to_seconds(hidden)), "", ""});
  if (from_program) return table(rows, 4);
  for (std::vector<std::string>& row : rows) row.erase(row.begin() + 3);
  return table(rows, 3);
}

}  // namespace podsim
