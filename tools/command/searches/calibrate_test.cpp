// `podsim calibrate`: from files of measurements to a machine that runs say is fitted.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string permutes = std::string{PODSIM_SOURCE_DIR} + "/validation/datasets/tpu_v5p_ppermute/observations.csv";
const std::string on_v5p = " --base tpu_v5p --slice 2x2x1 --mesh row=4 ";

TEST(Calibrate, JsonHasWhatTheContractNames) {
  const auto json = json_of("calibrate " + permutes + on_v5p);
  for (const char* key : {"parameters", "median_abs_error", "p95_abs_error", "undetermined"}) EXPECT_TRUE(json.contains(key)) << key;
  ASSERT_FALSE(json["parameters"].empty());
  for (const char* key : {"path", "value", "unit", "low", "high"}) EXPECT_TRUE(json["parameters"][0].contains(key)) << key;
  ASSERT_FALSE(json["undetermined"].empty());
  EXPECT_FALSE(json["undetermined"][0]["probe"].get<std::string>().empty());
}

TEST(Calibrate, TheMachineItWritesSaysWhatItWasFittedTo) {
  const Folder folder;
  const std::string file = folder.file("fitted.textproto");
  ASSERT_EQ(podsim("calibrate " + permutes + on_v5p + "--dataset permutes -o " + file).status, exit_done);
  const auto run = json_of("run --machine " + file + " --slice 2x2x1 --collective permute --axis row --mesh row=4 --shift 1 --bytes 64MiB");
  EXPECT_EQ(run["trust"]["level"], "fitted");
  EXPECT_EQ(run["trust"]["dataset"], "permutes");
  EXPECT_TRUE(run["trust"]["error"].is_number());
}

TEST(Calibrate, TrustIsOfWhatWasHeldBackWhereThereIsEnough) {
  const std::string many = "validation/datasets/a100_8_nccl/observations.csv --base dgx_a100 --slice 1x8";
  const Folder folder;
  const std::string file = folder.file("fitted.textproto");
  const auto json = json_of("calibrate " PODSIM_SOURCE_DIR "/" + many);
  EXPECT_GT(json["held_back"]["median_abs_error"], json["median_abs_error"]);
  const Outcome table = podsim("calibrate " PODSIM_SOURCE_DIR "/" + many + " -o " + file);
  EXPECT_THAT(table.out, HasSubstr("of what was held back, every other observation in turn: median error "));
  const auto run = json_of("run --machine " + file + " --slice 1x8 --collective all-reduce --bytes 64MiB --algorithm ring");
  EXPECT_NEAR(run["trust"]["error"].get<double>(), json["held_back"]["median_abs_error"].get<double>(), 1e-4);
  EXPECT_TRUE(json_of("calibrate " + permutes + on_v5p)["held_back"].is_null());
  EXPECT_THAT(podsim("calibrate " + permutes + on_v5p).out, HasSubstr("nothing could be held back"));
}

TEST(Calibrate, TheMeshOfALogIsThatOfItsRunsUnlessItIsSaid) {
  const std::string log = "calibrate " PODSIM_SOURCE_DIR "/tests/golden/input/meshslice.log --from meshslice-log --base tpu_v4 ";
  const Outcome found = podsim(log + "--slice 4x8");
  ASSERT_EQ(found.status, exit_done) << found.err;
  EXPECT_THAT(found.out, HasSubstr("the mesh is the file's, x=4,y=8, in the order jax"));
  EXPECT_EQ(json_of(log + "--slice 4x8")["parameters"], json_of(log + "--slice 4x8 --mesh x=4,y=8 --mesh-order jax")["parameters"]);
  EXPECT_THAT(podsim(log + "--slice 4x8 --mesh x=4,y=8").out, Not(HasSubstr("the mesh is the file's")));
  const Outcome small = podsim(log + "--slice 4x4");
  EXPECT_EQ(small.status, exit_bad_input);
  EXPECT_THAT(small.err, HasSubstr("meshslice.log:1:1: ")) << "where the mesh is said";
}

