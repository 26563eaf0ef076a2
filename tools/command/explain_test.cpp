// What `run` says beside its figures, and what it says when it does not come to an end.
#include "workloads/scenario/explain.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "sim/engine/table/engines.hpp"
#include "tools/command/test_command.hpp"
#include "tools/report/role_colours.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string gather_run = "run --machine ideal --slice 4x8 --wrap all --collective all-gather --axis col --bytes 1MiB ";

double sum(const nlohmann::ordered_json& split) {
  double total = 0;
  for (const auto& [name, seconds] : split.items()) total += seconds.is_number() ? seconds.get<double>() : 0;
  return total;
}

TEST(Explain, ABandwidthBoundGatherIsBoundByTheLinksOfItsAxis) {
  const auto explanation = json_of(gather_run + "--explain")["explanation"];
  EXPECT_EQ(explanation["sentence"], "bound by link bandwidth, col; +10 % there gives -9.1 %");  // 1/1.1
  ASSERT_EQ(explanation["sensitivities"].size(), 1u) << "nothing else costs anything";
  EXPECT_NEAR(explanation["sensitivities"][0]["makespan_change"].get<double>(), 1 / 1.01 - 1, 1e-6);
  EXPECT_EQ(explanation["split_by_axis"].size(), 1u);
  EXPECT_EQ(explanation["split_by_axis"][0]["axis"], "col");
}

TEST(Explain, WhereTwoAxesAreEquallyBusyTheLinksOfAllBindAndNeitherAxisAlone) {
  const std::string product = "run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithm meshslice --slice-count 4 ";
  const auto run = json_of(product + "--explain"), faster = json_of(product + "--set link.bandwidth=49.5GB/s");  // of 45 GB/s
  const double change = faster["makespan_s"].get<double>() / run["makespan_s"].get<double>() - 1;
  EXPECT_EQ(run["explanation"]["sentence"], fmt::format("bound by link bandwidth; +10 % there gives {:.1f} %", 100 * change));
  EXPECT_LT(change, -0.03) << "that of launches is -2.6 %";
}

TEST(Explain, ALatencyBoundGatherIsBoundByItsHops) {
  const auto explanation = json_of(gather_run + "--set link.latency=1ms --explain")["explanation"];
  EXPECT_THAT(explanation["sentence"].get<std::string>(), StartsWith("bound by hop latency; -10 % there gives -"));
  EXPECT_GT(explanation["sensitivities"][0]["makespan_change"].get<double>(), 0.009) << "more latency, more time";
}

TEST(Explain, ThePartsSumToTheMakespanAndThePathHasNoGap) {
  const auto result =
      json_of("run --machine tpu_v4 --slice 4x4x8 --mesh row=16,col=8 --gemm m=65536,n=8192,k=8192 --algorithm meshslice --slice-count 4 --explain");
  const auto& explanation = result["explanation"];
  const double makespan = result["makespan_s"];
  EXPECT_NEAR(sum(explanation["split"]), makespan, 1e-9 * makespan);
  double at = 0;
  for (const auto& step : explanation["critical_path"]) {
    EXPECT_NEAR(step["start_s"].get<double>(), at, 1e-15);
    at = step["end_s"];
  }
  EXPECT_EQ(at, makespan);
  EXPECT_LT(explanation["split_by_axis"].size(), 3u);
}

TEST(Explain, IsTheSameFoldedAndNot) {
  const std::string line = gather_run + "--explain --per device,link";
  const auto folded = json_of(line), unfolded = json_of(line + " --fold off");
  EXPECT_EQ(folded["device_classes"], 1);
  EXPECT_EQ(unfolded["device_classes"], 32);
  for (const char* key : {"makespan_s", "compute_s", "exposed_communication_s", "waiting_s", "link_bytes", "peak_memory_bytes", "tasks", "axes"})
    EXPECT_EQ(folded[key], unfolded[key]) << key;
  for (const char* key : {"sentence", "sensitivities", "split"}) EXPECT_EQ(folded["explanation"][key], unfolded["explanation"][key]) << key;
  // A class stands for its devices and links.
  ASSERT_EQ(folded["per_device"].size(), 1u);
  EXPECT_EQ(folded["per_device"][0]["devices"], 32);
  ASSERT_EQ(unfolded["per_device"].size(), 32u);
  for (const auto& device : unfolded["per_device"])
    for (const char* key : {"compute_s", "exposed_communication_s", "waiting_s", "sent_bytes", "received_bytes", "peak_memory_bytes"})
      EXPECT_EQ(device[key], folded["per_device"][0][key]) << key;
  std::int64_t links = 0;
  for (const auto& link : folded["per_link"]) links += link["links"].get<std::int64_t>();
  EXPECT_EQ(links, static_cast<std::int64_t>(unfolded["per_link"].size()));
}

