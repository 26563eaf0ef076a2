// `podsim compare OLD.hlo NEW.hlo`: a module before and after a change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using test::json_of;
using test::podsim;

const std::string ring_module = "workloads/differences/testdata/ring.hlo", gathered_module = "workloads/differences/testdata/ring_gathered.hlo", on_four = " --machine tpu_v5e:4";

TEST(CompareModules, HasTheFiguresOfEachRun) {
  const auto json = json_of("compare " + ring_module + " " + gathered_module + on_four);
  for (const auto& [side, file] : {std::pair{"before", ring_module}, {"after", gathered_module}}) {
    const auto run = json_of("run --hlo " + file + on_four);
    for (const char* key : {"makespan_s", "compute_s", "exposed_communication_s", "peak_memory_bytes"}) EXPECT_EQ(json[side][key], run[key]) << key;
    EXPECT_EQ(json[side]["file"], file);
  }
  EXPECT_DOUBLE_EQ(json["change_s"].get<double>(), json["after"]["makespan_s"].get<double>() - json["before"]["makespan_s"].get<double>());
  EXPECT_EQ(json_of("compare --hlo " + ring_module + " --with " + gathered_module + on_four)["collectives"], json["collectives"]) << "the same by options";
}

TEST(CompareModules, SaysWhatIsNewAndWhatIsGone) {
  const auto rows = json_of("compare " + ring_module + " " + gathered_module + on_four)["collectives"];
  ASSERT_EQ(rows.size(), 5U) << "an all-gather in place of the permutes of four trips";
  for (const auto& row : rows) EXPECT_EQ(row["name"].is_null(), row["kind"] != "all-gather") << row;
  for (const auto& row : rows) EXPECT_EQ(row["was"].is_null(), row["kind"] == "all-gather") << row;
  EXPECT_THAT(podsim("compare " + ring_module + " " + ring_module + on_four).out, AllOf(HasSubstr("the same"), HasSubstr("no collective changed"), Not(HasSubstr(", new"))));
}

TEST(CompareModules, IsMarkdownForAPullRequest) {
  const std::string text = podsim("compare " + ring_module + " " + gathered_module + on_four + " --format markdown").out;
  EXPECT_THAT(text, AllOf(HasSubstr("### " + ring_module + " -> " + gathered_module + ": step "), HasSubstr("|  | before | after | change |\n|---|---:|---:|---:|\n| step time | "), HasSubstr(", new |"), HasSubstr(", gone |")));
}

TEST(CompareModules, JudgesTheNewOne) {
  const std::string line = "compare " + ring_module + " " + gathered_module + on_four + " --expect ";
  const double time = json_of("run --hlo " + gathered_module + on_four)["makespan_s"];
  EXPECT_EQ(podsim(line + "time<=" + std::to_string(time * 1.01e6) + "us").status, exit_done);
  const auto missed = podsim(line + "time<=" + std::to_string(time * 0.99e6) + "us");
  EXPECT_EQ(missed.status, exit_false);
  EXPECT_THAT(missed.err, HasSubstr(": not kept, "));
}

TEST(CompareModules, SaysWhatIsWrong) {
  EXPECT_THAT(podsim("compare --with " + gathered_module + on_four).err, HasSubstr("--with: expected two modules, --hlo OLD --with NEW, found one"));
  EXPECT_THAT(podsim("compare " + ring_module + " none.hlo" + on_four).err, HasSubstr("none.hlo"));
  EXPECT_THAT(podsim("compare " + ring_module + " " + gathered_module + on_four + " --vary link.bandwidth=50GB/s").err, HasSubstr("--vary: belongs to comparisons of schedules, not to two modules"));
  EXPECT_THAT(podsim("compare gemm m=64,n=64,k=64 --machine ideal:4x2 --format markdown").err, HasSubstr("--format: expected table, json or csv"));
}

}  // namespace
}  // namespace podsim