TEST(Calibrate, TheMachineItWritesKnowsWhatItCovers) {
  const Folder folder;
  const std::string file = folder.file("fitted.textproto");
  ASSERT_EQ(podsim("calibrate " PODSIM_SOURCE_DIR "/validation/datasets/h100_16_nccl/observations.csv --base dgx_h100 --slice 2x8 -o " + file).status,
            exit_done);
  const auto trust = [&](const std::string& what) { return json_of("run --machine " + file + " " + what)["trust"]; };
  const std::string all_reduce = " --collective all-reduce --axis col,row --bytes 1GiB --algorithm ring";
  EXPECT_EQ(trust("--slice 2x8" + all_reduce)["level"], "fitted");
  const auto larger = trust("--slice 128x8" + all_reduce);
  EXPECT_EQ(larger["level"], "extrapolated");
  EXPECT_EQ(larger["rung"], "other scale");
  EXPECT_THAT(larger["beyond"][0].get<std::string>(), HasSubstr("all-reduce over 1024 devices, fitted over 16"));
  EXPECT_EQ(trust("--slice 2x8 --collective all-gather --axis col,row --bytes 1GiB --algorithm ring")["rung"], "other operation");
  EXPECT_EQ(trust("--slice 16x1 --collective all-reduce --axis row --bytes 1GiB --algorithm ring")["beyond"][0], "all-reduce along x, fitted along x,y");
}

TEST(Calibrate, FlagsWhatNoSuchPartCanDo) {
  // Made on a machine of three times the bandwidth, as phases that overlap would look.
  const Folder folder;
  std::string rows = "op,devices,bytes,seconds\n";
  for (std::int64_t bytes = 1 << 20; bytes <= (256 << 20); bytes *= 4)
    rows += fmt::format("all-gather,8,{},{}\n", bytes, 1e-6 + 7.0 * static_cast<double>(bytes) / 1.35e12);
  const std::string file = folder.file("fitted.textproto"), from = "calibrate " + folder.file("rows.csv", rows) + " --base dgx_h100 --slice 1x8 --set link[y].bandwidth=450GB/s --set link[y].latency=0s "
                    "--set software.launch=1us --set collective.efficiency=1 --set chip.own_block_bandwidth=unlimited ";
  const auto json = json_of(from + "-o " + file);
  bool flagged = false;
  for (const auto& parameter : json["parameters"])
    if (parameter["path"] == "link[y].bandwidth") {
      flagged = true;
      EXPECT_EQ(parameter["specified"], 450e9);
      EXPECT_EQ(parameter["beyond_specification"], true);
    } else {
      EXPECT_EQ(parameter["beyond_specification"], false) << parameter;
    }
  EXPECT_TRUE(flagged) << json["parameters"];
  EXPECT_THAT(podsim(from).out, HasSubstr("times the specified 450 GB/s, more than such a part can do"));
  EXPECT_EQ(podsim(from + "-o " + file).status, exit_done);
  EXPECT_THAT(test::bytes_of_file(file), HasSubstr("an effective value, 3 times the specified 450 GB/s"));
}

TEST(Calibrate, AValueWhoseIntervalHoldsTheSpecificationIsNotBeyondIt) {
  // 2 % more bandwidth than specified, in times that scatter by 3 %.
  const Folder folder;
  std::string rows = "op,devices,bytes,seconds\n";
  double off = 0.03;
  for (std::int64_t bytes = 1 << 20; bytes <= (256 << 20); bytes *= 2, off = -off)
    rows += fmt::format("all-gather,8,{},{}\n", bytes, (1e-6 + 7.0 * static_cast<double>(bytes) / 459e9) * (1 + off));
  const std::string file = folder.file("fitted.textproto"),
                    from = "calibrate " + folder.file("rows.csv", rows) +
                           " --base dgx_h100 --slice 1x8 --set link[y].bandwidth=450GB/s --set link[y].latency=0s "
                           "--set software.launch=1us --set collective.efficiency=1 --set chip.own_block_bandwidth=unlimited ";
  const auto json = json_of(from);
  bool found = false;
  for (const auto& parameter : json["parameters"])
    if (parameter["path"] == "link[y].bandwidth") {
      found = true;
      EXPECT_GT(parameter["value"], 1.01 * 450e9);
      EXPECT_LT(parameter["low"], 450e9);
      EXPECT_EQ(parameter["beyond_specification"], false);
    }
  EXPECT_TRUE(found);
  EXPECT_THAT(podsim(from + "-o " + file).out, Not(HasSubstr("more than such a part can do")));
  EXPECT_THAT(test::bytes_of_file(file), Not(HasSubstr("an effective value")));
}

TEST(Calibrate, SaysOnceWhatGoesWithTheSameCollective) {
  const Outcome table = podsim("calibrate " + permutes + on_v5p + "--set software.launch=1us");
  EXPECT_THAT(table.out, HasSubstr("software.launch[all-gather], software.launch[reduce-scatter], software.launch[all-reduce]"));
  EXPECT_THAT(table.out, HasSubstr("not observed: it goes with software.launch[permute]"));
}

