// MSCCL's algorithms on the command line: those that podsim writes read back as the same bits and picoseconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::HasSubstr;

const std::string node = " --machine dgx_h100 --slice 1x8 ";

/// The algorithm that podsim writes of one of its own.
std::string written(const Folder& folder, const std::string& collective, const std::string& algorithm, const std::string& bytes) {
  const std::string file = folder.file(collective + "_" + algorithm + ".xml");
  const Outcome shown =
      podsim("show schedule" + node + "--collective " + collective + " --bytes " + bytes + " --algorithm " + algorithm + " --msccl-out " + file);
  EXPECT_EQ(shown.status, exit_done) << shown.err;
  return file;
}

TEST(MscclCommand, OursReadBackTakeTheSamePicosecondsAndAreProven) {
  const Folder folder;
  for (const std::string collective : {"all-reduce", "all-gather", "reduce-scatter"})
    for (const std::string algorithm : {"ring", "ring-one-way", "halving-doubling", "direct"}) {
      const std::string file = written(folder, collective, algorithm, "1MiB");
      for (const std::string bytes : {"1KiB", "1MiB", "24MiB"})
        for (const std::string engine : {"des", "simgrid"}) {
          if (engine == "simgrid" && bytes != "1MiB") continue;
          const std::string how = node + "--bytes " + bytes + " --engine " + engine;
          const auto ours = json_of("run" + how + " --collective " + collective + " --algorithm " + algorithm),
                     again = json_of("run" + how + " --msccl " + file);
          EXPECT_EQ(again["link_bytes"], ours["link_bytes"]) << file;
          if (engine == "des")
            EXPECT_EQ(again["makespan_s"], ours["makespan_s"]) << file << " " << bytes;
          else
            EXPECT_NEAR(again["makespan_s"].get<double>(), ours["makespan_s"].get<double>(), 1e-6 * ours["makespan_s"].get<double>()) << file;
        }
      const auto checked = json_of("check --slice 8 --bytes 4KiB --msccl " + file);
      EXPECT_EQ(checked["ok"], true) << file;
      EXPECT_EQ(checked["bit_equal"], true) << file;
      EXPECT_THAT(checked["compared"].get<std::string>(), HasSubstr(collective));
    }
}

TEST(MscclCommand, OtherCollectivesReadBackAreProven) {
  const Folder folder;
  for (const auto& [collective, algorithm] : std::vector<std::pair<std::string, std::string>>{{"all-to-all", "direct"},
                                                                                              {"all-to-all", "pairwise"},
                                                                                              {"all-to-all", "ring"},
                                                                                              {"broadcast", "direct"},
                                                                                              {"reduce", "direct"}}) {
    const auto checked = json_of("check --slice 8 --bytes 4KiB --msccl " + written(folder, collective, algorithm, "64KiB"));
    EXPECT_EQ(checked["ok"], true) << collective << " " << algorithm;
  }
}

TEST(MscclCommand, WhatItCannotSayNamesTheTask) {
  const Folder folder;
  const std::string out = " --msccl-out " + folder.file("a.xml");
  for (const auto& [problem, message] : std::vector<std::pair<std::string, std::string>>{
           {"--collective all-reduce --bytes 1MiB --algorithm in-switch",
            "podsim: error: task 2 \"all-reduce 0 +1\": expected a transfer that the switch only passes on, found one that it works on\n"},
           {"--collective all-reduce --bytes 1MiB --algorithm tree",
            "podsim: error: task 2 \"all-reduce 1st up 0.0\": expected a region that is one run of \"output\", found several\n"},
           {"--collective broadcast --bytes 1MiB --root 1", "podsim: error: expected the root 0, found 1\n"},
           {"--gemm m=512,n=512,k=512 --algorithm 1d-os",
            "podsim: error: expected a schedule that computes one all-gather, reduce-scatter, all-reduce, all-to-all, broadcast or reduce, found "
            "another one\n"}}) {
    const Outcome shown = podsim("show schedule" + node + problem + out);
    EXPECT_EQ(shown.status, exit_bad_input) << problem;
    EXPECT_EQ(shown.err, message);
  }
  const Outcome part = podsim("show schedule --slice 2x4 --collective all-gather --axis row --bytes 1KiB" + out);
  EXPECT_EQ(part.err, "podsim: error: expected a collective of all devices in their order, along all axes of row=2,col=4, found another one\n");
  EXPECT_TRUE(folder.names().empty()) << "nothing is written";
}

