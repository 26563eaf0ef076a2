#include "tools/command/known_files.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/test_files.hpp"
#include "sim/base/text.hpp"
#include "tools/command/gpu_machines.hpp"
#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string about(const std::string& path) {
  const auto outcome = test::run_words({path});
  return outcome.status == 0 ? outcome.out : outcome.err;
}

TEST(KnownFiles, AreToldByTheirContent) {
  const std::string root = PODSIM_SOURCE_DIR "/";
  const std::vector<std::pair<std::string, std::string>> told{
      {"workloads/differences/testdata/ring.hlo", "a module that XLA compiled: "},
      {"validation/gpu_h200/modules/vit_l16_b64_none.hlo.gz", "a module that XLA compiled: jit_step_vit_l16_b64_none, 2300 instructions"},
      {"validation/calibration/importers/testdata/jax_h200.xplane.pb.gz", "a profile of XProf, of GPUs: on NVIDIA H200, 3 steps of 113.2 ms each, 177 operations\n"},
      {"validation/calibration/importers/testdata/jax_h200.trace.json.gz", "a trace of events in JSON, as Perfetto shows, of GPUs: 3 steps of 113.2 ms each, 177 operations\n"},
      {"validation/calibration/importers/testdata/torch_h200.pt.trace.json.gz", "a trace of PyTorch's profiler: on NVIDIA H200, 2 steps of 91.81 ms each, 48 operations\n"},
      {"validation/diff/example.trace.json", "a trace of events in JSON, as Perfetto shows\n"},
      {"topologies/machines/tpu_v4.textproto", "a machine: tpu_v4\n"},
      {"tests/golden/input/nccl.txt", "a log of nccl-tests: 4 measured rows\n"},
      {"tests/golden/input/gathers.csv", "observations: 5 measured rows\n"},
      {"tests/golden/input/plan.textproto", "a plan of a block: "},
      {"tests/golden/input/scenario.textproto", "a scenario: "},
      {"tests/golden/input/sweep.textproto", "a sweep: "},
      {"tests/golden/input/network.textproto", "a network of chips, switches and cables: 4 chips\n"},
      {"tests/golden/input/tiny_model.textproto", "a model to train: "},
      {"tests/golden/input/tiny_block.textproto", "a transformer block: "},
      {"workloads/msccl/examples/halving_doubling_8.xml", "an algorithm of MSCCL: all-reduce halving-doubling, all-reduce by 8 GPUs, taken for 0 B to 1 TiB\n"},
      {"workloads/training/examples/v4_22b.yml", "a configuration of MaxText\n"},
  };
  for (const auto& [path, what] : told) EXPECT_THAT(about(root + path), StartsWith(root + path + ": " + what));
}

TEST(KnownFiles, CommandsAreForTheMachineThatAModuleIsFor) {
  EXPECT_THAT(about(PODSIM_SOURCE_DIR "/validation/gpu_h200/modules/vit_l16_b64_none.hlo.gz"), HasSubstr("--machine h100\n"));
}

TEST(KnownFiles, CommandsAreForTheGpuThatAProfileNames) {
  const std::string folder = PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/";
  EXPECT_THAT(about(folder + "jax_h200.xplane.pb.gz"), HasSubstr("--hlo step.hlo --machine dgx_h200\n"));
  EXPECT_THAT(about(folder + "torch_h200.pt.trace.json.gz"), HasSubstr("--machine dgx_h200 "));
  EXPECT_THAT(about(folder + "hta_nccl_rank0.pt.trace.json.gz"), HasSubstr("--machine dgx_a100 "));
  EXPECT_THAT(about(folder + "jax_h200.trace.json.gz"), HasSubstr("--machine dgx_h100\n")) << "it does not say";
}

TEST(KnownFiles, StableHloIsToldToCompile) {
  const test::Folder folder;
  const std::string file = folder.file("f.mlir", "module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n  func.func public @main(%arg0: tensor<4xf32>) {\n    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n");
  EXPECT_THAT(about(file), HasSubstr(".compile().as_text()"));
}

TEST(KnownFiles, WhatIsNoneIsAnErrorWithItsBeginning) {
  const test::Folder folder;
  const std::string file = folder.file("letter.txt", "Dear reader,\n");
  const auto outcome = test::run_words({file});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, StartsWith(file + ":1:1: expected a file that podsim knows"));
  EXPECT_THAT(outcome.err, HasSubstr("found \"Dear reader,\""));
  EXPECT_THAT(about(PODSIM_SOURCE_DIR "/tests/golden/input/bad_machine_units.textproto"), HasSubstr(":3:")) << "of the reader that came furthest";
}

