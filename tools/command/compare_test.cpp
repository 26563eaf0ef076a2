// `compare`: collectives, and machine values that are varied.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/units.hpp"
#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using test::json_of;
using test::Outcome;
using test::podsim;

nlohmann::ordered_json rows_of(const std::string& line) { return json_of(line)["rows"]; }
double seconds(const nlohmann::ordered_json& row) { return row["makespan_s"].get<double>(); }

TEST(CompareCollectives, HasTheBandwidthsOfNcclTests) {
  const double V = 1 << 20, P = 8;
  struct Case {
    std::string kind;
    double size, bus;  // S and busbw / algbw
  };
  for (const Case& c : {Case{"all-gather", P * V, (P - 1) / P},
                        {"reduce-scatter", V, (P - 1) / P},
                        {"all-reduce", V, 2 * (P - 1) / P},
                        {"all-to-all", V, (P - 1) / P},
                        {"broadcast", V, 1},
                        {"reduce", V, 1},
                        {"permute --shift 1", V, 1}}) {
    const auto rows = rows_of("compare --machine ideal --slice 8 --collective " + c.kind + " --bytes 1MiB --algorithms ring,direct");
    ASSERT_GE(rows.size(), 1U);
    for (const auto& row : rows) {
      const double algbw = row["algbw_bytes_per_s"].get<double>();
      EXPECT_DOUBLE_EQ(algbw, c.size / seconds(row)) << c.kind;
      EXPECT_DOUBLE_EQ(row["busbw_bytes_per_s"].get<double>(), algbw * c.bus) << c.kind;
      EXPECT_EQ(row["bytes"], 1 << 20);
      EXPECT_EQ(row["collective_devices"], 8);
    }
  }
}

/// What busbw is for: it is the bandwidth of the links, here both directions of a ring, whatever the collective and the number of devices.
TEST(CompareCollectives, BusBandwidthIsThatOfTheLinks) {
  for (const std::string slice : {"4", "8", "16"})
    for (const auto& row : rows_of("compare --machine ideal --set link.bandwidth=50GB/s --slice " + slice +
                                   " --collective all-gather,reduce-scatter,all-reduce --bytes 16MiB --algorithms ring"))
      EXPECT_NEAR(row["busbw_bytes_per_s"].get<double>(), 100e9, 1e3) << slice << " " << row["collective"];
}

TEST(CompareCollectives, RanksEveryCollectiveByItselfAndListsWhatDoesNotApply) {
  const auto json = json_of("compare --machine tpu_v4 --slice 4x4x4 --collective all-reduce --axis row --axis row,col --bytes 64KiB,16MiB");
  std::vector<std::pair<std::string, int>> collectives;
  double before = 0;
  for (const auto& row : json["rows"]) {
    const std::pair<std::string, int> collective{row["axis"], row["bytes"]};
    if (collectives.empty() || collectives.back() != collective) {
      collectives.push_back(collective);
      before = 0;
    }
    EXPECT_GE(seconds(row), before) << "best first";
    before = seconds(row);
    EXPECT_EQ(row["collective_devices"], row["axis"] == "row" ? 4 : 16);
  }
  EXPECT_THAT(collectives, ElementsAre(std::pair{"row", 64 << 10}, std::pair{"row", 16 << 20}, std::pair{"row,col", 64 << 10},
                                       std::pair{"row,col", 16 << 20}))
      << "as they were asked for";
  EXPECT_EQ(json["verdicts"].size(), 4U);
  const auto skips = [&](const std::string& what) {
    return std::any_of(json["skipped"].begin(), json["skipped"].end(), [&](const auto& entry) {
      return entry["what"].template get<std::string>().find(what) != std::string::npos && !entry["reason"].template get<std::string>().empty();
    });
  };
  EXPECT_TRUE(skips("all-reduce along row of 64KiB by pallas-ring"));
  EXPECT_TRUE(skips("all-reduce along row of 16MiB by rotations"));
}

