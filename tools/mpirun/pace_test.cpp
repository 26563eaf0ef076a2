// Ranks that last as long as a model says, and ranks that sleep: results stay what they are, and no core task is shorter than its model's.
#include <gtest/gtest.h>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/schedule/lower.hpp"
#include "tools/mpirun/test_mpirun.hpp"

namespace podsim {
namespace {

using test::Ended, test::expect_refused, test::mpirun, test::saved;

const std::string slow_machine = "validation/lab/machine.textproto";  // of 4 GFLOP/s

Schedule cannon() {
  const auto mesh = Mesh::make({{"row", 2, true}, {"col", 2, true}});
  const auto schedule = make_layer(**gemm_algorithm("cannon"), *mesh, {64, 96, 128, DType::f32, Dataflow::os}, Pass::forward, {});
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  return *lower(*schedule, ring_or_line());
}

/// Of the rank that has most of it, in seconds.
double core_work(const std::string& arguments) {
  const Ended ended = mpirun(4, "--check --repeat 2 --format json --pace " + slow_machine + " --between-looks 100us --schedule " + saved(cannon()) + arguments);
  EXPECT_EQ(ended.status, 0) << ended.text;
  const std::string key = "\"compute_s\": ";
  const std::size_t at = ended.text.find(key);
  return at == std::string::npos ? 0 : std::stod(ended.text.substr(at + key.size()));
}

constexpr double work = 2.0 * 64 * 96 * 128 / 4 / 4e9;

TEST(MpirunPace, CoreTasksLastAtLeastAsLongAsTheModels) { EXPECT_GE(core_work(""), work); }
TEST(MpirunPace, ThoseOfASlowRankLastLonger) { EXPECT_GE(core_work(" --straggler 1.0=0.05"), 20 * work); }

TEST(MpirunPace, RefusesWhatIsNoMachineOrTimeAndSurveys) {
  const std::string schedule = saved(cannon());
  expect_refused(4, "--schedule " + schedule + " --pace no_such_machine", "no_such_machine");
  expect_refused(4, "--schedule " + schedule + " --between-looks 5", "--between-looks");
  expect_refused(4, "--schedule " + schedule + " --straggler 0.0=0.5", "--straggler: needs --pace");
  for (const char* wrong : {"2.0=0.5", "0=0.5", "0.0", "0.0.0=0.5", "0.0=2", "0.0=x"})
    expect_refused(4, "--schedule " + schedule + " --pace ideal --straggler " + wrong, "--straggler: ");
  expect_refused(4, "--survey a.csv --pace ideal", "--pace: belongs to --schedule, not to --survey");
}

}  // namespace
}  // namespace podsim
