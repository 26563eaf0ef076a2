// `show sharding`: its drawings are those of jax.debug.visualize_array_sharding, to the character and colour.
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "tools/command/test_command.hpp"
#include "tools/report/text_width.hpp"

namespace podsim {
namespace {

using nlohmann::ordered_json;
using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ordered_json drawings() {
  std::ifstream file{PODSIM_SOURCE_DIR "/tools/report/testdata/sharding_drawings.json"};
  return ordered_json::parse(file).at("cases");
}

/// The cells of a coloured drawing: "ffffff/393b79|  CPU 0  ".
ordered_json cells_of(const std::string& text) {
  static const std::regex cell{"\x1b\\[38;2;(\\d+);(\\d+);(\\d+);48;2;(\\d+);(\\d+);(\\d+)m([^\x1b]*)\x1b\\[0m"};
  ordered_json lines = ordered_json::array();
  std::istringstream in{text};
  for (std::string line; std::getline(in, line) && !line.empty();) {
    ordered_json cells = ordered_json::array();
    for (std::sregex_iterator at{line.begin(), line.end(), cell}, end; at != end; ++at) {
      std::string colours;
      for (int i = 1; i <= 6; ++i) {
        std::array<char, 3> hex{};
        std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned>(std::stoi((*at)[static_cast<std::size_t>(i)].str()) & 0xff));
        colours += hex.data() + std::string(i == 3 ? "/" : "");
      }
      cells.push_back(colours + "|" + (*at)[7].str());
    }
    lines.push_back(cells);
  }
  return lines;
}

TEST(ShowSharding, DrawsTheTutorialsShardingsToTheCharacterAndColour) {
  const ordered_json cases = drawings();
  ASSERT_EQ(cases.size(), 7u);
  for (const ordered_json& entry : cases) {
    auto arguments = entry.at("arguments").get<std::vector<std::string>>();
    const Outcome plain = test::run_words(arguments);
    EXPECT_EQ(plain.status, exit_done) << plain.err;
    std::string expected;
    for (const auto& line : entry.at("plain")) expected += line.get<std::string>() + '\n';
    EXPECT_EQ(plain.out, expected + '\n') << entry.at("arguments");
    arguments.insert(arguments.end(), {"--colour", "always"});
    EXPECT_EQ(cells_of(test::run_words(arguments).out), entry.at("coloured")) << entry.at("arguments");
  }
}

// Drawings that the documentation of visualize_array_sharding and its tests show.
TEST(ShowSharding, DrawsTheDocumentedExamples) {
  const std::string blank = "│           │           │\n";
  EXPECT_EQ(podsim("show sharding --array 8x8 --mesh x=4,y=2 --spec -,y").out, "┌───────────┬───────────┐\n" + blank + blank + blank + blank +
                                                                                   "│CPU 0,2,4,6│CPU 1,3,5,7│\n" + blank + blank + blank + blank +
                                                                                   "└───────────┴───────────┘\n\n");
  EXPECT_THAT(podsim("show sharding --array 8x8 --mesh x=8,y=4 --spec x,y").out, HasSubstr("\n│ CPU 8 │ CPU 9 │CPU 10 │CPU 11 │\n"));
  EXPECT_EQ(podsim("show sharding --array 8 --mesh x=1 --spec x").out, "┌───────┐\n│ CPU 0 │\n└───────┘\n\n");
  EXPECT_EQ(podsim("show sharding --array 16 --mesh x=2 --spec x").out, "┌───────┬───────┐\n│ CPU 0 │ CPU 1 │\n└───────┴───────┘\n\n");
  EXPECT_EQ(podsim("show sharding --array 16 --mesh x=2,y=2 --spec y --platform tpu").out,
            "┌───────┬───────┐\n│TPU 0,2│TPU 1,3│\n└───────┴───────┘\n\n");
  EXPECT_EQ(podsim("show sharding --array 16x16 --mesh x=1 --spec x --colour always").out.substr(0, 41),
            "\x1b[38;2;255;255;255;48;2;57;59;121m       ")
      << "one cell takes the first colour";
}

TEST(ShowSharding, ALabelStandsInTheMiddleOfItsColumn) {
  // Devices 1 and 123456 in one column: its width is that of the longer label; what is left over goes to the right.
  EXPECT_THAT(podsim("show sharding --array 16x2 --mesh x=2 --devices 1,123456 --spec x").out, HasSubstr("│  CPU 1   │\n"));
  EXPECT_THAT(podsim("show sharding --array 16x2 --mesh x=2 --devices 1,123456 --spec x").out, HasSubstr("│CPU 123456│\n"));
}

TEST(ShowSharding, LabelsOfAnyAlphabetKeepTheRulesInLine) {
  // Two characters of two columns each, one that combines, an emoji.
  EXPECT_EQ(podsim("show sharding --array 16 --mesh x=2 --spec x --platform \u6771\u4eac").out,
            "┌───────┬───────┐\n│\u6771\u4eac 0 │\u6771\u4eac 1 │\n└───────┴───────┘\n\n");
  const std::string long_name = std::string(58, 'A') + "\u6771";
  for (const std::string& platform : {std::string{"CAFE\u0301"}, std::string{"\U0001f680"}, long_name}) {
    const std::string text = podsim("show sharding --array 16x16 --mesh x=2,y=2 --spec x,y --platform " + platform).out;
    std::istringstream lines{text};
    std::string first;
    std::getline(lines, first);
    EXPECT_GT(width_of(first), 10U);
    for (std::string line; std::getline(lines, line) && !line.empty();) EXPECT_EQ(width_of(line), width_of(first)) << text;
  }
  for (const std::string& wrong : {std::string{"\x1b[m"}, std::string{"\xff"}, std::string{"\u0301"}, std::string(65, 'A')})
    EXPECT_THAT(podsim("show sharding --array 16 --mesh x=2 --spec x --platform " + wrong).err,
                HasSubstr("--platform: expected a name of 1 to 64 printable characters"));
}

TEST(ShowSharding, JsonHasTheRangesOfEveryBlock) {
  const auto json = json_of("show sharding --array 16x16 --mesh x=4,y=2 --spec y,- --platform tpu");
  EXPECT_EQ(test::keys(json), (std::vector<std::string>{"array", "mesh", "spec", "partition_spec", "hlo", "platform", "padded", "shards"}));
  EXPECT_EQ(json["shards"].size(), 2u);
  EXPECT_EQ(json["shards"][1]["devices"], (std::vector<int>{1, 3, 5, 7}));
  EXPECT_EQ(json["shards"][1]["rows"], (std::vector<int>{8, 16}));
  EXPECT_EQ(json["shards"][1]["columns"], (std::vector<int>{0, 16}));
  EXPECT_EQ(json["partition_spec"], "P('y', None)");
  EXPECT_EQ(json["hlo"], "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(json["platform"], "TPU");
  EXPECT_TRUE(json["padded"].is_null());
  const auto part = json_of("show sharding --array 4 --mesh x=2 --devices 6,2 --spec x");
  EXPECT_EQ(part["shards"][0], (ordered_json{{"devices", {6}}, {"rows", {0, 1}}, {"columns", {0, 2}}})) << "one row";
}

TEST(ShowSharding, WhatTheAxesDoNotDivideIsPaddedOnRequest) {
  const std::string line = "show sharding --array 2 --mesh x=4 --spec x";
  EXPECT_EQ(podsim(line).err, "podsim: error: dimension 0 of the array, divided along x=4, must be a multiple of 4, got 2; --pad rounds it up\n");
  EXPECT_EQ(podsim(line).status, exit_bad_input);
  EXPECT_THAT(podsim(line + " --pad").out, EndsWith("\npadded from 2 to 4: 2 of its elements, 50.0 %, are padding\n"));
  const auto json = json_of(line + " --pad");
  EXPECT_EQ(json["padded"], (ordered_json{{"array", {4}}, {"elements", 2}, {"share", 0.5}}));
  EXPECT_EQ(json["shards"].size(), 4u);
}

TEST(ShowSharding, AnArrayOfRank3IsCut) {
  const std::string line = "show sharding --array 8x16x16 --mesh x=4,y=2 --spec y,x,-";
  EXPECT_EQ(podsim(line).err, "podsim: error: an array of rank 3 is drawn by two of its dimensions: --at says which, as --at -,-,0\n");
  const auto json = json_of(line + " --at 5,-,-");
  ASSERT_EQ(json["shards"].size(), 4u) << "the blocks that hold index 5 of dimension 0";
  EXPECT_EQ(json["shards"][1]["devices"], (std::vector<int>{3}));
  EXPECT_EQ(json["shards"][1]["rows"], (std::vector<int>{4, 8}));
  EXPECT_EQ(json["shards"][1]["ranges"], (ordered_json{{4, 8}, {4, 8}, {0, 16}}));
  EXPECT_EQ(podsim(line + " --at 5,-,-").out, podsim("show sharding --array 16x16 --mesh x=4 --devices 1,3,5,7 --spec x").out);
  EXPECT_EQ(podsim(line + " --at 5,-,0").out, podsim("show sharding --array 16 --mesh x=4 --devices 1,3,5,7 --spec x").out);
}

TEST(ShowSharding, TakesHloForASpec) {
  const std::string array = "show sharding --array 16x16 ";
  const auto by_hlo = [&](const std::string& hlo, const std::string& more = "") {
    return test::run_words({"show", "sharding", "--array", "16x16", "--hlo", hlo, more.empty() ? "--quiet" : "--mesh=" + more}).out;
  };
  EXPECT_EQ(by_hlo("{devices=[4,2]<=[8]}"), podsim(array + "--mesh x=4,y=2 --spec x,y").out);
  EXPECT_EQ(by_hlo("{devices=[2,4]<=[4,2]T(1,0)}"), podsim(array + "--mesh x=4,y=2 --spec y,x").out);
  EXPECT_EQ(by_hlo("{devices=[2,4]<=[4,2]T(1,0)}", "x=4,y=2"), podsim(array + "--mesh x=4,y=2 --spec y,x").out);
  EXPECT_EQ(by_hlo("{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"), podsim(array + "--mesh x=4,y=2 --spec -,y").out);
  EXPECT_EQ(by_hlo("{devices=[2,2]7,5,4,6}"), podsim(array + "--mesh x=2,y=2 --devices 7,5,4,6 --spec x,y").out);
  EXPECT_EQ(by_hlo("{replicated}", "x=2"), podsim(array + "--mesh x=2 --spec -").out);
  EXPECT_EQ(by_hlo("{maximal device=3}"), podsim(array + "--mesh x=1 --devices 3 --spec -").out);
  const Outcome moved = test::run_words({"show", "sharding", "--array", "16x16", "--hlo", "{devices=[2,2]0,2,1,3}", "--devices", "0,10,20,30"});
  EXPECT_EQ(moved.out, podsim(array + "--mesh x=2,y=2 --devices 0,20,10,30 --spec x,y").out) << "HLO's devices are positions in --devices";
}

TEST(ShowSharding, EveryDeviceHoldsOneBlockOfTheArray) {
  Rng rng{8};
  for (int i = 0; i < 100; ++i) {
    const int x = rng.between(1, 4), y = rng.between(1, 4), z = rng.between(1, 3);
    const std::vector<std::string> specs = {"x,y", "y,x", "(x+z),-", "-,(z+y+x)", "(z+x),y", "-,-", "x", "z,(y+x)"};
    const std::string mesh = "x=" + std::to_string(x) + ",y=" + std::to_string(y) + ",z=" + std::to_string(z);
    const std::string line = "show sharding --array 432x432 --mesh " + mesh + " --spec " + specs[rng.below(specs.size())];
    const auto json = json_of(line);
    std::vector<int> devices;
    int elements = 0;
    for (const auto& shard : json["shards"]) {
      for (const int device : shard["devices"]) devices.push_back(device);
      elements += (shard["rows"][1].get<int>() - shard["rows"][0].get<int>()) * (shard["columns"][1].get<int>() - shard["columns"][0].get<int>());
    }
    std::sort(devices.begin(), devices.end());
    ASSERT_EQ(static_cast<int>(devices.size()), x * y * z) << line;
    for (std::size_t d = 0; d < devices.size(); ++d) ASSERT_EQ(devices[d], static_cast<int>(d)) << line;
    ASSERT_EQ(elements, 432 * 432) << line;
    // The same sharding by its HLO form.
    const Outcome again = test::run_words({"show", "sharding", "--array", "432x432", "--mesh", mesh, "--hlo", json["hlo"].get<std::string>()});
    ASSERT_EQ(again.out, podsim(line).out) << json["hlo"];
  }
}

TEST(ShowSharding, IsClippedToTheTerminalAndColouredOnIt) {
  const std::vector<std::string> words = {"show", "sharding", "--array", "16x16", "--mesh", "x=16", "--spec", "-,x"};
  const auto on_terminal = [&](std::size_t columns, bool colours) {
    std::ostringstream out, err;
    Console console{out, err, false};
    console.columns = columns, console.colours = colours;
    EXPECT_EQ(run_command(words, console), exit_done);
    return out.str();
  };
  EXPECT_THAT(test::run_words(words).out, EndsWith("\nclipped to 80 of 129 columns; --format json has every block\n"));
  EXPECT_THAT(on_terminal(40, false), EndsWith("\nclipped to 40 of 129 columns; --format json has every block\n"));
  EXPECT_THAT(on_terminal(200, false), EndsWith("┴───────┘\n\n"));
  EXPECT_THAT(on_terminal(200, true), StartsWith("\x1b["));
  const auto cells = cells_of(on_terminal(40, true)).at(0);
  EXPECT_EQ(cells.size(), 5u) << "nine columns each, the last one clipped";
  EXPECT_EQ(cells.back().get<std::string>().size(), 14u + 4u);
}

TEST(ShowSharding, HugeArraysAndMeshesAreDrawn) {
  const std::string huge = podsim("show sharding --array 1000000000x1000000000 --mesh x=96,y=128 --spec x,y --pad").out;
  const std::size_t notes = huge.rfind("\n\n");
  ASSERT_NE(notes, std::string::npos);
  EXPECT_THAT(huge.substr(notes), StartsWith("\n\nclipped to 80 of 1281 columns; --format json has every block\npadded from 1000000000x1000000000 to "
                                             "1000000032x1000000000: "));
  EXPECT_EQ(podsim("show sharding --array 16384x16384 --mesh x=16384 --spec -,-").status, exit_done);
  EXPECT_EQ(podsim("show sharding --array 4611686018427387904x4611686018427387904 --mesh x=3,y=5 --spec x,y --pad").status, exit_done);
  EXPECT_EQ(podsim("show sharding --array 1x4611686018427387904 --mesh x=4 --spec -,x").status, exit_done);
  EXPECT_EQ(json_of("show sharding --array 16384x1 --mesh x=16384 --spec x")["shards"].size(), 16384u);
  EXPECT_EQ(podsim("show sharding --array 16x16 --mesh x=65537 --spec -").err, "podsim: error: --mesh: expected at most 65536 devices, got 65537\n");
}

TEST(ShowSharding, BadInputIsToldWithItsPlace) {
  const std::string array = "show sharding --array 16x16 --mesh x=4,y=2 ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {array + "--spec (x+x)", "--spec:1:4: expected each axis at most once, got \"x\" again"},
      {array + "--spec ((x", "--spec:1:2: expected an axis, got \"(x\""},
      {array + "--spec x,y,-", "--spec:1:5: expected at most 2 entries, one per dimension of the array, got \"-\""},
      {array + "--spec unreduced(x):-,y",
       "--spec:1:1: expected a sharding without unreduced axes: such an array cannot be given or shown, only computed"},
      {array + "--hlo {devices=[4,2]<=[9]}", "--hlo:1:17: expected the 8 devices of the tiles, got 9"},
      {array + "--hlo {devices=[2,4]<=[8]}", "podsim: error: --hlo: no PartitionSpec on the mesh x=4,y=2 gives {devices=[2,4]<=[8]}"},
      {array, "podsim: error: expected one of --spec and --hlo"},
      {array + "--spec x --hlo {replicated}", "podsim: error: expected one of --spec and --hlo"},
      {"show sharding --array 16x16 --hlo {replicated}", "podsim: error: --hlo: how many devices are there? --mesh is needed with {replicated}"},
      {"show sharding --array 16x16 --hlo {devices=[8]<=[8]}", "podsim: error: --hlo: expected tiles of 2 dimensions, as the array has, got 1"},
      {"show sharding --array 16x16 --spec x", "podsim: error: a mesh is needed: --mesh x=4,y=2"},
      {"show sharding --mesh x=4 --spec x", "podsim: error: an array is needed: --array 16x16"},
      {"show sharding --array 16x --mesh x=4 --spec x", "podsim: error: --array: expected a whole number from 1 to 4611686018427387904, got \"\""},
      {"show sharding --array 0 --mesh x=4 --spec x", "podsim: error: --array: expected a whole number from 1 to 4611686018427387904, got \"0\""},
      {array + "--spec x --devices 0,1,2,3,4,5,6,6", "--devices:1:15: expected every device once, found 6 again"},
      {array + "--spec x --devices 0,1", "podsim: error: --devices: expected the 8 devices of the mesh, got 2"},
      {array + "--spec x --devices 0,1,2,3,4,5,6,9 --slice 8", "--devices:1:15: expected devices from 0 to 7, separated by commas, found \"9\""},
      {array + "--spec x --devices -1", "--devices:1:1: expected devices from 0 to 2147483647, separated by commas, found \"-1\""},
      {array + "--spec x --slice 4x4",
       "podsim: error: --slice: expected the 8 devices of the mesh, got 16; --devices says which of them the mesh is on"},
      {array + "--spec x --machine tpu_v4", "podsim: error: --machine: a machine says nothing of a sharding without --slice"},
      {array + "--spec x --at -", "podsim: error: --at: expected an entry for each of the 2 dimensions, got 1"},
      {array + "--spec x --at 3,4", "podsim: error: --at: expected one or two dimensions that are shown, as -,-,0; got 0"},
      {array + "--spec x --at 16,-", "podsim: error: --at: expected a whole number from 0 to 15, got \"16\""},
      {array + "--spec x --format json -o x.png", "podsim: error: --output: expected a picture or --format json, got both"},
  };
  for (const auto& [line, message] : cases) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_EQ(outcome.err, message + "\n") << line;
    EXPECT_EQ(outcome.out, "") << line;
  }
  EXPECT_EQ(podsim("show sharding --array 16x16 --mesh x=4 --spec x --machine tpu_v3 --slice 2x1").status, exit_done) << "two devices per chip";
}

