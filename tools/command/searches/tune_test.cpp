// `podsim tune`, its plans, and whole workloads in run, check and compare.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "sim/base/test_cases.hpp"
#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::HasSubstr;

// A block that is searched in milliseconds.
const std::string small = " --workload gpt3-block --heads 8 --head-dim 64 --seq 512 --batch 32 ";
const int chips = test::cases(16, 4);
const std::string on_chips = fmt::format(" --machine tpu_v4 --chips {} --slices 2-d ", chips);

nlohmann::ordered_json without_wall(nlohmann::ordered_json json) {
  json.erase("wall_s");
  return json;
}

TEST(Tune, JsonHasWhatTheContractNames) {
  // The reference tuner has no shape of fewer chips.
  const auto json = json_of("tune --machine tpu_v4 --slice 4x4" + small + "--baseline meshslice-reference:tpu_measured --only gemm");
  for (const char* key : {"plans", "candidates", "pruned", "simulated", "wall_s", "baseline"}) EXPECT_TRUE(json.contains(key)) << key;
  ASSERT_FALSE(json["plans"].empty());
  for (const char* key : {"rank", "slice", "mesh", "predicted_s", "margin", "mfu", "peak_memory_bytes", "layers"})
    EXPECT_TRUE(json["plans"][0].contains(key)) << key;
  for (const char* key : {"name", "algorithm", "dataflow", "transposed", "slice_count", "forward_s", "backward_s"})
    EXPECT_TRUE(json["plans"][0]["layers"][0].contains(key)) << key;
  EXPECT_EQ(json["plans"][0]["layers"].size(), 4U);
  for (const char* key : {"reference_traffic_s", "reference_latency_s", "reference_pipeline_s", "reference_emulated_s"})
    EXPECT_TRUE(json["baseline"]["layers"][0].contains(key)) << key;
  EXPECT_TRUE(json["baseline"].contains("reference_candidates"));
}

TEST(Tune, TheReferenceFiguresAreThePublishedOnes) {
  // validation/meshslice_tuner has all of them; here the way from the command line to them: GPT-3 on 256 chips.
  const auto json =
      json_of("tune --machine tpu_v4 --slice 32x8 --mesh row=32,col=8 --workload gpt3-block --only gemm --baseline meshslice-reference");
  const auto& baseline = json["baseline"];
  EXPECT_EQ(baseline["mesh"].dump(), R"({"row":32,"col":8})");
  double emulated = 0;
  for (const auto& layer : baseline["layers"]) {
    EXPECT_EQ(layer["slice_count"], 8);
    emulated += layer["reference_emulated_s"].get<double>();
  }
  EXPECT_NEAR(emulated, 104.510e-3, 0.5e-6);
  EXPECT_GE(baseline["predicted_s"], json["plans"][0]["predicted_s"]);
}

TEST(Tune, FindsWhatAnExhaustiveSearchFindsWithFewerSimulations) {
  const std::string search = "tune" + on_chips + "--workload gpt3-block --heads 4 --head-dim 8 --seq 32 --batch 16 ";
  auto pruned = json_of(search), all = json_of(search + "--exhaustive");
  EXPECT_LT(pruned["simulated"], all["simulated"]);
  EXPECT_EQ(all["pruned"], 0);
  EXPECT_EQ(pruned["plans"].dump(1), all["plans"].dump(1));
}

TEST(Tune, DoesNotDependOnTheThreads) {
  EXPECT_EQ(without_wall(json_of("tune" + on_chips + small + "--threads 1")).dump(1),
            without_wall(json_of("tune" + on_chips + small + "--threads 3")).dump(1));
}

