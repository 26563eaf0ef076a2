// `show pipeline`: JSON as documented, names as the tutorial prints them, pictures and charts.
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/test_command.hpp"
#include "tools/report/pipeline_chart.hpp"
#include "tools/report/pipeline_report.hpp"
#include "tools/report/role_colours.hpp"

namespace podsim {
namespace {

using nlohmann::ordered_json;
using test::json_of;
using test::podsim;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ordered_json read_testdata(const std::string& name) {
  std::ifstream file{PODSIM_SOURCE_DIR "/algorithms/pipeline/testdata/" + name};
  return ordered_json::parse(file);
}

std::string command_of(const ordered_json& entry) {
  std::string line = "show pipeline --schedule " + entry.at("schedule").get<std::string>();
  for (const char* count : {"stages", "ranks", "microbatches"}) line += " --" + std::string{count} + " " + std::to_string(entry.at(count).get<int>());
  return entry.value("fuse", false) ? line + " --fuse-steady-state" : line;
}

TEST(ShowPipeline, JsonHasTheListsAndFiguresOfJaxPP) {
  const ordered_json data = read_testdata("jaxpp_schedules.json");
  int errors = 0;
  for (const ordered_json& entry : data.at("cases")) {
    const std::string line = command_of(entry);
    SCOPED_TRACE(line);
    if (entry.contains("error")) {
      EXPECT_EQ(podsim(line).status, exit_bad_input);
      ++errors;
      continue;
    }
    const ordered_json shown = json_of(line);
    EXPECT_EQ(shown.at("ranks"), entry.at("tasks"));
    for (const char* key : {"makespan", "finish", "peak_live_forwards"}) EXPECT_EQ(shown.at(key), entry.at(key)) << key;
    EXPECT_NEAR(shown.at("bubble_fraction").get<double>(), entry.at("bubble_fraction").get<double>(), 0.5e-6);
    EXPECT_EQ(shown.at("fused_makespan"), entry.at("makespan"));
  }
  EXPECT_EQ(errors, 6);
}

TEST(ShowPipeline, LinesAreThoseOfTheTutorial) {
  const ordered_json data = read_testdata("jaxpp_tutorial.json");
  ASSERT_EQ(data.at("lists").size(), 4u);
  for (const ordered_json& entry : data.at("lists")) {
    std::string expected;
    for (const auto& task : entry.at("tasks")) expected += (expected.empty() ? "" : ", ") + task.get<std::string>();
    EXPECT_THAT(podsim(command_of(entry)).out, HasSubstr("\nrank " + std::to_string(entry.at("rank").get<int>()) + ": " + expected + "\n"));
  }
}

TEST(ShowPipeline, FullPlacesEveryLayerAndDeletesWhatIsTransferred) {
  const ordered_json shown = json_of("show pipeline --schedule interleaved-1f1b --stages 4 --ranks 2 --microbatches 4 --full --layers 8");
  std::vector<int> ranks;
  for (const auto& placement : shown.at("placements")) ranks.push_back(placement.at("rank"));
  EXPECT_EQ(ranks, (std::vector<int>{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(shown.at("transfers").size(), 2u * 3u * 4u);
  std::multiset<std::pair<int, std::string>> deleted;
  for (const auto& entry : shown.at("deletes")) deleted.emplace(entry.at("rank"), entry.at("value"));
  for (const auto& transfer : shown.at("transfers"))
    for (const char* end : {"from", "to"}) EXPECT_EQ(deleted.count({transfer.at(end), transfer.at("value")}), 1u) << transfer;
  for (const auto& scalar : shown.at("scalars")) EXPECT_EQ(scalar.at("ranks"), ordered_json::array({0, 1}));
}

TEST(ShowPipeline, RanksAreAsManyAsTheScheduleNeedsWhereLeftOut) {
  EXPECT_EQ(json_of("show pipeline --schedule 1f1b --stages 6 --microbatches 8").at("ranks").size(), 6u);
  EXPECT_EQ(json_of("show pipeline --schedule dual-pipe-v --stages 6 --microbatches 8").at("ranks").size(), 3u);
  EXPECT_EQ(podsim("show pipeline --schedule dual-pipe-v --stages 5 --microbatches 8").status, exit_bad_input);
}

TEST(ShowPipeline, AChartIsCutIntoPartsThatFit) {
  const ShownPipeline shown = *shown_pipeline({PipelineSchedule::one_f_one_b, 4, 4, 8}, {});
  const std::string whole = *pipeline_chart(shown.lists.spec, shown.times, false, 0),
                    parts = *pipeline_chart(shown.lists.spec, shown.times, false, 40);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 5);
  EXPECT_EQ(std::count(parts.begin(), parts.end(), '\n'), 4 * 5 + 3);  // 10 units at a time, of 33
  std::istringstream lines{parts};
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 40u) << line;
  EXPECT_THAT(whole, StartsWith("time   0  1  2"));
  EXPECT_THAT(whole, HasSubstr("\nrank 0 |F0|F1|F2|F3|                 |B0   |F4|B1   |"));
}

TEST(ShowPipeline, OnlyAColouredChartHasEscapeSequences) {
  const ShownPipeline shown = *shown_pipeline({PipelineSchedule::dual_pipe_v, 4, 2, 4}, {});
  EXPECT_EQ(pipeline_chart(shown.lists.spec, shown.times, false, 0)->find('\x1b'), std::string::npos);
  const std::string coloured = *pipeline_chart(shown.lists.spec, shown.times, true, 0);
  EXPECT_THAT(coloured, HasSubstr("\x1b[38;2;"));
  for (const char* role : {"forward", "backward of inputs", "backward of weights"})
    EXPECT_THAT(coloured, HasSubstr(coloured_text("x", colour_of_role(role)).substr(0, coloured_text("x", colour_of_role(role)).find('x')))) << role << ": of a rank's first stage";
  EXPECT_EQ(podsim("show pipeline --schedule 1f1b --stages 2 --microbatches 2 --chart").out.find('\x1b'), std::string::npos) << "no terminal";
}

TEST(ShowPipeline, APictureHasABoxPerTask) {
  const ShownPipeline shown = *shown_pipeline({PipelineSchedule::zero_bubble, 4, 4, 8}, {});
  const std::string svg = *pipeline_svg(shown.times, "title");
  std::size_t boxes = 0;
  for (std::size_t at = svg.find("<rect x="); at != std::string::npos; at = svg.find("<rect x=", at + 1)) ++boxes;
  EXPECT_EQ(boxes, 3u * 4 * 8 + 3) << "and three in the legend";
  EXPECT_THAT(*pipeline_png(shown.times, "title"), StartsWith("\x89PNG"));
}

}  // namespace
}  // namespace podsim