TEST(Explain, TheTableEndsWithWhatWouldChange) {
  const Outcome outcome = podsim(gather_run + "--explain");
  EXPECT_EQ(outcome.status, exit_done);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("why: bound by link bandwidth, col; +10 % there gives -9.1 %"), HasSubstr("critical path (7 tasks)"),
                                 HasSubstr("32 devices, 1 simulated: the others behave alike")));
  EXPECT_THAT(outcome.out, HasSubstr("1 % more of"));
}

TEST(Explain, ARunWithoutTimeHasNothingToExplain) {
  EXPECT_EQ(json_of("run --machine ideal --slice 1 --collective all-gather --axis row --bytes 4 --dtype f32 --explain")["explanation"]["sentence"],
            "nothing takes time");
}

TEST(Per, TheBusiestLinkOfAGatherIsAsBusyAsItsClosedFormSays) {
  // One way round a ring of 8, 7 of 7 steps: every + link carries 7 MiB in the whole time, no - link anything.
  const auto links = json_of(gather_run + "--algorithm ring-one-way --per link")["per_link"];
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0]["link"], "(0,0)->(0,1) y+");
  EXPECT_EQ(links[0]["links"], 32);
  EXPECT_EQ(links[0]["bytes"], 7.0 * (1 << 20));
  EXPECT_NEAR(links[0]["utilisation"].get<double>(), 1, 1e-6);
}

TEST(Axes, ExposedAndHiddenTimeAtATerminalHaveTheirColours) {
  std::ostringstream out, err;
  Console console{out, err, false};
  console.columns = 200, console.colours = true;
  ASSERT_EQ(run_command(test::words_of("run --machine tpu_v4 --slice 4x4 --gemm m=16384,n=8192,k=8192 --algorithm meshslice --slice-count 4"), console), exit_done) << err.str();
  EXPECT_THAT(out.str(), HasSubstr(coloured_text("#", colour_of_role("exposed")) + coloured_text("======", colour_of_role("hidden")) + "............."));
}

TEST(Per, AsksForDeviceOrLink) {
  const Outcome outcome = podsim(gather_run + "--per chip");
  EXPECT_EQ(outcome.status, exit_bad_input);
  EXPECT_EQ(outcome.err, "podsim: error: --per: expected device or link, found \"chip\"\n");
}

TEST(Interrupt, ARunEndsWithWhatIsKnown) {
  std::atomic<bool> interrupted{true};
  std::ostringstream out, err;
  Console console{out, err, false, &interrupted};
  const std::vector<std::string> words{"run",    "--machine", "ideal",   "--slice", "4x8",   "--collective",    "all-gather",
                                       "--axis", "col",       "--bytes", "1MiB",    "--set", "link.latency=1us", "--algorithm", "ring"};
  EXPECT_EQ(run_command(words, console), exit_interrupted);
  EXPECT_EQ(out.str(), "");
  EXPECT_THAT(err.str(), AllOf(StartsWith("podsim: interrupted: simulated "), EndsWith(" of 16 task instances (0 %)\n")));
}

TEST(Interrupt, ACompareRanksWhatItHas) {
  std::atomic<bool> interrupted{true};
  std::ostringstream out, err;
  Console console{out, err, false, &interrupted};
  const std::vector<std::string> words{"compare", "--machine", "ideal", "--slice", "2x2", "--gemm", "m=64,n=64,k=64", "--algorithms", "collective"};
  EXPECT_EQ(run_command(words, console), exit_interrupted);
  EXPECT_THAT(err.str(), HasSubstr("interrupted"));
}

TEST(Force, ALargeRunThatDoesNotFoldIsEstimatedAndRefused) {
  const System system = testing::system_with({{"machine", "ideal"}, {"slice", "4x4"}});
  GemmSpec spec;
  spec.algorithm = *gemm_algorithm("collective");
  spec.problem = {64, 64, 64, DType::bf16, Dataflow::os};
  const auto problem = make_problem(system, spec);
  ASSERT_TRUE(problem);
  RunOptions options;
  options.fold = false;
  options.most_instances = 100;
  const auto refused = simulate(system, *problem, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_text(refused.error()), AllOf(StartsWith("16 of 16 devices are simulated one by one: 0.000272 million task instances, about "),
                                              EndsWith("expected less than 0.0001 million, or `force` to run it")));
  options.force = true;
  EXPECT_TRUE(simulate(system, *problem, options));
  options.force = false;
  options.fold = true;
  EXPECT_TRUE(simulate(system, *problem, options)) << "one class";
}

}  // namespace
}  // namespace podsim