TEST(CompareCollectives, GivesTheTimesOfRun) {
  for (const auto& row : rows_of("compare --machine tpu_v5p --slice 4x4 --collective all-gather --axis row,col --bytes 1MiB")) {
    std::string name = row["algorithm"].get<std::string>();
    if (name.starts_with("auto: ")) name = "auto";
    const auto run = json_of("run --machine tpu_v5p --slice 4x4 --collective all-gather --axis row,col --bytes 1MiB --algorithm " + name);
    EXPECT_EQ(seconds(run), seconds(row)) << name;
    EXPECT_EQ(run["busbw_bytes_per_s"], row["busbw_bytes_per_s"]);
  }
}

/// `auto` beside all algorithms is a row only where it found something that no name says.
TEST(CompareCollectives, WhatAutoChoseIsListedOnce) {
  const auto names = [](const std::string& line) {
    std::vector<std::string> found;
    for (const auto& row : rows_of(line)) found.push_back(row["algorithm"]);
    return found;
  };
  EXPECT_THAT(names("compare --machine ideal --slice 16 --collective all-gather --bytes 64MiB"), ::testing::Each(Not(StartsWith("auto"))));
  EXPECT_THAT(names("compare --machine ideal --slice 4x4x4 --mesh a=16,b=4 --collective all-gather --axis a --bytes 64MiB"),
              AllOf(::testing::Contains("rotations"), ::testing::Each(Not(StartsWith("auto")))));
  EXPECT_THAT(names("compare --machine ideal --slice 16 --collective all-gather --bytes 64MiB --algorithms auto,ring"), ::testing::SizeIs(2));
}

