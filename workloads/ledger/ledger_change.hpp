// The collectives of two runs side by side, as of a module before and after a change: which take longer, which are new and which are gone.
#pragma once

#include <optional>
#include <vector>

#include "workloads/ledger/ledger.hpp"

namespace podsim {

/// One collective in both runs. One of the two may be missing: it is new, or gone.
struct LedgerChange {
  std::optional<LedgerRow> before{}, after{};
  [[nodiscard]] const LedgerRow& row() const { return after ? *after : *before; }
  [[nodiscard]] Picoseconds exposed() const;    // after less before: how much longer the core waits
  [[nodiscard]] Picoseconds in_flight() const;  // the same of the time in flight
  [[nodiscard]] bool is_change() const;         // in time, bytes or executions
};

/// Compilers number instructions anew, so that rows are paired by what they have in common, the most first: name, path, kind, axes and bytes; path, kind, axes and bytes; path, kind and axes; kind, axes and bytes; name and
/// kind. Those that most lengthen or shorten the wait of the core come first, of these the longest in flight, then by name.
std::vector<LedgerChange> ledger_changes(const std::vector<LedgerRow>& before, const std::vector<LedgerRow>& after);

}  // namespace podsim
