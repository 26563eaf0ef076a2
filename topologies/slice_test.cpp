#include "topologies/slice.hpp"

#include <gmock/gmock.h>

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const SourceLocation here{"--slice", 0, 0};

Machine machine(SliceRules rules) {
  Machine result;
  result.slices = std::move(rules);
  for (int d = 0; d < max_dimensions; ++d) result.link[static_cast<std::size_t>(d)] = {BytesPerSecond{(d + 1) * 10e9}, Seconds{(d + 1) * 1e-6}};
  return result;
}

/// Three dimensions, tori of 4x4x4 cubes, smaller open meshes.
Machine cubes() { return machine({false, 4, {16, 16, 12}, {{2, 2, 1}, {2, 2, 4}, {2, 4, 4}}}); }
/// Two dimensions, a torus only as a whole pod.
Machine pod() { return machine({false, 16, {16, 16}, {{1, 1}, {2, 2}, {4, 4}, {4, 8}, {8, 16}}}); }
Machine invented() { return machine({true, 0, {}, {}}); }

Slice slice(std::string_view text, const Machine& of) {
  const Expected<Slice> parsed = parse_slice(text, of, here);
  EXPECT_TRUE(parsed) << text;
  return *parsed;
}
bool hypothetical(std::string_view text, const Machine& of) { return slice(text, of).hypothetical; }
std::string error(std::string_view text) { return to_text(parse_slice(text, cubes(), here).error()); }

std::vector<bool> wraps(std::string_view text, const Machine& of, std::string_view wrap = "auto") {
  const Expected<std::vector<bool>> result = wraps_of(of, slice(text, of), *parse_wrap(wrap, here));
  EXPECT_TRUE(result);
  return *result;
}

TEST(ParseSlice, ReadsExtentsAndWritesThemBack) {
  for (const char* text : {"16x16", "4x8x8", "16", "1x1", "2x2x2x2", "4096x4096"}) EXPECT_EQ(to_text(slice(text, cubes())), text);
  EXPECT_THAT(slice("4x8x8", cubes()).extents, ElementsAre(4, 8, 8));
}

TEST(ParseSlice, NamesWhatIsWrong) {
  const std::string form = "--slice: a slice is written as chips per dimension, such as 16x16 or 4x4x8, got ";
  for (const std::string text : {"", "x", "4x", "x4", "4xx4", "4*4", "4x4 ", "4X4", "1.5x2", "4x99999999999999999999"})
    EXPECT_EQ(error(text), form + quoted(text));
  EXPECT_EQ(error("4x0"), "--slice: every extent of a slice must be at least 1, got 0 in \"4x0\"");
  EXPECT_EQ(error("-4x4"), "--slice: every extent of a slice must be at least 1, got -4 in \"-4x4\"");
  EXPECT_EQ(error("2x2x2x2x2"), "--slice: a slice has at most 4 dimensions, got 5 in \"2x2x2x2x2\"");
  EXPECT_EQ(error("4096x4097"), "--slice: a slice has at most 16777216 chips, got more: \"4096x4097\"");
  EXPECT_THAT(error("9223372036854775807x9223372036854775807"), HasSubstr("at most 16777216 chips"));
}

TEST(Hypothetical, FullToriAreOfferedInMultiplesOfTheCubeUpToTheLargest) {
  for (const char* text : {"4x4x4", "4x4x8", "8x4x4", "16x16x12", "12x16x16", "16x4x8"}) EXPECT_FALSE(hypothetical(text, cubes())) << text;
  for (const char* text : {"4x4x6", "16x16x16", "20x4x4", "8x8", "16x16", "32x8", "4x4x4x4", "64"}) EXPECT_TRUE(hypothetical(text, cubes())) << text;
}

TEST(Hypothetical, OpenMeshesAreOfferedInAnyOrderWhateverOnesTheyCarry) {
  for (const char* text : {"2x2", "2x2x1", "1x2x2", "2x1x2", "4x2x2", "2x4x4", "4x2x4", "1x2x4x4"}) EXPECT_FALSE(hypothetical(text, cubes())) << text;
  for (const char* text : {"1", "2", "4x4", "2x2x2", "2x2x8"}) EXPECT_TRUE(hypothetical(text, cubes())) << text;
  for (const char* text : {"1", "1x1x1", "8x4"}) EXPECT_FALSE(hypothetical(text, pod())) << text;
}