TEST(CompareCollectives, HaveATableAndColumnsOfCsv) {
  const std::string line = "compare --machine ideal --slice 4 --collective all-reduce --bytes 1MiB,2MiB --algorithms ring,halving-doubling";
  EXPECT_THAT(podsim(line).out, AllOf(HasSubstr("algorithm"), HasSubstr("algbw"), HasSubstr("busbw"), HasSubstr("2 MiB"), Not(HasSubstr("MFU"))));
  const std::string csv = podsim(line + " --format csv").out;
  EXPECT_THAT(csv.substr(0, csv.find('\n')),
              ::testing::EndsWith(",slow_devices,collective,axis,bytes,collective_devices,algbw_bytes_per_s,busbw_bytes_per_s,cut_bound_s"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
}

/// One answer for several topologies, each at the mesh on which it is fastest, and rows that tell which they are of.
TEST(Compare, SaysWhichTopologyWinsAtItsBestMesh) {
  const std::string line = "compare --machine tpu_v5p --slice 4x4x2 --topology torus,crossbar --mesh row=8,col=4 --mesh row=32,col=1 --algorithms collective ";
  const auto json = json_of(line + "--gemm m=8192,n=4096,k=4096");
  ASSERT_EQ(json["rows"].size(), 4U);
  std::map<std::string, double> best;
  for (const auto& row : json["rows"]) {
    const auto [entry, added] = best.try_emplace(row["topology"].dump(), seconds(row));
    entry->second = std::min(entry->second, seconds(row));
  }
  ASSERT_EQ(best.size(), 2U);
  ASSERT_EQ(json["verdicts"].size(), 1U) << "one over all; nothing more to say of topologies with one row";
  const std::string verdict = json["verdicts"][0];
  EXPECT_THAT(verdict, StartsWith("2 topologies, each at its best mesh: tpu_v5p 4x4x2 "));
  for (const auto& [name, time] : best) EXPECT_THAT(verdict, HasSubstr(to_text(Seconds{time})));
  const auto meshes = json_of("compare --machine tpu_v5p --slice 4x4x2 --mesh row=8,col=4 --mesh row=32,col=1 --algorithms collective --gemm m=8192,n=4096,k=4096");
  ASSERT_EQ(meshes["verdicts"].size(), 1U);
  EXPECT_THAT(meshes["verdicts"][0].get<std::string>(), StartsWith("2 meshes: tpu_v5p 4x4x2 row="));
  const std::string layers = podsim(line + "--workload llama3-8b-block --batch 32").out;
  EXPECT_THAT(layers, ::testing::ContainsRegex("collective +4x4x2 .*crossbar +row=8,col=4 .* os"));
}

/// What a comparison of several topologies leaves open is the best mesh of each, by the same rows as --mesh all has.
TEST(Compare, TakesEachTopologyAtItsBestMeshWhereNoneIsSaid) {
  const std::string product = " --gemm m=16384,n=4096,k=4096 --algorithms collective,meshslice --slice-count 2,4";
  for (const std::string line : {"compare --machine tpu_v5p --slice 4x4x2 --topology torus,mesh,crossbar", "compare --machine tpu_v4 --slice 4x4,2x8", "compare --machine tpu_v4,tpu_v5p --slice 2x4"}) {
    SCOPED_TRACE(line);
    const auto topology = [](const auto& row) { return row["machine"].dump() + row["slice"].dump() + row["topology"].dump(); };
    std::map<std::string, double> best;
    for (const auto& row : rows_of(line + product + " --mesh all")) {
      const auto [entry, added] = best.try_emplace(topology(row) + row["algorithm"].dump() + row["slice_count"].dump(), seconds(row));
      entry->second = std::min(entry->second, seconds(row));
    }
    const auto json = json_of(line + product);
    EXPECT_EQ(json["rows"].size(), best.size());
    for (const auto& row : json["rows"]) EXPECT_EQ(seconds(row), best[topology(row) + row["algorithm"].dump() + row["slice_count"].dump()]) << row["mesh"];
    EXPECT_TRUE(json["skipped"].empty());
  }
}

/// However the question is spelled.
TEST(Compare, HasOneWinnerForSeveralSpellingsOfAQuestion) {
  const std::string line = "compare --machine tpu_v5p --slice 4x4x2 --topology torus,mesh,crossbar --algorithms collective --gemm m=65536,n=16384,k=4096";
  for (const std::string terms : {"", " --equal ports"}) {
    const std::string verdict = json_of(line + terms)["verdicts"][0];
    EXPECT_THAT(verdict, StartsWith("3 topologies, each at its best mesh: "));
    EXPECT_THAT(verdict, HasSubstr(terms.empty() ? "The comparison is not at equal terms: 1 to 5 links of a chip, " : "The comparison is at equal bandwidth of all links, "));
    for (const char* spelling : {" --mesh all", " --mesh all --top 1", " --top 1"}) EXPECT_EQ(json_of(line + terms + spelling)["verdicts"][0], verdict) << spelling;
  }
  const std::string on_one = json_of(line + " --mesh row=8,col=4")["verdicts"][0];
  EXPECT_THAT(on_one, StartsWith("3 topologies, all on mesh row=8,col=4: "));
}

TEST(Compare, ABlockIsOnTheMeshThatTuneFinds) {
  const auto rows = rows_of("compare --machine tpu_v4 --slice 4x4 --topology torus,crossbar --workload llama3-8b-block --batch 32 --algorithms collective");
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& row : rows) {
    const std::string topology = row["topology"];
    const auto plan = json_of("tune --machine tpu_v4 --slice 4x4 --topology " + topology + " --workload llama3-8b-block --batch 32 --algorithms collective --collectives by-dimension --top 1")["plans"][0];
    EXPECT_EQ(row["mesh"], plan["mesh"]) << topology;
  }
}

/// A collective over all devices is the same on every mesh; along an axis that is asked for it is not.
TEST(Compare, SearchesMeshesOfCollectivesOverAllDevicesOnly) {
  const std::string line = "compare --machine tpu_v4 --slice 4x4,2x8 --collective all-reduce --bytes 1MiB --algorithms ring";
  EXPECT_THAT(json_of(line)["verdicts"][0].get<std::string>(), StartsWith("2 topologies, each at its best mesh: "));
  EXPECT_THAT(json_of(line + " --axis col")["verdicts"][0].get<std::string>(), StartsWith("2 topologies, each on a mesh of its own: "));
}

TEST(Compare, RanksMeshOrders) {
  const std::string line = "compare --machine tpu_v4 --slice 4x4x4 --collective all-gather --mesh row=8,col=8 --axis row --bytes 1MiB --algorithms direct --mesh-order ";
  const auto json = json_of(line + "row-major,jax,snake --allow-split-axes");
  ASSERT_EQ(json["rows"].size(), 3U);
  EXPECT_THAT(json["verdicts"][0].get<std::string>(), StartsWith("3 mesh orders, all on mesh row=8,col=8: tpu_v4 4x4x4 row=8,col=8 "));
  for (const auto& row : json["rows"]) {
    const std::string order = row.contains("mesh_order") ? row["mesh_order"]["order"].get<std::string>() : "row-major";
    EXPECT_EQ(seconds(row), seconds(json_of("run" + line.substr(7, line.find("--algorithms") - 7) + "--algorithm direct --mesh-order " + order + (order == "jax" ? " --allow-split-axes" : "")))) << order;
  }
  EXPECT_THAT(podsim(line + "row-major,snake").out, AllOf(HasSubstr("mesh order"), HasSubstr("snake")));
  EXPECT_THAT(podsim(line + "row-major,row-major").err, HasSubstr("--mesh-order: \"row-major\" is given twice"));
  EXPECT_THAT(podsim(line + "row-major,jax").out, HasSubstr("left out: tpu_v4 4x4x4 jax")) << "JAX does not split dimensions unless it is told to";
}

TEST(Compare, AllAlgorithmsOfAProductNeedNoSliceCount) {
  const auto json = json_of("compare --machine tpu_v5e --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithms all");
  std::set<int> tried;
  for (const auto& row : json["rows"])
    if (row["algorithm"] == "meshslice") tried.insert(row["slice_count"].get<int>());
  EXPECT_EQ(tried, (std::set<int>{2, 4, 8, 16}));
}

TEST(CompareVary, IsAColumnPerPathAndTheSameAsSet) {
  const std::string gemm = " --gemm m=4096,n=4096,k=4096 --slice-count 4";
  const std::string line = "compare --machine tpu_v4 --slice 4x4 --algorithms meshslice" + gemm +
                           " --vary link.bandwidth=25GB/s,100GB/s --vary software.launch[all-gather]=1us,50us";
  const auto json = json_of(line);
  ASSERT_EQ(json["rows"].size(), 4U);
  for (const auto& row : json["rows"]) {
    std::string sets;
    for (const auto& [path, value] : row["vary"].items()) sets += " --set " + path + "=" + value.get<std::string>();
    EXPECT_EQ(seconds(row), seconds(json_of("run --machine tpu_v4 --slice 4x4 --algorithm meshslice" + gemm + sets))) << sets;
  }
  EXPECT_EQ(json["verdicts"].size(), 4U);
  EXPECT_THAT(podsim(line).out, AllOf(HasSubstr("link.bandwidth"), HasSubstr("software.launch[all-gather]"), HasSubstr("25GB/s"),
                                      HasSubstr("row=4,col=4 link.bandwidth=100GB/s software.launch[all-gather]=1us")));
  EXPECT_THAT(podsim(line + " --format csv").out, HasSubstr(",slow_devices,link.bandwidth,software.launch[all-gather]\n"));
}

TEST(CompareVary, WorksForCollectivesAndWorkloads) {
  const auto rings =
      rows_of("compare --machine ideal --slice 8 --collective all-gather --bytes 1MiB --algorithms ring --vary link.bandwidth=10GB/s,20GB/s");
  ASSERT_EQ(rings.size(), 2U);
  EXPECT_EQ(rings[0]["vary"]["link.bandwidth"], "20GB/s");
  EXPECT_NEAR(seconds(rings[1]), 2 * seconds(rings[0]), 1e-11);
  const auto blocks = rows_of(
      "compare --machine tpu_v4 --slice 2x2 --workload gpt3-mlp --batch 4 --algorithms collective --vary chip.hbm_bandwidth=300GB/s,1200GB/s");
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0]["vary"]["chip.hbm_bandwidth"], "1200GB/s");
  EXPECT_LT(seconds(blocks[0]), seconds(blocks[1]));
}

