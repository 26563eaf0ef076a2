#include "tools/sweep/points.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/sweep/test_sweep.hpp"

namespace podsim {
namespace {

using test::blocks_of;
using test::points_of;

/// What varies: "m a 1" of machine, slice, slice_count.
std::vector<std::string> list(const Points& points, const std::vector<std::string>& fields) {
  std::vector<std::string> result;
  for (std::size_t p = 0; p < points.size(); ++p) {
    const PointInputs inputs = points.inputs(p);
    std::string line;
    for (const std::string& field : fields) line += (line.empty() ? "" : " ") + inputs.text(field);
    for (const auto& [path, value] : inputs.sets) line += " " + path + "=" + value;
    result.push_back(line);
  }
  return result;
}

using Lines = std::vector<std::string>;

TEST(Points, AreEveryCombinationWithTheLastFieldFastest) {
  EXPECT_EQ(list(points_of("sweep { seed: [1, 2] slice: ['a', 'b'] machine: ['m', 'n'] }"), {"machine", "slice", "seed"}),
            (Lines{"m a 1", "m a 2", "m b 1", "m b 2", "n a 1", "n a 2", "n b 1", "n b 2"}));
}

TEST(Points, TakeSetsBetweenMachineAndSliceEachAnAxis) {
  EXPECT_EQ(list(points_of("sweep { slice: ['a', 'b'] machine: 'm' set { path: 'p' value: ['', '1'] } set { path: 'q' value: ['2', '3'] } }"),
                 {"machine", "slice"}),
            (Lines{"m a q=2", "m b q=2", "m a q=3", "m b q=3", "m a p=1 q=2", "m b p=1 q=2", "m a p=1 q=3", "m b p=1 q=3"}));
}

TEST(Points, GoThroughCasesOneAfterTheOtherAndThroughSweepsLikewise) {
  EXPECT_EQ(list(points_of("sweep { case { slice: 'a' seed: 1 } case { slice: 'b' seed: [2, 3] } machine: ['m', 'n'] } sweep { machine: 'o' }"),
                 {"machine", "slice", "seed"}),
            (Lines{"m a 1", "n a 1", "m b 2", "m b 3", "n b 2", "n b 3", "o  "}));
}

TEST(Points, HaveEveryFactorisationForTheMeshAllRowsFalling) {
  const DevicesOf devices = [](const PointInputs& inputs) -> std::optional<int> {
    EXPECT_EQ(inputs.text("mesh"), "");
    return inputs.text("slice") == "none" ? std::nullopt : std::optional{std::stoi(inputs.text("slice"))};
  };
  EXPECT_EQ(list(points_of("sweep { slice: ['6', 'none', '1'] mesh: ['all', 'x=6'] seed: [0, 1] }", devices), {"slice", "mesh", "seed"}),
            (Lines{"6 row=6,col=1 0", "6 row=6,col=1 1", "6 row=3,col=2 0", "6 row=3,col=2 1", "6 row=2,col=3 0", "6 row=2,col=3 1", "6 row=1,col=6 0",
                   "6 row=1,col=6 1", "6 x=6 0", "6 x=6 1", "none all 0", "none all 1", "none x=6 0", "none x=6 1", "1 row=1,col=1 0", "1 row=1,col=1 1",
                   "1 x=6 0", "1 x=6 1"}));
}

TEST(Points, LeaveOutTheSliceCountWhereTheAlgorithmTakesNone) {
  EXPECT_EQ(list(points_of("sweep { gemm: 'g' algorithm: ['collective', 'meshslice', 'summa', 'cannon'] slice_count: [2, 4] prefetch: [0, 1] }"),
                 {"algorithm", "slice_count", "prefetch"}),
            (Lines{"collective  0", "collective  1", "meshslice 2 0", "meshslice 2 1", "meshslice 4 0", "meshslice 4 1", "summa 2 0", "summa 2 1",
                   "summa 4 0", "summa 4 1", "cannon  0", "cannon  1"}));
}

TEST(Points, CountAsManyAsTheProduct) {
  EXPECT_EQ(points_of("sweep { seed: [1,2,3,4,5,6,7] block: [1,2,3,4,5] prefetch: [1,2,3] } sweep { seed: [1, 2] }").size(), 7U * 5 * 3 + 2);
  EXPECT_EQ(points_of("sweep { }").size(), 1U);
}

TEST(Points, AreAtMostAMillion) {
  std::string numbers = "0";
  for (int i = 1; i < 101; ++i) numbers += ", " + std::to_string(i);
  const auto points = expand(blocks_of("sweep { seed: 1 }\nsweep { seed: [" + numbers + "] block: [" + numbers + "] prefetch: [" + numbers + "] }"), {});
  ASSERT_FALSE(points);
  EXPECT_EQ(to_text(points.error()), "s:3:1: expected at most 1000000 points in all, found more");
}

TEST(Points, AreCommandLinesOfRun) {
  const Points points = points_of(
      "sweep { machine: 'tpu_v4' slice: '4x4' set { path: 'link[x].bandwidth' value: '45 GB/s' } fail: '0.0-0.1; 1.0-1.1' straggler: '' pad: true\n"
      "strict_slice: false collective: 'permute' axis: 'row,col' bytes: '16' shift: -1 }");
  const PointInputs inputs = points.inputs(0);
  EXPECT_EQ(arguments_of(inputs), (Lines{"--machine=tpu_v4", "--set=link[x].bandwidth=45 GB/s", "--slice=4x4", "--fail=0.0-0.1", "--fail=1.0-1.1",
                                         "--collective=permute", "--axis=row,col", "--bytes=16", "--shift=-1", "--pad"}));
  EXPECT_EQ(command_of(inputs), "podsim run --machine tpu_v4 --set 'link[x].bandwidth=45 GB/s' --slice 4x4 --fail 0.0-0.1 --fail 1.0-1.1 "
                                "--collective permute --axis row,col --bytes 16 --shift=-1 --pad");
}

TEST(Points, TakeNothingBetweenSemicolonsForNothing) {
  const Points points = points_of("sweep { fail: ['0.0-0.1 ;', ';', ' ', '0.0-0.1;;1.0-1.1'] }");
  std::vector<Lines> arguments;
  for (std::size_t p = 0; p < points.size(); ++p) arguments.push_back(arguments_of(points.inputs(p)));
  EXPECT_EQ(arguments, (std::vector<Lines>{{"--fail=0.0-0.1"}, {}, {}, {"--fail=0.0-0.1", "--fail=1.0-1.1"}}));
}

}  // namespace
}  // namespace podsim