TEST(Tune, ItsPlanRunsInTheTimePredictedOnASymmetricTorus) {
  const Folder folder;
  const std::string file = folder.file("plan.textproto");
  for (const std::string pass : {"both", "forward"}) {
    const auto tuned = json_of("tune" + on_chips + small + "--pass " + pass + " -o " + file);
    const auto run = json_of("run --plan " + file);
    EXPECT_NEAR(run["makespan_s"].get<double>(), tuned["plans"][0]["predicted_s"].get<double>(), 1e-12) << pass;
    EXPECT_EQ(run["slice"], tuned["plans"][0]["slice"]);
    EXPECT_EQ(run["layers"].size(), 4U);
    double sum = 0;
    for (const char* list : {"layers", "others"})
      for (const auto& stage : tuned["plans"][0][list]) sum += stage["forward_s"].get<double>() + stage["backward_s"].get<double>();
    EXPECT_NEAR(sum, tuned["plans"][0]["predicted_s"].get<double>(), 1e-12);
    const auto shown = json_of("show plan --plan " + file);
    EXPECT_EQ(shown["predicted_s"], tuned["plans"][0]["predicted_s"]);
    EXPECT_EQ(shown["layers"], tuned["plans"][0]["layers"]);
  }
}

TEST(Tune, APlanRunsElsewhereWhenToldSo) {
  const Folder folder;
  const std::string file = folder.file("plan.textproto");
  const auto tuned = json_of("tune" + on_chips + small + "-o " + file);
  const auto faster = json_of("run --plan " + file + " --set link.bandwidth=90GB/s");
  EXPECT_LT(faster["makespan_s"], tuned["plans"][0]["predicted_s"]);
  EXPECT_EQ(json_of("run --plan " + file + " --machine tpu_v5p")["machine"], "tpu_v5p");
}

TEST(Tune, ProductsThatHaveNothingToDoWithEachOtherChooseFreely) {
  const auto json = json_of("tune --machine tpu_v4 --slice 4x4 --gemm m=4096,n=2048,k=1024 --gemm m=1024,n=1024,k=8192 --pass forward");
  ASSERT_EQ(json["plans"][0]["layers"].size(), 2U);
  EXPECT_EQ(json["plans"][0]["layers"][1]["name"], "gemm2");
}

TEST(Tune, PlansAboveTheMemoryAreNamed) {
  const Outcome none = podsim("tune" + on_chips + small + "--set chip.hbm=1MB");
  EXPECT_EQ(none.status, exit_bad_input);
  EXPECT_THAT(none.err, HasSubstr("no plan applies"));
  EXPECT_THAT(none.err, HasSubstr("optimiser"));
  EXPECT_THAT(none.err, HasSubstr("computing them again (remat) is not modelled"));
  EXPECT_THAT(podsim("tune" + on_chips + small + "--set chip.hbm=1MB --pass forward").err, ::testing::Not(HasSubstr("remat"))) << "nothing is kept";
  EXPECT_EQ(json_of("tune" + on_chips + small + "--set chip.hbm=1MB --ignore-memory")["plans"].empty(), false);
}

TEST(Tune, SaysTheBatchAndHowFarToTrustIt) {
  const Folder folder;
  const std::string file = folder.file("plan.textproto"), batch = "32 sequences of 512 tokens (16384 tokens)";
  const Outcome tuned = podsim("tune" + on_chips + small + "-o " + file);
  EXPECT_THAT(tuned.out, HasSubstr(fmt::format("gpt3-block, {}, forward and backward, on {} devices of tpu_v4\ntrust: ", batch, chips)));
  const Outcome shown = podsim("show plan --plan " + file), run = podsim("run --plan " + file);
  EXPECT_THAT(shown.out, HasSubstr("gpt3-block, " + batch));
  EXPECT_THAT(shown.out, HasSubstr("\ntrust: "));
  EXPECT_THAT(run.out, HasSubstr(batch));
  for (const auto& json : {json_of("tune" + on_chips + small), json_of("show plan --plan " + file), json_of("run --plan " + file)}) {
    EXPECT_EQ(json["batch"], 32);
    EXPECT_EQ(json["sequence"], 512);
    EXPECT_EQ(json["tokens"], 16384);
  }
  EXPECT_TRUE(json_of("tune" + on_chips + small)["plans"][0]["trust"].contains("level"));
}

TEST(Tune, ExplainsWhatTheOthersLose) {
  const Outcome outcome = podsim("tune" + on_chips + small + "--explain --pareto 3 --quiet");
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  for (const char* text : {"why the others lose", "the next best of each product", "plan 2 would be faster than plan 1 with", "time against memory",
                           "options ruled out by their bounds"})
    EXPECT_THAT(outcome.out, HasSubstr(text));
}

