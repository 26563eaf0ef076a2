// What the verbs print when all is well, and the numbers that the first release must show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "sim/config/machine_config.hpp"
#include "sim/config/result_config.hpp"
#include "tools/command/described_command.hpp"
#include "tools/command/kinds.hpp"
#include "tools/command/test_command.hpp"
#include "topologies/machines.hpp"

namespace podsim {
namespace {

using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

// ---- Numbers --------------------------------------------------------------------------------------------------------------------------

TEST(Command, RingsAndLinesMeetTheirClosedForms) {
  const std::string system = "run --machine ideal --set link.bandwidth=45GB/s --set link.latency=1us --slice 16 --axis row ";
  const double whole = 15 * (1e-6 + 16777216 / 45e9), half = 15 * (1e-6 + 8388608 / 45e9);
  EXPECT_NEAR(whole, 5607.405e-6, 1e-9);
  EXPECT_NEAR(half, 2811.203e-6, 1e-9);
  for (const std::string engine : {"simgrid", "analytic"})
    for (const std::string collective : {"--collective all-gather --bytes 16MiB", "--collective reduce-scatter --bytes 256MiB"})
      for (const auto& [algorithm, expected] :
           std::vector<std::pair<std::string, double>>{{"ring-one-way", whole}, {"ring", half}, {"line --wrap none", whole}}) {
        const auto result = json_of(system + collective + " --engine " + engine + " --algorithm " + algorithm);
        EXPECT_NEAR(result.value("makespan_s", 0.0), expected, engine == "simgrid" ? 1e-9 * expected : 15e-12)  // rounded up each step
            << collective << " " << algorithm << " " << engine;
      }
}

TEST(Command, TheNotebooksLayerChecksForwardAndBackward) {
  // B=512, I=256, O=1024: Y by OS, dX by LS, dW by RS.
  for (const std::string gemm : {"m=512,n=1024,k=256 --dataflow os", "m=512,n=256,k=1024 --dataflow ls", "m=256,n=1024,k=512 --dataflow rs"})
    for (const std::string algorithm : {"collective", "meshslice --slice-count 8"}) {
      const auto report = json_of("check --mesh row=4,col=2 --gemm " + gemm + " --algorithm " + algorithm);
      SCOPED_TRACE(gemm + " " + algorithm + "\n" + report.dump(2));
      EXPECT_EQ(report.value("devices", 0), 8);
      EXPECT_EQ(report.value("orders_tried", 0), 4);
      for (const char* claim : {"ok", "bit_equal", "matched", "deadlock_free", "race_free"}) EXPECT_EQ(report.value(claim, false), true) << claim;
      EXPECT_LE(report.value("max_rel_error", 1.0), 1e-5);
      EXPECT_GT(report.value("max_abs_error", 0.0), 0) << "float32 is not exact on uniform data";
    }
}

TEST(Command, RunReportsEveryFigureOfAGemmByHand) {
  // 2 x 2 devices, blocks of 32 x 32 float32: both gathers at once, 4096 bytes at 100 GB/s; 2 64^3 / 4 flops at 100 TFLOP/s.
  const auto result = json_of("run --machine ideal --slice 2x2 --gemm m=64,n=64,k=64,dtype=f32 --algorithm collective");
  EXPECT_THAT(test::keys(result), IsSupersetOf({"engine",    "machine",        "slice",      "hypothetical", "mesh",
                                                "devices",   "device_classes", "makespan_s", "compute_s",    "exposed_communication_s",
                                                "waiting_s", "flops",          "mfu",        "link_bytes",   "peak_memory_bytes",
                                                "tasks",     "events",         "pass",  "wall_s",     "build_s",      "trust"}));
  EXPECT_EQ(result["engine"], "des");
  EXPECT_EQ(result["machine"], "ideal");
  EXPECT_EQ(result["slice"], "2x2");
  EXPECT_EQ(result["hypothetical"], false);
  EXPECT_EQ(result["mesh"].dump(), R"({"row":2,"col":2})");
  EXPECT_EQ(result["devices"], 4);
  EXPECT_EQ(result["device_classes"], 1);
  EXPECT_NEAR(result["makespan_s"].get<double>(), 40.96e-9 + 1.311e-9, 1e-12);
  EXPECT_NEAR(result["compute_s"].get<double>(), 1.311e-9, 1e-15);
  EXPECT_NEAR(result["exposed_communication_s"].get<double>(), 40.96e-9, 1e-12);
  EXPECT_EQ(result["waiting_s"], 0.0);
  EXPECT_EQ(result["flops"], 2.0 * 64 * 64 * 64);
  EXPECT_NEAR(result["mfu"].get<double>(), 2.0 * 64 * 64 * 64 / (4 * 100e12 * 42.271e-9), 1e-12);
  EXPECT_EQ(result["link_bytes"], 2 * 4 * 4096.0);
  EXPECT_EQ(result["peak_memory_bytes"], (3 + 2 * 2) * 4096);
  EXPECT_EQ(result["tasks"], 4 * (3 + 3 + 1)) << "launch, place and shift of each gather, and the matmul";
  EXPECT_EQ(test::keys(result["trust"]), (std::vector<std::string>{"level", "dataset", "error"}));
  EXPECT_EQ(result["trust"]["level"], "hypothetical");
  EXPECT_GT(result["wall_s"].get<double>(), 0);
}

TEST(Command, ACollectiveHasNoMfuAndDataOfTheMachineIsTrustedAsSpecified) {
  const auto result = json_of("run --machine tpu_v4:spec --slice 4x4x4 --collective all-gather --axis col --bytes 1MiB");
  EXPECT_TRUE(result["mfu"].is_null());
  EXPECT_EQ(result["flops"], 0.0);
  EXPECT_EQ(result["trust"]["level"], "spec");
  EXPECT_EQ(result["hypothetical"], false);
  EXPECT_EQ(json_of("run --machine tpu_v4 --slice 32x8 --collective all-gather --axis col --bytes 1MiB")["hypothetical"], true);
  EXPECT_EQ(json_of("run --machine tpu_v4 --slice 4x4x4 --collective all-gather --axis col --bytes 1MiB --engine analytic")["hypothetical"], true) << "a bound";
}

TEST(Command, ADataSheetHasTheOrderOfDevicesOfItsMachine) {
  const auto devices = [](const std::string& machine) {
    std::string json = podsim("show mesh --machine " + machine + " --slice 2x2x4 --mesh x=4,y=4 --mesh-order jax --format json").out;
    if (const std::size_t at = json.find(":spec"); at != std::string::npos) json.erase(at, 5);
    return json;
  };
  EXPECT_EQ(devices("tpu_v4:spec"), devices("tpu_v4"));
}

TEST(Command, AFittedMachineIsTrustedAsItsFileSays) {
  Machine machine = *find_machine("tpu_v4");
  machine.trust = {TrustLevel::fitted, "v4 pod", 0.0125, {{CostKind::all_gather, 4, "y", {1 << 10, 16 << 20}, {}, {}, {}}}};
  const test::Folder folder;
  const std::string file = folder.file("fitted.textproto", write_machine(machine));
  const std::string run = "run --machine " + file + " --slice 4x4x4 --collective all-gather --axis col --bytes 1MiB";
  EXPECT_EQ(json_of(run)["trust"].dump(), R"({"level":"fitted","dataset":"v4 pod","error":0.0125})");
  EXPECT_THAT(podsim(run).out, HasSubstr("fitted: v4 pod, median error 1.2"));
  const auto elsewhere = json_of("run --machine " + file + " --slice 32x8 --collective all-gather --axis col --bytes 1MiB");
  const std::string what_if = R"({"level":"hypothetical","dataset":"v4 pod","error":null,"fitted_error":0.0125})";
  EXPECT_EQ(elsewhere["trust"].dump(), what_if);
  EXPECT_EQ(json_of(run + " --set link.latency=2us")["trust"].dump(), what_if);
  EXPECT_THAT(podsim(run + " --set link.latency=2us").out,
              HasSubstr("hypothetical: a what-if of a machine fitted to v4 pod, median error 1.2 % as it was"));
  machine.trust.covers.clear();  // as files were before
  const std::string older = "run --machine " + folder.file("older.textproto", write_machine(machine)) +
                            " --slice 4x4x4 --collective all-gather --axis col --bytes 1MiB";
  EXPECT_EQ(json_of(older)["trust"]["level"], "fitted");
  EXPECT_THAT(podsim(older).out, HasSubstr("the machine's file does not say what it was fitted to"));
}

TEST(Command, EveryVerbSaysWhatGoesBeyondAFit) {
  Machine machine = *find_machine("tpu_v4");
  machine.trust = {TrustLevel::fitted, "v4 pod", 0.0125, {{CostKind::all_gather, 4, "y", {1 << 10, 16 << 20}, {}, {}, {}}}};
  const test::Folder folder;
  const std::string on = " --machine " + folder.file("fitted.textproto", write_machine(machine)) + " --slice 4x4x4 ";
  const auto run = json_of("run" + on + "--collective all-gather --axis row,col --bytes 32MiB")["trust"];
  EXPECT_EQ(run["level"], "extrapolated");
  EXPECT_EQ(run["rung"], "other scale");
  EXPECT_EQ(run["fitted_error"], 0.0125);
  EXPECT_EQ(run["beyond"].dump(), R"(["all-gather over 16 devices, fitted over 4","collectives by rotations, fitted by ring or line"])");
  EXPECT_THAT(podsim("run" + on + "--collective all-gather --axis col --bytes 32MiB").out,
              HasSubstr("beyond the fit: all-gather of 32 MiB, fitted from 1 KiB to 16 MiB"));

  const std::string gemm = on + "--mesh row=4,col=16 --gemm m=4096,n=4096,k=4096 ";
  const auto compared = json_of("compare" + gemm + "--algorithms collective")["rows"][0]["trust"];
  EXPECT_EQ(compared["level"], "extrapolated");
  EXPECT_THAT(compared["beyond"].dump(), HasSubstr("matmul, fitted to all-gather"));
  EXPECT_THAT(podsim("compare" + gemm + "--algorithms collective").out, HasSubstr("trust of tpu_v4 4x4x4: extrapolated to other scale"));

  const auto tuned = json_of("tune" + gemm + "--algorithms collective --pass forward")["plans"][0]["trust"];
  EXPECT_EQ(tuned["level"], "extrapolated");
  EXPECT_THAT(podsim("tune" + gemm + "--algorithms collective --pass forward").out, HasSubstr("trust: extrapolated to other scale"));
}

TEST(Command, PaddingIsReportedAsWaste) {
  const std::string gemm = "run --machine ideal --slice 2x2 --algorithm collective --engine analytic --gemm m=3,n=4,k=4";
  EXPECT_EQ(podsim(gemm).status, exit_bad_input);
  const auto padded = json_of(gemm + " --pad");
  EXPECT_DOUBLE_EQ(padded["padding"].get<double>(), 0.25);
  EXPECT_EQ(padded["flops"], 2.0 * 4 * 4 * 4);
  EXPECT_THAT(podsim(gemm + " --pad").out, HasSubstr("25.0 % of the flops are padding"));
}

// ---- check ----------------------------------------------------------------------------------------------------------------------------

TEST(Command, CheckTellsWhatEveryEdgeIsFor) {
  const auto report = json_of("check --mesh row=2,col=2 --gemm m=64,n=64,k=64 --algorithm meshslice --slice-count 2 --edges --orders 1");
  EXPECT_EQ(report["orders_tried"], 2);
  ASSERT_GT(report["edges"].size(), 10u);
  std::set<std::string> purposes;
  for (const auto& edge : report["edges"]) {
    purposes.insert(edge["purpose"]);
    EXPECT_EQ(edge["race"].get<std::string>().empty(), edge["purpose"] != "orders a race");
  }
  EXPECT_THAT(purposes, ::testing::IsSupersetOf({"orders a race", "benign: timing only"}));
  EXPECT_THAT(podsim("check --mesh row=2,col=2 --gemm m=64,n=64,k=64 --algorithm collective --edges").out,
              AllOf(HasSubstr("race-free"), HasSubstr("edge from"), HasSubstr("orders a race")));
}

TEST(Command, TheSeedOfACheckChoosesItsData) {
  const std::string line = "check --mesh row=2,col=2 --gemm m=64,n=64,k=64 --algorithm collective --threads 1";
  EXPECT_EQ(podsim(line).out, podsim(line + " --seed 1").out);
  EXPECT_NE(podsim(line).out, podsim(line + " --seed 2").out);
}

// ---- compare --------------------------------------------------------------------------------------------------------------------------

TEST(Command, CompareRanksLeavesOutAndSaysWhy) {
  const auto found = json_of("compare --machine ideal --slice 2x2 --gemm m=64,n=64,k=64,dtype=f32 --slice-count 1,2,3");
  ASSERT_EQ(found["rows"].size(), 3u);
  EXPECT_EQ(found["rows"][0]["algorithm"], "meshslice");
  EXPECT_EQ(found["rows"][0]["slice_count"], 2);
  EXPECT_EQ(found["rows"][1]["algorithm"], "collective") << "S = 1 is the same schedule: the order asked for";
  EXPECT_TRUE(found["rows"][1]["slice_count"].is_null());
  EXPECT_EQ(found["rows"][2]["slice_count"], 1);
  for (std::size_t i = 0; i + 1 < 3; ++i) EXPECT_LE(found["rows"][i]["makespan_s"], found["rows"][i + 1]["makespan_s"]);
  for (const auto& row : found["rows"]) {
    EXPECT_THAT(test::keys(row), IsSupersetOf({"algorithm", "dataflow", "slice_count", "mesh", "makespan_s", "mfu", "trust"}));
    EXPECT_EQ(row["dataflow"], "os");
  }
  ASSERT_EQ(found["skipped"].size(), 1u);
  EXPECT_EQ(found["skipped"][0]["what"], "ideal 2x2 row=2,col=2, meshslice os S=3");
  EXPECT_THAT(found["skipped"][0]["reason"].get<std::string>(), StartsWith("k must be a positive multiple of 48 ("));
  ASSERT_EQ(found["verdicts"].size(), 1u);
  EXPECT_THAT(found["verdicts"][0].get<std::string>(),
              AllOf(StartsWith("ideal 2x2 row=2,col=2: meshslice os S=2 wins with 41.62 ns; collective os takes 42.27 ns (+1.6 %): "),
                    HasSubstr("more exposed communication"), HasSubstr("S=2 is at the upper end of the range asked for")));
}

TEST(Command, CompareTakesSeveralPodsMeshesAndDataflows) {
  const auto found = json_of(
      "compare --machine ideal,tpu_v4 --slice 4x4,2x8 --mesh row=4,col=4 --mesh row=2,col=8 --gemm m=256,n=256,k=256 "
      "--algorithms collective --dataflow os,ls,rs --engine analytic");
  EXPECT_EQ(found["rows"].size(), 2u * 2 * 2 * 3);
  ASSERT_EQ(found["verdicts"].size(), 1u + 2 * 2);  // across, and on each at its best mesh
  EXPECT_THAT(found["verdicts"][0].get<std::string>(), StartsWith("4 topologies, each at its best mesh: "));
  std::set<std::string> machines, meshes, dataflows;
  for (const auto& row : found["rows"]) machines.insert(row["machine"]), meshes.insert(row["mesh"].dump()), dataflows.insert(row["dataflow"]);
  EXPECT_EQ(machines.size() * meshes.size() * dataflows.size(), 2u * 2 * 3);
}

TEST(Command, CompareOfAllMeshesTriesEveryFactorisation) {
  const auto found = json_of("compare --machine ideal --slice 12 --mesh all --gemm m=144,n=144,k=144 --algorithms collective --engine analytic");
  std::set<std::string> meshes;
  for (const auto& row : found["rows"]) meshes.insert(row["mesh"].dump());
  EXPECT_EQ(meshes.size(), 6u) << "12x1, 6x2, 4x3, 3x4, 2x6, 1x12";
}

TEST(Command, CsvHasOneRowPerResultUnderItsHeading) {
  const Outcome outcome = podsim("compare --machine ideal --slice 2x2 --gemm m=64,n=64,k=64 --slice-count 1,2 --engine analytic --format csv");
  std::istringstream lines{outcome.out};
  std::string line;
  std::vector<std::size_t> columns;
  std::string first;
  while (std::getline(lines, line)) {
    if (columns.empty()) first = line;
    bool in_quotes = false;
    columns.push_back(1);
    for (const char c : line) in_quotes ^= c == '"', columns.back() += c == ',' && !in_quotes;
  }
  ASSERT_EQ(columns.size(), 4u);
  EXPECT_THAT(columns, ::testing::Each(columns.front())) << outcome.out;
  EXPECT_THAT(first, StartsWith("machine,slice,hypothetical,mesh,algorithm,dataflow,slice_count,engine,devices,makespan_s,"));
  EXPECT_THAT(outcome.out, HasSubstr("\"row=2,col=2\""));
}

TEST(Command, ProgressIsForTerminalsOnly) {
  const std::vector<std::string> words{"compare",        "--machine",     "ideal", "--slice",  "2x2",     "--gemm",
                                       "m=64,n=64,k=64", "--slice-count", "2",     "--engine", "analytic"};
  EXPECT_EQ(test::run_words(words).err, "");
  std::vector<std::string> quiet = words;
  quiet.emplace_back("--quiet");
  EXPECT_EQ(test::run_words(quiet, true).err, "");
  EXPECT_EQ(test::run_words(words, true).out, test::run_words(quiet).out);
}

// ---- show -----------------------------------------------------------------------------------------------------------------------------

TEST(Command, ShowTopologyHasEveryKey) {
  const auto shape = json_of("show topology --machine tpu_v4 --slice 4x4x8");
  EXPECT_THAT(test::keys(shape), IsSupersetOf({"chips", "links", "diameter", "mean_distance", "wrap", "bisection_bandwidth_bytes_per_s",
                                               "all_to_all_bound_bytes_per_s"}));
  EXPECT_EQ(shape["chips"], 128);
  EXPECT_EQ(shape["links"], 128 * 6);
  EXPECT_EQ(shape["diameter"], 2 + 2 + 4);
  EXPECT_DOUBLE_EQ(shape["mean_distance"].get<double>(), (1 + 1 + 2) * 128.0 / 127);
  EXPECT_EQ(shape["wrap"].dump(), R"({"x":true,"y":true,"z":true})");
  EXPECT_DOUBLE_EQ(shape["bisection_bandwidth_bytes_per_s"].get<double>(), 2 * 16 * 45e9) << "across the longest dimension, both ways round";
  const auto open = json_of("show topology --machine ideal --slice 8x8 --wrap none");
  EXPECT_EQ(open["wrap"].dump(), R"({"x":false,"y":false})");
  EXPECT_EQ(open["diameter"], 14);
  EXPECT_THAT(podsim("show topology --machine ideal --slice 2x3").out, HasSubstr("- 3 - 4 - 5 -"));
}

TEST(Command, ShowMachineGivesEveryValueItsSource) {
  const auto shown = json_of("show machine --machine tpu_v4 --set link[y].bandwidth=90GB/s");
  EXPECT_EQ(shown["name"], "tpu_v4");
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const auto& value : shown["values"]) values[value["path"]] = {value["value"], value["source"]};
  EXPECT_GT(values.size(), 30u);
  for (const auto& [path, value] : values) EXPECT_NE(value.second, "") << path;
  EXPECT_EQ(values["link[y].bandwidth"], (std::pair<std::string, std::string>{"90 GB/s", "--set"}));
  EXPECT_EQ(values["link[x].bandwidth"].first, "45 GB/s");
  EXPECT_THAT(podsim("show machine").out, AllOf(HasSubstr("ideal"), HasSubstr("tpu_v4")));
}

TEST(Command, ShowScheduleIsItsText) {
  const Outcome outcome = podsim("show schedule --slice 2 --collective all-gather --axis row --bytes 8 --dtype f32");
  EXPECT_EQ(outcome.out, R"(schedule "all-gather" on row=2
program 0 on devices 0..1
  computes all-gather over row dim 1: input[:,:,:] -> output[:,:,:]
  buffer input f32[1,1,2] input of input(row,-,-)
  buffer output f32[1,2,2] output of output(row,-,-)
     0 all-gather           all-gather over row dim 1: input[:,:,:] -> output[:,:,:]
)");
  EXPECT_THAT(podsim("show schedule --slice 2 --collective all-gather --axis row --bytes 8 --dtype f32 --lowered").out,
              HasSubstr("shift row by 1: output[:,row,:] -> output[:,(row-1)%2,:] after 1 of all-gather 0 on row\n"));
}

// ---- help -----------------------------------------------------------------------------------------------------------------------------

TEST(Command, HelpListsEveryVerbAndEveryVerbHelps) {
  for (const std::string line : {"help", "--help", "-h", "help help", "--help --help", "help -h"}) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_done) << line;
    for (const Verb& verb : verbs()) EXPECT_THAT(outcome.out, HasSubstr("\n  " + std::string{verb.name} + " ")) << line;
  }
  for (const Verb& verb : verbs()) {
    const std::string name{verb.name};
    for (const std::string& line : {"help " + name, name + " --help", name + " -h"}) {
      const Outcome outcome = podsim(line);
      EXPECT_EQ(outcome.status, exit_done) << line;
      EXPECT_THAT(outcome.out, StartsWith("usage: podsim " + name)) << line;
    }
  }
  EXPECT_THAT(podsim("help show machine").out, StartsWith("usage: podsim show machine"));
  EXPECT_THAT(podsim("help run").out, AllOf(HasSubstr("--set"), HasSubstr("examples:"), HasSubstr("--engine")));
  for (const char* line : {"--version", "-V", "version"}) EXPECT_THAT(podsim(line).out, AllOf(StartsWith(std::string{"podsim "} + PODSIM_VERSION + " (commit "), HasSubstr(__VERSION__)));
}

