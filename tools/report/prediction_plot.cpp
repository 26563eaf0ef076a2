#include "tools/report/prediction_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "tools/report/role_colours.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

std::string colour_of(std::size_t group) { return hex(series_colours()[group % series_colours().size()]); }

constexpr double panel_width = 420, panel_height = 360, left_margin = 80, top_margin = 50, panel_gap = 90, legend_row = 18, foot = 60;
constexpr double most_error = 0.5, band = 0.1;
constexpr std::size_t most_tooltips = 1000;  // points with one: a picture of more would be megabytes

struct PointPlace {
  double x = 0, y = 0;
};

std::string line(PointPlace a, PointPlace b, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", a.x, a.y, b.x, b.y, style);
}
std::string text_at(PointPlace at, std::string_view anchor, std::string_view text, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", at.x, at.y, anchor, more, xml_text(text));
}

/// Whole decades around all times, of at least one.
struct Decades {
  int low = 0, high = 0;
  [[nodiscard]] double share(Seconds time) const { return (std::log10(std::max(time.count(), 1e-15)) - low) / (high - low); }
};

Decades decades_of(const std::vector<PlottedGroup>& groups) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const PlottedGroup& group : groups)
    for (const PlottedPoint& point : group.points)
      for (const Seconds time : {point.measured, point.predicted}) {
        if (!(time.count() > 0) || !std::isfinite(time.count())) continue;
        low = std::min(low, time.count());
        high = std::max(high, time.count());
      }
  if (high == 0) return {-6, 0};
  Decades decades{static_cast<int>(std::floor(std::log10(low))), static_cast<int>(std::ceil(std::log10(high)))};
  if (decades.high == decades.low) ++decades.high;
  return decades;
}

class Picture {
 public:
  explicit Picture(const std::vector<PlottedGroup>& groups) : groups_{groups}, decades_{decades_of(groups)} {}

