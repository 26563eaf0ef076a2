// --chakra-out and --chakra.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/test_command.hpp"
#include "workloads/chakra/test_wire.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string small_product = "run --machine tpu_v4 --slice 2x2 --gemm m=512,n=512,k=512 --algorithm collective";

TEST(Chakra, ARunWritesATraceForEachDeviceAndTheGroups) {
  const Folder folder;
  const auto plain = json_of(small_product), told = json_of(small_product + " --chakra-out " + folder.file("t"));
  EXPECT_EQ(told["makespan_s"], plain["makespan_s"]);
  EXPECT_THAT(folder.names(), ElementsAre("t.0.et", "t.1.et", "t.2.et", "t.3.et", "t.groups.json"));
  EXPECT_EQ(test::bytes_of_file(folder.file("t.groups.json")), "{\"1\":[0,1],\"2\":[2,3],\"3\":[0,2],\"4\":[1,3]}\n");
  const auto again = json_of("run --machine tpu_v4 --slice 2x2 --chakra " + folder.file("t"));
  EXPECT_EQ(again["makespan_s"], plain["makespan_s"]);
  EXPECT_EQ(again["link_bytes"], plain["link_bytes"]);
  EXPECT_EQ(again["schedule"], "chakra");
}

TEST(Chakra, LoweredCollectivesNeedNoGroups) {
  const Folder folder;
  const auto plain = json_of(small_product + " --chakra-out " + folder.file("t") + " --chakra-collectives lowered");
  EXPECT_THAT(folder.names(), ElementsAre("t.0.et", "t.1.et", "t.2.et", "t.3.et"));
  EXPECT_EQ(json_of("run --machine tpu_v4 --slice 2x2 --chakra " + folder.file("t"))["makespan_s"], plain["makespan_s"]);
}

TEST(Chakra, GroupsOfAnEarlierRunDoNotStay) {
  const Folder folder;
  static_cast<void>(folder.file("t.groups.json", R"({"9": [0, 77]})"));
  const auto plain = json_of(small_product + " --chakra-out " + folder.file("t") + " --chakra-collectives lowered");
  EXPECT_EQ(test::bytes_of_file(folder.file("t.groups.json")), "{}\n");
  EXPECT_EQ(json_of("run --machine tpu_v4 --slice 2x2 --chakra " + folder.file("t"))["makespan_s"], plain["makespan_s"]);
}

TEST(Chakra, RanksOfAnEarlierRunDoNotStay) {
  const Folder folder;
  const std::string larger = "run --machine tpu_v4 --slice 2x4 --gemm m=512,n=512,k=512 --algorithm collective";
  ASSERT_EQ(podsim(larger + " --chakra-out " + folder.file("t")).status, exit_done);
  const auto plain = json_of(small_product + " --chakra-out " + folder.file("t"));
  EXPECT_THAT(folder.names(), ElementsAre("t.0.et", "t.1.et", "t.2.et", "t.3.et", "t.groups.json"));
  EXPECT_EQ(json_of("run --machine tpu_v4 --slice 2x2 --chakra " + folder.file("t"))["makespan_s"], plain["makespan_s"]);
}

TEST(Chakra, CallsAreWrittenOut) {
  const Folder folder;
  for (const std::string given :
       {" --schedule algorithms/examples/two_calls.textproto", " --training workloads/training/examples/small.textproto --batch 8"}) {
    const auto plain = json_of("run --machine tpu_v4 --slice 2x2" + given),
               told = json_of("run --machine tpu_v4 --slice 2x2" + given + " --chakra-out " + folder.file("t"));
    EXPECT_EQ(told["makespan_s"], plain["makespan_s"]) << given;
    EXPECT_EQ(json_of("run --machine tpu_v4 --slice 2x2 --chakra " + folder.file("t"))["makespan_s"], plain["makespan_s"]) << given;
  }
}

TEST(Chakra, TheMeshIsThatOfTheRunUnlessOneIsGiven) {
  const Folder folder;
  ASSERT_EQ(
      podsim("run --machine ideal --slice 8 --mesh a=2,b=4 --collective all-reduce --axis b --bytes 64KiB --chakra-out " + folder.file("t")).status,
      exit_done);
  EXPECT_EQ(json_of("run --machine ideal --chakra " + folder.file("t"))["mesh"].dump(), R"({"a":2,"b":4})");
  EXPECT_EQ(json_of("run --machine ideal --slice 2x4 --mesh row=2,col=4 --chakra " + folder.file("t"))["mesh"].dump(), R"({"row":2,"col":4})");
  for (int rank = 0; rank < 2; ++rank)
    static_cast<void>(folder.file("own." + std::to_string(rank) + ".et", test::metadata() + test::comp_micros(1, 5)));
  EXPECT_EQ(json_of("run --machine ideal --chakra " + folder.file("own"))["mesh"].dump(), R"({"rank":2})");
}

