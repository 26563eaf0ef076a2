// Logs as users have them: behind other output, with what launchers, containers and terminals put around lines, of any number of nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/base/test_files.hpp"
#include "sim/config/files.hpp"
#include "validation/calibration/importers/testing.hpp"

namespace podsim {
namespace {

using testing::error_of;
using testing::imported;
using testing::notes_say;

const std::string log_files = PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/";

std::string text_of(const std::string& name) {
  const auto text = read_file(log_files + name, config_limit);
  EXPECT_TRUE(text) << name;
  return text ? *text : std::string{};
}

/// Each line between two texts.
std::string wrapped(std::string_view before, std::string_view text, std::string_view after = "") {
  std::string result;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    result += std::string{before} + std::string{text.substr(begin, end - begin)} + std::string{after} + '\n';
  }
  return result;
}

void expect_same_rows(const Imported& found, const Imported& expected) {
  ASSERT_EQ(found.observations.size(), expected.observations.size());
  for (std::size_t i = 0; i < found.observations.size(); ++i) {
    EXPECT_EQ(found.observations[i].op, expected.observations[i].op);
    EXPECT_EQ(found.observations[i].devices, expected.observations[i].devices);
    EXPECT_EQ(found.observations[i].bytes, expected.observations[i].bytes);
    EXPECT_EQ(found.observations[i].time, expected.observations[i].time);
    EXPECT_EQ(found.observations[i].where.line, expected.observations[i].where.line);
  }
}

TEST(Logs, WhateverStandsBeforeAHeadingIsALabel) {
  const std::string plain = text_of("nccl_a100.txt");
  const Imported expected = imported(import_observations("", plain, "f"));
  ASSERT_EQ(expected.observations.size(), 3U);
  for (const char* const label : {"[pod/nccl-launcher-x7/nccl] ", "node1: ", "node1:", "nccl-test-worker-0  | ", "[2026-01-02 03:04:05] ", "Nov 30 22:00:01 node1 run.sh[123]: ", "[nid0001:0] ", "[0]",
                                  "[default0]:", "worker INFO 2026-01-02 03:04:05,678 nccl: ", "2026-01-02T03:04:05.678901234Z stdout F "}) {
    SCOPED_TRACE(label);
    expect_same_rows(imported(import_observations("", wrapped(label, plain), "f")), expected);
  }
}

TEST(Logs, TimestampsInLabelsMayDiffer) {
  const std::string plain = text_of("nccl_a100.txt");
  std::string text;
  int second = 10;
  for (std::size_t begin = 0, end = 0; begin < plain.size(); begin = end + 1, ++second) {
    end = std::min(plain.find('\n', begin), plain.size());
    text += (second < 20 ? "Nov 30 23:59:" : "Dec 1 00:00:") + std::to_string(second) + " node1 run.sh[123]: " + plain.substr(begin, end - begin) + "\n";
  }
  expect_same_rows(imported(import_observations("", text, "f")), imported(import_observations("", plain, "f")));
}

TEST(Logs, TablesOfTwoLabelsAreTwoTables) {
  const std::string plain = text_of("nccl_a100.txt");
  std::string slower = plain;
  slower.replace(slower.find("74.78   14.02"), 13, "84.78   12.37");
  slower.replace(slower.find("24.54"), 5, "21.65");
  std::string mixed;
  const std::string one = wrapped("node1: ", plain), two = wrapped("node2: ", slower);
  for (std::size_t a = 0, b = 0; a < one.size(); a = one.find('\n', a) + 1, b = two.find('\n', b) + 1) mixed += one.substr(a, one.find('\n', a) + 1 - a) + two.substr(b, two.find('\n', b) + 1 - b);
  const Imported result = imported(import_observations("", mixed, "f"));
  ASSERT_EQ(result.observations.size(), 3U);
  EXPECT_DOUBLE_EQ(result.observations[1].time.count(), 74.78e-6) << "of the first";
  EXPECT_TRUE(notes_say(result, "3 rows skipped that another process printed too"));
}

TEST(Logs, ContainersAndTerminalsWrapLines) {
  const std::string plain = text_of("nccl_a100.txt");
  const Imported expected = imported(import_observations("", plain, "f"));
  expect_same_rows(imported(import_observations("", wrapped("{\"log\":\"", plain, "\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-02T03:04:05Z\"}"), "f")), expected);
  expect_same_rows(imported(import_observations("", wrapped("\x1b[32m", plain, "\x1b[0m"), "f")), expected);
  expect_same_rows(imported(import_observations("", "\xEF\xBB\xBF" + plain, "f")), expected);
}

TEST(Logs, ALabelMayStandWithinARow) {
  const Imported result = imported(import_file("", log_files + "nccl_labels_in_rows.txt", {.devices = 24}));
  ASSERT_EQ(result.observations.size(), 5U);
  EXPECT_EQ(result.observations[0].op, ObservedOp::all_reduce);
  EXPECT_EQ(result.observations[0].devices, 24) << "the paste has one of the ranks";
  EXPECT_DOUBLE_EQ(result.observations[0].time.count(), 1626.5e-6);
  EXPECT_DOUBLE_EQ(result.observations[4].time.count(), 24410e-6);
  std::string wrong = text_of("nccl_labels_in_rows.txt");
  wrong.replace(wrong.find("2325.3    0.90"), 14, "325.30    0.90");
  EXPECT_EQ(error_of(import_observations("", wrong, "f", {.devices = 24})).substr(0, 60), "f:8:74: expected the bandwidth of 2097152 bytes in 325.3 us,");
}

TEST(Logs, AreKnownBehindMegabytesOfOtherOutput) {
  const std::string line = "cnode3-010:2274328:2274400 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n";
  std::string before;
  while (before.size() < (std::size_t{3} << 20)) before += line;
  const std::int64_t lines = std::ranges::count(before, '\n');
  for (const char* const name : {"nccl_a100.txt", "megatron_gpt2.log", "osu_allreduce.txt", "ib_write_bw.txt"}) {
    SCOPED_TRACE(name);
    const auto path = std::filesystem::temp_directory_path() / (std::string{"podsim_logs_test_"} + name);
    std::ofstream{path, std::ios::binary} << before << text_of(name);
    const Imported expected = imported(import_file("", log_files + name)), found = imported(import_file("", path.string())), in_memory = imported(import_observations("", before + text_of(name), "f"));
    std::filesystem::remove(path);
    ASSERT_EQ(found.observations.size(), expected.observations.size());
    ASSERT_EQ(in_memory.observations.size(), expected.observations.size());
    for (std::size_t i = 0; i < found.observations.size(); ++i) EXPECT_EQ(found.observations[i].time, expected.observations[i].time);
    if (found.observations[0].op != ObservedOp::training_step) {
      EXPECT_EQ(found.observations[0].where.line, expected.observations[0].where.line + lines);
    }
  }
}

TEST(Logs, OnlyWhatLooksLikeCsvIsReadAsCsv) {
  const auto error = [](std::string_view text) { return error_of(import_observations("", text, "f")); };
  EXPECT_EQ(error("opp,devices,bytes,seconds\n").substr(0, 6), "f:1:1:");
  EXPECT_NE(error("opp,devices,bytes,seconds\n").find("no column"), std::string::npos);
  for (const char* const text : {"{\"schemaVersion\": 1, \"a\": 2}\n", "+ source /gpfswork/start-prod\n", "Dear reader, hello\n"}) {
    EXPECT_EQ(error(text).find("no column"), std::string::npos) << error(text);
    EXPECT_EQ(error(text).substr(0, 64), "f:1:1: expected measurements in a form that podsim knows (csv, n");
  }
  EXPECT_TRUE(error("\n {\n  \"schema").ends_with("found \"{\"")) << error("\n {\n");
}

TEST(Logs, DeepSpeedsWorldSizeIsNotMegatrons) {
  const Imported result = imported(import_file("", log_files + "megatron_deepspeed.log"));
  EXPECT_EQ(result.observations.at(0).devices, 64);
  EXPECT_TRUE(notes_say(result, "118 tokens a second and device")) << "1024 sequences of 1024 in 138.93 s: of 141.1 137.1 138.9";
}

TEST(Logs, TheLinkOfAPageIsNoTokensASecond) {
  EXPECT_EQ(format_of(text_of("maxtext_base.yml"), "base.yml"), nullptr);
  EXPECT_EQ(format_of("step: 5 loss: 3.0 see https://x.org\n", "f"), nullptr);
  EXPECT_EQ(format_of("step: 5 loss: 3.0\ntps: 7\n", "f"), nullptr) << "not of one line";
  EXPECT_NE(format_of("\x1b[31mstep:  1  loss: 12.2 \x1b[36mtps: 375\n", "f"), nullptr);
}

TEST(Logs, PrimusWritesTheLastStepAndTheMean) {
  // The form of AMD-AGI/Primus, docs/04-technical-guides/hybrid-models/gdn-guide.md: elapsed_ms_inst / elapsed_ms_avg.
  const std::string text = "using world size: 8\n iteration  1/ 4768 | elapsed time per iteration (ms): 60000.0/60000.0 |\n iteration  2/ 4768 | elapsed time per iteration (ms): 1460.8/30730.4 |\n"
                           " iteration  3/ 4768 | elapsed time per iteration (ms): 1450.0/20970.2 |\n iteration  4/ 4768 | elapsed time per iteration (ms): 1470.0/16095.2 |\n";
  EXPECT_DOUBLE_EQ(imported(import_observations("", text, "f")).observations.at(0).time.count(), 1.4608);
}

TEST(Logs, NewestFirstIsTold) {
  const std::string text = text_of("torchtitan_qwen3.log");
  std::string reversed;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    reversed = text.substr(begin, end - begin) + "\n" + reversed;
  }
  EXPECT_NE(error_of(import_observations("", reversed, "f", {.devices = 8})).find("`tac` turns them"), std::string::npos);
}