TEST(MscclCommand, IsComparedWithOurAlgorithmsOfTheSameCollective) {
  const Folder folder;
  const std::string ring = written(folder, "all-reduce", "ring", "1MiB"), gather = written(folder, "all-gather", "direct", "1MiB");
  const auto compared =
      json_of("compare" + node + "--collective all-reduce --bytes 64KiB,1MiB --algorithms ring,direct --msccl " + ring + " " + gather);
  std::map<std::string, double> seconds;
  for (const auto& row : compared["rows"])
    seconds[row["algorithm"].get<std::string>() + " " + std::to_string(row["bytes"].get<int>())] = row["makespan_s"];
  EXPECT_EQ(seconds.size(), 6U);
  for (const std::string bytes : {" 65536", " 1048576"}) EXPECT_EQ(seconds["msccl all-reduce_ring" + bytes], seconds["ring" + bytes]);
  EXPECT_THAT(compared["skipped"].dump(), HasSubstr("it computes the all-gather of all devices, which --collective and --axis do not ask for"));

  const auto alone = json_of("compare" + node + "--bytes 1MiB --msccl " + ring + "," + gather);
  ASSERT_EQ(alone["rows"].size(), 2U);
  EXPECT_EQ(alone["rows"][0]["algorithm"], "msccl all-reduce_ring");
  EXPECT_EQ(alone["rows"][1]["algorithm"], "msccl all-gather_direct");
  EXPECT_EQ(alone["verdicts"].size(), 2U) << "an all-reduce is not ranked against an all-gather";
}

TEST(MscclCommand, IsComparedForTheSizesThatItsRuntimeTakesItFor) {
  const Folder folder;
  std::ifstream algorithm{written(folder, "all-gather", "ring", "1MiB")};
  std::string text{std::istreambuf_iterator<char>{algorithm}, {}};
  const std::size_t most = text.find("maxBytes=\"");
  ASSERT_NE(most, std::string::npos);
  text.replace(most, text.find('"', most + 10) - most, "maxBytes=\"524288");  // of the output of eight GPUs
  const auto compared = json_of("compare" + node + "--bytes 64KiB,128KiB --msccl " + folder.file("a.xml", text));
  ASSERT_EQ(compared["rows"].size(), 1U);
  EXPECT_EQ(compared["rows"][0]["bytes"], 65536);
  EXPECT_THAT(compared["skipped"].dump(), HasSubstr("its minBytes and maxBytes are 0 B and 512 KiB, the data of a GPU 1 MiB: its runtime does not take it"));
}

TEST(MscclCommand, SaysWhatIsMissingOrDoesNotBelong) {
  const Folder folder;
  const std::string file = written(folder, "all-reduce", "ring", "1MiB"), empty = folder.file("empty.xml", "");
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"run" + node + "--msccl " + file, "podsim: error: --bytes is missing: the input of the algorithm on each device\n"},
           {"run" + node + "--bytes 1KiB --msccl " + empty, empty + ":1:1: expected the element \"algo\", found none\n"},
           {"run" + node + "--bytes 1KiB --msccl /nowhere.xml", "podsim: error: /nowhere.xml: cannot read the file: No such file or directory\n"},
           {"run" + node + "--bytes 1KiB --axis col --msccl " + file, "podsim: error: --axis: belongs to --collective, not to --msccl\n"},
           {"run" + node + "--bytes 1KiB --collective all-reduce --msccl " + file,
            "podsim: error: expected one of --gemm, --collective, --workload, --training, --hlo, --program, --plan, --schedule, --msccl and --chakra, found "
            "several\n"},
           {"run" + node + "--bytes 1000 --msccl " + file,
            "podsim: error: --bytes: expected a positive multiple of 32 (16 chunks of whole bf16 elements), found 1000\n"},
           {"compare" + node + "--msccl " + file, "podsim: error: --bytes is missing: the input of the algorithms on each device\n"},
           {"compare" + node + "--bytes 1KiB --msccl " + file + " " + file, "podsim: error: --msccl: \"" + file + "\" is given twice\n"}}) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_EQ(outcome.err, message);
  }
  EXPECT_EQ(podsim("run --machine ideal --slice 4 --bytes 1KiB --msccl " + file).err,
            file + ":1:2: expected a mesh of 8 devices, as ngpus says, found row=4\n");
}

}  // namespace
}  // namespace podsim