  std::string draw(const std::string& title) {
    std::size_t shown = 0;
    std::size_t count = 0;
    for (const PlottedGroup& group : groups_) {
      shown += group.points.empty() ? 0 : 1;
      count += group.points.size();
    }
    dots_only_ = count > most_tooltips;
    const double width = left_margin + 2 * panel_width + panel_gap + 30;
    const double height = top_margin + panel_height + foot + legend_row * static_cast<double>((shown + 2) / 3) + 10;
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height);
    svg_ += text_at({left_margin, 24}, "start", title, "font-size=\"15\"");
    frame(first_, "predicted time");
    frame(second_, "error of the prediction");
    decade_axes();
    error_axis();
    for (std::size_t g = 0; g < groups_.size(); ++g) points(g);
    legend();
    return svg_ + "</svg>\n";
  }

 private:
  static constexpr PointPlace first_{left_margin, top_margin}, second_{left_margin + panel_width + panel_gap, top_margin};

  void frame(PointPlace corner, std::string_view label) {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"#444\"/>\n", corner.x, corner.y,
                        panel_width, panel_height);
    svg_ += text_at({corner.x, corner.y - 8}, "start", label);
    svg_ += text_at({corner.x + panel_width / 2, corner.y + panel_height + 40}, "middle", "measured time");
  }

  void decade_axes() {
    for (int decade = decades_.low; decade <= decades_.high; ++decade) {
      const double share = decades_.share(Seconds{std::pow(10.0, decade)});
      const std::string label = to_text(Seconds{std::pow(10.0, decade)});
      for (const PointPlace& corner : {first_, second_}) {
        const double x = corner.x + share * panel_width;
        svg_ += line({x, corner.y}, {x, corner.y + panel_height}, "stroke=\"#ddd\"");
        svg_ += text_at({x, corner.y + panel_height + 18}, "middle", label);
      }
      const double y = first_.y + (1 - share) * panel_height;
      svg_ += line({first_.x, y}, {first_.x + panel_width, y}, "stroke=\"#ddd\"");
      svg_ += text_at({first_.x - 8, y + 4}, "end", label);
    }
    svg_ += line({first_.x, first_.y + panel_height}, {first_.x + panel_width, first_.y}, "stroke=\"#444\"");
  }

  [[nodiscard]] static double error_height(double error) {
    return second_.y + panel_height / 2 * (1 - std::clamp(error, -most_error, most_error) / most_error);
  }

  void error_axis() {
    svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" fill-opacity=\"0.08\"/>\n", second_.x,
                        error_height(band), panel_width, error_height(-band) - error_height(band), colour_of(0));
    for (int percent = -50; percent <= 50; percent += 10) {
      const double y = error_height(percent / 100.0);
      svg_ += line({second_.x, y}, {second_.x + panel_width, y}, percent == 0 ? "stroke=\"#444\"" : "stroke=\"#ddd\"");
      svg_ += text_at({second_.x - 8, y + 4}, "end", percent == 0 ? "0 %" : fmt::format("{:+} %", percent));
    }
  }

  void mark(PointPlace at, std::string_view colour, const PlottedPoint& point, int beyond) {
    const std::string paint = point.hollow ? fmt::format("fill=\"white\" stroke=\"{}\"", colour) : fmt::format("fill=\"{}\"", colour);
    const double error = point.predicted.count() / point.measured.count() - 1;
    const std::string title =
        xml_text(fmt::format("{}: measured {}, predicted {} ({})", point.what, to_text(point.measured), to_text(point.predicted), signed_percent(error)));
    if (beyond == 0) {
      svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" {}><title>{}</title></circle>\n", at.x, at.y, paint, title);
      return;
    }
    const double tip = at.y - 5 * beyond;
    svg_ += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}Z\" {}><title>{}</title></path>\n", at.x - 4, at.y, at.x + 4, at.y, at.x,
                        tip, paint, title);
  }

  /// Many points as two strokes of dots: filled, and pale where they do not count.
  void dots(std::size_t g) {
    for (const bool hollow : {true, false}) {
      std::string places;
      for (const PlottedPoint& point : groups_[g].points) {
        if (point.hollow != hollow || !(point.measured.count() > 0) || !std::isfinite(point.predicted.count())) continue;
        const double across = decades_.share(point.measured) * panel_width;
        const double up = std::clamp(decades_.share(point.predicted), 0.0, 1.0) * panel_height;
        places += fmt::format("M{:.1f} {:.1f}h0", first_.x + across, first_.y + panel_height - up);
        places += fmt::format("M{:.1f} {:.1f}h0", second_.x + across, error_height(point.predicted.count() / point.measured.count() - 1));
      }
      if (!places.empty())
        svg_ += fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\" stroke-opacity=\"{}\"/>\n", places,
                            colour_of(g), hollow ? 3 : 5, hollow ? 0.35 : 1);
    }
  }

  void points(std::size_t g) {
    if (dots_only_) return dots(g);
    const std::string colour = colour_of(g);
    for (const PlottedPoint& point : groups_[g].points) {
      if (!(point.measured.count() > 0) || !std::isfinite(point.predicted.count())) continue;
      const double across = decades_.share(point.measured) * panel_width;
      const double up = std::clamp(decades_.share(point.predicted), 0.0, 1.0) * panel_height;
      mark({first_.x + across, first_.y + panel_height - up}, colour, point, 0);
      const double error = point.predicted.count() / point.measured.count() - 1;
      mark({second_.x + across, error_height(error)}, colour, point, error > most_error ? 1 : error < -most_error ? -1 : 0);
    }
  }

  void legend() {
    const auto is_hollow = [](const PlottedPoint& point) { return point.hollow; };
    if (std::any_of(groups_.begin(), groups_.end(), [&](const PlottedGroup& g) { return std::any_of(g.points.begin(), g.points.end(), is_hollow); }))
      svg_ += text_at({second_.x + panel_width, second_.y - 8}, "end", dots_only_ ? "pale: not counted" : "hollow: not counted");
    std::size_t shown = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].points.empty()) continue;
      const PointPlace at{left_margin + static_cast<double>(shown % 3) * 310,
                     top_margin + panel_height + foot + legend_row * static_cast<double>(shown / 3)};
      const bool hollow = std::all_of(groups_[g].points.begin(), groups_[g].points.end(), is_hollow);
      const std::string colour = colour_of(g);
      svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\"/>\n", at.x, at.y, hollow ? "white" : colour, colour);
      svg_ += text_at({at.x + 10, at.y + 4}, "start", groups_[g].name);
      ++shown;
    }
  }

  const std::vector<PlottedGroup>& groups_;
  Decades decades_;
  bool dots_only_ = false;
  std::string svg_;
};

}  // namespace

std::string prediction_svg(const std::string& title, const std::vector<PlottedGroup>& groups) { return Picture{groups}.draw(title); }

}  // namespace podsim