TEST(Tune, CtrlCGivesTheBestSoFarOrSaysThatThereIsNone) {
  const std::atomic<bool> interrupted{true};
  std::ostringstream out, err;
  Console console{out, err, false, &interrupted};
  EXPECT_EQ(run_command({"tune", "--machine", "tpu_v4", "--slice", "4x4", "--workload", "gpt3-block"}, console), exit_interrupted);
  EXPECT_THAT(err.str(), HasSubstr("interrupted before the first plan was known"));
  EXPECT_EQ(out.str(), "");
  for (const char* workload : {"--workload", "--training"}) {
    out.str("");
    EXPECT_EQ(run_command({"tune", "--machine", "tpu_v4", "--slice", "4x4x4", workload, workload == std::string{"--workload"} ? "gpt3-block" : "llama3-8b", "--format", "json"}, console), exit_interrupted);
    const auto json = nlohmann::json::parse(out.str());
    EXPECT_EQ(json["interrupted"], true);
    EXPECT_EQ(json["plans"].size(), 0U);
    EXPECT_EQ(json["simulated"], 0);
  }
  // With a baseline, whose parts are simulated before any other.
  err.str("");
  EXPECT_EQ(run_command({"tune", "--machine", "tpu_v4", "--slice", "4x4", "--workload", "gpt3-block", "--baseline", "meshslice-reference"}, console),
            exit_interrupted);
  EXPECT_THAT(err.str(), HasSubstr("interrupted before the first plan was known"));
}

struct KeptAnswer {
  static inline std::vector<std::string> outs{}, errs{};
  static void keep(const std::string& out, const std::string& err) { outs.push_back(out), errs.push_back(err); }
};

/// What an end that the search does not hear of prints (tools/interruption.hpp).
TEST(Tune, KeepsTheAnswerSoFarFromTheBeginningOn) {
  const std::string step = "tune --machine tpu_v4 --slice 2x2x1 --training " PODSIM_SOURCE_DIR "/workloads/training/examples/small.textproto --batch 8 --pad --remat full --pipeline 1f1b --microbatches 2";
  for (const std::string& line : {"tune" + on_chips + small, step}) {
    KeptAnswer::outs.clear(), KeptAnswer::errs.clear();
    std::ostringstream out, err;
    Console console{out, err};
    console.known_so_far = &KeptAnswer::keep;
    ASSERT_EQ(run_command(test::words_of(line + " --format json"), console), exit_done) << err.str();
    ASSERT_GE(KeptAnswer::outs.size(), 2U) << line;
    EXPECT_EQ(nlohmann::json::parse(KeptAnswer::outs.front())["plans"].size(), 0U);
    EXPECT_THAT(KeptAnswer::errs.front(), HasSubstr("interrupted before the first plan was known: 0 "));
    for (std::size_t i = 0; i < KeptAnswer::outs.size(); ++i) {
      const auto json = nlohmann::json::parse(KeptAnswer::outs[i]);
      EXPECT_EQ(json["interrupted"], true);
      EXPECT_EQ(json["plans"].empty(), i == 0);
    }
    EXPECT_EQ(nlohmann::json::parse(out.str())["interrupted"], false);
  }
}

