// --trace and --trace-devices.
#include "tools/command/trace_option.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <map>
#include <string>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::bytes_of_file;
using test::Folder;
using test::Outcome;
using test::podsim;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ParsedJson = nlohmann::ordered_json;

const std::string gather4 = "run --machine ideal --slice 4 --collective all-gather --axis row --bytes 64 ";

std::string named(const std::string& text, int count = 16) {
  const auto devices = devices_named(text, count, option("trace-devices"));
  return devices ? to_text(*devices) : to_text(devices.error());
}

TEST(TraceOption, DevicesAreNumbersAndRanges) {
  EXPECT_EQ(named("0"), "0");
  EXPECT_EQ(named("0,3,8-11"), "0,3,8-11");
  EXPECT_EQ(named("all"), "0-15");
  EXPECT_EQ(named("all", 1), "0");
  EXPECT_EQ(named("9,8,5-5,4-6,015"), "4-6,8-9,15") << "in the order of devices, each once";
}

TEST(TraceOption, BadDevicesAreNamed) {
  for (const std::string piece : {"", "x", "1x", "-1", "1-", "3-2", "1-2-3", " 1", "+1", "1.5", "0x1", "All", "99999999999"})
    EXPECT_EQ(named(piece), "--trace-devices: expected devices as 0,3,8-11, all or representatives, found \"" + piece + "\"");
  EXPECT_EQ(named("1,"), "--trace-devices: expected devices as 0,3,8-11, all or representatives, found \"\"");
  EXPECT_EQ(named("0,all"), "--trace-devices: expected devices as 0,3,8-11, all or representatives, found \"all\"");
  EXPECT_EQ(named("0,16"), "--trace-devices: expected devices below 16, found 16");
  EXPECT_EQ(named("0-2000000000"), "--trace-devices: expected devices below 16, found 2000000000");
}

TEST(TraceOption, BadRequestsEndWithStatusTwoAndLeaveNoFile) {
  const Folder folder;
  const std::string file = folder.file("t.json"), nowhere = folder.file("none/t.json"), name = folder.file("t.pb");
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"--trace " + name, "--trace: expected a folder, or a file name that ends in .json, .json.gz or .xplane.pb, found \"" + name + "\""},
           {"--trace t.gz", "--trace: expected a folder, or a file name that ends in .json, .json.gz or .xplane.pb, found \"t.gz\""},
           {"--trace /dev/null/log", "/dev/null/log/plugins/profile/podsim: cannot make the folder: Not a directory"},
           {"--trace " + nowhere, nowhere + ": cannot write the file: No such file or directory"},
           {"--trace " + file + " --trace-devices 4", "--trace-devices: expected devices below 4, found 4"},
           {"--trace " + file + " --trace-devices 0;1", "--trace-devices: expected devices as 0,3,8-11, all or representatives, found \"0;1\""},
           {"--trace-devices 0", "--trace-devices: expected --trace FILE beside it, found none"},
       }) {
    const Outcome outcome = podsim(gather4 + line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_EQ(outcome.err, "podsim: error: " + message + "\n");
    EXPECT_EQ(outcome.out, "") << line;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
}

TEST(TraceOption, ARunThatFailsLeavesNoFile) {
  const Folder folder;
  EXPECT_EQ(podsim("run --machine ideal --slice 4 --wrap none --collective all-gather --axis row --bytes 64 --algorithm ring --trace " +
                   folder.file("t.json"))
                .status,
            exit_bad_input);
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
}

TEST(TraceOption, AnInterruptedRunLeavesNoFile) {
  const Folder folder;
  const std::atomic<bool> interrupted{true};
  std::ostringstream out, err;
  Console console{out, err, false, &interrupted};
  std::vector<std::string> words = split(gather4, ' ');
  words.back() = "--trace=" + folder.file("t.json");
  EXPECT_EQ(run_command(words, console), exit_interrupted);
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
}

TEST(TraceOption, TheFileSaysWhatRan) {
  const Folder folder;
  const Outcome outcome = podsim(gather4 + "--trace " + folder.file("t.json") + " --format json");
  ASSERT_EQ(outcome.status, exit_done) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const ParsedJson trace = ParsedJson::parse(bytes_of_file(folder.file("t.json")));
  EXPECT_THAT(test::keys(trace), ElementsAre("displayTimeUnit", "metadata", "traceEvents"));
  EXPECT_EQ(trace["displayTimeUnit"], "ns");
  // Three steps of half of 64 bytes, each way round: 0.32 ns each.
  EXPECT_EQ(trace["metadata"].dump(), R"({"highres-ticks":true,"podsim_version":")" + std::string{PODSIM_VERSION} +
                                          R"(","machine":"ideal","slice":"4","mesh":"row=4","schedule":"all-gather","engine":"des",)"
                                          R"("makespan_us":"0.000960","devices":"0-3 of 4"})");
  double last = 0;
  for (const ParsedJson& event : trace["traceEvents"])
    if (event["ph"] == "X") last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
  EXPECT_DOUBLE_EQ(last, 0.00096);
}

