// Systems that are not as built: other topologies, several slices, what is broken or slow, other orders of devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/testing.hpp"
#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::json_of;
using test::podsim;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string ideal = "--machine ideal --set link.bandwidth=45GB/s --set link.latency=1us ";
const std::string gather_col = "--collective all-gather --axis col --bytes 16MiB ";

double makespan(const std::string& line) { return json_of("run " + line)["makespan_s"]; }

// ---- Topologies -----------------------------------------------------------------------------------------------------------------------

TEST(WhatIf, AGatherOverACrossbarIsRoundsOfOneShardWhateverTheDistance) {
  // Each port carries one shard per round and direction; from chip to chip are two links.
  const double shard = (1 << 24) / 45e9;
  EXPECT_NEAR(makespan(ideal + "--slice 4x8 --topology crossbar " + gather_col + "--algorithm ring-one-way"), 7 * (2e-6 + shard), 1e-9);
}

TEST(WhatIf, AnOversubscribedTreeSlowsWhatCrossesIt) {
  // Leaves of 8 with 4 spines: all eight send to the other leaf at once and share four links up.
  const std::string shift = "--slice 16 --collective permute --axis row --shift 8 --bytes 16MiB ";
  const double one = makespan(ideal + shift + "--topology fat-tree:8"), two = makespan(ideal + shift + "--topology fat-tree:8:2");
  EXPECT_NEAR(two - one, (1 << 24) / 45e9, 1e-9);
  EXPECT_EQ(podsim("run " + ideal + shift + "--topology fat-tree:8:99").err,
            "podsim: error: --topology: expected an oversubscription from 1 to the 8 chips of a leaf, found 99\n");
}

TEST(WhatIf, ShowTopologySaysWhatATwistGains) {
  const auto plain = json_of("show topology --machine tpu_v4 --slice 4x4x8"),
             twisted = json_of("show topology --machine tpu_v4 --slice 4x4x8 --topology twisted");
  EXPECT_EQ(plain["links"], twisted["links"]);
  EXPECT_EQ(twisted["diameter"], 6);
  EXPECT_NEAR(twisted["all_to_all_bound_bytes_per_s"].get<double>() / plain["all_to_all_bound_bytes_per_s"].get<double>(), 1.68, 0.01)
      << "70 % more by theory, Google Cloud's documentation of v5p; 75 % where ties go all shortest ways: validation/studies/topologies";
  EXPECT_EQ(json_of("run --machine tpu_v5p --slice 4x4x8 --topology twisted " + gather_col)["hypothetical"], false);
  EXPECT_EQ(json_of("run --machine tpu_v5p --slice 2x2x4 --topology twisted " + gather_col)["hypothetical"], true);
}

TEST(WhatIf, BrokenAndSlowPartsAndLinksThatNobodySharesAreHypothetical) {
  const std::string pod = "--machine tpu_v5p --slice 4x4x4 --collective all-gather --axis col --bytes 1MiB --algorithm ring ";
  const auto as_built = json_of("run " + pod);
  EXPECT_EQ(as_built["hypothetical"], false);
  EXPECT_NE(as_built["trust"]["level"], "hypothetical");
  for (const char* what_if : {"--fail 0.0.0-0.1.0", "--degrade 0.0.0-0.1.0=0.5", "--straggler 1.1.1=0.8", "--straggler random:1%=0.8", "--engine analytic"}) {
    const auto json = json_of("run " + pod + what_if);
    EXPECT_EQ(json["hypothetical"], true) << what_if;
    EXPECT_EQ(json["trust"]["level"], "hypothetical") << what_if;
    EXPECT_TRUE(json["trust"]["error"].is_null()) << what_if;
    EXPECT_THAT(podsim("run " + pod + what_if).out, HasSubstr("hypothetical: a what-if")) << what_if;
    EXPECT_EQ(json_of("compare " + pod + what_if)["rows"][0]["hypothetical"], true) << what_if;
  }
  const std::string tuned = "tune --machine tpu_v5p --slice 2x2x1 --gemm m=256,n=256,k=256 --pass forward ";
  EXPECT_EQ(json_of(tuned)["plans"][0]["hypothetical"], false);
  EXPECT_EQ(json_of(tuned + "--straggler 1.1.0=0.8")["plans"][0]["hypothetical"], true);
  EXPECT_EQ(json_of(tuned + "--set link.latency=2us")["plans"][0]["hypothetical"], true);
}