TEST(Chakra, AnAlgorithmThatIsGivenIsTaken) {
  const Folder folder;
  const std::string line = "run --machine ideal --slice 4 --collective all-gather --bytes 1MiB --algorithm ";
  const auto both_ways = json_of(line + "ring --chakra-out " + folder.file("t")), one_way = json_of(line + "ring-one-way");
  ASSERT_NE(both_ways["makespan_s"], one_way["makespan_s"]);
  EXPECT_EQ(json_of("run --machine ideal --chakra " + folder.file("t"))["makespan_s"], both_ways["makespan_s"]);
  EXPECT_EQ(json_of("run --machine ideal --algorithm ring-one-way --chakra " + folder.file("t"))["makespan_s"], one_way["makespan_s"]);
}

TEST(Chakra, TracesAreCheckedForMatchingRacesAndDeadlock) {
  const Folder folder;
  const std::string t = folder.file("t");
  static_cast<void>(folder.file("t.0.et", test::metadata() + test::send_to(1, 1, 64) + test::recv_from(2, 1, 64, {1})));
  static_cast<void>(folder.file("t.1.et", test::metadata() + test::send_to(1, 0, 64) + test::recv_from(2, 0, 64, {1})));
  EXPECT_EQ(podsim("check --structure-only --chakra " + t).status, exit_done) << podsim("check --structure-only --chakra " + t).err;
  static_cast<void>(folder.file("t.0.et", test::metadata() + test::recv_from(1, 1, 64) + test::send_to(2, 1, 64, {1})));
  static_cast<void>(folder.file("t.1.et", test::metadata() + test::recv_from(1, 0, 64) + test::send_to(2, 0, 64, {1})));
  const Outcome deadlocked = podsim("check --structure-only --chakra " + t);
  EXPECT_EQ(deadlocked.status, exit_false);
  EXPECT_THAT(deadlocked.out, HasSubstr("deadlock"));
}

TEST(Chakra, WrongTracesAndOptionsAreTold) {
  const Folder folder;
  const std::string t = folder.file("t");
  const std::string blamed = "podsim: error: ";
  const auto said = [&](const std::string& line) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line << outcome.out;
    EXPECT_TRUE(outcome.err.starts_with(blamed)) << outcome.err;
    return outcome.err.substr(std::min(blamed.size(), outcome.err.size()));
  };
  EXPECT_EQ(said("run --machine ideal --chakra " + t), t + ".0.et: expected the traces PREFIX.0.et, PREFIX.1.et, .., found none\n");
  static_cast<void>(folder.file("t.0.et", test::metadata() + test::coll(1, 0, 64, {}, test::attribute("pg_name", test::string_val, "1"))));
  static_cast<void>(folder.file("t.1.et", test::metadata() + test::coll(1, 0, 64, {}, test::attribute("pg_name", test::string_val, "1"))));
  EXPECT_EQ(said("run --machine ideal --slice 4 --chakra " + t),
            t + ".2.et: expected the traces of 4 ranks, one for each device of the mesh row=4, found 2\n");
  EXPECT_EQ(said("run --machine ideal --slice 1 --chakra " + t),
            t + ".1.et: expected the traces of 1 ranks, one for each device of the mesh row=1, found 2\n");
  EXPECT_EQ(said("run --machine ideal --chakra " + t), t + ".0.et: record 1: expected a process group that is given, found \"1\"\n");
  EXPECT_EQ(said("run --machine ideal --chakra " + t + " --chakra-groups " + folder.file("none.json")),
            folder.file("none.json") + ": cannot read the file: No such file or directory\n");
  const std::string groups = folder.file("own.json", R"({"1": [0, 1]})");
  EXPECT_EQ(json_of("run --machine ideal --chakra " + t + " --chakra-groups " + groups)["devices"], 2);
  static_cast<void>(folder.file("t.groups.json", R"({"1": [0, 7]})"));
  EXPECT_EQ(said("run --machine ideal --chakra " + t), folder.file("t.groups.json") + ": group \"1\": expected ranks from 0 to 1, found 7\n");
  EXPECT_EQ(said("run --machine ideal --chakra " + t + " --chakra-cost guessed"), "--chakra-cost: expected recorded or flops, found \"guessed\"\n");
  EXPECT_EQ(said("run --machine ideal --slice 4 --collective all-gather --bytes 64 --chakra-groups " + groups),
            "--chakra-groups: belongs to --chakra, not to --collective\n");
  EXPECT_EQ(said(small_product + " --chakra-collectives lowered"), "--chakra-collectives: expected --chakra-out PREFIX beside it, found none\n");
  EXPECT_EQ(said(small_product + " --chakra-out " + folder.file("o") + " --chakra-collectives half"),
            "--chakra-collectives: expected whole or lowered, found \"half\"\n");
  EXPECT_THAT(said(small_product + " --chakra-out " + folder.file("no/such/folder/o")), HasSubstr("no/such/folder/o.0.et"));
}

}  // namespace
}  // namespace podsim
