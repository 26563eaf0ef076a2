// run --record and report: what a record holds, and pages that are data and no script of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "sim/base/rng.hpp"
#include "sim/config/message_file.hpp"
#include "tools/command/test_command.hpp"
#include "tools/page/page.hpp"

namespace podsim {
namespace {

using test::bytes_of_file;
using test::Folder;
using test::Outcome;
using test::podsim;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

const std::string product = "run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096 --algorithm meshslice --slice-count 2 --quiet ";

Record recorded(const std::string& line, const Folder& folder) {
  const std::string file = folder.file("run.record");
  const Outcome outcome = podsim(line + " --record " + file);
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  auto record = read_record(bytes_of_file(file), file);
  EXPECT_TRUE(record) << to_text(record.error());
  return record ? *std::move(record) : Record{};
}

/// What a page holds as data.
Json data_in(const std::string& page) {
  const std::string begin = "<script id=\"records\" type=\"application/json\">";
  const std::size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(RunRecord, HasTheFiguresOfTheRunWithItsDetails) {
  const Folder folder;
  const Record record = recorded(product, folder);
  Json kept = Json::parse(record.result), printed = test::json_of(product + "--explain --per device,link");
  for (Json* json : {&kept, &printed}) json->erase("wall_s"), json->erase("build_s");
  EXPECT_EQ(kept, printed);
  EXPECT_THAT(record.command, HasSubstr("podsim run --machine tpu_v4 --slice 4x4 --gemm m=4096,n=4096,k=4096"));
  EXPECT_TRUE(record.missing.empty());
  for (const SourcedValue& value : record.machine) EXPECT_NE(value.source, "") << value.path;
}

TEST(RunRecord, PrintsWhatIsPrintedWithoutIt) {
  const Folder folder;
  Json with = test::json_of(product + "--record " + folder.file("a.record")), without = test::json_of(product);
  for (Json* json : {&with, &without}) json->erase("wall_s"), json->erase("build_s");
  EXPECT_EQ(with, without);
}

TEST(RunRecord, TimelinesOfRepresentativesStandForAllDevices) {
  const Folder folder;
  for (const std::string fold : {"auto", "off"}) {
    const Record record = recorded(product + "--fold " + fold, folder);
    int devices = 0;
    for (const RecordedTimeline& timeline : record.timelines) devices += timeline.alike;
    EXPECT_EQ(devices, 16) << fold;
    ASSERT_FALSE(record.timelines.empty());
    Picoseconds core;
    for (const RecordedLine& line : record.timelines.front().lines)
      if (line.name == "compute")
        for (const RecordedBar& bar : line.bars) core += bar.end - bar.begin;
    EXPECT_NEAR(static_cast<double>(core.count()), Json::parse(record.result)["compute_s"].get<double>() * 1e12, 0.5) << fold;
  }
}

TEST(RunRecord, IsReadBackEqual) {
  const Folder folder;
  const std::string bytes = write_record(recorded(product, folder));
  const auto again = read_record(bytes, "again");
  ASSERT_TRUE(again);
  EXPECT_EQ(write_record(*again), bytes);
}

TEST(RunRecord, ATruncatedOneIsAnError) {
  const Folder folder;
  const std::string bytes = write_record(recorded(product, folder));
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, bytes.size() / 2, bytes.size() - 1}) EXPECT_FALSE(read_record(bytes.substr(0, size), "cut")) << size;
}

TEST(RunRecord, MutantsAreRefusedOrMakeAPage) {
  const Folder folder;
  const Record record = recorded("run --machine ideal --slice 2 --collective all-gather --axis row --bytes 64 --quiet", folder);
  const std::string payload = write_record(record).substr(binary_magic.size() + 1 + 8);
  const char* const asked = std::getenv("PODSIM_RECORD_MUTANTS");
  const int mutants = asked != nullptr ? std::atoi(asked) : 5000;
  int read = 0;
  for (int m = 0; m < mutants; ++m) {
    Rng rng{static_cast<std::uint64_t>(m)};
    std::string mutant = payload;
    for (int change = rng.between(1, 4); change-- > 0;) {
      const auto at = static_cast<std::size_t>(rng.below(mutant.size()));
      if (rng.below(4) == 0)
        mutant.erase(at, static_cast<std::size_t>(rng.between(1, 8)));
      else
        mutant[at] = static_cast<char>(rng.below(256));
      if (mutant.empty()) mutant = "x";
    }
    const auto mutated = read_record_or_json(framed('C', mutant), "mutant");
    if (!mutated) continue;
    ++read;
    EXPECT_NO_THROW(static_cast<void>(data_in(page_of({*mutated}, {"mutant"})))) << m;
  }
  EXPECT_GT(read, mutants / 100);
  EXPECT_LT(read, mutants);
}

TEST(ReportPage, NamesInItAreNeverMarkup) {
  const Folder folder;
  Record record = recorded(product, folder);
  const std::string hostile = "</script><script>alert(1)</script><!--\"'&\x01\xff";
  record.command = record.tasks.front() = hostile;
  record.machine.front().source = hostile;
  const std::string page = page_of({record}, {hostile});
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_EQ(data_in(page)[0]["tasks"][0].get<std::string>(), as_utf8(hostile));
}

TEST(ReportPage, LoadsNothing) {
  const Folder folder;
  const std::string page = page_of({recorded(product, folder)}, {"a"});
  const std::size_t data = page.find("id=\"records\""), behind = page.find("</script>", data);
  std::string code = page.substr(0, data) + page.substr(behind);
  code.erase(code.find("http://www.w3.org/2000/svg"), 26);  // the name of a language
  for (const char* what : {"://", "src=", "@import", "url(", "fetch(", "XMLHttp", "innerHTML", "insertAdjacent", "document.write", "eval("}) EXPECT_THAT(code, Not(HasSubstr(what)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(ReportPage, IsTheSameForTheSameRun) {
  const Folder folder;
  const std::string file = folder.file("page.html"), record = folder.file("run.record");
  recorded(product, folder);
  std::string pages[2];
  for (std::string& page : pages) {
    ASSERT_EQ(podsim("report " + record + " -o " + file).status, exit_done);
    page = bytes_of_file(file);
  }
  EXPECT_EQ(pages[0], pages[1]);
}

TEST(ReportPage, TheJsonOfARunMakesOneThatSaysWhatIsMissing) {
  const Folder folder;
  const std::string json = folder.file("run.json"), page = folder.file("page.html");
  ASSERT_EQ(podsim(product + "--format json -o " + json).status, exit_done);
  ASSERT_EQ(podsim("report " + json + " -o " + page).status, exit_done);
  const Json data = data_in(bytes_of_file(page));
  EXPECT_EQ(data[0]["result"], Json::parse(bytes_of_file(json)));
  EXPECT_THAT(data[0]["missing"][0].get<std::string>(), HasSubstr("--record"));
}

TEST(ReportPage, BadInputIsNamedAndLeavesNoFile) {
  const Folder folder;
  const std::string page = folder.file("page.html"), other = folder.file("other.json", "{\"a\": 1}"), cut = folder.file("cut.json", "{\"makespan_s\": 1,\n");
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "expected a record"},
           {other, other + ":1:1: expected the JSON of `podsim run`"},
           {cut, cut + ":2:1: expected the rest of a JSON object"},
           {folder.file("none"), "none"},
       }) {
    const Outcome outcome = podsim("report " + line + " -o " + page);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(page)) << line;
  }
}

}  // namespace
}  // namespace podsim