TEST(Tune, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"tune --machine tpu_v4 --workload gpt3-block", "expected --chips N or --slice AxB, found neither"},
      {"tune --machine tpu_v4 --chips 16 --slice 4x4 --workload gpt3-block", "expected --chips or --slice, found both"},
      {"tune --machine tpu_v4 --chips 256", "expected --workload NAME or --gemm m=M,n=N,k=K, found neither"},
      {"tune --machine tpu_v4 --chips 24 --workload gpt3-block", "--chips: tpu_v4 offers no slice of 24 chips"},
      {"tune --machine tpu_v4 --slice 4x4 --workload gpt4-block", "there is no workload \"gpt4-block\", did you mean \"gpt3-block\"?"},
      {"tune --machine tpu_v4 --slice 4x4 --workload gpt3-block --algorithms meshslce", "there is no GEMM algorithm \"meshslce\""},
      {"tune --machine tpu_v4 --slice 4x4 --workload gpt3-block --algorithms 1d-os", "1d-os works on one axis"},
      {"tune --machine tpu_v4 --slice 4x4 --workload gpt3-block --baseline alpa", "expected meshslice-reference"},
      {"tune --machine tpu_v4 --slice 4x4 --workload gpt3-block --baseline meshslice-reference:tpu_meas", "did you mean \"tpu_measured\"?"},
      {"tune --machine tpu_v4 --slice 4x4 --workload llama3-8b-block --kv-heads 7", "--kv-heads: must divide the 32 heads, found 7"},
      {"tune --machine tpu_v4 --slice 4x4 --gemm m=16,n=16,k=16 --layers 3", "--layers: belongs to --workload"},
      {"tune --machine tpu_v4 --slice 4x4 --workload gpt3-block --format csv", "--format: expected table or json, found \"csv\""},
      {"run --plan nowhere.textproto", "nowhere.textproto"},
      {"run --machine tpu_v4 --slice 4x4x4 --workload gpt3-block", "a workload needs a mesh of two axes, row and col"},
      {"run --machine tpu_v4 --slice 4x4 --workload gpt3-block --slice-count ff3=4",
       "the workload has no product \"ff3\", did you mean \"ff1\" or \"ff2\"?"},
  };
  for (const auto& [line, message] : cases) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << line;
    EXPECT_EQ(outcome.out, "") << line;
  }
}