TEST(CompareVary, SaysWhatIsWrongBeforeAnythingIsSimulated) {
  const auto error = [](const std::string& more) {
    const auto outcome = podsim("compare --machine ideal --slice 4 --collective all-gather --bytes 1MiB " + more);
    EXPECT_EQ(outcome.status, exit_bad_input) << more;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_EQ(error("--vary link.bandwidth"),
            "podsim: error: --vary: expected PATH=VALUE,VALUE,..., as link.bandwidth=45GB/s,90GB/s, found \"link.bandwidth\"\n");
  EXPECT_THAT(error("--vary link.bandwith=1GB/s"), AllOf(StartsWith("podsim: error: --vary: unknown machine field"), HasSubstr("link.bandwidth")));
  EXPECT_THAT(error("--vary link.latency=1us,soon"), AllOf(StartsWith("podsim: error: --vary: link.latency: "), HasSubstr("\"soon\"")));
  EXPECT_EQ(error("--vary link.latency=1us --vary link.latency=2us"), "podsim: error: --vary: \"link.latency\" is varied twice\n");
  EXPECT_EQ(error("--vary link.bandwidth=1GB/s --equal ports"),
            "podsim: error: --equal: sets the bandwidth of links, which --vary link.bandwidth varies\n");
  EXPECT_THAT(error("--algorithms rign"), AllOf(StartsWith("podsim: error: --algorithms: "), HasSubstr("ring")));
  EXPECT_EQ(error("--dataflow ls"), "podsim: error: --dataflow: belongs to --gemm and --workload, not to --collective\n");
  EXPECT_EQ(error("--shift 1"), "podsim: error: ideal 4 row=4, all-gather of 1MiB by ring: --shift: belongs to permute, not to all-gather\n");
  EXPECT_THAT(error("--gemm m=4,n=4,k=4"), HasSubstr("expected one of --gemm, --collective, --workload, --training, --program and --msccl, found several"));
}

// ---- What an algorithm finds replicated -------------------------------------------------------------------------------------------------

const std::string compared = "compare --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithms all --dataflow os,ls --slice-count 4";

nlohmann::ordered_json row_of(const nlohmann::ordered_json& json, const std::string& algorithm, const std::string& dataflow) {
  for (const auto& row : json["rows"])
    if (row["algorithm"] == algorithm && row["dataflow"] == dataflow) return row;
  ADD_FAILURE() << "no row of " << algorithm << " " << dataflow;
  return {};
}

TEST(CompareLists, AreFreeOfTypingErrors) {
  const std::string system = "compare --machine tpu_v4 --slice 4x4 --mesh row=4,col=4 ", gemm = "--gemm m=512,n=512,k=512 --slice-count 2 ";
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {system + "--collective all-gather --axis row --bytes 1MiB --algorithms ring,,", "--algorithms: expected values between commas"},
           {system + gemm + "--topology torus,", "--topology: expected values between commas"},
           {system + gemm + "--algorithms collective,collective", "--algorithms: \"collective\" is given twice"},
           {system + gemm + "--algorithms all,collective", "--algorithms: expected names or all, found both"},
           {system + "--collective all-gather --axis row --axis row --bytes 1MiB", "--axis: \"row\" is given twice"},
           {system + gemm + "--topology torus,tori", "--topology: "},
           {"compare --machine tpu_v4,tpu_v44 --slice 4x4 " + gemm, "unknown machine \"tpu_v44\""},
           {"compare --machine tpu_v4 --slice 4x4,zz " + gemm, "--slice: "},
           {"compare --machine tpu_v4 --slice 4x4 --mesh row=16,col=1 --mesh row " + gemm, "--mesh: "}}) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << line;
    EXPECT_EQ(outcome.out, "") << line;
  }
}