TEST(ShowShardingPictures, HaveABoxForEveryBlock) {
  test::Folder folder;
  const std::string line = "show sharding --array 24x16 --mesh x=4,y=2 --spec x,y -o ";
  const std::string svg = folder.file("a.svg"), png = folder.file("a.png"), again = folder.file("b.png");
  for (const std::string& file : {svg, png, again}) {
    const Outcome outcome = podsim(line + file);
    ASSERT_EQ(outcome.status, exit_done) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  const std::string text = test::bytes_of_file(svg);
  std::size_t boxes = 0;
  for (std::size_t at = text.find("<rect x"); at != std::string::npos; at = text.find("<rect x", at + 1)) ++boxes;
  EXPECT_EQ(boxes, 8u);
  EXPECT_THAT(text, HasSubstr(">CPU 7</text>"));
  EXPECT_THAT(text, HasSubstr("fill=\"#393b79\""));
  EXPECT_THAT(text, HasSubstr(">24x16, P('x', 'y') on x=4,y=2</text>"));
  const std::string pixels = test::bytes_of_file(png);
  EXPECT_THAT(pixels, StartsWith("\x89PNG\r\n\x1a\n"));
  EXPECT_EQ(pixels, test::bytes_of_file(again)) << "the same picture has the same bytes";
  EXPECT_GT(pixels.size(), 5000u);
}

}  // namespace
}  // namespace podsim
