// The table of results.csv against the engines as they are now, and against what engines owe each other (DESIGN: des is exact, analytic never above
// it, simgrid within 1e-6 and a picosecond per event). The times over MPI are measured, and only asked to be what the table says of them.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tools/command/test_command.hpp"
#include "sim/base/csv.hpp"

namespace podsim {
namespace {

const std::string ladder_folder = std::string{PODSIM_SOURCE_DIR} + "/validation/engine_ladder/";

using TableRow = std::map<std::string, std::string>;

std::vector<TableRow> rows_of(const std::string& name) {
  const std::string text = test::bytes_of_file(ladder_folder + name);
  CsvReader reader{text, ladder_folder + name};
  const auto next = [&] {
    auto row = reader.next();
    if (!row) throw std::runtime_error(to_text(row.error()));
    return *std::move(row);
  };
  const auto heading = next();
  std::vector<TableRow> rows;
  while (const auto row = next()) {
    TableRow& fields = rows.emplace_back();
    for (std::size_t i = 0; i < row->fields.size(); ++i) fields[heading->fields.at(i).text] = row->fields[i].text;
  }
  return rows;
}

/// A schedule of the list with its row of the table.
struct LadderStep {
  TableRow listed, result;
  [[nodiscard]] nlohmann::ordered_json run(const std::string& engine) const {
    std::string machine = listed.at("machine");
    if (machine.ends_with(".textproto")) machine = ladder_folder + machine;
    return test::json_of("run --machine " + machine + " " + listed.at("options") + " --engine " + engine);
  }
};

std::vector<LadderStep> ladder() {
  const std::vector<TableRow> listed = rows_of("schedules.csv"), results = rows_of("results.csv");
  std::vector<LadderStep> tiers;
  for (std::size_t i = 0; i < listed.size() && i < results.size(); ++i) tiers.push_back({listed[i], results[i]});
  return tiers;
}

TEST(EngineLadder, HasARowForEachScheduleAndBothAreTwenty) {
  const std::vector<TableRow> listed = rows_of("schedules.csv"), results = rows_of("results.csv");
  ASSERT_EQ(listed.size(), 20U);
  ASSERT_EQ(results.size(), listed.size());
  const std::string readme = test::bytes_of_file(ladder_folder + "README.md");
  for (std::size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(listed[i].at("name"), results[i].at("name"));
    EXPECT_EQ(listed[i].at("ranks").empty(), results[i].at("mpi_s").empty()) << listed[i].at("name");
    EXPECT_NE(readme.find("\n| " + listed[i].at("name") + " | "), std::string::npos) << listed[i].at("name");
  }
}

TEST(EngineLadder, DesGivesTheTableToTheLastDigit) {
  for (const LadderStep& tier : ladder()) {
    const auto run = tier.run("des");
    EXPECT_EQ(run.at("makespan_s").dump(), nlohmann::json::parse(tier.result.at("des_s")).dump()) << tier.listed.at("name");
    EXPECT_EQ(run.at("tasks").dump(), tier.result.at("tasks")) << tier.listed.at("name");
  }
}

TEST(EngineLadder, AnalyticGivesTheTableAndIsNeverAboveDes) {
  for (const LadderStep& tier : ladder()) {
    const double analytic = tier.run("analytic").at("makespan_s");
    EXPECT_EQ(nlohmann::json(analytic).dump(), nlohmann::json::parse(tier.result.at("analytic_s")).dump()) << tier.listed.at("name");
    EXPECT_LE(analytic, std::stod(tier.result.at("des_s"))) << tier.listed.at("name");
  }
}

TEST(EngineLadder, SimgridAgreesWithDes) {
  for (const LadderStep& tier : ladder()) {
    const double simgrid = tier.run("simgrid").at("makespan_s"), des = std::stod(tier.result.at("des_s"));
    const double allowed = 1e-6 * des + 1e-12 * std::stod(tier.result.at("tasks"));
    EXPECT_NEAR(simgrid, des, allowed) << tier.listed.at("name");
    EXPECT_NEAR(simgrid, std::stod(tier.result.at("simgrid_s")), allowed) << tier.listed.at("name");
  }
}

TEST(EngineLadder, SaysHowFarItsColumnsAreApart) {
  for (const LadderStep& tier : ladder()) {
    const auto number = [&](const char* column) { return std::stod(tier.result.at(column)); };
    const double apart = number("des_s") / number("simgrid_s") - 1;
    EXPECT_NEAR(number("des_against_simgrid"), apart, 0.05 * std::abs(apart)) << tier.listed.at("name");  // two digits
    if (tier.listed.at("ranks").empty()) continue;
    EXPECT_EQ(tier.listed.at("ranks"), tier.result.at("devices"));
    EXPECT_NEAR(number("mpi_against_des"), number("mpi_s") / number("des_s") - 1, 6e-4) << tier.listed.at("name");
  }
}

TEST(EngineLadder, HoldsSchedulesThatShareLinksAndSuchThatDoNot) {
  int sharing = 0;
  for (const LadderStep& tier : ladder()) sharing += std::stod(tier.result.at("analytic_s")) < 0.99 * std::stod(tier.result.at("des_s")) ? 1 : 0;
  EXPECT_GE(sharing, 2);
  EXPECT_LE(sharing, 15);
}

}  // namespace
}  // namespace podsim