TEST(Hypothetical, NothingIsOnAnInventedMachine) {
  for (const char* text : {"3x5x7", "1", "32x8"}) EXPECT_FALSE(hypothetical(text, invented())) << text;
}

/// Two cores per chip, names.
Machine named() {
  Machine result = cubes();
  result.name = "big";
  result.slices.cores_per_chip = 2;
  result.slices.name_prefix = "v9";
  return result;
}
/// Nodes of GPUs.
Machine rails() {
  Machine result = machine({false, 0, {16, 8}, {}});
  result.name = "gpus";
  result.interconnect = Interconnect::rail;
  return result;
}

std::vector<std::string> texts(const std::vector<Slice>& slices) {
  std::vector<std::string> result;
  for (const Slice& s : slices) result.push_back(to_text(s));
  return result;
}
std::vector<std::string> offered(std::int64_t chips, const Machine& of) { return texts(offered_slices(of, chips)); }
std::string name_error(std::string_view text, const Machine& of) { return to_text(parse_slice(text, of, here).error()); }

TEST(Hypothetical, RailsAreOfferedWithAnyNodesAndGpusUpToTheLargest) {
  for (const char* text : {"1x8", "16x8", "3x5", "16x1"}) EXPECT_FALSE(hypothetical(text, rails())) << text;
  for (const char* text : {"8x16", "1x9", "17x8", "8", "2x8x1"}) EXPECT_TRUE(hypothetical(text, rails())) << text;
}

TEST(OfferedSlices, AreAllShapesOfACountTheMostCubicFirst) {
  EXPECT_THAT(offered(4, cubes()), ElementsAre("2x2x1"));
  EXPECT_THAT(offered(64, cubes()), ElementsAre("4x4x4"));
  EXPECT_THAT(offered(256, cubes()), ElementsAre("4x8x8", "4x4x16"));
  EXPECT_THAT(offered(1024, cubes()), ElementsAre("8x8x16", "4x16x16"));
  EXPECT_THAT(offered(3072, cubes()), ElementsAre("12x16x16"));
  EXPECT_THAT(offered(128, pod()), ElementsAre("8x16"));
  EXPECT_THAT(offered(256, pod()), ElementsAre("16x16"));
  for (const std::int64_t none : {-1, 0, 3, 8, 4096, 1 << 30}) EXPECT_TRUE(offered(none, cubes()).empty()) << none;
}

TEST(OfferedSlices, AreEveryFactorisationWhereAnyShapeIs) {
  EXPECT_THAT(offered(8, invented()), ElementsAre("2x2x2", "2x4", "8"));
  EXPECT_THAT(offered(7, invented()), ElementsAre("7"));
  EXPECT_THAT(offered(1, invented()), ElementsAre("1"));
}

TEST(OfferedSlices, OfRailsBeginWithTheFewestNodes) {
  EXPECT_THAT(offered(16, rails()), ElementsAre("2x8", "4x4", "8x2", "16x1"));
  EXPECT_TRUE(offered(17, rails()).empty());
}

TEST(OfferedSlices, AreListedOnceThoughOfferedAsATorusAndAsAMesh) {
  EXPECT_THAT(offered(64, machine({false, 4, {16, 16, 16}, {{4, 4, 4}}})), ElementsAre("4x4x4"));
}

TEST(OfferedSlices, AreExactlyWhatIsNotHypothetical) {
  for (const Machine& of : {cubes(), pod(), rails()})
    for (int chips = 1; chips <= 600; ++chips) {
      for (const Slice& each : offered_slices(of, chips)) {
        EXPECT_EQ(chips_of(each), chips);
        EXPECT_FALSE(hypothetical(to_text(each), of)) << to_text(each);
      }
      for (const Slice& each : offered_slices(invented(), chips))
        if (!hypothetical(to_text(each), of)) {
          EXPECT_FALSE(offered_slices(of, chips).empty()) << to_text(each);
        }
    }
}