TEST(CompareGiven, AnOperandThatIsNeededWholeIsGatheredFirst) {
  const auto priced = row_of(json_of(compared), "1d-megatron", "os"), given = row_of(json_of(compared + " --given X"), "1d-megatron", "os");
  EXPECT_EQ(priced["replicated"].dump(), R"([{"tensor":"X","when":"before","copies":16,"gathered":true}])");
  EXPECT_EQ(given["replicated"].dump(), R"([{"tensor":"X","when":"before","copies":16,"gathered":false}])");
  const std::string alone = "run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithm 1d-megatron";
  EXPECT_EQ(seconds(given), seconds(json_of(alone))) << "run finds X where the algorithm wants it";
  // X is 32 MiB; the collective alone takes the same.
  const auto gather = json_of("run --machine tpu_v4 --slice 4x4 --mesh ring=16 --collective all-gather --bytes 2MiB --algorithm ring");
  EXPECT_NEAR(seconds(priced), seconds(given) + seconds(gather), 1e-6);
  EXPECT_GT(priced["peak_memory_bytes"], given["peak_memory_bytes"]);
}

TEST(CompareGiven, TheWinnerIsNoneThatWasSparedItsOperands) {
  const auto json = json_of(compared), given = json_of(compared + " --given X");
  EXPECT_NE(json["rows"][0]["algorithm"], "1d-megatron");
  EXPECT_EQ(given["rows"][0]["algorithm"], "1d-megatron") << "nothing moves";
  EXPECT_THAT(given["verdicts"][0].get<std::string>(), HasSubstr("1d-megatron os, given X wins"));
  EXPECT_EQ(row_of(json, "1d-megatron", "ls")["replicated"].dump(), R"([{"tensor":"Y","when":"after","copies":16,"gathered":false}])");
  for (const auto& row : json["rows"]) EXPECT_EQ(row.contains("replicated"), row["algorithm"] == "1d-megatron") << row["algorithm"];
  EXPECT_THAT(podsim(compared).out, AllOf(HasSubstr("replicated"), HasSubstr("X gathered first"), HasSubstr("Y left")));
  EXPECT_THAT(podsim(compared + " --given Q").err, HasSubstr("--given: expected X, W or dY, found \"Q\""));
}

