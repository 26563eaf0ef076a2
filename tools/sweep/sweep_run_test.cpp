// Sweeps as a whole: nothing is simulated twice, and how a sweep was run does not show in what it exports.
#include "tools/sweep/sweep_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>

#include "tools/sweep/test_sweep.hpp"

namespace podsim {
namespace {

using test::exported;
using test::Folder;
using test::Outcome;
using test::podsim;
using test::rows_of;
using test::sweep;
using ::testing::HasSubstr;

const std::string gemm_sweep = "machine: 'tpu_v4' slice: '4x4' wrap: 'all' gemm: 'm=512,n=512,k=512'";

TEST(Sweep, SimulatesEachContentOnce) {
  const Folder folder;
  // One slice is `collective`; seeds without anything random, row-major by name and a value set to what it is change nothing.
  const std::string text = "sweep { " + gemm_sweep + " case { algorithm: 'collective' } case { algorithm: 'meshslice' slice_count: [1, 2] }\n" +
                           "seed: [0, 1] mesh_order: ['', 'row-major'] set { path: 'link.latency' value: ['', '1 us', '2 us'] } }";
  const SweepCount count = sweep(text, folder.file("s.sqlite"));
  EXPECT_EQ(count.points, 36U);
  EXPECT_EQ(count.finished, 36U);
  EXPECT_EQ(count.simulated, 4U);  // two schedules, with and without another latency
  EXPECT_EQ(count.skipped, 0U);
  EXPECT_EQ(rows_of(folder.file("s.sqlite"), "SELECT count(*), count(DISTINCT key) FROM results"), "36,4\n");
  const SweepCount again = sweep(text, folder.file("s.sqlite"));
  EXPECT_EQ(again.known, 36U);
  EXPECT_EQ(again.finished, 0U);
  EXPECT_EQ(again.simulated, 0U);
}

TEST(Sweep, SimulatesAnewWhateverMayChangeTheResult) {
  const Folder folder;
  const std::string base = "machine: 'tpu_v4' slice: '4x4' wrap: 'all' ", gather = "collective: 'all-gather' axis: 'row' bytes: '1MiB' ",
                    reduce = "collective: 'all-reduce' axis: 'row' bytes: '1MiB' algorithm: 'tree' ";
  std::size_t runs = 0;
  for (const std::string& text :
       {base + gather, base + gather + "set { path: 'link.bandwidth' value: '1 GB/s' }", base + gather + "algorithm: 'line'",
        base + gather + "engine: 'analytic'", base + gather + "fold: 'off'", base + gather + "straggler: '0.0=0.5'",
        base + gather + "straggler: 'random:10%=0.5' seed: 3", base + gather + "fail: '0.0-1.0'", base + gather + "degrade: '0.0-1.0=0.5'",
        base + gather + "mesh_order: 'snake' mesh: 'row=4,col=4'", base + gather + "topology: 'crossbar'",
        "machine: 'tpu_v4' slice: '4x4' wrap: 'none' " + gather, "machine: 'ideal' slice: '4x4' " + gather, base + reduce, base + reduce + "chunks: 2"}) {
    const SweepCount count = sweep("sweep { " + text + " }", folder.file("s.sqlite"));
    runs += count.simulated;
    EXPECT_EQ(count.simulated + count.skipped, 1U) << text;
  }
  EXPECT_EQ(rows_of(folder.file("s.sqlite"), "SELECT count(*) FROM runs"), std::to_string(runs) + "\n");
}

TEST(Sweep, StoresTheReasonWhereACombinationDoesNotApply) {
  const Folder folder;
  const SweepCount count = sweep("sweep { " + gemm_sweep + " algorithm: 'meshslice' slice_count: [4, 7] mesh: ['row=4,col=4', 'row=8,col=3'] }", folder.file("s.sqlite"));
  EXPECT_EQ(count.points, 4U);
  EXPECT_EQ(count.skipped, 3U);
  const std::string rows = rows_of(folder.file("s.sqlite"), "SELECT point, status, key IS NULL, reason FROM results WHERE status = 'skipped'");
  EXPECT_THAT(rows, HasSubstr("2,skipped,1,"));
  EXPECT_THAT(rows, HasSubstr("3,skipped,1,\"mesh: "));
}

/// By each of their algorithms as `run` has them, in a case or around it.
TEST(Sweep, VariesHowAProgramComputesTransformsAndLinearSystems) {
  const Folder folder;
  const std::string store = folder.file("s.sqlite");
  const SweepCount count = sweep("sweep { machine: 'tpu_v4' slice: '2x4' mesh: 'x=2,y=4' block: 16\n"
                                 "case { program: 'v = solve(A, b)' shape: 'A=256x256; b=256' shard: 'A=x,y; b=x' algorithm: ['solve=block', 'solve=naive', 'fft=slab'] }\n"
                                 "case { program: 'v = solve(A, b); Y = fft(X)' shape: 'A=256x256; b=256; X=64x64' shard: 'A=x,y; b=x; X=x,-' algorithm: ['', 'fft=naive,solve=naive'] } }",
                                 store);
  EXPECT_EQ(count.simulated, 4U);
  EXPECT_EQ(rows_of(store, "SELECT point, status, used_algorithm FROM results"),
            "1,done,solve=block\n2,done,solve=naive\n3,skipped,\n4,done,\"solve=block,fft=slab\"\n5,done,\"solve=naive,fft=naive\"\n");
  EXPECT_THAT(rows_of(store, "SELECT reason FROM results WHERE point = 3"), HasSubstr("algorithm: belongs to fft, which the program does not have"));
  for (const std::string point : {"2", "5"}) {
    const std::string command = rows_of(store, "SELECT command FROM results WHERE point = " + point);
    const Outcome alone = podsim(command.substr(command.find("run"), command.find_last_not_of("\"\n") + 1 - command.find("run")) + " --format csv");
    EXPECT_THAT(alone.out, HasSubstr("," + rows_of(store, "SELECT makespan_s FROM results WHERE point = " + point).substr(0, 6))) << alone.err;
  }
  EXPECT_THAT(exported(store), HasSubstr("solve=naive"));
}

/// Another text in the same file is another problem.
TEST(Sweep, SimulatesAProgramAnewWhoseFileChanged) {
  const Folder folder;
  const auto run = [&](const std::string& statement) {
    const std::string file = folder.file("program.textproto", "format_version: 1\nstatement: \"" + statement + "\"\nshape: \"A=64x64\"\nshard: \"A=row,-\"\n");
    return sweep("sweep { machine: 'ideal' slice: '4' program: '" + file + "' }", folder.file("s.sqlite")).simulated;
  };
  EXPECT_EQ(run("Y = fft(A)"), 1U);
  EXPECT_EQ(run("Y = fft(A)"), 0U);
  EXPECT_EQ(run("P, L, U = lu(A)"), 1U);
}

TEST(Sweep, SimulatesATrainingStepAnewWhoseModelChanged) {
  const Folder folder;
  const auto model = [&](int layers) {
    return folder.file("model.textproto", "format_version: 1 name: 'm' layers: " + std::to_string(layers) + " width: 64 heads: 4 mlp: 128 vocabulary: 128 sequence: 32\n");
  };
  const auto run = [&](int layers) {
    return sweep("sweep { machine: 'ideal' slice: '2' mesh: 'fsdp=2' batch: 2 training: '" + model(layers) + "' }", folder.file("s.sqlite")).simulated;
  };
  EXPECT_EQ(run(1), 1U);
  EXPECT_EQ(run(1), 0U);
  EXPECT_EQ(run(2), 1U);
}

TEST(Sweep, TakesAsManyPodsAsTheMachinesBuildAndSkipsTheRest) {
  const Folder folder;
  const SweepCount count = sweep("sweep { machine: ['ideal', 'tpu_v4'] slice: ['4x4', 'v4-8'] mesh: 'all' collective: 'all-gather' axis: 'row' bytes: '16' }",
                                 folder.file("s.sqlite"));
  EXPECT_EQ(count.points, 4U) << "without pods to lay meshes over, `all` stays";
  EXPECT_EQ(count.skipped, 4U);
}

const std::string mixed =
    "sweep { machine: 'tpu_v4' slice: ['4x4', '2x4'] case { gemm: 'm=256,n=512,k=512' algorithm: ['collective', 'meshslice', 'wang'] slice_count: [1, 2, 3]\n"
    "dataflow: ['os', 'rs'] wrap: ['auto', 'all'] } case { collective: ['all-reduce', 'all-gather'] axis: ['row', 'row,col'] bytes: ['1KiB', '1000']\n"
    "fail: ['', '0.0-0.1'] } engine: ['des', 'analytic'] }";

TEST(Sweep, ExportsTheSameWhateverTheThreads) {
  const Folder folder;
  sweep(mixed, folder.file("1.sqlite"), 1);
  const std::string one = exported(folder.file("1.sqlite"));
  EXPECT_GT(one.size(), 5000U);
  for (const int threads : {2, 5}) {
    const std::string store = folder.file(std::to_string(threads) + ".sqlite");
    sweep(mixed, store, threads);
    EXPECT_TRUE(exported(store) == one) << threads;
  }
}

TEST(Sweep, TellsWhatRunTells) {
  const Folder folder;
  sweep(mixed + "sweep { machine: 'tpu_v4' slice: '2x4' workload: 'gpt3-block' seq: 128 heads: 8 slice_count: [2, 4] pass: ['forward', 'both'] }",
        folder.file("s.sqlite"));
  const auto rows = nlohmann::ordered_json::parse(
      test::run_words({"sweep", "--store", folder.file("s.sqlite"), "--query", "SELECT * FROM results WHERE status = 'done' AND (point % 7 = 0 OR workload IS NOT NULL)", "--format", "json"}).out)["rows"];
  ASSERT_GT(rows.size(), 10U);
  for (const auto& row : rows) {
    const std::string command = row["command"];
    const Outcome outcome = podsim(command.substr(7) + " --format json");
    ASSERT_EQ(outcome.status, exit_done) << command << outcome.err;
    const auto run = outcome.json();
    for (const char* figure : {"makespan_s", "compute_s", "exposed_communication_s", "waiting_s", "flops", "link_bytes", "peak_memory_bytes", "tasks", "mfu"})
      EXPECT_EQ(row[figure], run[figure]) << command << " " << figure;
    EXPECT_EQ(row["used_engine"], run["engine"]) << command;
    EXPECT_EQ(row["used_algorithm"], run["algorithm"]) << command;
  }
}

TEST(Sweep, ExportsTheGolden) {
  const Folder folder;
  const std::string store = folder.file("tiny.sqlite");
  const Outcome outcome = podsim("sweep tools/sweep/testdata/tiny.textproto --store " + store);
  ASSERT_EQ(outcome.status, exit_done) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(exported(store), test::bytes_of_file("tools/sweep/testdata/tiny.csv"));
  const auto json = nlohmann::ordered_json::parse(podsim("sweep --store " + store + " --export json").out);
  EXPECT_EQ(json["rows"].size(), 7U);
}

TEST(Sweep, KeepsWhatIsStillValidOfAChangedSweep) {
  const Folder folder;
  const std::string store = folder.file("s.sqlite");
  const auto text = [](const std::string& counts) { return "sweep { " + gemm_sweep + " algorithm: 'meshslice' slice_count: " + counts + " }"; };
  EXPECT_EQ(sweep(text("[2, 4, 7]"), store).simulated, 2U);
  const SweepCount more = sweep(text("[8, 7, 4]"), store);
  EXPECT_EQ(more.known, 2U);  // the reason as well
  EXPECT_EQ(more.simulated, 1U);
  EXPECT_EQ(rows_of(store, "SELECT slice_count, status FROM results ORDER BY point"), "8,done\n7,skipped\n4,done\n");
  const SweepCount back = sweep(text("[2, 4, 7]"), store);
  EXPECT_EQ(back.known, 2U);
  EXPECT_EQ(back.finished, 1U);
  EXPECT_EQ(back.simulated, 0U) << "the run of two slices was kept though no point asked for it";
}

TEST(Sweep, SimulatesAnewForAnotherVersionOfTheProgramAndAnotherMachineFile) {
  const Folder folder;
  const std::string store = folder.file("s.sqlite"), machine = folder.file("m.textproto", test::bytes_of_file("topologies/machines/ideal.textproto"));
  const std::string text = "sweep { machine: '" + machine + "' slice: '4' collective: 'all-gather' axis: 'row' bytes: '16' }";
  EXPECT_EQ(sweep(text, store, 1, "1").simulated, 1U);
  EXPECT_EQ(sweep(text, store, 1, "1").simulated, 0U);
  EXPECT_EQ(sweep(text, store, 1, "2").simulated, 1U);
  std::string bytes = test::bytes_of_file(machine);
  const std::size_t at = bytes.find("name: \"ideal\"");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(machine, folder.file("m.textproto", bytes.replace(at, 13, "name: \"other\"")));
  const SweepCount changed = sweep(text, store, 1, "2");
  EXPECT_EQ(changed.known, 0U);
  EXPECT_EQ(changed.simulated, 1U);
}

TEST(Sweep, EndsOnCtrlCWithWhatIsDoneAndGoesOn) {
  const Folder folder;
  const std::string file = folder.file("s.textproto", "format_version: 1\n" + mixed), store = folder.file("s.sqlite");
  std::atomic<bool> interrupted{true};
  std::ostringstream out, err;
  Console console{out, err, false, &interrupted};
  EXPECT_EQ(run_command({"sweep", file}, console), exit_interrupted);
  EXPECT_THAT(err.str(), HasSubstr(" points are done and stored in " + store + "; the same command goes on\n"));
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(podsim("sweep --store " + store + " --status --format json").json()["remaining"], podsim("sweep --store " + store + " --status --format json").json()["points"]);
  EXPECT_EQ(podsim("sweep " + file).status, exit_done);
  sweep(mixed, folder.file("other.sqlite"));
  EXPECT_TRUE(exported(store) == exported(folder.file("other.sqlite")));
}

TEST(Sweep, ShowsProgressOnATerminalOnly) {
  const Folder folder;
  const std::string file = folder.file("s.textproto", "format_version: 1\n" + mixed);
  const Outcome terminal = test::run_words({"sweep", file}, true);
  EXPECT_THAT(terminal.err, HasSubstr(" points/s, "));
  std::filesystem::remove(folder.file("s.sqlite"));
  EXPECT_EQ(test::run_words({"sweep", file, "--quiet"}, true).err, "");
}

TEST(Sweep, StatusCounts) {
  const Folder folder;
  sweep("sweep { " + gemm_sweep + " algorithm: 'meshslice' slice_count: [1, 2, 7] }", folder.file("s.sqlite"));
  const auto json = podsim("sweep --store " + folder.file("s.sqlite") + " --status --format json").json();
  EXPECT_EQ(json["points"], 3);
  EXPECT_EQ(json["done"], 2);
  EXPECT_EQ(json["skipped"], 1);
  EXPECT_EQ(json["remaining"], 0);
  EXPECT_EQ(json["running"], false);
  EXPECT_GT(json["store_bytes"], 10000);
  EXPECT_EQ(json["reasons"].size(), 1U);
}

TEST(Sweep, HasExamplesThatAreRight) {
  for (const auto& [name, points] : {std::pair{"gemm", 594}, {"collectives", 2304}, {"weak_scaling", 68}, {"blocks", 128}}) {
    const std::string file = "tools/sweep/examples/" + std::string{name} + ".textproto";
    const auto blocks = read_sweep(test::bytes_of_file(file), file);
    ASSERT_TRUE(blocks) << to_text(blocks.error());
    const Status ok = check_sweep(*blocks);
    EXPECT_TRUE(ok) << to_text(ok.error());
    const auto expanded = expand(*blocks, [](const PointInputs& inputs) { return inputs.text("slice") == "4x4" ? 16 : 32; });
    ASSERT_TRUE(expanded);
    EXPECT_EQ(expanded->size(), static_cast<std::size_t>(points)) << name;
  }
}

/// No further files, from now on until it dies.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    const rlimit limit{static_cast<rlim_t>(next), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(Sweep, WhatTheComputerFailsToRunIsNoResultAndIsTriedAgain) {
  const Folder folder;
  const std::string text =
      "sweep { machine: 'tpu_v4' slice: '4' collective: 'all-gather' axis: 'row' bytes: ['1MiB', '2MiB', '4MiB'] engine: ['des', 'simgrid'] }";
  const std::string file = folder.file("s.sqlite");
  {
    auto store = SweepStore::open(file);
    ASSERT_TRUE(store) << to_text(store.error());
    // Once all points by des and one by simgrid are stored, on this thread as simgrid's are: from then on there is no pipe to SimGrid's child.
    std::optional<NoMoreFiles> none;
    const auto one_by_simgrid = [&](const SweepCount& count) {
      if (count.finished == 4 && !none) none.emplace();
    };
    const auto end = run_sweep({text, "s", "test"}, test::points_of(text), *store, {1, nullptr, one_by_simgrid});
    none.reset();
    ASSERT_TRUE(end) << to_text(end.error());
    EXPECT_EQ(end->count.finished, 4U);
    EXPECT_EQ(end->count.skipped, 0U);
    EXPECT_EQ(end->count.failed, 2U);
    EXPECT_EQ(end->count.remaining(), 2U);
    const std::string why = "simgrid: no pipe: Too many open files";
    EXPECT_EQ(end->failures, (std::map<std::size_t, std::string>{{3, why}, {5, why}}));
  }
  EXPECT_EQ(rows_of(file, "SELECT status, count(*) FROM results GROUP BY 1"), "done,4\nremaining,2\n");
  const SweepCount again = sweep(text, file);
  EXPECT_EQ(again.known, 4U);
  EXPECT_EQ(again.finished, 2U);
  EXPECT_EQ(again.failed, 0U);
  sweep(text, folder.file("undisturbed.sqlite"));
  EXPECT_EQ(exported(file), exported(folder.file("undisturbed.sqlite")));
}

TEST(Sweep, WhatIsInterruptedIsNoResult) {
  const Folder folder;
  const std::string text =
      "sweep { machine: 'tpu_v4' slice: '4x4' collective: 'all-gather' axis: 'row' bytes: '1MiB' fail: ['', '0.0-0.1'] engine: ['des', 'simgrid'] }";
  const std::string file = folder.file("s.sqlite");
  std::atomic<bool> stop{false};
  {
    auto store = SweepStore::open(file);
    ASSERT_TRUE(store) << to_text(store.error());
    const auto end = run_sweep({text, "s", "test"}, test::points_of(text), *store, {1, &stop, [&](const SweepCount&) { stop = true; }});
    ASSERT_TRUE(end) << to_text(end.error());
    EXPECT_EQ(end->count.skipped, 0U);
    EXPECT_EQ(end->count.failed, 0U);
    EXPECT_GE(end->count.remaining(), 2U);
  }
  EXPECT_EQ(rows_of(file, "SELECT count(*) FROM results WHERE reason IS NOT NULL"), "0\n");
  EXPECT_EQ(sweep(text, file).remaining(), 0U);
}

TEST(Sweep, StoresSliceCountsAsNumbers) {
  const Folder folder;
  const std::string file = folder.file("s.textproto",
                                       "format_version: 1\nsweep { machine: 'ideal' slice: '4x4' gemm: 'm=512,n=512,k=512' algorithm: 'meshslice' "
                                       "slice_count: [2, 4, 16] }"),
                    store = folder.file("s.sqlite");
  ASSERT_EQ(podsim("sweep --quiet " + file + " --store " + store).status, exit_done);
  const Outcome sorted =
      test::run_words({"sweep", "--format", "csv", "--store", store, "--query", "SELECT slice_count FROM results ORDER BY slice_count"});
  EXPECT_EQ(sorted.out, "slice_count\n2\n4\n16\n") << sorted.err;
}

TEST(Sweep, AQueryWithoutEndIsInterrupted) {
  const Folder folder;
  const std::string store = folder.file("s.sqlite");
  sweep("sweep { machine: 'ideal' slice: '4' collective: 'all-gather' axis: 'row' bytes: '16' }", store);
  const std::atomic<bool> stop{true};  // from the beginning, so that nobody has to wait
  std::ostringstream out, err;
  Console console{out, err, false, &stop};
  const std::string endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
  EXPECT_EQ(run_command({"sweep", "--store", store, "--query", endless}, console), exit_interrupted);
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(err.str(), "podsim: interrupted\n");
}

TEST(Sweep, TellsHowItIsUsed) {
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"sweep", "sweep what? A FILE.textproto, or --store with --export, --query, --status, --record or --merge; --help has examples"},
           {"sweep --status", "--store is missing: the file that keeps the results"},
           {"sweep --store s --status --export csv", "expected one of --export, --query and --status, found several"},
           {"sweep a b", "expected options and one file, found more; --help lists the options"},
           {"sweep /no/such/file", "/no/such/file: cannot read the file: No such file or directory"},
           {"sweep --store s --export xml", "--export: expected csv or json, found \"xml\""}}) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_EQ(outcome.err, "podsim: error: " + message + "\n") << line;
  }
}

}  // namespace
}  // namespace podsim
