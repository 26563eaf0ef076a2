// The picture of predictions: what is drawn where.
#include <gmock/gmock.h>

#include <limits>

#include "tools/report/prediction_plot.hpp"

namespace podsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PlottedPoint point(double measured, double predicted, bool hollow = false) { return {Seconds{measured}, Seconds{predicted}, "x < y & z", hollow}; }

TEST(PredictionPlot, APointThatIsRightStandsOnTheDiagonalAndOnTheZeroLine) {
  // One decade each way: 1 us is the lower left corner, 10 us the upper right one.
  const std::string svg = prediction_svg("t", {{"g", {point(1e-6, 1e-6), point(1e-5, 1e-5)}}});
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"80.0\" cy=\"410.0\""));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"500.0\" cy=\"50.0\""));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"590.0\" cy=\"230.0\""));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"1010.0\" cy=\"230.0\""));
}

TEST(PredictionPlot, ErrorsBeyondTheEdgeAreTrianglesThatPointOut) {
  const std::string svg = prediction_svg("t", {{"g", {point(1e-6, 3e-6), point(1e-5, 1e-6)}}});
  EXPECT_THAT(svg, HasSubstr("<path d=\"M586.0 50.0L594.0 50.0L590.0 45.0Z\""));
  EXPECT_THAT(svg, HasSubstr("410.0L1010.0 415.0Z\""));
  EXPECT_THAT(svg, HasSubstr("(+200.0 %)"));
}

TEST(PredictionPlot, EscapesTextsAndTellsWhatHollowMeans) {
  const std::string svg = prediction_svg("a < b", {{"g", {point(1e-6, 1e-6, true)}}});
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr("x &lt; y &amp; z"));
  EXPECT_THAT(svg, HasSubstr("hollow: not counted"));
  EXPECT_THAT(prediction_svg("t", {{"g", {point(1e-6, 1e-6)}}}), Not(HasSubstr("hollow")));
}

TEST(PredictionPlot, ManyPointsAreDots) {
  const std::string svg = prediction_svg("t", {{"g", std::vector<PlottedPoint>(1001, point(1e-6, 1e-6))}, {"h", {point(1e-6, 3e-6, true)}}});
  EXPECT_THAT(svg, HasSubstr("M80.0 410.0h0M590.0 230.0h0M80.0 410.0h0"));
  EXPECT_THAT(svg, HasSubstr("M590.0 50.0h0\" stroke=\"#d55e00\" stroke-width=\"3\"")) << "beyond the edge, not counted";
  EXPECT_THAT(svg, HasSubstr("pale: not counted"));
  EXPECT_THAT(svg, Not(HasSubstr("<title>")));
}

TEST(PredictionPlot, NothingToDrawIsAnEmptyFrame) {
  for (const auto& groups : {std::vector<PlottedGroup>{}, {{"g", {}}}, {{"g", {point(0, 1e-6), point(1e-6, std::numeric_limits<double>::infinity())}}}}) {
    const std::string svg = prediction_svg("t", groups);
    EXPECT_THAT(svg, HasSubstr("</svg>"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf\"")));
  }
}

}  // namespace
}  // namespace podsim