TEST(KnownFiles, EveryCommandThatIsSuggestedIsOne) {
  // Files are missing, so each ends in an error; but not in one about its words. What compare does with two files is known by their content.
  const test::Folder folder, modules;
  for (const char* name : {"input", "new.hlo"}) (void)modules.file(name, "HloModule cut\n");
  for (const std::string_view suggested : suggested_commands())
    for (std::string line : split(suggested, '&')) {
      line = trimmed(line);
      if (!line.starts_with("podsim ")) continue;
      SCOPED_TRACE(line);
      std::vector<std::string> words;
      const test::Folder& in = line.starts_with("podsim compare {} new.hlo") ? modules : folder;
      for (std::string word : split(line.substr(7), ' ')) {
        word = word == "{}" ? in.file("input") : word == "MACHINE" ? "dgx_h100" : word == "SLICE" ? "1x8" : word == "PREFIX" ? folder.file("prefix") : word;
        if (word.find('.') != std::string::npos && word.find('/') == std::string::npos) word = in.file(word);
        words.push_back(std::move(word));
      }
      const auto outcome = test::run_words(words);
      EXPECT_NE(outcome.status, 3);
      if (outcome.status == 0) continue;
      for (const char* const wrong : {"unknown option", "unknown verb", "cannot show", "--help lists", "lists the kinds", "is no format", "unknown machine", "belongs to"}) EXPECT_EQ(outcome.err.find(wrong), std::string::npos) << outcome.err;
    }
}