TEST(Command, TextsOfOptionsStandInOneColumn) {
  constexpr std::size_t column = 35;
  for (const CommandName& command : command_names()) {
    const auto described = described_command(command.words);
    ASSERT_TRUE(described);
    std::vector<std::string> words{"help"};
    words.insert(words.end(), command.words.begin(), command.words.end());
    if (command.words.size() == 1 && kinds_among(described->options).size() > 1) words.emplace_back("all");
    std::istringstream lines{test::run_words(words).out};
    std::set<std::string> texts;
    for (std::string line; std::getline(lines, line);)
      if (line.size() > column) texts.insert(line.substr(column));
    for (const OptionSpec& spec : described->options)
      EXPECT_TRUE(std::ranges::any_of(texts, [&](const std::string& line) { return !line.empty() && spec.help.starts_with(line); })) << command.words.back() << " --" << spec.long_name();
  }
}

// ---- Words as people type them ----------------------------------------------------------------------------------------------------------

TEST(Command, TakesNamesAndSizesAsPeopleTypeThem) {
  const auto time_of = [](const std::string& words) { return json_of("run " + words)["makespan_s"].get<double>(); };
  const double reduced = time_of("--machine dgx_h100 --slice 1x8 --mesh x=8 --collective all-reduce --axis x --bytes 16MiB");
  for (const std::string collective : {"allreduce", "all_reduce", "AllReduce"})
    EXPECT_EQ(time_of("--machine H100 --slice 1x8 --mesh x=8 --collective " + collective + " --axis x --bytes 16M"), reduced) << collective;
  EXPECT_EQ(time_of("--machine v4 --slice 4x4 --gemm 4096,2048,1024 --algorithm collective"),
            time_of("--machine tpu_v4 --slice 4x4 --gemm m=4096,n=2048,k=1024 --algorithm collective"));
  EXPECT_THAT(podsim("run --machine v4 --slice 4x4 --gemm 4096,2048 --algorithm collective").err, HasSubstr("expected m=,n=,k="));
  EXPECT_THAT(podsim("run --machine v4 --slice 4x4 --gemm 4096,2048,1024 --mesh row=4,col=4 --algorithm colective").err, HasSubstr("did you mean \"collective\""));
}

