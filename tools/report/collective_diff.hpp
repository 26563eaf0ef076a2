// The ledger of a measured step beside the predicted one: which collective is exposed longer than predicted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/json.hpp"
#include "tools/report/run_operations.hpp"
#include "validation/diff/step_diff.hpp"
#include "workloads/ledger/ledger.hpp"

namespace podsim {

/// A row of the predicted run's ledger with what of it has a counterpart, or has none, or a collective that was measured alone.
struct CollectiveDiff {
  LedgerRow row;  // of the block; of one that was measured alone without times
  std::size_t others = 0;  // rows of the ledger that are in this one, too, as what was measured does not tell them apart
  std::optional<DiffSide> predicted{}, measured{};  // in all layers. `time`: exposed, `beside`: hidden; one of the two may be missing
  [[nodiscard]] Seconds exposed() const { return measured ? measured->time : predicted->time; }
};

/// "+1.2 ms"
std::string gap_text(Seconds gap);

/// Matched as the operations are; those of one row of the ledger are added up. Most exposed first, as measured where that is known; ties by name.
std::vector<CollectiveDiff> collective_diff(const StepDiff& diff, const PredictedStep& predicted);

/// collectives: [ {name, path, source, kind, axis, devices, bytes, predicted, measured (names), predicted_count, measured_count, predicted_exposed_s, measured_exposed_s, gap_s, predicted_hidden_s,
/// measured_hidden_s, share} ]. share: of the measured step. null: on that side it is not known.
Json collective_diff_json(const std::vector<CollectiveDiff>& collectives, Seconds measured_step);

/// Cells under their heading, texts first: the first `texts` columns are no numbers. Empty: neither step has a collective.
struct CollectiveDiffCells {
  std::vector<std::vector<std::string>> rows;
  std::size_t texts = 0;
};
CollectiveDiffCells collective_diff_cells(const std::vector<CollectiveDiff>& collectives, Seconds measured_step);

}  // namespace podsim
