// Sweeps in tests.
#pragma once

#include <string>

#include "tools/command/test_command.hpp"
#include "tools/sweep/sweep_check.hpp"
#include "tools/sweep/sweep_run.hpp"

namespace podsim::test {

/// Blocks of a text that must be right.
inline std::vector<SweepBlock> blocks_of(const std::string& sweeps) {
  auto blocks = read_sweep("format_version: 1\n" + sweeps, "s");
  EXPECT_TRUE(blocks) << to_text(blocks.error());
  return blocks ? *std::move(blocks) : std::vector<SweepBlock>{};
}

inline Points points_of(const std::string& sweeps, const DevicesOf& devices_of = [](const PointInputs&) { return std::nullopt; }) {
  auto points = expand(blocks_of(sweeps), devices_of);
  EXPECT_TRUE(points) << to_text(points.error());
  return points ? *std::move(points) : Points{};
}

/// Runs a text with a store. `version`: of the program.
inline SweepCount sweep(const std::string& sweeps, const std::string& store_file, int threads = 2, const std::string& version = "test") {
  auto store = SweepStore::open(store_file);
  EXPECT_TRUE(store) << to_text(store.error());
  if (!store) return {};
  const auto end = run_sweep({sweeps, "s", version}, points_of(sweeps), *store, {threads, nullptr, {}});
  EXPECT_TRUE(end) << to_text(end.error());
  return end ? end->count : SweepCount{};
}

inline std::string exported(const std::string& store) {
  const Outcome outcome = podsim("sweep --store " + store + " --export csv");
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  return outcome.out;
}

/// The rows of a query, cells by commas.
inline std::string rows_of(const std::string& store, const std::string& sql) {
  const Outcome outcome = run_words({"sweep", "--store", store, "--query", sql, "--format", "csv"});
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  return outcome.out.substr(outcome.out.find('\n') + 1);
}

}  // namespace podsim::test