TEST(WhatIf, SlicesMeetOverTheNetworkInterfacesOfTheirHosts) {
  // One host of four chips in each of two slices: all four cross at once, and share 25 GB/s.
  const std::string line =
      "--machine tpu_v4 --set dcn.nic_bandwidth=25GB/s --set dcn.host_bandwidth=15GB/s --set dcn.latency=10us --set dcn.sync=0us "
      "--set software.per_message=0us --set software.launch=0us --slice 2x2x1 --pods 2 --collective permute --axis pod --shift 1 "
      "--bytes 25MB ";
  EXPECT_NEAR(makespan(line), 10e-6 + 4 * 25e6 / 25e9, 1e-9);
  EXPECT_EQ(json_of("run " + line)["mesh"].dump(), R"({"pod":2,"row":2,"col":2,"depth":1})");
}

TEST(WhatIf, TwoDevicesOfAChipAreAnAxisOfTheMesh) {
  const auto result = json_of("run --machine tpu_v3 --slice 4x4 --collective all-gather --axis core --bytes 1MiB");
  EXPECT_EQ(result["mesh"].dump(), R"({"row":4,"col":4,"core":2})");
  EXPECT_EQ(result["devices"], 32);
  EXPECT_EQ(result["link_bytes"], 0.0) << "inner links are no hops";
}

TEST(Precision, IsTheBf16PassesOfFloat32Products) {
  const auto run = [](const std::string& machine, const std::string& dtype, const std::string& precision) {
    return json_of("run --machine " + machine + " --slice 2x2 --devices 0 --mesh row=1,col=1 --algorithm collective --gemm m=4096,n=4096,k=4096,dtype=" + dtype + precision);
  };
  const auto seconds = [&](const std::string& dtype, const std::string& precision) { return run("tpu_v3:spec", dtype, precision)["compute_s"].get<double>(); };
  const double one = seconds("f32", " --precision default");
  EXPECT_NEAR(one, 2 * std::pow(4096, 3) / 70e12, 1e-9);
  EXPECT_NEAR(seconds("f32", " --precision high"), 3 * one, 1e-9);
  EXPECT_NEAR(seconds("f32", " --precision highest"), 6 * one, 1e-9);
  EXPECT_EQ(seconds("f32", ""), one) << "the machine's own, as JAX's DEFAULT";
  EXPECT_EQ(seconds("f32", " --set chip.float32_passes=3"), seconds("f32", " --precision high"));
  EXPECT_EQ(seconds("bf16", " --precision highest"), seconds("bf16", ""));
  // The program chooses, the machine is as it was.
  EXPECT_EQ(run("tpu_v4", "f32", " --precision default")["trust"], run("tpu_v4", "f32", "")["trust"]);
  EXPECT_NE(run("tpu_v4", "f32", " --set chip.float32_passes=6")["trust"], run("tpu_v4", "f32", "")["trust"]);
}

TEST(Precision, IsTf32OnGpusUnlessItIsTheHighest) {
  const auto seconds = [](const std::string& precision) {
    return json_of("run --machine dgx_h100:spec --slice 1x1 --mesh row=1,col=1 --algorithm collective --gemm m=8192,n=8192,k=8192,dtype=f32" + precision)["compute_s"].get<double>() - 5e-6;
  };
  EXPECT_NEAR(seconds(""), 2 * std::pow(8192, 3) / 494.7e12, 1e-9);
  EXPECT_EQ(seconds(" --precision high"), seconds(""));
  EXPECT_NEAR(seconds(" --precision highest"), 2 * std::pow(8192, 3) / 66.9e12, 1e-9);
}

TEST(Precision, IsOneOfThreeWords) {
  const std::string gemm = " --slice 1x4 --algorithm 1d-os --gemm m=64,n=64,k=64,dtype=f32 --precision ";
  EXPECT_EQ(podsim("run --machine tpu_v5e" + gemm + "low").err, "podsim: error: --precision: expected default, high or highest, found \"low\"\n");
}

