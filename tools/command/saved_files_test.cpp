// What -o writes, and that it reads back as the same thing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/result_config.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/config/test_schedules.hpp"
#include "sim/schedule/testing.hpp"
#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::HasSubstr;

TEST(SavedFiles, OutputGoesToTheFileInsteadOfTheScreen) {
  const Folder folder;
  const std::string path = folder.file("topology.json"), line = "show topology --machine ideal --slice 4 --format json";
  const Outcome outcome = podsim(line + " -o " + path);
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(test::bytes_of_file(path), podsim(line).out);
  EXPECT_EQ(podsim("show topology --machine ideal --slice 8 --format json --output=" + path).status, exit_done);
  EXPECT_EQ(test::bytes_of_file(path), podsim("show topology --machine ideal --slice 8 --format json").out) << "what was there is replaced";
}

TEST(SavedFiles, AResultReadsBackAsPrinted) {
  const Folder folder;
  const std::string line = "run --machine tpu_v4 --slice 4x4 --gemm m=512,n=512,k=512 --algorithm meshslice --slice-count 2 --engine analytic";
  const auto printed = json_of(line);
  for (const std::string name : {"result.textproto", "result.pb"}) {
    ASSERT_EQ(podsim(line + " -o " + folder.file(name)).status, exit_done);
    const auto result = read_result(test::bytes_of_file(folder.file(name)), name);
    ASSERT_TRUE(result) << to_text(result.error());
    EXPECT_EQ(result->engine, "analytic");
    EXPECT_EQ(result->machine, printed["machine"]);
    EXPECT_EQ(result->slice, printed["slice"]);
    EXPECT_EQ(result->hypothetical, printed["hypothetical"]);
    EXPECT_EQ(result->mesh, (std::vector<std::pair<std::string, int>>{{"row", 4}, {"col", 4}}));
    EXPECT_EQ(result->devices, 16);
    EXPECT_EQ(result->makespan_s, printed["makespan_s"]);
    EXPECT_EQ(result->compute_s, printed["compute_s"]);
    EXPECT_EQ(result->exposed_communication_s, printed["exposed_communication_s"]);
    EXPECT_EQ(result->waiting_s, printed["waiting_s"]);
    EXPECT_EQ(result->flops, printed["flops"]);
    EXPECT_EQ(*result->mfu, printed["mfu"]);
    EXPECT_EQ(result->link_bytes, printed["link_bytes"]);
    EXPECT_EQ(result->peak_memory_bytes, printed["peak_memory_bytes"]);
    EXPECT_EQ(result->tasks, printed["tasks"]);
    EXPECT_EQ(result->trust.level, printed["trust"]["level"]);
    EXPECT_EQ(test::bytes_of_file(folder.file(name)).find("makespan_s") != std::string::npos, name == "result.textproto") << "which form";
  }
}

TEST(SavedFiles, ASavedScheduleRunsAsTheDirectRun) {
  const Folder folder;
  for (const std::string problem : {"--gemm m=512,n=512,k=512,dtype=bf16 --algorithm meshslice --slice-count 2 --dataflow ls",
                                    "--collective reduce-scatter --axis col --bytes 1MiB --algorithm ring-one-way"}) {
    const std::string system = " --machine tpu_v4 --slice 4x4 --mesh row=4,col=4 --wrap all ";
    const auto direct = json_of("run" + system + problem + " --engine analytic");
    for (const std::string lowered : {"", " --lowered"})
      for (const std::string name : {"schedule.textproto", "schedule.pb"}) {
        SCOPED_TRACE(problem + lowered + " " + name);
        ASSERT_EQ(podsim("show schedule" + system + problem + lowered + " -o " + folder.file(name)).status, exit_done);
        EXPECT_EQ(test::bytes_of_file(folder.file(name)).find("format_version") != std::string::npos, name == "schedule.textproto");
        std::string line = "run" + system + "--engine analytic --schedule " + folder.file(name);
        if (lowered.empty() && problem.find("ring-one-way") != std::string::npos) line += " --algorithm ring-one-way";
        auto again = json_of(line);
        for (const char* key : {"makespan_s", "compute_s", "exposed_communication_s", "waiting_s", "flops", "mfu", "link_bytes", "peak_memory_bytes",
                                "tasks", "events"})
          EXPECT_EQ(again[key], direct[key]) << key;
        EXPECT_EQ(again["schedule"], direct["schedule"]);
      }
  }
}