TEST(SliceNames, AreTheFirstOfferedShapeOfTheirChips) {
  for (const auto& [name, shape] : {std::pair{"v9-8", "2x2x1"}, {"v9-64", "2x4x4"}, {"v9-128", "4x4x4"}, {"v9-512", "4x8x8"}}) {
    EXPECT_EQ(to_text(slice(name, named())), shape);
    EXPECT_FALSE(hypothetical(name, named()));
  }
}

TEST(SliceNames, TellWhatIsWrong) {
  EXPECT_EQ(name_error("v4-8", named()), "--slice: slices of big are called v9-N, where N counts cores, 2 per chip, got \"v4-8\"");
  for (const std::string text : {"v9-7", "v9-", "v9-x", "v9-0", "v9-99999999999"})
    EXPECT_EQ(name_error(text, named()), "--slice: the N of v9-N counts cores, 2 per chip, got " + quoted(text));
  EXPECT_EQ(name_error("v9-12", named()),
            "--slice: big has no slice of 6 chips, got \"v9-12\"; near are v9-8 (2x2x1), v9-32 (2x2x4), v9-64 (2x4x4)");
  EXPECT_EQ(name_error("v9-2", named()), "--slice: big has no slice of 1 chip, got \"v9-2\"; near are v9-8 (2x2x1), v9-32 (2x2x4), v9-64 (2x4x4)");
  EXPECT_EQ(name_error("v9-520", named()), "--slice: big has no slice of 260 chips, got \"v9-520\"; near are v9-512 (4x8x8), v9-384 (4x4x12)");
  EXPECT_EQ(name_error("a-8", rails()), "--slice: slices of gpus have no names, expected chips per dimension, such as 16x8, got \"a-8\"");
  Machine nothing = named();
  nothing.slices.cube = 0;
  nothing.slices.open.clear();
  EXPECT_EQ(name_error("v9-8", nothing), "--slice: big has no slice of 4 chips, got \"v9-8\"");
}

TEST(NearSlices, AreTheNearestInChips) {
  EXPECT_THAT(texts(near_slices(cubes(), slice("32x8", cubes()))), ElementsAre("4x8x8", "4x4x16", "4x4x12"));
  EXPECT_THAT(texts(near_slices(cubes(), slice("4096x4096", cubes()))), ElementsAre("12x16x16", "12x12x16", "8x16x16"));
  EXPECT_THAT(texts(near_slices(pod(), slice("1x3", pod()))), ElementsAre("2x2", "1x1", "4x4"));
  EXPECT_TRUE(near_slices(invented(), slice("3x5", invented())).empty());
}

TEST(CheckOffered, RefusesWhatIfsAndNamesTheNearOnes) {
  EXPECT_TRUE(check_offered(named(), slice("4x8x8", named()), here));
  EXPECT_TRUE(check_offered(invented(), slice("3x5", invented()), here));
  EXPECT_EQ(to_text(check_offered(named(), slice("32x8", named()), here).error()),
            "--slice: big is not offered with a slice 32x8 (256 chips), expected one such as 4x8x8 (256 chips), 4x4x16 (256 chips) or "
            "4x4x12 (192 chips)");
}

TEST(ParseWrap, ReadsTheFourForms) {
  EXPECT_EQ(*parse_wrap("auto", here), Wrap{});
  EXPECT_EQ(*parse_wrap("all", here), (Wrap{Wrap::Rule::all, {}}));
  EXPECT_EQ(*parse_wrap("none", here), (Wrap{Wrap::Rule::none, {}}));
  EXPECT_EQ(*parse_wrap("z,x", here), (Wrap{Wrap::Rule::named, {2, 0}}));
  EXPECT_EQ(*parse_wrap("w", here), (Wrap{Wrap::Rule::named, {3}}));
}

TEST(ParseWrap, RefusesTheRest) {
  EXPECT_EQ(parse_wrap("xy", here).error().message, "expected auto, all, none, or dimensions such as x,y (of x, y, z, w), got \"xy\"");
  for (const char* text : {"", "x,", ",x", "v", "X", "all,x"}) EXPECT_FALSE(parse_wrap(text, here)) << text;
  EXPECT_EQ(parse_wrap("x,x", here).error().message, "dimension x is named twice in \"x,x\"");
}