// ---- The same again -------------------------------------------------------------------------------------------------------------------

std::string without_walls(std::string json) {
  for (const char* key : {"\"wall_s\": ", "\"build_s\": ", "\"events\": "})
    for (std::size_t at = json.find(key); at != std::string::npos; at = json.find(key, at + 1)) {
      const std::size_t value = at + std::string{key}.size();
      json.erase(value, json.find('\n', value) - value);
    }
  return json;
}

TEST(Command, TheSameInputGivesTheSameBytes) {
  for (const std::string line : {"run --machine tpu_v4 --slice 4x4 --gemm m=512,n=512,k=512 --algorithm meshslice --slice-count 2 --format json",
                                 "compare --machine tpu_v4 --slice 4x4 --gemm m=512,n=512,k=512 --slice-count 1,2 --dataflow os,rs --format json",
                                 "check --mesh row=2,col=2 --gemm m=64,n=64,k=64 --algorithm collective --format json",
                                 "show schedule --mesh row=2,col=2 --gemm m=64,n=64,k=64 --algorithm meshslice --slice-count 2 --lowered",
                                 "show machine --machine tpu_v4", "show topology --machine tpu_v4 --slice 4x4x4 --format json"}) {
    const Outcome first = podsim(line), second = podsim(line);
    EXPECT_EQ(first.status, exit_done) << line << first.err;
    EXPECT_EQ(without_walls(first.out), without_walls(second.out)) << line;
  }
}

}  // namespace
}  // namespace podsim
