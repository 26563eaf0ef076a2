#include "workloads/ledger/ledger_change.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <tuple>

namespace podsim {

namespace {

using AreAlike = bool (*)(const LedgerRow&, const LedgerRow&);

bool have_path(const LedgerRow& a, const LedgerRow& b) { return !a.path.empty() && a.path == b.path; }
bool have_kind(const LedgerRow& a, const LedgerRow& b) { return a.kind == b.kind; }
bool have_axes(const LedgerRow& a, const LedgerRow& b) { return have_kind(a, b) && a.axes == b.axes && a.devices == b.devices; }
bool have_bytes(const LedgerRow& a, const LedgerRow& b) { return have_axes(a, b) && a.bytes == b.bytes; }

constexpr std::array<AreAlike, 5> likenesses{
    [](const LedgerRow& a, const LedgerRow& b) { return a.name == b.name && a.path == b.path && have_bytes(a, b); },
    [](const LedgerRow& a, const LedgerRow& b) { return have_path(a, b) && have_bytes(a, b); },
    [](const LedgerRow& a, const LedgerRow& b) { return have_path(a, b) && have_axes(a, b); },
    [](const LedgerRow& a, const LedgerRow& b) { return have_bytes(a, b); },
    [](const LedgerRow& a, const LedgerRow& b) { return a.name == b.name && have_kind(a, b); },
};

Picoseconds of(const std::optional<LedgerRow>& row, Picoseconds LedgerRow::*time) { return row ? (*row).*time : Picoseconds{}; }

}  // namespace

Picoseconds LedgerChange::exposed() const { return of(after, &LedgerRow::exposed) - of(before, &LedgerRow::exposed); }
Picoseconds LedgerChange::in_flight() const { return of(after, &LedgerRow::in_flight) - of(before, &LedgerRow::in_flight); }
bool LedgerChange::is_change() const {
  return !before || !after || exposed() != Picoseconds{} || in_flight() != Picoseconds{} || before->bytes != after->bytes || before->count != after->count;
}

std::vector<LedgerChange> ledger_changes(const std::vector<LedgerRow>& before, const std::vector<LedgerRow>& after) {
  std::vector<LedgerChange> changes;
  std::vector<bool> is_paired(before.size());
  std::vector<bool> has_pair(after.size());
  for (const AreAlike are_alike : likenesses)
    for (std::size_t a = 0; a < after.size(); ++a)
      for (std::size_t b = 0; b < before.size() && !has_pair[a]; ++b)
        if (!is_paired[b] && are_alike(before[b], after[a])) {
          is_paired[b] = has_pair[a] = true;
          changes.push_back({before[b], after[a]});
        }
  for (std::size_t a = 0; a < after.size(); ++a)
    if (!has_pair[a]) changes.push_back({std::nullopt, after[a]});
  for (std::size_t b = 0; b < before.size(); ++b)
    if (!is_paired[b]) changes.push_back({before[b], std::nullopt});
  const auto key = [](const LedgerChange& change) {
    return std::tuple{-std::abs(change.exposed().count()), -std::abs(change.in_flight().count()), change.row().name};
  };
  std::ranges::stable_sort(changes, [&](const LedgerChange& a, const LedgerChange& b) { return key(a) < key(b); });
  return changes;
}

}  // namespace podsim
