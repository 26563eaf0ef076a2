// Plans in files: what older ones say, and what a scenario in one may say.
#include "workloads/scenario/plan_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podsim {
namespace {

using ::testing::HasSubstr;

const std::string products = R"(product { m: 256 n: 256 k: 256 }
stage { name: "gemm1" layout: tokens_by_row algorithm: "collective" dataflow: os }
)";

Expected<SavedPlan> plan_of(const std::string& where) { return read_plan("format_version: 1\n" + where + products, "p"); }

std::string problem_of(const std::string& where) {
  const auto plan = plan_of(where);
  return plan ? "none" : to_text(plan.error());
}

std::vector<std::string> said_by(const Fields& fields) {
  std::vector<std::string> said;
  for (const FieldKind* field : fields.given())
    for (const FieldText& given : fields.texts(field->name)) said.push_back(std::string{field->name} + " " + given.text);
  return said;
}

TEST(PlanFile, ThatIsOlderThanScenariosSaysTheSame) {
  const auto older = plan_of(R"(machine: "tpu_v4" set: "link.bandwidth=45GB/s" slice: "4x4" wrap: "none" topology: "torus" mesh: "row=8,col=2"
mesh_order: "snake" pass: forward slice_block: 4 prefetch: 2 slice_copies: false collectives: "ring"
)");
  const auto newer = plan_of(R"(scenario { machine: "tpu_v4" set { path: "link.bandwidth" value: "45GB/s" } slice: "4x4" wrap: "none" topology: "torus"
mesh: "row=8,col=2" mesh_order: "snake" pass: "forward" block: 4 prefetch: 2 slice_copies: "off" collectives: "ring" }
)");
  ASSERT_TRUE(older) << to_text(older.error());
  ASSERT_TRUE(newer) << to_text(newer.error());
  EXPECT_EQ(said_by(older->system), (std::vector<std::string>{"machine tpu_v4", "set link.bandwidth=45GB/s", "slice 4x4", "wrap none", "topology torus",
                                                             "mesh row=8,col=2", "mesh_order snake"}));
  EXPECT_EQ(said_by(newer->system), said_by(older->system));
  for (const auto* plan : {&*older, &*newer}) {
    EXPECT_EQ(plan->pass, Pass::forward);
    EXPECT_EQ(plan->plan.options, (PartOptions{4, 2, false}));
    EXPECT_EQ(plan->plan.collectives, "ring");
  }
}

TEST(PlanFile, LeavesOutWhatIsUsual) {
  for (const char* where : {"machine: 'ideal' slice: '4' mesh: 'row=4,col=1'\n", "scenario { machine: 'ideal' slice: '4' mesh: 'row=4,col=1' }\n"}) {
    const auto plan = plan_of(where);
    ASSERT_TRUE(plan) << to_text(plan.error());
    EXPECT_EQ(plan->pass, Pass::both);
    EXPECT_EQ(plan->plan.options, (PartOptions{8, 1, true}));
    EXPECT_EQ(plan->plan.collectives, "by-dimension");
  }
}

TEST(PlanFile, KeepsFaultsAndEverythingElseOfTheSystem) {
  const auto plan = plan_of("scenario { machine: 'ideal' slice: '4' mesh: 'row=4,col=1' pods: 2 fail: '0-1; 1-2' straggler: '3=0.5' allow_split_axes: true }\n");
  ASSERT_TRUE(plan) << to_text(plan.error());
  const auto again = read_plan(write_plan(*plan), "p");
  ASSERT_TRUE(again) << to_text(again.error());
  EXPECT_EQ(said_by(again->system), (std::vector<std::string>{"machine ideal", "slice 4", "pods 2", "mesh row=4,col=1", "allow_split_axes true", "fail 0-1",
                                                             "fail 1-2", "straggler 3=0.5"}));
}

TEST(PlanFile, SaysWhatDoesNotBelongToIt) {
  const std::string system = "machine: 'ideal' slice: '4' mesh: 'row=4,col=1'";
  EXPECT_EQ(problem_of("scenario { " + system + " gemm: 'm=1,n=1,k=1' }\n"), "p:2:60: gemm does not belong to a plan");
  EXPECT_EQ(problem_of("scenario { " + system + " engine: 'des' }\n"), "p:2:60: engine does not belong to a plan");
  EXPECT_EQ(problem_of("scenario { " + system + " }\nslice: '4'\n"), "p:2:1: expected a scenario or the fields of older plans, found both");
  EXPECT_THAT(problem_of("scenario { machine: 'ideal' slice: '4' }\n"), HasSubstr("mesh is missing"));
  EXPECT_THAT(problem_of("machine: 'ideal' mesh: 'row=4'\n"), HasSubstr("slice is missing"));
  EXPECT_EQ(problem_of("scenario { " + system + " pass: 'back' }\n"), "p:2:60: expected forward, backward or both, found \"back\"");
  EXPECT_EQ(problem_of("scenario { " + system + " block: 0 }\n"), "p:2:60: expected a whole number from 1 to 1048576, got \"0\"");
  EXPECT_EQ(problem_of("scenario { " + system + " slice_copies: 'yes' }\n"), "p:2:60: expected on or off, found \"yes\"");
}

}  // namespace
}  // namespace podsim