// ---- Meshes across dimensions -----------------------------------------------------------------------------------------------------------

TEST(CompareMeshes, SaysWhereAMeshSplitsADimension) {
  const std::string line = "compare --machine tpu_v5p --slice 4x4x4 --gemm m=4096,n=4096,k=4096 --algorithms collective --topology torus,crossbar";
  const auto notes = [&](const std::string& more) { return json_of(line + more)["notes"]; };
  EXPECT_EQ(notes(" --mesh row=8,col=8").dump(),
            R"x(["tpu_v5p 4x4x4 torus: mesh row=8,col=8 splits dimension y (4) between row and col: neither has its ring to itself; )x"
            R"x(along whole dimensions: row=4,col=16 or row=16,col=4 (compare --mesh all tries every mesh)"])x")
      << "the crossbar has no dimensions";
  const auto of_three =
      json_of("compare --machine tpu_v4 --slice 4x4x8 --mesh x=2,y=16,z=4 --collective all-gather --axis x --bytes 1MiB --algorithms ring")["notes"];
  ASSERT_EQ(of_three.size(), 2U) << of_three;
  EXPECT_THAT(of_three[0].get<std::string>(),
              HasSubstr("splits dimension x (4) between x and y: neither has its ring to itself; along whole dimensions: x=4,y=4,z=8"));
  EXPECT_THAT(of_three[1].get<std::string>(), Not(HasSubstr("along whole dimensions"))) << "said once";
  for (const char* mesh : {" --mesh row=16,col=4", " --mesh row=4,col=16", " --mesh row=64,col=1", " --mesh all"})
    EXPECT_TRUE(notes(mesh).empty()) << mesh;
  EXPECT_THAT(podsim(line + " --mesh row=8,col=8").out, HasSubstr("\nnote: tpu_v5p 4x4x4 torus: mesh row=8,col=8 splits dimension y"));
}

TEST(RunMeshes, SaysWhereAMeshSplitsADimension) {
  const std::string line = "run --machine tpu_v5p --slice 4x4x4 --gemm m=4096,n=4096,k=4096 --algorithm collective --mesh ";
  EXPECT_EQ(json_of(line + "row=8,col=8")["notes"].size(), 1U);
  EXPECT_FALSE(json_of(line + "row=16,col=4").contains("notes"));
  EXPECT_THAT(podsim(line + "row=8,col=8").out, HasSubstr("note: mesh row=8,col=8 splits dimension y (4) between row and col"));
}

}  // namespace
}  // namespace podsim