TEST(WhatIf, GpusOfANodeMeetOverItsSwitchAndNodesOverRails) {
  const auto topology = json_of("show topology --machine dgx_h100 --slice 4x8");
  EXPECT_EQ(topology["chips"], 32);
  EXPECT_EQ(topology["switches"], 4 + 8);
  EXPECT_EQ(json_of("run --machine dgx_h100 --slice 4x8 --collective all-reduce --axis col --bytes 64MiB")["hypothetical"], false);
}

TEST(WhatIf, TopologiesOnEqualTermsHaveEqualTerms) {
  const std::string line =
      "compare --machine tpu_v4 --slice 4x4x8 --mesh row=16,col=8 --topology torus,crossbar,fat-tree:16 --gemm m=4096,n=4096,k=4096 "
      "--algorithms collective --equal ";
  for (const auto& [what, key] : {std::pair{"ports", "total_bandwidth_bytes_per_s"},
                                  {"injection", "injection_bandwidth_bytes_per_s"},
                                  {"bisection", "bisection_bandwidth_bytes_per_s"}}) {
    const auto found = json_of(line + what);
    ASSERT_EQ(found["topologies"].size(), 3u);
    for (const auto& topology : found["topologies"])
      EXPECT_NEAR(topology[key].get<double>(), found["topologies"][0][key].get<double>(), 1e-6 * topology[key].get<double>()) << what;
  }
  EXPECT_EQ(podsim(line + "cost").err, "podsim: error: --equal: expected bisection, ports or injection, found \"cost\"\n");
}

// ---- Broken and slow ------------------------------------------------------------------------------------------------------------------

TEST(WhatIf, ABrokenRingIsADetourOrALineWhicheverIsFaster) {
  // One column of 4x8: the line in one direction takes 7 whole shards; a detour of three hops shares links with neighbours' rings.
  const auto result = json_of("run " + ideal + "--slice 4x8 " + gather_col + "--fail 0.3-0.4");
  EXPECT_GT(result["makespan_s"], result["healthy"]["makespan_s"]);
  EXPECT_THAT(result["rings"].get<std::string>(), ::testing::AnyOf("detour", "line along col, cut after 3"));
  const System system =
      testing::system_with({{"machine", "ideal"}, {"slice", "4x8"}, {"set", "link.bandwidth=45GB/s"}, {"set", "link.latency=1us"}, {"fail", "0.3-0.4"}});
  const std::vector<Alternative> both = alternatives(system);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].rings, "line along col, cut after 3");
  EXPECT_FALSE(both[1].system.mesh.wraps(both[1].system.mesh.whole(1)));
  EXPECT_EQ(both[1].system.placement.chip_of[0], ChipId{4}) << "the line begins behind the cable";
}

TEST(WhatIf, OnALoneRingTheLineIsFasterThanTheWayBack) {
  // A ring of 8 without a second dimension: the detour is the whole way round, the line only lacks a cable.
  const auto result = json_of("run " + ideal + "--slice 8 --collective all-gather --axis row --bytes 16MiB --fail 2-3");
  EXPECT_EQ(result["rings"], "line along row, cut after 2");
  EXPECT_NEAR(result["makespan_s"].get<double>(), 7 * (1e-6 + (1 << 24) / 45e9), 1e-9);
}

TEST(WhatIf, AnyCableIsTriedOnceOfEverySort) {
  const auto losses = json_of("run " + ideal + "--slice 4x8 " + gather_col + "--fail any")["fail_any"];
  EXPECT_GE(losses["worst"]["makespan_s"], losses["median"]["makespan_s"]);
  EXPECT_GE(losses["median"]["makespan_s"], losses["best"]["makespan_s"]);
}

TEST(WhatIf, ASlowCableHoldsUpItsRing) {
  const auto result =
      json_of("run " + ideal + "--slice 8 --collective all-gather --axis row --bytes 16MiB --algorithm ring-one-way --degrade 2-3=0.5");
  EXPECT_NEAR(result["makespan_s"].get<double>() / result["healthy"]["makespan_s"].get<double>(), 2, 0.02);
}