TEST(Calibrate, ConvertsWithoutFitting) {
  const Outcome outcome = podsim("calibrate " + permutes + " --observations-only --quiet");
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  EXPECT_EQ(outcome.out.substr(0, 24), "op,devices,bytes,seconds");
}

TEST(Calibrate, AMachineNamesAFileWhateverItIsCalled) {
  const Folder folder;
  const std::string rows = test::bytes_of_file(permutes), observations = folder.file("v5p-\xff\xe9.csv", rows), machine = folder.file("m.textproto");
  ASSERT_EQ(podsim("calibrate " + observations + " " + on_v5p + "-o " + machine).status, exit_done);
  const auto run = json_of("run --machine " + machine + " --slice 2x2x1 --mesh row=4 --collective permute --shift 1 --bytes 1MiB");
  EXPECT_THAT(run["trust"]["dataset"].get<std::string>(), HasSubstr("v5p-\xef\xbf\xbd"));
}

TEST(Calibrate, AThousandProductsBecomeASurfaceAsUsersWouldMakeIt) {
  const Folder folder;
  const std::string table = PODSIM_SOURCE_DIR "/validation/datasets/gemm_bf16_h100/observations.csv", file = folder.file("h100.textproto");
  const Outcome outcome = podsim("calibrate --from csv " + table + " --base dgx_h100 --slice 1x1 --dataset mine -o " + file);
  ASSERT_EQ(outcome.status, exit_done) << outcome.err;
  for (const char* part : {"how the fit was found:", "grid: ", "smoothness: ", "waves of blocks: ", "of what was held back, every other observation in turn",
                           "the 20 observations that are off most"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  EXPECT_EQ(test::json_of("show machine --machine " + file)["name"], "dgx_h100");
  const auto run = json_of("run --machine " + file + " --slice 1x1 --gemm m=4096,n=4096,k=4096 --algorithm collective");
  EXPECT_EQ(run["trust"]["level"], "fitted") << run["trust"];
  EXPECT_EQ(run["trust"]["dataset"], "mine");
}

TEST(Calibrate, ProductsThatAreListedTwiceAreTold) {
  const Folder folder;
  const std::string rows = folder.file("rows.csv", "m,n,k,latency_ms\n64,64,64,0.01\n64,64,64,0.02\n64,64,128,0.02\n64,64,128,0.021\n");
  EXPECT_THAT(podsim("calibrate " + rows + " --observations-only").err,
              HasSubstr("note: 1 product is listed again with times that differ, by up to 2 times; every row counts"));
}

TEST(Calibrate, AHeldValueStays) {
  const auto json = json_of("calibrate " + permutes + on_v5p + "--hold link[x].bandwidth --hold link[y].bandwidth");
  for (const auto& parameter : json["parameters"]) EXPECT_THAT(parameter["path"].get<std::string>(), ::testing::Not(HasSubstr("].bandwidth")));
}

const std::string steps_of_a_model = R"(format_version: 1
machine: "tpu_v4"
system { slice: "2x2x1" }
step {
  name: "MODEL"
  maxtext: "base_emb_dim=512 base_num_query_heads=4 base_num_kv_heads=4 base_mlp_dim=2048 base_num_decoder_layers=4 vocab_size=1024 per_device_batch_size=BATCH"
  maxtext: "ici_fsdp_parallelism=4 dcn_data_parallelism=-1"
}
)";
std::string with(std::string text, const std::string& what, const std::string& by) { return text.replace(text.find(what), what.size(), by); }

TEST(Calibrate, FitsTrainingStepsThatAFileDescribes) {
  const Folder folder;
  const std::string small = with(with(steps_of_a_model, "MODEL", "small"), "BATCH", "8"), large = with(with(steps_of_a_model, "MODEL", "large"), "BATCH", "32");
  const std::string steps = folder.file("steps.textproto", small + large.substr(large.find("step {"))), none = folder.file("none.yml", "");
  std::string rows = "op,devices,bytes,seconds,slice,step,pods\n";
  for (const auto& [step, batch] : {std::pair{"small", "8"}, {"large", "32"}})
    for (const int pods : {1, 2, 4}) {
      const auto run = json_of(fmt::format("run --machine tpu_v4 --slice 2x2x1 --pods {} --set chip.matmul_efficiency=0.6 --set dcn.sync=2ms --maxtext {} base_emb_dim=512 "
                                           "base_num_query_heads=4 base_num_kv_heads=4 base_mlp_dim=2048 base_num_decoder_layers=4 vocab_size=1024 per_device_batch_size={} "
                                           "ici_fsdp_parallelism=4 dcn_data_parallelism=-1",
                                           pods, none, batch));
      rows += fmt::format("training-step,{},,{},2x2x1,{},{}\n", 4 * pods, run["makespan_s"].get<double>(), step, pods);
    }
  const std::string file = folder.file("rows.csv", rows), line = "calibrate " + file + " --base tpu_v4 --slice 2x2x1 --set chip.matmul_efficiency=1";
  const auto json = json_of(line + " --steps " + steps + " --only chip.matmul_efficiency --only dcn.sync");
  ASSERT_EQ(json["parameters"].size(), 2U);
  for (const auto& [at, path, value] : {std::tuple{0, "chip.matmul_efficiency", 0.6}, {1, "dcn.sync", 2e-3}}) {
    EXPECT_EQ(json["parameters"][at]["path"], path);
    EXPECT_NEAR(json["parameters"][at]["value"].get<double>(), value, 2e-3 * value);
    EXPECT_LE(json["parameters"][at]["low"].get<double>(), json["parameters"][at]["high"].get<double>());
  }
  ASSERT_EQ(json["residuals"].size(), 6U);
  EXPECT_EQ(json["residuals"][4]["step"], "large");
  EXPECT_EQ(json["residuals"][4]["pods"], 2);
  EXPECT_LT(json["held_back"]["p95_abs_error"].get<double>(), 2e-3);  // each model from the other

  const std::string machine = folder.file("fitted.textproto");
  ASSERT_EQ(podsim(line + " --steps " + steps + " --dataset mine --only chip.matmul_efficiency -o " + machine).status, exit_done);
  EXPECT_THAT(podsim("run --machine " + machine + " --slice 2x2x1 --collective all-gather --axis row --bytes 1MiB").out, HasSubstr("measured: 6 training steps, mine, median error"));

  EXPECT_THAT(podsim(line).err, HasSubstr("rows.csv:2:1: expected a description of the steps and runs that rows name: --steps FILE, or validation.textproto beside this file"));
  std::filesystem::copy(steps, folder.file("validation.textproto"));
  EXPECT_EQ(podsim(line + " --only chip.matmul_efficiency").status, exit_done);
  const std::string lost = folder.file("lost.csv", rows + "training-step,8,,0.1,2x4x1,small,\n");  // eight devices, of which the step takes four
  const Outcome refused = podsim("calibrate " + lost + " --base tpu_v4 --slice 2x2x1 --only chip.matmul_efficiency");
  EXPECT_EQ(refused.status, exit_bad_input);
  EXPECT_THAT(refused.err, HasSubstr("lost.csv:8:1: step \"small\" on 8 devices: "));
  EXPECT_THAT(podsim(line + " --only link.bandwidth").err, HasSubstr("expected a value that training steps and runs are fitted to, chip.matmul_efficiency, dcn.nic_bandwidth"));
  EXPECT_THAT(podsim("calibrate " + permutes + on_v5p + "--steps " + steps).err, HasSubstr("expected rows of training-step or run in the observations, found none"));
}

TEST(Calibrate, SaysWhatIsWrong) {
  const Folder folder;
  const std::string bad = folder.file("bad.csv", "op,devices,bytes,seconds\nall-gather,4,1024,-1\n");
  const std::string large = folder.file("large.csv", "op,devices,bytes,seconds\nall-reduce,16,1024,1e-5\n");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"calibrate --base tpu_v4 --slice 4x4", "expected files of observations, found none"},
      {"calibrate nowhere.csv --base tpu_v4 --slice 4x4", "nowhere.csv"},
      {"calibrate " + bad + " --base tpu_v4 --slice 4x4", "bad.csv:2:"},
      {"calibrate " + large + " --base dgx_h100 --slice 1x8", "large.csv:2:1: the log has 16 devices, the slice 8"},
      {"calibrate --from nccl-tests --op matmul x.txt", "expected a collective of nccl-tests"},
      {"calibrate --from nccl-tests --op all_gather nowhere.txt", "nowhere.txt"},
      {"calibrate " + permutes, "--base is missing"},
      {"calibrate " + permutes + on_v5p + "--from pcap", "pcap"},
      {"calibrate " + permutes + on_v5p + "--machine tpu_v4", "calibrate begins with --base"},
      {"calibrate " + permutes + on_v5p + "--prior link.bandwith=0.1", "link.bandwith"},
      {"calibrate " + permutes + on_v5p + "--prior link.bandwidth=-1", "expected a relative deviation above 0"},
      {"calibrate " + permutes + on_v5p + "--format csv", "--format: expected table or json, found \"csv\""},
  };
  for (const auto& [line, message] : cases) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << line;
  }
}

}  // namespace
}  // namespace podsim
