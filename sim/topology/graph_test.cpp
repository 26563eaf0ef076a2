#include "sim/topology/graph.hpp"

#include <gmock/gmock.h>
#include <boost/graph/graph_concepts.hpp>

#include "sim/topology/graph_model.hpp"
#include "sim/topology/test_grids.hpp"

namespace podsim {
namespace {

using test::Disguised;
using test::grid;
using test::open_mesh;
using test::random_grid;
using test::torus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

BOOST_CONCEPT_ASSERT((boost::IncidenceGraphConcept<TopologyGraph>));
BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<TopologyGraph>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<TopologyGraph>));

/// A topology of listed links; the id of a link is its position. Routes are not needed here.
class Listed final : public Topology {
 public:
  struct Link {
    int from, to;
    double bandwidth, latency_us = 1;
  };
  Listed(int chips, std::vector<Link> links) : chips_{chips}, links_{std::move(links)} {}
  [[nodiscard]] int chips() const override { return chips_; }
  [[nodiscard]] int link_slots() const override { return static_cast<int>(links_.size()); }
  [[nodiscard]] std::vector<OutLink> out_links(ChipId chip) const override {
    std::vector<OutLink> out;
    for (std::size_t i = 0; i < links_.size(); ++i)
      if (links_[i].from == chip.value) out.push_back({LinkId{i}, ChipId{links_[i].to}});
    return out;
  }
  [[nodiscard]] LinkParameters link(LinkId link) const override {
    return {BytesPerSecond{links_[link.index()].bandwidth}, Seconds{links_[link.index()].latency_us * 1e-6}};
  }
  [[nodiscard]] bool is_hop(LinkId) const override { return true; }
  Status route(ChipId, ChipId, const RouteOptions&, std::vector<LinkId>&) const override { return Diagnostic{{}, "no routes"}; }
  [[nodiscard]] std::string link_name(LinkId link) const override { return std::to_string(link.value); }
  [[nodiscard]] std::string chip_name(ChipId chip) const override { return std::to_string(chip.value); }

 private:
  int chips_;
  std::vector<Link> links_;
};

void expect_same(const Shape& a, const Shape& b) {
  EXPECT_EQ(a.links, b.links);
  EXPECT_EQ(a.least_degree, b.least_degree);
  EXPECT_EQ(a.largest_degree, b.largest_degree);
  EXPECT_EQ(a.diameter, b.diameter);
  EXPECT_DOUBLE_EQ(a.mean_distance, b.mean_distance);
  EXPECT_EQ(a.connected, b.connected);
}

TEST(ShapeOf, MeetsTheClosedFormsOfTori) {
  const Shape shape = shape_of(torus({16, 16}));
  EXPECT_EQ(shape.links, 4 * 256);
  EXPECT_EQ(shape.least_degree, 4);
  EXPECT_EQ(shape.largest_degree, 4);
  EXPECT_EQ(shape.diameter, 16);
  EXPECT_DOUBLE_EQ(shape.mean_distance, 8.0 * 256 / 255);  // a quarter of the extent per dimension, over pairs of different chips
  EXPECT_TRUE(shape.connected);
  EXPECT_EQ(shape_of(torus({4, 4, 4})).diameter, 6);
}

TEST(ShapeOf, MeetsTheClosedFormsOfMeshes) {
  const Shape shape = shape_of(open_mesh({4, 4}));
  EXPECT_EQ(shape.links, 2 * 24);
  EXPECT_EQ(shape.least_degree, 2);
  EXPECT_EQ(shape.largest_degree, 4);
  EXPECT_EQ(shape.diameter, 6);
  EXPECT_DOUBLE_EQ(shape.mean_distance, 2 * 1.25 * 16 / 15);  // (e^2 - 1) / (3 e) per dimension
}

TEST(ShapeOf, OneChipHasNoDistance) {
  const Grid one = torus({1});
  expect_same(shape_of(one), Shape{});
  expect_same(*shape_of(Disguised{one}), Shape{});
}

TEST(ShapeOf, TheClosedFormIsWhatBreadthFirstSearchFinds) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Grid slice = random_grid(seed);
    expect_same(shape_of(slice), *shape_of(Disguised{slice}));
  }
}

TEST(ShapeOf, SaysWhenChipsCannotReachEachOther) {
  const Shape one_way = *shape_of(Listed{3, {{0, 1, 1e9}, {1, 2, 1e9}}});
  EXPECT_FALSE(one_way.connected);
  EXPECT_EQ(one_way.diameter, 2);
  EXPECT_DOUBLE_EQ(one_way.mean_distance, 4.0 / 3);
  EXPECT_EQ(one_way.least_degree, 0);
  EXPECT_TRUE(shape_of(Listed{3, {{0, 1, 1e9}, {1, 2, 1e9}, {2, 0, 1e9}}})->connected);
}