TEST(SavedFiles, AScenarioRunsAsTheOptionsThatItNames) {
  const Folder folder;
  const std::string file = folder.file("s.textproto", R"(format_version: 1
scenario {
  machine: "tpu_v4" set { path: "link.bandwidth" value: "40GB/s" } slice: "4x4" mesh: "row=4,col=4" fail: "0.0-0.1"
  gemm: "m=512,n=512,k=512" algorithm: "meshslice" slice_count: 2 engine: "analytic"
}
)");
  const std::string options = " --machine tpu_v4 --set link.bandwidth=40GB/s --slice 4x4 --mesh row=4,col=4 --fail 0.0-0.1 --gemm m=512,n=512,k=512 "
                              "--algorithm meshslice --engine analytic --slice-count ";
  EXPECT_EQ(podsim("run --format csv --scenario " + file).out, podsim("run --format csv" + options + "2").out);
  EXPECT_EQ(podsim("run --format csv --slice-count 4 --scenario " + file).out, podsim("run --format csv" + options + "4").out) << "options count";
  const Outcome several = podsim("run --collective all-gather --scenario " + file);
  EXPECT_EQ(several.status, exit_bad_input);
  EXPECT_THAT(several.err, HasSubstr("found several"));
  const Outcome wrong = podsim("run --scenario " + folder.file("w.textproto", "format_version: 1\nscenario {\n  machine: 'tpu_v4' slice: '4x'\n}\n"));
  EXPECT_EQ(wrong.status, exit_bad_input);
  EXPECT_THAT(wrong.err, HasSubstr("w.textproto:3:21: "));
}

TEST(SavedFiles, APlanIsCheckedOnTheMachineThatItIsFor) {
  const Folder folder;
  const std::string plan = folder.file("p.textproto");
  ASSERT_EQ(podsim("tune --machine tpu_v3 --slice 2x2 --gemm m=512,n=512,k=512 --pass forward -o " + plan).status, exit_done);
  EXPECT_THAT(podsim("check --structure-only --plan " + plan).out, HasSubstr("devices        8")) << "two on each chip";
  EXPECT_EQ(podsim("show schedule --plan " + plan).status, exit_done);
}

TEST(SavedFiles, APlanKeepsTheFaultsThatItWasMadeFor) {
  const Folder folder;
  const std::string plan = folder.file("p.textproto"), system = "--machine tpu_v4 --slice 4x4 --mesh row=8,col=4 --pods 2 --straggler 0:(0,0)=0.5 ";
  ASSERT_EQ(podsim("tune " + system + "--gemm m=4096,n=4096,k=4096 -o " + plan).status, exit_done);
  EXPECT_EQ(podsim("run --format csv --plan " + plan).out, podsim("run --format csv " + system + "--plan " + plan).out);
  EXPECT_THAT(podsim("run --plan " + plan).out, HasSubstr("2 slices, 1 slow device"));
}

TEST(SavedFiles, ASavedScheduleShowsAndChecksAsTheOriginal) {
  const Folder folder;
  const std::string problem = "--mesh row=2,col=2 --gemm m=64,n=64,k=64,dtype=f32 --algorithm meshslice --slice-count 2",
                    path = folder.file("s.textproto");
  ASSERT_EQ(podsim("show schedule " + problem + " -o " + path).status, exit_done);
  EXPECT_EQ(podsim("show schedule --mesh row=2,col=2 --schedule " + path).out, podsim("show schedule " + problem).out);
  EXPECT_EQ(podsim("show schedule --lowered --mesh row=2,col=2 --schedule " + path).out, podsim("show schedule --lowered " + problem).out);
  EXPECT_EQ(podsim("check --threads 1 --mesh row=2,col=2 --schedule " + path).out, podsim("check --threads 1 " + problem).out);
}

