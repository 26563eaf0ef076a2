// The collectives of two modules are paired by what they have in common.
#include <gtest/gtest.h>

#include "workloads/ledger/ledger_change.hpp"

namespace podsim {
namespace {

LedgerRow row(const std::string& name, const std::string& path, const std::string& kind, std::int64_t bytes, std::int64_t exposed) {
  LedgerRow made;
  made.name = name, made.path = path, made.kind = kind;
  made.axes = {"x"}, made.devices = 4, made.bytes = Bytes{bytes}, made.count = 1;
  made.in_flight = made.exposed = Picoseconds{exposed};
  return made;
}

std::string text_of(const std::vector<LedgerChange>& changes) {
  std::string text;
  for (const auto& change : changes)
    text += (change.before ? change.before->name : "-") + ">" + (change.after ? change.after->name : "-") + " " + std::to_string(change.exposed().count()) + "; ";
  return text;
}

TEST(LedgerChanges, PairsInstructionsThatTheCompilerNumberedAnew) {
  const std::vector<LedgerRow> before{row("all-reduce.1", "step/grad", "all-reduce", 64, 100), row("all-gather.2", "step/ff1", "all-gather", 8, 50), row("all-gather.3", "step/ff2", "all-gather", 8, 40)};
  const std::vector<LedgerRow> after{row("all-gather.3", "step/ff1", "all-gather", 8, 10), row("all-gather.4", "step/ff2", "all-gather", 8, 40), row("all-reduce.9", "step/grad", "all-reduce", 32, 70)};
  EXPECT_EQ(text_of(ledger_changes(before, after)), "all-gather.2>all-gather.3 -40; all-reduce.1>all-reduce.9 -30; all-gather.3>all-gather.4 0; ");
}

TEST(LedgerChanges, SaysWhatIsNewAndWhatIsGone) {
  const std::vector<LedgerRow> before{row("all-reduce.1", "step/grad", "all-reduce", 64, 100)};
  const std::vector<LedgerRow> after{row("reduce-scatter.1", "step/grad", "reduce-scatter", 64, 50), row("all-gather.1", "", "all-gather", 16, 60)};
  EXPECT_EQ(text_of(ledger_changes(before, after)), "all-reduce.1>- -100; ->all-gather.1 60; ->reduce-scatter.1 50; ");
}

TEST(LedgerChanges, OfTheSameRunAreNone) {
  const std::vector<LedgerRow> rows{row("a", "", "all-reduce", 64, 100), row("b", "", "all-reduce", 64, 90), row("c", "", "all-gather", 64, 0)};
  for (const LedgerChange& change : ledger_changes(rows, rows)) {
    EXPECT_FALSE(change.is_change());
    EXPECT_EQ(change.before->name, change.after->name);
  }
}

}  // namespace
}  // namespace podsim
