// show timeline: what a chart of a record says, and what is no record of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "sim/base/output_file.hpp"
#include "tools/command/test_command.hpp"
#include "tools/page/record.hpp"
#include "tools/page/timeline_chart.hpp"
#include "tools/report/role_colours.hpp"

namespace podsim {
namespace {

using test::bytes_of_file;
using test::Folder;
using test::Outcome;
using test::podsim;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string recording = "run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithm meshslice --slice-count 4 --quiet --record ";

RecordedBar bar_of(std::int64_t begin, std::int64_t end, std::uint32_t task) { return {Picoseconds{begin}, Picoseconds{end}, task}; }

/// A record with a real result, and these tasks and lines; roles by task.
std::string record_with(const Folder& folder, std::vector<std::string> tasks, std::vector<RecordedLine> lines, std::vector<std::string> roles = {}) {
  const std::string file = folder.file("run.record");
  EXPECT_EQ(podsim(recording + file).status, exit_done);
  auto record = read_record(bytes_of_file(file), file);
  record->tasks = std::move(tasks);
  record->task_roles = std::move(roles);
  record->timelines = {{5, "row=1,col=1", 3, std::move(lines)}};
  EXPECT_TRUE(write_file(file, write_record(*record)));
  return file;
}

TEST(ShowTimeline, AColumnHasTheMarkOfTheOperationThatTakesMostOfIt) {
  const Folder folder;
  // 20 columns of 1000 ps. The two first tasks are of one operation.
  const std::string file = record_with(folder, {"gather X s0 +1", "gather X s1", "odd one", "odd one further"},
                                   {{"compute", {bar_of(0, 3000, 2), bar_of(3000, 3400, 3), bar_of(3400, 4000, 0), bar_of(5000, 5099, 2), bar_of(7000, 7100, 2), bar_of(19999, 20000, 3)}},
                                    {"row + send", {bar_of(10000, 20000, 1)}}});
  const Outcome outcome = podsim("show timeline " + file + " --width 41");
  ASSERT_EQ(outcome.status, exit_done) << outcome.err;
  EXPECT_EQ(outcome.out,
            "device 5 (row=1,col=1) and 2 alike:\n20 ns, 1 ns a column\n"
            "\n"
            "                     0\n"
            "                     |-------------------\n"
            "compute      21.0 %  aaab . a           .\n"
            "row + send   50.0 %            bbbbbbbbbb\n"
            "\n"
            "mark  operation               bars  their time\n"
            "a     odd one                    3    3.199 ns\n"
            "b     gather X                   2     10.6 ns\n"
            "      1 that no column shows     2      401 ps\n"
            ".     the line is busy for less than a tenth of the column\n");
}

TEST(ShowTimeline, TheCoreIsBusyForTheShareThatTheRunTells) {
  const Folder folder;
  const std::string file = folder.file("run.record");
  const Outcome told = podsim(recording + file);
  std::smatch share;
  ASSERT_TRUE(std::regex_search(told.out, share, std::regex{"\\(([0-9.]+ %): the core of the busiest device\\)"})) << told.out;
  const Outcome outcome = podsim("show timeline " + file);
  EXPECT_THAT(outcome.out, ContainsRegex("\ncompute +" + share.str(1) + "  "));
  for (const char* line : {"dma", "row [+] send", "row - receive", "col [+] receive", "col - send"}) EXPECT_THAT(outcome.out, ContainsRegex(std::string{"\n"} + line + " +[0-9.]+ %  "));
  for (const char* operation : {"matmul", "gather X", "gather W", "cut X"}) EXPECT_THAT(outcome.out, ContainsRegex(std::string{"\n[a-z]     "} + operation + " "));
  EXPECT_EQ(outcome.out, podsim("show timeline --record " + file + " --width 100 --device 0").out);
  EXPECT_EQ(outcome.out, podsim("show timeline " + file + " --device row=0,col=0").out);
}

TEST(ShowTimeline, ADeviceThatDoesTheSameAsAnotherIsShownByIt) {
  const Folder folder;
  const std::string file = folder.file("run.record");
  ASSERT_EQ(podsim(recording + file).status, exit_done);
  const std::string first = podsim("show timeline " + file).out;
  EXPECT_EQ(podsim("show timeline " + file + " --device 15").out, "device 15 does the same as device 0, which is shown:\n\n" + first);
  EXPECT_EQ(podsim("show timeline " + file + " --device row=3,col=3").out,
            "device row=3,col=3 does the same as device 0, which is shown:\n\n" + first);
  // Of several classes the device's own: the ranks of a pipeline.
  ASSERT_EQ(
      podsim("run --machine tpu_v4 --slice 4x4 --mesh stage=4,fsdp=4 --training jax-pipeline-tutorial --batch 16 --microbatches 4 --quiet --record " +
             file)
          .status,
      exit_done);
  const auto record = read_record(bytes_of_file(file), file);
  ASSERT_EQ(record->timelines.size(), 4U);
  for (const RecordedTimeline& timeline : record->timelines) {
    EXPECT_EQ(timeline.others, (std::vector<int>{timeline.device + 1, timeline.device + 2, timeline.device + 3}));
    const Outcome outcome = podsim("show timeline " + file + " --device " + std::to_string(timeline.device + 3));
    EXPECT_THAT(outcome.out, HasSubstr("\n\ndevice " + std::to_string(timeline.device) + " (stage="));
  }
}

TEST(ShowTimeline, NoLineIsWiderThanAsked) {
  const Folder folder;
  const std::string file = folder.file("run.record");
  ASSERT_EQ(podsim(recording + file).status, exit_done);
  for (const std::size_t width : {std::size_t{60}, std::size_t{100}, std::size_t{237}}) {
    const std::string text = podsim("show timeline " + file + " --width " + std::to_string(width)).out;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << line;
  }
}

TEST(ShowTimeline, NamesOfARecordReachTheTerminalWithoutControlCharacters) {
  const Folder folder;
  const std::string file = record_with(folder, {"\x1b[31mred\r\n", std::string(1'000'000, 'x'), "\u6771\u4eac"},
                                   {{"\x1b]0;title\x07", {bar_of(0, 1000, 0), bar_of(1000, 2000, 1), bar_of(2000, 3000, 2)}}, {"\u30ec\u30fc\u30f3", {bar_of(0, 3000, 2)}}});
  const Outcome outcome = podsim("show timeline " + file);
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(outcome.out, HasSubstr("?[31mred??"));
  EXPECT_THAT(outcome.out, HasSubstr("?]0;title?  100.0 %  bbb"));
  EXPECT_THAT(outcome.out, HasSubstr("\u30ec\u30fc\u30f3      100.0 %  aaa")) << "three characters of two columns each";
  EXPECT_LT(outcome.out.size(), 3000U);
}

TEST(ShowTimeline, AMarkStandsOnTheColourOfItsRole) {
  const Folder folder;
  const std::string file = record_with(folder, {"gather X s0 +1", "product", "odd"}, {{"compute", {bar_of(0, 1000, 1), bar_of(1000, 2000, 2)}}, {"row + send", {bar_of(1000, 2000, 0)}}},
                                       {"all-gather", "matmul", "of no table"});
  const auto record = read_record(bytes_of_file(file), file);
  ASSERT_TRUE(record) << to_text(record.error());
  const auto coloured = [](const char* marks, const char* role) { return coloured_text(marks, colour_of_role(role)); };
  const std::string text = *timeline_chart(*record, record->timelines.front(), file, 41, true);
  EXPECT_THAT(text, HasSubstr("100.0 %  " + coloured("aaaaaaaaaa", "matmul") + coloured("cccccccccc", "other") + "\n"));
  EXPECT_THAT(text, HasSubstr(coloured("bbbbbbbbbb", "all-gather") + "\n"));
}

TEST(ShowTimeline, WhatALineShowsOfACallHasItsOwnColour) {
  const Folder folder;
  const std::string file = folder.file("run.record");
  ASSERT_EQ(podsim("run --machine tpu_v4 --slice 4x4 --mesh fsdp=16 --training jax-pipeline-tutorial --batch 16 --quiet --record " + file).status, exit_done);
  const auto record = read_record(bytes_of_file(file), file);
  ASSERT_TRUE(record) << to_text(record.error());
  const std::string text = *timeline_chart(*record, record->timelines.front(), file, 100, true);
  const auto on = [](const char* role) {
    const std::string letter = coloured_text("x", colour_of_role(role));
    return letter.substr(0, letter.find('x'));
  };
  const auto line_of = [&](const std::string& name) {
    const std::size_t at = text.find("\n" + name + " ") + 1;
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_THAT(line_of("calls"), AllOf(HasSubstr(on("forward")), HasSubstr(on("backward")), Not(HasSubstr(on("compute")))));
  EXPECT_THAT(line_of("compute"), AllOf(HasSubstr(on("compute")), Not(HasSubstr(on("forward")))));
  EXPECT_THAT(line_of("fsdp in calls"), HasSubstr(on("communication")));
}

TEST(ShowTimeline, MoreOperationsThanLettersShareAMark) {
  const Folder folder;
  std::vector<std::string> tasks;
  RecordedLine line{"compute", {}};
  for (std::uint32_t i = 0; i < 70; ++i) {
    tasks.push_back("work of layer" + std::to_string(i));
    line.bars.push_back(bar_of(100 * i, 100 * i + 100, i));
  }
  const Outcome outcome = podsim("show timeline " + record_with(folder, tasks, {line}) + " --width 88");
  EXPECT_THAT(outcome.out, HasSubstr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789########"));
  EXPECT_THAT(outcome.out, ContainsRegex("\n#     8 further +8 +800 ps\n"));
}

TEST(ShowTimeline, SaysWhatIsNoRecordWithATimeline) {
  const Folder folder;
  const std::string file = folder.file("run.record");
  ASSERT_EQ(podsim(recording + file).status, exit_done);
  const auto refused = [](const std::string& line, const std::string& why) {
    const Outcome outcome = podsim("show timeline " + line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_EQ(outcome.out, "") << line;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << line;
  };
  refused("", "which record? podsim show timeline RECORD");
  refused(folder.file("none"), "No such file or directory");
  refused(file + " --device 16", "--device: expected one that the record has, or one that does the same: 0 (row=0,col=0); found \"16\"");
  refused(file + " --device row=4,col=0", "--device: expected one that the record has");
  refused(file + " --device col=0,row=0", "--device: expected one that the record has");
  refused(file + " --width 39", "--width: ");
  refused(file + " --width wide", "--width: ");
  ASSERT_TRUE(write_file(folder.file("run.json"), "{}"));
  refused(folder.file("run.json"), "run.json: expected a record, as podsim run --record writes it, found another file");
  auto record = read_record(bytes_of_file(file), file);
  record->timelines.clear();
  record->missing = {"timelines: 3 variants were compared"};
  ASSERT_TRUE(write_file(file, write_record(*record)));
  refused(file, "expected a record with a timeline, as podsim run --record writes it, found one without. Missing: timelines: 3 variants were compared");
}

}  // namespace
}  // namespace podsim