TEST(SavedFiles, AnUnloweredScheduleTakesAnAlgorithmForItsCollectives) {
  const Folder folder;
  const std::string path = folder.file("s.textproto");
  ASSERT_EQ(podsim("show schedule --slice 8 --collective all-gather --axis row --bytes 1MiB -o " + path).status, exit_done);
  const auto time = [&](const std::string& algorithm) {
    return json_of("run --machine ideal --slice 8 --engine analytic --schedule " + path + algorithm)["makespan_s"].get<double>();
  };
  EXPECT_NEAR(time(" --algorithm ring-one-way"), 2 * time(" --algorithm ring"), 1e-11);
  EXPECT_EQ(time(""), time(" --algorithm ring"));
}

// ---- What is wrong with a saved schedule, by exit status -------------------------------------------------------------------------------

using testing::after;
using testing::copy;
using testing::part;
using testing::Writer;

Writer two_devices() { return Writer{std::vector<MeshAxis>{{"row", 2, true}}}; }

/// ":LINE:COLUMN: " of the nth task of a text.
std::string place_of_task(const std::string& text, int n) {
  std::size_t at = text.find("task {");
  for (int i = 0; i < n; ++i) at = text.find("task {", at + 1);
  const std::size_t line_begin = text.rfind('\n', at) + 1;
  return ":" + std::to_string(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1) + ":" +
         std::to_string(at - line_begin + 1) + ": ";
}

TEST(SavedFiles, CheckOfARaceIsFalseAndNamesIt) {
  const Folder folder;
  Writer w = two_devices();
  const BufferId a = w.scratch("a", {2});
  w.add("write", copy(part(a, 0, 1), part(a, 1, 1)));
  w.add("read", copy(part(a, 1, 1), part(a, 0, 1)));
  const std::string path = folder.file("race.textproto", write_schedule(w.schedule, Encoding::text));
  const Outcome outcome = podsim("check --slice 2 --format json --schedule " + path);
  EXPECT_EQ(outcome.status, exit_false);
  const auto report = outcome.json();
  EXPECT_EQ(report["race_free"], false);
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["matched"], true);
  EXPECT_EQ(report["deadlock_free"], true);
  EXPECT_EQ(report["problems"][0],
            path + place_of_task(test::bytes_of_file(path), 1) + "race on device 0 (row=0): task 0 \"write\" writes and task 1 \"read\" reads overlapping parts of buffer \"a\", and neither happens "
            "before the other");
  EXPECT_EQ(podsim("run --machine ideal --slice 2 --schedule " + path).status, exit_done) << "it still takes its time";
}