TEST(WhatIf, AStragglerWorksSlower) {
  const std::string gemm = "--slice 2x2 --gemm m=4096,n=4096,k=4096 --algorithm collective ";
  const auto result = json_of("run --machine ideal " + gemm + "--straggler 1.0=0.5");
  const double more = result["makespan_s"].get<double>() - result["healthy"]["makespan_s"].get<double>();
  EXPECT_NEAR(more, 2 * 4096. * 4096 * 4096 / 4 / 100e12, 1e-11) << "its matmul takes twice as long";
  EXPECT_EQ(makespan("--machine ideal " + gemm + "--straggler random:50%=0.5 --seed 7"),
            makespan("--machine ideal " + gemm + "--straggler random:50%=0.5 --seed 7"));
}

/// A ring that lies over a grid without a wraparound for it: its transfers meet on links, and a slow chip happens to part some of them.
TEST(WhatIf, ARunThatASlowChipMakesFasterIsNamedAnAnomaly) {
  const std::string gemm = "run --machine tpu_v5e --slice 4x4 --mesh ring=16 --gemm m=1024,n=256,k=1024 --pad --algorithm jax-rs-plain ";
  const auto faster = json_of(gemm + "--straggler 0.0=0.8"), slower = json_of(gemm + "--straggler 0.0=0.1");
  EXPECT_LT(faster["makespan_s"], faster["healthy"]["makespan_s"]);
  ASSERT_EQ(faster["notes"].size(), 1U);
  EXPECT_THAT(faster["notes"][0].get<std::string>(), AllOf(StartsWith("0.095 % faster than the healthy system"), HasSubstr("scheduling anomaly")));
  EXPECT_GT(slower["makespan_s"], slower["healthy"]["makespan_s"]);
  EXPECT_FALSE(slower.contains("notes"));
}

TEST(WhatIf, SwitchesAndRailsAreNamedWhereOneIsAskedFor) {
  const std::string run = "run --machine dgx_h100 --slice 4x8 --collective all-reduce --bytes 1MiB ";
  for (const auto& [option, message] : std::vector<std::pair<std::string, std::string>>{
           {"--degrade 3.0-s=0.5", "--degrade: there is no chip or switch \"s\"; chips are 0.0 to 3.7, switches node 0 to node 3, rail 0 to rail 7\n"},
           {"--fail 3.0-0.0", "--fail: there is no cable between 3.0 and 0.0; those of 3.0 lead to node 3, rail 0\n"},
           {"--fail 3.0", "--fail: expected a cable between two chips or a chip and a switch, as 0.0-rail 0, found \"3.0\"\n"}}) {
    const test::Outcome outcome = podsim(run + option);
    EXPECT_EQ(outcome.status, exit_bad_input) << option;
    EXPECT_EQ(outcome.err, "podsim: error: " + message) << option;
  }
}

TEST(WhatIf, BadInputSaysWhatWasExpected) {
  const std::string run = "run " + ideal + "--slice 4x8 " + gather_col;
  for (const auto& [option, message] : std::vector<std::pair<std::string, std::string>>{
           {"--topology star", "podsim: error: --topology: there is no topology \"star\""},
           {"--topology twisted", "podsim: error: a twisted torus is k x k x 2k or k x 2k x 2k chips, as 4x4x8 or 4x8x8, got 4x8"},
           {"--topology fat-tree", "podsim: error: --topology: expected fat-tree:LEAF or fat-tree:LEAF:OVERSUBSCRIPTION"},
           {"--topology no/such.textproto", "podsim: error: --topology: no/such.textproto: cannot read the file: No such file or directory"},
           {"--fail 0.0-0.2", "podsim: error: --fail: there is no cable between (0,0) and (0,2)"},
           {"--fail 0.0", "podsim: error: --fail: expected a cable between two chips, as 0.0-0.1, found \"0.0\""},
           {"--fail 0.0-9.9", "podsim: error: --fail: there is no chip \"9.9\"; the last one is (3,7)"},
           {"--degrade 0.0-0.1", "podsim: error: --degrade: expected CABLE=PART, as 0.0-0.1=0.5"},
           {"--degrade 0.0-0.1=2", "podsim: error: --degrade: expected a part of the bandwidth above 0 and up to 1"},
           {"--straggler 0.0", "podsim: error: --straggler: expected CHIP=PART or random:PERCENT%=PART"},
           {"--straggler random:5=0.8", "podsim: error: --straggler: expected CHIP=PART or random:PERCENT%=PART"},
           {"--straggler 0.0=0", "podsim: error: --straggler: expected a part of the speed above 0 and up to 1"},
           {"--pods 0", "podsim: error: --pods: "},
           {"--mesh-order spiral", "podsim: error: --mesh-order: expected row-major, jax, snake or a file of chip numbers"}}) {
    const test::Outcome outcome = podsim(run + option);
    EXPECT_EQ(outcome.status, exit_bad_input) << option;
    EXPECT_THAT(outcome.err, StartsWith(message)) << option;
  }
  const test::Outcome cut = podsim("run --machine ideal --slice 2 --collective all-gather --axis row --bytes 1MiB --fail 0-1");
  EXPECT_EQ(cut.status, exit_bad_input);
  EXPECT_THAT(cut.err, HasSubstr("cannot be reached from"));
}