TEST(AutomaticWrap, IsWhatTheVendorBuilds) {
  EXPECT_THAT(wraps("4x4x8", cubes()), ElementsAre(true, true, true));
  EXPECT_THAT(wraps("2x4x4", cubes()), ElementsAre(false, false, false));
  EXPECT_THAT(wraps("16x16", pod()), ElementsAre(true, true));
  EXPECT_THAT(wraps("4x8", pod()), ElementsAre(false, false));
  EXPECT_THAT(wraps("8x16", pod()), ElementsAre(false, true)) << "16 spans the pod, so its wrap links are there";
  EXPECT_THAT(wraps("16x16", machine({false, 0, {16, 16}, {{16, 16}}})), ElementsAre(false, false)) << "no torus even as a whole pod";
}

TEST(AutomaticWrap, SwitchesHaveNothingToWrap) {
  EXPECT_THAT(wraps("16x8", rails()), ElementsAre(false, false));
  EXPECT_THAT(wraps("8x16", rails()), ElementsAre(false, false));
}

TEST(AutomaticWrap, WrapsEveryExtentAboveTwoOfWhatNobodyBuilds) {
  EXPECT_THAT(wraps("32x8", cubes()), ElementsAre(true, true));
  EXPECT_THAT(wraps("2x3x1", cubes()), ElementsAre(false, true, false));
  EXPECT_THAT(wraps("2x3x1", invented()), ElementsAre(false, true, false));
}

TEST(Wrap, GoesBeforeWhatTheVendorBuilds) {
  EXPECT_THAT(wraps("4x4x8", cubes(), "none"), ElementsAre(false, false, false));
  EXPECT_THAT(wraps("2x4x4", cubes(), "all"), ElementsAre(true, true, true));
  EXPECT_THAT(wraps("4x4x8", cubes(), "y"), ElementsAre(false, true, false));
  EXPECT_EQ(wraps_of(cubes(), slice("16x16", cubes()), *parse_wrap("x,z", here)).error().message,
            "dimension z cannot wrap: the slice 16x16 has 2 dimensions (x,y)");
}

TEST(Wrap, OtherWiringThanTheVendorsIsAWhatIf) {
  const auto what_if = [](std::string_view text, const Machine& of, std::string_view wrap) {
    return is_hypothetical(of, slice(text, of), *parse_wrap(wrap, here));
  };
  EXPECT_FALSE(what_if("4x4x4", cubes(), "auto"));
  EXPECT_FALSE(what_if("4x4x4", cubes(), "all"));
  EXPECT_TRUE(what_if("4x4x4", cubes(), "x,y"));
  EXPECT_TRUE(what_if("2x4x4", cubes(), "all"));
  EXPECT_FALSE(what_if("2x2", cubes(), "all")) << "wrapping an extent of 2 adds no link";
  EXPECT_TRUE(what_if("32x8", cubes(), "auto"));
  EXPECT_FALSE(what_if("32x8", invented(), "none"));
}

TEST(BuildGrid, TakesEachDimensionsLinksAndTheChipsOwn) {
  Machine of = cubes();
  of.chip.injection_bandwidth = BytesPerSecond{100e9};
  of.chip.ejection_bandwidth = BytesPerSecond{90e9};
  const Expected<Grid> grid = build_grid(of, slice("2x4x4", of), *parse_wrap("y", here));
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->chips(), 32);
  EXPECT_THAT(grid->dimensions(),
              ElementsAre(GridDimension{2, false, of.link[0]}, GridDimension{4, true, of.link[1]}, GridDimension{4, false, of.link[2]}));
  EXPECT_EQ(grid->injection(), BytesPerSecond{100e9});
  EXPECT_EQ(grid->ejection(), BytesPerSecond{90e9});
}

TEST(BuildGrid, PassesOnWhatIsWrong) {
  EXPECT_FALSE(build_grid(cubes(), slice("16x16", cubes()), {Wrap::Rule::named, {2}}));
  EXPECT_EQ(build_grid(cubes(), Slice{{2, 2, 2, 2, 2}, true}, {}).error().message, "a grid has 1 to 4 dimensions, got 5");
  EXPECT_EQ(build_grid(cubes(), Slice{{}, true}, {}).error().message, "a grid has 1 to 4 dimensions, got 0");
}

}  // namespace
}  // namespace podsim
