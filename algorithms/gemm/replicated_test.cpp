#include "algorithms/gemm/replicated.hpp"

#include <gtest/gtest.h>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::ideal_machine;
using testing::small_system;
using testing::SmallSystem;

Schedule made(std::string_view algorithm, const Mesh& mesh, const GemmProblem& problem, Pass pass = Pass::forward) {
  const auto schedule = make_layer(**gemm_algorithm(algorithm), mesh, problem, pass, {});
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  return *schedule;
}

TEST(Replicated, AreTheWholeOperandsOfMegatronAndNothingElse) {
  const SmallSystem ring = small_system(ideal_machine(), {4});
  for (const GemmAlgorithmEntry& entry : gemm_algorithms())
    for (const Dataflow dataflow : {Dataflow::os, Dataflow::ls, Dataflow::rs}) {
      if (entry.mesh == MeshUse::row_col) continue;
      const auto schedule = make_gemm(entry, ring.mesh, {64, 64, 64, DType::f32, dataflow}, {});
      if (!schedule) continue;
      std::vector<Replicated> expected;
      if (entry.name == "1d-megatron")
        expected.push_back(dataflow == Dataflow::ls ? Replicated{"Y", Role::output, 4} : Replicated{"X", Role::input, 4});
      EXPECT_EQ(replicated_tensors(*schedule), expected) << entry.name << " " << name_of(dataflow);
    }
  const SmallSystem torus = small_system(ideal_machine(), {4, 2});
  for (const char* name : {"collective", "wang", "summa"}) EXPECT_TRUE(replicated_tensors(made(name, torus.mesh, {64, 64, 64})).empty()) << name;
}

TEST(GatherInputs, BringsAWholeOperandFromAnEvenSplitAndStaysRight) {
  const SmallSystem ring = small_system(ideal_machine(), {4});
  struct Case {
    GemmProblem problem;
    Pass pass;
    std::vector<Replicated> left;
  };
  for (const Case& c : {Case{{64, 32, 16, DType::f32}, Pass::forward, {}},
                        {{64, 32, 16, DType::f32}, Pass::both, {{"dX", Role::output, 4}}},
                        {{6, 8, 12, DType::f32}, Pass::forward, {}}}) {  // cut along k, as 4 does not divide m
    const auto gathered = gather_inputs(made("1d-megatron", ring.mesh, c.problem, c.pass), {});
    ASSERT_TRUE(gathered) << to_text(gathered.error());
    EXPECT_EQ(replicated_tensors(*gathered), c.left);
    const auto lowered = lower(*gathered, ring_or_line());
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    const auto report = check(*lowered, {});
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok) << to_text(report->problems);
    EXPECT_LE(report->max_rel_error, 1e-5);
  }
}

TEST(GatherInputs, LeavesWhatIsGivenAndWhatIsLeftBehind) {
  const SmallSystem ring = small_system(ideal_machine(), {4});
  const Schedule os = made("1d-megatron", ring.mesh, {64, 64, 64, DType::f32, Dataflow::os});
  const Schedule ls = made("1d-megatron", ring.mesh, {64, 64, 64, DType::f32, Dataflow::ls});
  EXPECT_EQ(*gather_inputs(os, std::vector<std::string>{"X"}), os);
  EXPECT_NE(*gather_inputs(os, std::vector<std::string>{"W"}), os);
  EXPECT_EQ(*gather_inputs(ls, {}), ls) << "an output that is everywhere costs nothing to cut";
}

TEST(GatherInputs, SaysWhatCannotBeSplit) {
  const SmallSystem ring = small_system(ideal_machine(), {4});
  const auto gathered = gather_inputs(made("1d-megatron", ring.mesh, {3, 4, 5, DType::f32, Dataflow::os}), {});
  ASSERT_FALSE(gathered);
  EXPECT_EQ(gathered.error().message, "4 devices need the same X, which cannot be split evenly among them to be gathered");
}

}  // namespace
}  // namespace podsim
