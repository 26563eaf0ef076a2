// `show hlo`: the keys of its contract, and what its options do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using nlohmann::ordered_json;
using test::json_of;
using test::podsim;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

const std::string shown_layers = "show hlo workloads/hlo/testdata/tpu_layers.hlo";

TEST(ShowHlo, JsonHasTheKeysOfTheContract) {
  const ordered_json json = json_of(shown_layers + " --mesh data=2,model=4");
  EXPECT_THAT(test::keys(json), IsSupersetOf({"module", "devices", "instructions", "collectives", "dots", "copies", "opaque", "unknown_attributes",
                                              "peak_memory_bytes"}));
  EXPECT_THAT(test::keys(json["collectives"][0]),
              IsSupersetOf({"instruction", "kind", "axes", "groups", "bytes", "asynchronous", "count", "overlap_s"}));
  EXPECT_THAT(test::keys(json["dots"][0]), IsSupersetOf({"instruction", "m", "n", "k", "batch", "flops", "count"}));
  EXPECT_EQ(json["module"], "jit_layers");
  EXPECT_EQ(json["devices"], 8);
  EXPECT_EQ(json["instructions"], 61);
  EXPECT_EQ(json["opcodes"]["fusion"], 2);
  EXPECT_EQ(json["collectives"][0]["kind"], "reduce-scatter");
  EXPECT_EQ(json["collectives"][0]["axes"], (std::vector<std::string>{"model"}));
  EXPECT_EQ(json["collectives"][0]["groups"], "mesh['data'=2,'model'=4] {'model'}");
  EXPECT_EQ(json["collectives"][0]["overlap_s"], nullptr);
  EXPECT_EQ(json["totals"]["dots"], 7);
  EXPECT_EQ(json["totals"]["dot_flops"], 6 * 67108864 + 33554432);
}

TEST(ShowHlo, GroupsThatAreNoAxesAreToldAsTheyAre) {
  const ordered_json json = json_of(shown_layers + " --mesh x=4,y=2");
  for (const ordered_json& row : json["collectives"]) EXPECT_EQ(row["axes"], nullptr) << row["instruction"];
}

TEST(ShowHlo, OverlapIsTheCoresTimeOnTheMachine) {
  const std::string module =
      "HloModule m, is_scheduled=true, num_partitions=2\nENTRY e {\n  x = bf16[1024,1024] parameter(0)\n"
      "  s = (bf16[1024,1024], bf16[1024,1024], u32[], u32[]) collective-permute-start(x), channel_id=1, source_target_pairs={{0,1},{1,0}}\n"
      "  d = bf16[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT e = bf16[1024,1024] "
      "collective-permute-done(s)\n}\n";
  const test::Folder folder;
  const std::string command = "show hlo " + folder.file("m.hlo", module);
  const ordered_json row = json_of(command + " --mesh p=2")["collectives"][0];
  EXPECT_EQ(row["axes"], std::vector<std::string>{"p"});
  EXPECT_EQ(row["shift"]["by"], 1);
  const double time = 2.0 * 1024 * 1024 * 1024 / 100e12;  // ideal: 100 TFLOP/s
  EXPECT_DOUBLE_EQ(row["overlap_s"].get<double>(), time);
  EXPECT_DOUBLE_EQ(row["hidden_at_bytes_per_s"].get<double>(), 2 * 1024 * 1024 / time);
}

TEST(ShowHlo, FourierTransformsAreListedWithTheirFlops) {
  const test::Folder folder;
  const std::string command = "show hlo " + folder.file("m.hlo",
                                                        "HloModule m\nENTRY e {\n  x = c64[16,64] parameter(0)\n"
                                                        "  ROOT f = c64[16,64] fft(x), fft_type=FFT, fft_length={64}\n}\n");
  const ordered_json json = json_of(command);
  ASSERT_EQ(json["transforms"].size(), 1u);
  EXPECT_EQ(json["transforms"][0]["points"], 64);
  EXPECT_EQ(json["transforms"][0]["batch"], 16);
  EXPECT_EQ(json["transforms"][0]["flops"], 5.0 * 64 * 6 * 16);
  EXPECT_EQ(json["totals"]["transform_flops"], 5.0 * 64 * 6 * 16);
  EXPECT_THAT(podsim(command).out, ::testing::ContainsRegex("FFT +f +1 +64 +16 +30.72 kFLOP"));
}

TEST(ShowHlo, LoopsBranchesAndCustomCallsAreAsGiven) {
  const std::string module =
      "HloModule m\n%c { t = (f32[4,4]) parameter(0)\n ROOT p = pred[] constant(true) }\n"
      "%b { t = (f32[4,4]) parameter(0)\n x = f32[4,4] get-tuple-element(t), index=0\n y = f32[4,4] custom-call(x), custom_call_target=\"mine\"\n"
      " d = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n ROOT r = (f32[4,4]) tuple(d) }\n"
      "ENTRY e {\n  x = f32[4,4] parameter(0)\n  t = (f32[4,4]) tuple(x)\n  ROOT w = (f32[4,4]) while(t), condition=%c, body=%b\n}\n";
  const test::Folder folder;
  const std::string command = "show hlo " + folder.file("m.hlo", module);
  const auto unknown = podsim(command);
  EXPECT_EQ(unknown.status, exit_bad_input);
  EXPECT_THAT(unknown.err,
              HasSubstr(":12:3: how often does the loop \"w\" run? Neither its backend_config nor its condition tells; --trip-count w=N does\n"));
  const ordered_json json = json_of(command + " --trip-count w=1000 --custom-call mine=2MFLOP,8KiB");
  EXPECT_EQ(json["dots"][0]["count"], 1000);
  EXPECT_EQ(json["custom_calls"][0]["flops"], 2000000);
  EXPECT_EQ(json["custom_calls"][0]["bytes"], 8192);
  EXPECT_EQ(json["loops"][0]["source"], "given");
  EXPECT_EQ(json["opaque"].size(), 0u);
  EXPECT_EQ(json_of(command + " --tolerant")["warnings"][0]["message"], "loops of unknown trip count, counted once");
  EXPECT_EQ(podsim(command + " --trip-count v=3").err, "podsim: error: --trip-count: expected the name of a loop of the module, got \"v\"\n");
  EXPECT_EQ(podsim(command + " --trip-count w=-3").status, exit_bad_input);
  EXPECT_EQ(podsim(command + " --trip-count w=3 --trip-count w=4").err, "podsim: error: --trip-count: expected \"w\" at most once\n");
  EXPECT_EQ(podsim(command + " --trip-count w=3 --custom-call mine=2").status, exit_bad_input) << "an amount of work needs a unit";
}

TEST(ShowHlo, ErrorsNameWhatWasExpected) {
  EXPECT_EQ(podsim("show hlo").err, "podsim: error: which module? podsim show hlo FILE\n");
  EXPECT_EQ(podsim(shown_layers + " --mesh x=4").err, "podsim: error: --mesh: expected the 8 devices of jit_layers, got the 4 of x=4\n");
  EXPECT_EQ(podsim("show hlo workloads/hlo/README.md").err,
            "workloads/hlo/README.md:1:1: expected \"HloModule\" and the name of a module, got \"# Compiled modules\"\n");
  EXPECT_EQ(podsim("show hlo no/such/file").status, exit_bad_input);
}

}  // namespace
}  // namespace podsim