TEST(MinCut, OfATorusIsWhatOneChipCanSend) {
  EXPECT_EQ(min_cut(torus({4, 4}), ChipId{0}, ChipId{10}), BytesPerSecond{4 * 45e9});
  EXPECT_EQ(min_cut(torus({2, 2, 2}), ChipId{0}, ChipId{7}), BytesPerSecond{3 * 45e9});
  EXPECT_EQ(min_cut(open_mesh({4, 4}), ChipId{5}, ChipId{15}), BytesPerSecond{2 * 45e9});
}

TEST(MinCut, FindsTheBottleneckInTheMiddle) {
  // 0 -> {1, 2} -> 3 -> 4: 3 + 2 leave chip 0, the last link carries 4.
  const Listed diamond{5, {{0, 1, 3e9}, {0, 2, 2e9}, {1, 3, 5e9}, {2, 3, 1e9}, {3, 4, 9e9}, {3, 4, 1e9}}};
  EXPECT_EQ(min_cut(diamond, ChipId{0}, ChipId{3}), BytesPerSecond{4e9});
  EXPECT_EQ(min_cut(diamond, ChipId{3}, ChipId{4}), BytesPerSecond{10e9}) << "parallel links add up";
  EXPECT_EQ(min_cut(diamond, ChipId{4}, ChipId{0}), BytesPerSecond{}) << "links have a direction";
}

TEST(MinCut, IsUnlimitedAlongUnlimitedLinksOnly) {
  const double inf = unlimited<BytesPerSecond>.count();
  const Listed line{3, {{0, 1, inf}, {1, 2, inf}, {0, 2, 1e9}, {2, 0, 7e9}}};
  EXPECT_TRUE(is_unlimited(min_cut(line, ChipId{0}, ChipId{2})));
  EXPECT_EQ(min_cut(line, ChipId{2}, ChipId{1}), BytesPerSecond{7e9});
  EXPECT_TRUE(is_unlimited(min_cut(line, ChipId{1}, ChipId{1})));
}

// Max-flow min-cut, by trying every cut.
TEST(MinCut, IsTheLeastOfAllCuts) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed};
    const int chips = rng.between(2, 8);
    std::vector<Listed::Link> links;
    for (int i = 0, count = rng.between(1, 3 * chips); i < count; ++i)
      links.push_back({rng.between(0, chips - 1), rng.between(0, chips - 1), rng.between(1, 9) * 1e9});
    const Listed graph{chips, links};
    double least = unlimited<BytesPerSecond>.count();
    for (unsigned set = 0; set < (1U << chips); ++set) {
      if ((set & 1U) != 0 || (set >> (chips - 1) & 1U) == 0) continue;  // chip 0 on the near side, the last chip on the far side
      std::vector<bool> side;
      for (int chip = 0; chip < chips; ++chip) side.push_back((set >> chip & 1U) != 0);
      least = std::min(least, cut_bandwidth(graph, side).count());
    }
    ASSERT_EQ(min_cut(graph, ChipId{0}, ChipId{chips - 1}), BytesPerSecond{least});
  }
}

TEST(CutBandwidth, CountsOneDirection) {
  const Listed pair{2, {{0, 1, 3e9}, {0, 1, 1e9}, {1, 0, 5e9}}};
  EXPECT_EQ(cut_bandwidth(pair, {false, true}), BytesPerSecond{4e9});
  EXPECT_EQ(cut_bandwidth(pair, {true, false}), BytesPerSecond{5e9});
  EXPECT_EQ(cut_bandwidth(pair, {true, true}), BytesPerSecond{});
}

TEST(LeastLatencyPath, PrefersLatencyThenHops) {
  // Over 1: 1 + 1 us. Directly: 3 us. To 3: 2 us in two hops, or 2 us in three over 4, which the search finds first.
  const Listed graph{6, {{0, 1, 1e9, 1}, {1, 2, 1e9, 1}, {0, 2, 1e9, 3}, {1, 3, 1e9, 1}, {0, 4, 1e9, 0.4}, {4, 5, 1e9, 0.4}, {5, 3, 1e9, 1.2}}};
  EXPECT_THAT(least_latency_path(graph, ChipId{0}, ChipId{2}), ElementsAre(LinkId{0}, LinkId{1}));
  EXPECT_THAT(least_latency_path(graph, ChipId{0}, ChipId{3}), ElementsAre(LinkId{0}, LinkId{3}));
  EXPECT_THAT(least_latency_path(graph, ChipId{2}, ChipId{0}), IsEmpty());
  EXPECT_THAT(least_latency_path(graph, ChipId{0}, ChipId{0}), IsEmpty());
}

TEST(LeastLatencyPath, IsAsLongAsTheRouteOnAGrid) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Grid slice = random_grid(seed);
    for (int to = 0; to < slice.chips(); ++to) {
      std::vector<LinkId> route;
      ASSERT_TRUE(slice.route(ChipId{0}, ChipId{to}, {}, route));
      ASSERT_EQ(least_latency_path(slice, ChipId{0}, ChipId{to}).size(), route.size());
    }
  }
}

}  // namespace
}  // namespace podsim
