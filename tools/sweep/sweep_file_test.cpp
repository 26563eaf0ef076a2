#include "tools/sweep/sweep_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/sweep/point_run.hpp"
#include "tools/sweep/test_sweep.hpp"

namespace podsim {
namespace {

using test::blocks_of;

std::vector<std::string> texts(const SweepAxis& axis) {
  std::vector<std::string> result;
  for (const SweepValue& value : axis.values) result.push_back(value.text);
  return result;
}

TEST(SweepFile, KnowsWhereEveryValueStands) {
  const auto blocks = blocks_of("sweep {\n  slice_count: [1, 2,\n    4] slice_count: 8\n  machine: \"a\" 'b'\n  pad: [true, false]\n}\n");
  ASSERT_EQ(blocks.size(), 1U);
  const SweepBlock& block = blocks[0];
  EXPECT_EQ(block.where, (SourceLocation{"s", 2, 1}));
  ASSERT_EQ(block.axes.size(), 3U);
  EXPECT_EQ(block.axes[0].values, (std::vector<SweepValue>{{"ab", {"s", 5, 12}}}));
  EXPECT_EQ(block.axes[1].values, (std::vector<SweepValue>{{"true", {"s", 6, 9}}, {"", {"s", 6, 15}}}));
  EXPECT_EQ(block.axes[2].values,
            (std::vector<SweepValue>{{"1", {"s", 3, 17}}, {"2", {"s", 3, 20}}, {"4", {"s", 4, 5}}, {"8", {"s", 4, 21}}}));
}

TEST(SweepFile, CountsATabAsAByte) {
  const auto blocks = blocks_of("sweep {\n\tslice:\t['a',\t'b']\n\t}\n\tsweep { seed: 1 }\n");
  EXPECT_EQ(blocks.at(0).axes.at(0).values, (std::vector<SweepValue>{{"a", {"s", 3, 10}}, {"b", {"s", 3, 15}}}));
  EXPECT_EQ(blocks.at(1).where, (SourceLocation{"s", 5, 2}));
}

TEST(SweepFile, PutsAxesInTheOrderOfTheFieldsAndSetsInThatOfTheFile) {
  const auto blocks = blocks_of(
      "sweep { engine: 'des' set { path: 'q' value: ['1', '2'] } algorithm: 'x' set { path: 'p' value: '' } machine: 'm' slice: ['a', 'b'] }");
  std::vector<std::string> names;
  for (const SweepAxis& axis : blocks.at(0).axes) names.push_back(std::string{scenario_fields()[axis.field].name} + axis.path);
  EXPECT_EQ(names, (std::vector<std::string>{"machine", "setq", "setp", "slice", "algorithm", "engine"}));
}

TEST(SweepFile, MakesEachCaseABlockWithWhatStandsAroundIt) {
  const auto blocks = blocks_of(
      "sweep {\n machine: 'm'\n case { slice: 'a' case { seed: 1 } case { seed: [2, 3] } }\n case { slice: ['b', 'c'] }\n}\nsweep { seed: 4 }\n");
  ASSERT_EQ(blocks.size(), 4U);
  const auto of = [&](std::size_t b, const char* field) { return blocks[b].axis(field) ? texts(*blocks[b].axis(field)) : std::vector<std::string>{}; };
  using Texts = std::vector<std::string>;
  for (const std::size_t b : {0U, 1U, 2U}) EXPECT_EQ(of(b, "machine"), Texts{"m"});
  EXPECT_EQ(of(0, "slice"), Texts{"a"});
  EXPECT_EQ(of(0, "seed"), Texts{"1"});
  EXPECT_EQ(of(1, "seed"), (Texts{"2", "3"}));
  EXPECT_EQ(of(2, "slice"), (Texts{"b", "c"}));
  EXPECT_EQ(of(2, "seed"), Texts{});
  EXPECT_EQ(of(3, "machine"), Texts{});
  EXPECT_EQ(blocks[1].where, (SourceLocation{"s", 4, 37}));
}

TEST(SweepFile, SaysWhereAndWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "s: expected a sweep, found an empty file"},
      {"sweep {}", "s: format_version is missing; this program reads 1"},
      {"format_version: 2\nnovelty: 3", "s:1:1: format_version 2 is newer than what this program reads, 1"},
      {"format_version: 1", "s:1:1: expected at least one sweep { ... }, found none"},
      {"format_version: 1\nsweep { machines: 'a' }", "s:2:9: unknown field \"machines\", did you mean \"machine\" or \"chunks\"?"},
      {"format_version: 1\nsweep { slice_count: 'a' }", "s:2:22: Expected integer, got: 'a'"},
      {"format_version: 1\nsweep { slice_count: 1.5 }", "s:2:22: Expected integer, got: 1.5"},
      {"format_version: 1\nsweep { machine: 7 }", "s:2:18: Expected string, got: 7"},
      {"format_version: 1\nsweep {\n  machine: ['a', 'b', 'a'] }", "s:3:23: \"a\" is given twice"},
      {"format_version: 1\nsweep { set { path: 'p' value: '' value: '' } }", "s:2:42: the value is given twice"},
      {"format_version: 1\nsweep { set { path: 'p' } }", "s:2:9: a set needs a value"},
      {"format_version: 1\nsweep { set { value: 'p' } }", "s:2:9: path is missing in set"},
      {"format_version: 1\nsweep { set { path: 'p' value: '1' }\n set { path: 'p' value: '2' } }", "s:3:2: there is a set of \"p\" already"},
      {"format_version: 1\nsweep { slice: 'a' case { slice: 'b' } }", "s:2:34: slice is given around this case already"},
      {"format_version: 1\nsweep { set { path: 'p' value: 'a' } case { set { path: 'p' value: 'b' } } }",
       "s:2:68: a set of \"p\" is given around this case already"},
      {"format_version: 1\nsweep { machine: ['a', 'a'] slice: ['b', 'b'] }", "s:2:24: \"a\" is given twice\ns:2:42: \"b\" is given twice"},
      {"format_version: 1\nsweep {", "s:2:8: Expected identifier, got: the end of the file"},
      {"format_version: 1\nsweep { machine: \"\xff\" }", "s:2:19: expected a sweep as textproto, found the byte 0xff, which is not text"},
  };
  for (const auto& [text, message] : cases) {
    const auto blocks = read_sweep(text, "s");
    ASSERT_FALSE(blocks) << text;
    EXPECT_EQ(to_text(blocks.error()), message) << text;
  }
}

}  // namespace
}  // namespace podsim