TEST(KnownFiles, CommandsAreForTheDevicesOfALog) {
  EXPECT_THAT(about(PODSIM_SOURCE_DIR "/validation/diagnose/testdata/all_reduce_64.txt"), HasSubstr("podsim diagnose "));
  EXPECT_THAT(about(PODSIM_SOURCE_DIR "/validation/diagnose/testdata/all_reduce_64.txt"), HasSubstr("--slice 8x8\n"));
  EXPECT_THAT(about(PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/rccl_tests.json"), HasSubstr("--slice 1x4\n"));
  EXPECT_THAT(about(PODSIM_SOURCE_DIR "/topologies/nccl/testdata/h200_one_gpu.xml"), HasSubstr("--slice 4x1\n"));
}

TEST(KnownFiles, CommandsAreForTheDevicesOfAnAlgorithmAndThePrefixOfTraces) {
  const test::Folder folder;
  const std::string algorithm = folder.file("ring.xml"), prefix = folder.file("step");
  ASSERT_EQ(test::podsim("show schedule --machine dgx_h100 --slice 1x4 --collective all-gather --bytes 4MiB --algorithm ring --msccl-out " + algorithm).status, 0);
  EXPECT_THAT(about(algorithm), HasSubstr("--slice 1x4\n"));
  ASSERT_EQ(test::podsim("run --machine tpu_v5e --slice 2x2 --collective all-gather --bytes 4MiB --chakra-out " + prefix).status, 0);
  EXPECT_THAT(about(prefix + ".1.et"), HasSubstr("podsim run chakra " + prefix + " --machine tpu_v5e\n"));
  const std::string named_so = folder.file("MACHINE-SLICE.PREFIX");  // words of the command lines
  ASSERT_EQ(test::podsim("run --machine tpu_v5e --slice 2x2 --collective all-gather --bytes 4MiB --chakra-out " + named_so).status, 0);
  EXPECT_THAT(about(named_so + ".0.et"), HasSubstr("podsim run chakra " + named_so + " --machine tpu_v5e\n"));
  const std::string table = folder.file("tuner.conf", "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\nallreduce,0,65536,tree,ll,-1,-1,-1\n");
  EXPECT_THAT(about(table), HasSubstr("a table of NCCL's example tuner plugin: 1 line\n"));
}

TEST(KnownFiles, CommandsAreForTheNodesOfALog) {
  const std::string folder = PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/";
  EXPECT_THAT(about(folder + "nccl_two_nodes.txt"), HasSubstr("--machine dgx_h100 --slice 2x1\n")) << "cnode2-001 and cnode2-002";
  const test::Folder scratch;
  const std::string osu = "srun -N2 --ntasks-per-node=4 osu_allreduce\n# OSU MPI Allreduce Latency Test v7\n# Size  Avg Latency(us)\n8 1.0\n", bare = "srun -n8 osu_allreduce\n# OSU MPI Allreduce Latency Test v7\n# Size  Avg Latency(us)\n8 1.0\n";
  EXPECT_THAT(about(scratch.file("osu.txt", osu)), HasSubstr("--slice 2x4\n"));
  EXPECT_THAT(about(scratch.file("bare.txt", bare)), HasSubstr("--slice 1x8\n")) << "no nodes are told";
  std::string ranks = "# Collective test starting: all_reduce_perf\n";
  for (int rank = 0; rank < 32; ++rank) ranks += fmt::format("#  Rank {:2} Group  0 Pid {} on x{:03} device  {} [0x0{}] NVIDIA A100-SXM4-40GB\n", rank, 1000 + rank, rank / 4, rank % 4, rank % 4);
  const std::string table = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n 1048576  262144  float  sum  -1  100.0  10.49  20.32  0  99.0  10.6  20.5  0\n";
  EXPECT_THAT(about(scratch.file("8x4.txt", ranks + table)), HasSubstr("--machine dgx_a100 --slice 8x4\n")) << "not four nodes of eight";
}

TEST(KnownFiles, CommandsAreForTheGpuOfALog) {
  const std::string folder = PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/";
  EXPECT_THAT(about(folder + "nccl_a100.txt"), HasSubstr("--base dgx_a100 --slice 1x8 "));
  EXPECT_THAT(about(folder + "rccl_mi300x.txt"), HasSubstr("no shipped machine has the GPUs, AMD Instinct MI300X"));
  EXPECT_THAT(about(PODSIM_SOURCE_DIR "/topologies/nccl/testdata/rccl_8p_940.xml"), HasSubstr("no shipped machine has the GPUs, AMD's gfx942"));
  for (const auto& [gpu, machine] : {std::pair{"NVIDIA B200", "dgx_b200"}, {"NVIDIA GB200", "gb200_nvl72"}, {"NVIDIA H200", "dgx_h200"}, {"NVIDIA GH200 480GB", ""}, {"NVIDIA H100 PCIe", ""}, {"NVIDIA H100 NVL", ""}, {"A100-SXM4-40GB", "dgx_a100"}, {"Tesla V100-SXM2-16GB", ""}})
    EXPECT_EQ(machine_with_gpu(gpu), machine) << gpu;
}

TEST(KnownFiles, AmdsGpusAreNotSimulatedOnAnotherMachineWithoutAWord) {
  const std::vector<std::string> words{"run", "all-reduce", "--bytes", "1M", "--topology", PODSIM_SOURCE_DIR "/topologies/nccl/testdata/rccl_8p_940.xml", "--machine", "dgx_h100"};
  const auto outcome = test::run_words(words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the GPUs are AMD's (gfx942)"));
}

TEST(KnownFiles, ALogIsKnownBehindALongPreamble) {
  const test::Folder folder;
  std::string text;
  while (text.size() < 100'000) text += "+ source /gpfswork/rech/six/commun/code/start-prod\n";
  text += "using world size: 16\n iteration 1/ 9 | elapsed time per iteration (ms): 9000.0 |\n iteration 2/ 9 | elapsed time per iteration (ms): 1380.0 |\n iteration 3/ 9 | elapsed time per iteration (ms): 1381.0 |\n";
  const std::string file = folder.file("log.out", text);
  EXPECT_THAT(about(file), StartsWith(file + ": a log of a training run: 1 measured row\n"));
  EXPECT_EQ(test::run_words({"calibrate", file, "--observations-only"}).status, 0);
}

TEST(KnownFiles, ALinkMakesNoLogOfAConfiguration) {
  const std::string file = PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/maxtext_base.yml";
  EXPECT_THAT(about(file), StartsWith(file + ": a configuration of MaxText\n"));
}

TEST(KnownFiles, AFileIsTheProblemThatItSays) {
  const std::string module = PODSIM_SOURCE_DIR "/workloads/differences/testdata/ring.hlo";
  const auto asked = test::run_words({"run", module, "--machine", "tpu_v5e:4"}), named = test::run_words({"run", "--hlo", module, "--machine", "tpu_v5e", "--slice", "2x2"});
  EXPECT_EQ(asked.status, 0) << asked.err;
  EXPECT_EQ(test::without_wall_time(asked.out), test::without_wall_time(named.out));
}

}  // namespace
}  // namespace podsim