TEST(TraceOption, ACollectiveSaysWhereItComesFromAndHowLongItIsWaitedFor) {
  const Folder folder;
  const std::string file = folder.file("t.json");
  const ParsedJson run = test::json_of("run --hlo " PODSIM_SOURCE_DIR "/validation/aot/modules/decoder_fsdp_h100.hlo.gz --trace-devices 0 --trace " + file);
  std::map<std::string, ParsedJson> rows;
  for (const ParsedJson& row : run["collectives"]) rows[row["name"]] = row;
  int compared = 0;
  const ParsedJson trace = ParsedJson::parse(bytes_of_file(file));
  for (const ParsedJson& event : trace["traceEvents"]) {
    if (!event.contains("args") || event["args"].value("level", "") != "operation") continue;
    const ParsedJson &args = event["args"], &row = rows.at(event["name"]);
    EXPECT_NEAR(std::stod(args["exposed_ps"].get<std::string>()), 1e12 * row["exposed_s"].get<double>(), 1);
    EXPECT_EQ(args["share"], fmt::format("{:.1f} %", 100 * row["share"].get<double>()));
    for (const char* key : {"path", "source"}) EXPECT_EQ(args.contains(key) ? args[key] : ParsedJson(), row[key]) << key;
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

TEST(TraceOption, OfMoreThanSixteenDevicesTheFirstSixteenUnlessAsked) {
  const Folder folder;
  const std::string file = folder.file("t.json");
  const std::string run = "run --machine ideal --slice 5x5 --collective all-gather --axis row --bytes 64 --trace " + file;
  const auto processes = [&](const std::string& options) {
    const Outcome outcome = podsim(run + options);
    EXPECT_EQ(outcome.status, exit_done) << outcome.err;
    std::set<int> pids;
    const ParsedJson trace = ParsedJson::parse(bytes_of_file(file));
    for (const ParsedJson& event : trace["traceEvents"]) pids.insert(event["pid"].get<int>());
    return std::pair(pids.size(), trace["metadata"]["devices"].get<std::string>() + "|" + outcome.err);
  };
  EXPECT_EQ(processes(""),
            std::pair(std::size_t{16}, std::string{"0-15 of 25|podsim: note: the trace has devices 0-15 of 25; --trace-devices chooses others\n"}));
  EXPECT_EQ(processes(" --quiet"), std::pair(std::size_t{16}, std::string{"0-15 of 25|"}));
  EXPECT_EQ(processes(" --trace-devices all"), std::pair(std::size_t{25}, std::string{"0-24 of 25|"}));
  EXPECT_EQ(processes(" --trace-devices 3,20-21"), std::pair(std::size_t{3}, std::string{"3,20-21 of 25|"}));
}

TEST(TraceOption, RepresentativesAreOneOfEachClassAndSayHowManyAreAlike) {
  const Folder folder;
  const std::string file = folder.file("t.json");
  const std::string run = "run --machine tpu_v4 --slice 4x5 --wrap none --collective all-gather --axis row --bytes 64KiB --trace " + file + " --trace-devices ";
  const auto written = [&](const std::string& devices) {
    const Outcome outcome = podsim(run + devices);
    EXPECT_EQ(outcome.status, exit_done) << outcome.err;
    return ParsedJson::parse(bytes_of_file(file));
  };
  int alike = 0;
  std::string devices;
  ParsedJson without = ParsedJson::array();
  const ParsedJson trace = written("representatives");
  for (const ParsedJson& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") devices += (devices.empty() ? "" : ",") + std::to_string(event["pid"].get<int>() - 1);
    if (event["name"] == "process_labels")
      alike += std::stoi(event["args"]["labels"].get<std::string>());
    else
      without.push_back(event);
  }
  EXPECT_EQ(alike, 20);
  EXPECT_EQ(std::ranges::count(devices, ','), 3) << devices;
  EXPECT_EQ(without, written(devices)["traceEvents"]) << "but for the count it is the trace of these devices";
}

TEST(TraceOption, NeitherFoldingNorCompressionChangesTheBytes) {
  const Folder folder;
  for (const auto& [what, classes] :
       std::vector<std::pair<std::string, int>>{{"--slice 4x4 --wrap all --gemm m=640,n=640,k=640 --algorithm meshslice --slice-count 2", 1},
                                                {"--slice 4x5 --wrap none --collective all-gather --axis row --bytes 64KiB", 4},
                                                {"--slice 4x5 --wrap x --gemm m=640,n=640,k=640 --algorithm meshslice --slice-count 2", 5},
                                                {"--slice 4x4 --gemm m=640,n=640,k=640 --algorithm cannon", 16},
                                                {"--slice 4x4 --gemm m=640,n=640,k=640 --algorithm summa", 16}}) {
    SCOPED_TRACE(what);
    const std::string run = "run --machine tpu_v4 " + what + " --trace-devices all --trace ";
    EXPECT_EQ(test::json_of(run + folder.file("folded.json"))["device_classes"], classes);
    ASSERT_EQ(podsim(run + folder.file("folded.json")).status, exit_done);
    ASSERT_EQ(podsim(run + folder.file("every.json") + " --fold off").status, exit_done);
    ASSERT_EQ(podsim(run + folder.file("folded.json.gz")).status, exit_done);
    const std::string bytes = bytes_of_file(folder.file("folded.json"));
    EXPECT_EQ(bytes, bytes_of_file(folder.file("every.json")));
    gzFile file = gzopen(folder.file("folded.json.gz").c_str(), "rb");
    std::string inflated(bytes.size() + 1, '\0');
    inflated.resize(static_cast<std::size_t>(std::max(0, gzread(file, inflated.data(), static_cast<unsigned>(inflated.size())))));
    gzclose(file);
    EXPECT_EQ(inflated, bytes);
  }
}

}  // namespace
}  // namespace podsim