TEST(SavedFiles, CheckOfAScheduleThatStopsClaimingIsFalse) {
  const Folder folder;
  const std::string path = folder.file("s.textproto");
  ASSERT_EQ(podsim("show schedule --mesh row=2,col=2 --gemm m=32,n=32,k=32 --algorithm collective --lowered -o " + path).status, exit_done);
  const std::string check = "check --mesh row=2,col=2 --format json --schedule ";
  EXPECT_EQ(podsim(check + path).json()["compared"], "Y = X W");

  std::string text = test::bytes_of_file(path);
  const std::size_t claim = text.find("\nproduct {");
  ASSERT_NE(claim, std::string::npos);
  text.erase(claim, text.find('}', claim) + 1 - claim);
  const std::string silent = folder.file("silent.textproto", text);
  const Outcome outcome = podsim(check + silent);
  EXPECT_EQ(outcome.status, exit_false);
  const auto report = outcome.json();
  EXPECT_EQ(report["compared"], "nothing");
  EXPECT_TRUE(report["bit_equal"].is_null() && report["max_abs_error"].is_null() && report["max_rel_error"].is_null());
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["race_free"], true);
  EXPECT_THAT(podsim("check --mesh row=2,col=2 --schedule " + silent).out,
              ::testing::AllOf(HasSubstr("compared with  nothing"), HasSubstr("no result was compared"), ::testing::Not(HasSubstr("bit-equal"))));

  const Outcome alone = podsim(check + silent + " --structure-only");
  EXPECT_EQ(alone.status, exit_done);
  EXPECT_EQ(alone.json()["ok"], true);
  EXPECT_EQ(alone.json()["compared"], "nothing");
  EXPECT_EQ(alone.json()["orders_tried"], 0);
}

TEST(SavedFiles, CheckOfADeadlockOrALostHalfIsFalse) {
  const Folder folder;
  Writer w = two_devices();
  const BufferId a = w.scratch("a", {2});
  const TaskId in = w.add("in", Recv{0, testing::neighbour(w.axis(0), 1), part(a, 1, 1), Combine::replace});
  w.add("out", Send{0, testing::neighbour(w.axis(0), 1), part(a, 0, 1), {}}, {after(in)});
  const std::string deadlock = folder.file("deadlock.pb", write_schedule(w.schedule, Encoding::binary));
  Outcome outcome = podsim("check --slice 2 --format json --schedule " + deadlock);
  EXPECT_EQ(outcome.status, exit_false);
  EXPECT_EQ(outcome.json()["deadlock_free"], false);
  EXPECT_THAT(outcome.json()["problems"][0].get<std::string>(),
              ::testing::StartsWith(deadlock + ": deadlock: task 1 \"out\" on device 0 (row=0) to device 1 (row=1) waits for"));
  outcome = podsim("run --machine ideal --slice 2 --schedule " + deadlock);
  EXPECT_EQ(outcome.status, exit_bad_input);
  EXPECT_THAT(outcome.err, HasSubstr("podsim: error: " + deadlock + ": deadlock: task 1 \"out\" on device 0 (row=0) waits for"));

  w.now().tasks.pop_back();
  const std::string lost = folder.file("lost.textproto", write_schedule(w.schedule, Encoding::text));
  outcome = podsim("check --slice 2 --format json --schedule " + lost);
  EXPECT_EQ(outcome.status, exit_false);
  EXPECT_EQ(outcome.json()["matched"], false);
  const std::string place = lost + place_of_task(test::bytes_of_file(lost), 0);
  EXPECT_THAT(outcome.json()["problems"][0].get<std::string>(), ::testing::StartsWith(place + "unmatched: task 0"));
  outcome = podsim("run --machine ideal --slice 2 --schedule " + lost);
  EXPECT_EQ(outcome.status, exit_bad_input);
  EXPECT_THAT(outcome.err, ::testing::StartsWith(place + "unmatched: task 0"));
}

TEST(SavedFiles, NoScheduleFileBringsTheCommandDown) {
  // Any values that the reader accepts; most are nonsense.
  const Folder folder;
  std::map<int, int> statuses;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const std::string path = folder.file("any.pb", write_schedule(random_schedule(seed), Encoding::binary));
    for (const std::string verb : {"show schedule", "check", "run --machine ideal --engine analytic"}) {
      const Outcome outcome = podsim(verb + " --slice 4x8 --schedule " + path);
      ASSERT_NE(outcome.status, exit_internal) << "seed " << seed << " " << verb << ": " << outcome.err;
      ++statuses[outcome.status];
    }
  }
  EXPECT_GT(statuses[exit_bad_input], 50);
  EXPECT_GT(statuses[exit_done], 50);
}

}  // namespace
}  // namespace podsim