TEST(PlanFile, SaysWhereItIsWrong) {
  const Folder folder;
  const std::string good = folder.file("good.textproto");
  ASSERT_EQ(podsim("tune" + on_chips + small + "-o " + good).status, exit_done);
  const std::string text = test::bytes_of_file(good);
  const auto with = [&](const std::string& what, const std::string& by) {
    std::string changed = text;
    const std::size_t at = changed.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return changed.replace(at, what.size(), by);
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {with("name: \"ff1\"", "name: \"ff7\""), "expected \"ff1\", found \"ff7\""},
      {with("format_version: 1", "format_version: 9"), "9"},
      {with("heads: 8", "heads: 0"), "expected a whole number from 1"},
      {with("block: [8]", "block: [0]"), "expected a whole number from 1"},
      {with("mesh:", "mash:"), "mash"},
      {with("batch: 32", ""), "batch is missing"},
  };
  for (const auto& [bytes, message] : cases) {
    const Outcome outcome = podsim("run --plan " + folder.file("bad.textproto", bytes));
    EXPECT_EQ(outcome.status, exit_bad_input) << message;
    EXPECT_THAT(outcome.err, ::testing::MatchesRegex("[^\n]*bad.textproto:[0-9]+:[0-9]+: (.|\n)*")) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
}

TEST(WorkloadCommands, CompareRunsAWholeBlockPerAlgorithm) {
  const auto json = json_of("compare --machine tpu_v4 --slice 4x4" + small + "--algorithms collective,meshslice,wang,cannon,1d-os");
  ASSERT_EQ(json["rows"].size(), 4U);
  EXPECT_EQ(json["skipped"].size(), 1U);
  for (const auto& row : json["rows"]) {
    EXPECT_EQ(row["layers"].size(), 4U);
    const double sum = row["forward_s"].get<double>() + row["backward_s"].get<double>();
    if (row["algorithm"] == "cannon")  // skewed: some devices are ready for the next part before others
      EXPECT_GE(sum, row["makespan_s"].get<double>());
    else
      EXPECT_NEAR(sum, row["makespan_s"].get<double>(), 1e-11) << row["algorithm"];
  }
}

TEST(WorkloadCommands, SliceCountsAndDataflowsAreTheOnesAskedFor) {
  const auto json = json_of("run --machine tpu_v4 --slice 4x4" + small +
                            "--algorithm meshslice --dataflow os,ls --slice-count in_proj=4,out_proj=2,ff1=4,ff2=8 --only gemm");
  std::vector<int> counts;
  for (const auto& layer : json["layers"]) {
    counts.push_back(layer["slice_count"]);
    EXPECT_FALSE(layer["transposed"].get<bool>());
  }
  EXPECT_EQ(counts, (std::vector<int>{4, 2, 4, 8}));
}

TEST(WorkloadCommands, ProductsAndTheRestMakeUpTheWhole) {
  const std::string line = "run --machine tpu_v4 --slice 4x4" + small + "--algorithm meshslice";  // all three lie with features by row
  const double all = json_of(line)["makespan_s"], products = json_of(line + " --only gemm")["makespan_s"],
               rest = json_of(line + " --only other")["makespan_s"];
  EXPECT_NEAR(products + rest, all, 1e-11);
}

TEST(WorkloadCommands, CheckProvesABlockAndItsGradients) {
  const std::string line = "check --mesh row=2,col=2 --workload gpt3-block --heads 4 --head-dim 8 --seq 16 --batch 4 --orders 2 --format json";
  const Outcome alone = podsim(line + " --structure-only");
  EXPECT_EQ(alone.status, exit_done) << alone.err << alone.out;
  EXPECT_TRUE(alone.json()["race_free"].get<bool>());
  const Outcome outcome = podsim(line);
  EXPECT_EQ(outcome.status, exit_done) << outcome.err << outcome.out;
  const auto report = outcome.json();
  EXPECT_EQ(report["compared"], "plain gpt3-block, forward and backward");
  EXPECT_EQ(report["orders_tried"], 3);
  EXPECT_TRUE(report["bit_equal"].get<bool>() && report["ok"].get<bool>());
  EXPECT_LE(report["proof_rel_error"].get<double>(), report["proof_tolerance"].get<double>());
  EXPECT_LT(report["proof_tolerance"].get<double>(), 0x1p-7) << "float32, whatever the block's dtype";
}

/// What takes too long on more devices is named, and asked for by its option.
TEST(Tune, SearchesAutoUpToSixteenDevicesAndNamesItBeyond) {
  const auto leaves_out_auto = [](const std::string& asked) {
    const auto json = json_of("tune --machine tpu_v4 --gemm m=4096,n=4096,k=4096 --top 1 " + asked);
    return json["not_searched"].dump().find("lowering collectives by auto") != std::string::npos;
  };
  EXPECT_FALSE(leaves_out_auto(test::cases("--chips 16", "--chips 8")));
  EXPECT_TRUE(leaves_out_auto("--chips 32"));
  EXPECT_FALSE(leaves_out_auto("--chips 32 --collectives by-dimension,ring,auto"));
}

/// A run of both passes at once may take less than the plan's sum, which has a barrier between them: 104.86 us for 105.02.
TEST(Tune, SaysThatPassesDoNotOverlap) {
  const auto says = [](const std::string& asked) {
    return json_of("tune --machine tpu_v4 --slice 2x2 --gemm m=512,n=512,k=1024 --top 1 " + asked)["not_searched"].dump().find("parts that overlap") != std::string::npos;
  };
  EXPECT_TRUE(says("--pass both"));
  EXPECT_FALSE(says("--pass forward"));
}

TEST(WorkloadCommands, CheckComputesOnArangeAndOnes) {
  const auto ones = json_of("check --slice 4 --collective all-reduce --bytes 16 --dtype f32 --data ones");
  EXPECT_EQ(ones["data"], "ones");
  EXPECT_EQ(ones["outputs"][0]["values"].size(), 16U);
  for (const auto& value : ones["outputs"][0]["values"]) EXPECT_EQ(value, 4.0) << "a sum over 4 devices";
  const auto arange = json_of("check --mesh row=2,col=2 --gemm m=4,n=4,k=4 --block 1 --algorithm collective --data arange");
  EXPECT_EQ(arange["outputs"][0]["values"][5], 4 * 1 + 5 * 5 + 6 * 9 + 7 * 13);
  EXPECT_FALSE(json_of("check --mesh row=2,col=2 --gemm m=4,n=4,k=4 --block 1 --algorithm collective").contains("outputs"));
}

}  // namespace
}  // namespace podsim