TEST(Logs, OsuTellsItsUnitOfTime) {
  std::string text = text_of("osu_allreduce.txt");
  const double micros = imported(import_observations("", text, "f")).observations.at(0).time.count();
  text.replace(text.find("(us)"), 4, "(ms)");
  EXPECT_DOUBLE_EQ(imported(import_observations("", text, "f")).observations.at(0).time.count(), micros * 1e3);
  text.replace(text.find("(ms)"), 4, "(fs)");
  EXPECT_NE(error_of(import_observations("", text, "f")).find("expected the column Avg Latency(us)"), std::string::npos);
}

TEST(Logs, TheRateOfMessagesTellsThatColumnsAreSwapped) {
  // Of "ib_read_bw ct1pt-tnode002", with #bytes and #iterations in each other's place.
  const std::string heading = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n";
  EXPECT_EQ(imported(import_observations("", heading + " 65536      1000             11709.18            11708.31		   0.187333\n", "f")).observations.size(), 1U);
  EXPECT_EQ(error_of(import_observations("", heading + " 1000      65536             11709.18            11708.31		   0.187333\n", "f")),
            "f:2:2: expected the bandwidth of 1000 bytes a message at 0.187333 million messages a second, 0.19 GB/s, found 12.28");
}

TEST(Logs, ObservationsMayBeginWithAByteOrderMark) {
  EXPECT_NE(format_of("\xEF\xBB\xBFop,devices,bytes,seconds\nall-gather,4,1024,1e-3\n", "f"), nullptr);
  EXPECT_EQ(imported(import_observations("", "\xEF\xBB\xBFop,devices,bytes,seconds\nall-gather,4,1024,1e-3\n", "f")).observations.size(), 1U);
}

}  // namespace
}  // namespace podsim