// ---- Orders of devices ----------------------------------------------------------------------------------------------------------------

TEST(MeshOrder, JaxsIdsAreShownInTheOrderOfTheMesh) {
  // 2x2x4 as 4x4: the last axis takes x and y, the first z.
  const auto mesh = json_of("show mesh --machine tpu_v4 --slice 2x2x4 --mesh x=4,y=4 --mesh-order jax");
  EXPECT_EQ(mesh["shape"].dump(), "[4,4]");
  EXPECT_EQ(mesh["device_ids_row_major"].dump(), "[0,2,1,3,4,6,5,7,8,10,9,11,12,14,13,15]");
  EXPECT_EQ(mesh["axes"][1]["most_hops"], 2);
  EXPECT_THAT(podsim("show mesh --machine tpu_v4 --slice 4x4x4 --mesh x=8,y=8 --mesh-order jax").err,
              HasSubstr("physical axes are split only where that is allowed"));
  EXPECT_EQ(json_of("show mesh --machine tpu_v4 --slice 4x4x4 --mesh x=8,y=8 --mesh-order jax --allow-split-axes")["shape"].dump(), "[8,8]");
}

TEST(MeshOrder, DevicesAreListedAsJaxListsThem) {
  const auto devices = json_of("show topology --machine tpu_v4 --slice 4x4x1 --devices")["devices"];
  ASSERT_EQ(devices.size(), 16u);
  std::vector<int> ids;
  for (const auto& device : devices) ids.push_back(device["id"]);
  EXPECT_THAT(ids, ElementsAre(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  EXPECT_EQ(devices[4]["process_index"], 1);
  EXPECT_EQ(devices[4]["coords"].dump(), "[2,0,0]");
}

TEST(MeshOrder, ASnakeMakesARingOfOpenRows) {
  // 4x4 open, one axis of 16: row-major goes back at every row's end, the snake does not.
  const auto straight = json_of("show mesh --machine ideal --slice 4x4 --wrap none --mesh a=16"),
             snake = json_of("show mesh --machine ideal --slice 4x4 --wrap none --mesh a=16 --mesh-order snake");
  EXPECT_EQ(straight["axes"][0]["most_hops"], 4);
  EXPECT_EQ(snake["axes"][0]["most_hops"], 1);
}

TEST(ShowTopology, WritesGraphviz) {
  const std::string path = ::testing::TempDir() + "podsim_topology_test.dot";
  EXPECT_EQ(podsim("show topology --machine dgx_h100 --slice 2x8 -o " + path).status, exit_done);
  std::ifstream in{path};
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_THAT(text.str(), AllOf(StartsWith("graph topology {"), HasSubstr("label=\"rail 7\" shape=box"), HasSubstr("label=\"370.8 GB/s\"")));
  EXPECT_EQ(podsim("show mesh --machine tpu_v4 --slice 2x2x1 --mesh a=4 -o " + path).status, exit_done);
  std::stringstream mesh;
  mesh << std::ifstream{path}.rdbuf();
  EXPECT_THAT(mesh.str(), HasSubstr(R"(label="(0,1,0)\n1: a=1")"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace podsim
