// The best rows of a comparison are the head of all its rows, though the others are not simulated to their end.
#include <gtest/gtest.h>

#include <map>

#include "workloads/scenario/read_comparison.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

std::vector<std::string> texts_of(const std::vector<Row>& rows) {
  std::vector<std::string> texts;
  for (const Row& row : rows) {
    std::string mesh;
    for (const auto& [axis, size] : row.result.mesh) mesh += axis + "=" + std::to_string(size) + " ";
    texts.push_back(std::to_string(row.group) + " " + row.problem.algorithm + " " + mesh + std::to_string(row.result.makespan_s * 1e12));
  }
  return texts;
}

void expect_head(const ComparisonSetup& setup, std::size_t top) {
  const auto all = compare(setup.systems, {});
  ASSERT_TRUE(all) << to_text(all.error());
  std::map<std::size_t, std::size_t> kept;
  std::vector<Row> head;
  for (const Row& row : all->rows)
    if (++kept[row.group] <= top) head.push_back(row);
  ASSERT_LT(head.size(), all->rows.size()) << (all->skipped.empty() ? "nothing left out" : all->skipped.front().what + ": " + to_text(all->skipped.front().why));
  for (const int threads : {1, 3}) {
    RunOptions options;
    options.threads = threads;
    const auto best = compare(setup.systems, options, top);
    ASSERT_TRUE(best) << to_text(best.error());
    EXPECT_EQ(texts_of(best->rows), texts_of(head)) << threads << " threads";
    EXPECT_EQ(best->slower, all->rows.size() - head.size());
    EXPECT_EQ(best->skipped.size(), all->skipped.size());
    std::size_t by_system = 0;
    for (const RankedGroup& group : best->by_system) by_system += group.rows.size();
    EXPECT_EQ(by_system, head.size());
  }
}

TEST(CompareTop, IsTheHeadOfAllMeshes) {
  const auto setup = read_comparison(testing::fields({{"machine", "tpu_v4"}, {"slice", "4x8"}, {"mesh", "all"}, {"gemm", "m=8192,n=8192,k=4096"},
                                                      {"algorithm", "meshslice,collective,wang,summa,cannon"}, {"slice_count", "2,4"}}), std::vector<std::vector<Override>>(1));
  ASSERT_TRUE(setup) << to_text(setup.error());
  for (const std::size_t top : {1, 3, 7}) expect_head(*setup, top);
}

TEST(CompareTop, IsTheHeadOfEachSizeOfACollective) {
  const auto setup = read_comparison(testing::fields({{"machine", "tpu_v4"}, {"slice", "4x4"}, {"collective", "all-gather,all-reduce"}, {"axis", "row"}, {"bytes", "1KiB,1MiB"},
                                                      {"algorithm", "all"}}), std::vector<std::vector<Override>>(1));
  ASSERT_TRUE(setup) << to_text(setup.error());
  expect_head(*setup, 2);
}

}  // namespace
}  // namespace podsim
