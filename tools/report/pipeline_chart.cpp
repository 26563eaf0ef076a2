#include "tools/report/pipeline_chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "tools/report/picture.hpp"

namespace podsim {
namespace {

constexpr std::size_t most_characters = std::size_t{1} << 22, most_boxes = std::size_t{1} << 16;
constexpr double chart_left = 80, chart_top = 78, chart_end = 30, widest_chart = 1600, highest_chart = 1200, widest_unit = 34, highest_row = 34;

struct KindStyle {
  char letter;
  const char* name;
  Colour light, dark;  // of a rank's first and last stage
};
/// The hues of matplotlib's tab20c: blue, green, orange, purple.
constexpr std::array<KindStyle, 4> styles{{{'F', "forward", {0x9e, 0xca, 0xe1}, {0x31, 0x82, 0xbd}},
                                           {'B', "backward", {0xa1, 0xd9, 0x9b}, {0x31, 0xa3, 0x54}},
                                           {'A', "backward of inputs", {0xfd, 0xae, 0x6b}, {0xe6, 0x55, 0x0d}},
                                           {'W', "backward of weights", {0xbc, 0xbd, 0xdc}, {0x75, 0x6b, 0xb1}}}};
const KindStyle& style_of(const PipelineTask& task) { return styles[static_cast<std::size_t>(task.kind)]; }

int stages_per_rank(const PipelineSpec& spec) { return spec.stages / spec.ranks; }

Colour colour_of(const PipelineTask& task, const PipelineSpec& spec) {
  const KindStyle& style = style_of(task);
  const int last = stages_per_rank(spec) - 1, way = last == 0 ? 0 : task.stage / spec.ranks;
  const auto mixed = [&](std::uint8_t light, std::uint8_t dark) {
    return static_cast<std::uint8_t>(last == 0 ? light : (light * (last - way) + dark * way) / last);
  };
  return {mixed(style.light.red, style.dark.red), mixed(style.light.green, style.dark.green), mixed(style.light.blue, style.dark.blue)};
}

std::string label_of(const PipelineTask& task, const PipelineSpec& spec) {
  if (stages_per_rank(spec) == 1) return fmt::format("{}{}", style_of(task).letter, task.microbatch);
  return fmt::format("{}{}.{}", style_of(task).letter, task.stage, task.microbatch);
}

/// The least of 1, 2, 5, 10, 20, ... that is at least `least`.
std::int64_t round_step(double least) {
  for (std::int64_t power = 1;; power *= 10)
    for (const std::int64_t factor : {1, 2, 5})
      if (static_cast<double>(factor * power) >= least) return factor * power;
}

/// One rank's row: its characters, and the task of each (none: idle).
struct ChartRow {
  std::string characters;
  std::vector<const PipelineTask*> tasks;
};

class TextChart {
 public:
  TextChart(const PipelineSpec& spec, const PipelineTimes& times, bool coloured) : spec_{spec}, times_{times}, coloured_{coloured} {
    cell_ = 1 + label_of({PipelineTaskKind::forward, spec.stages - 1, spec.microbatches - 1}, spec).size();
    margin_ = fmt::format("rank {} ", spec.ranks - 1).size();
  }

  Expected<std::string> draw(std::size_t columns) {
    const auto units = static_cast<std::size_t>(times_.makespan);
    if (const std::size_t size = (margin_ + units * cell_) * (times_.spans.size() + 1); size > most_characters)
      return Diagnostic{{}, fmt::format("a chart of {} characters; expected at most {}; JSON and CSV have every task", size, most_characters)};
    for (const auto& spans : times_.spans) rows_.push_back(row_of(spans));
    const std::size_t room = columns > margin_ + 1 ? columns - margin_ - 1 : 0, fitting = std::max<std::size_t>(1, room / cell_);
    const std::size_t at_once = columns == 0 ? units : std::min(units, fitting);
    std::string text;
    for (std::size_t first = 0; first < units; first += at_once) {
      if (first > 0) text += '\n';
      add_part(first, std::min(first + at_once, units), text);
    }
    return text;
  }

 private:
  /// One character more than the units need: the border of a task that ends last.
  ChartRow row_of(const std::vector<PipelineSpan>& spans) const {
    ChartRow row{std::string(static_cast<std::size_t>(times_.makespan) * cell_ + 1, ' '), {}};
    row.tasks.resize(row.characters.size());
    for (const PipelineSpan& span : spans) {
      const std::size_t begin = static_cast<std::size_t>(span.begin) * cell_, end = static_cast<std::size_t>(span.end) * cell_;
      const std::string label = '|' + label_of(span.task, spec_);
      row.characters.replace(begin, label.size(), label);
      row.characters[end] = '|';
      std::fill(row.tasks.begin() + static_cast<std::ptrdiff_t>(begin), row.tasks.begin() + static_cast<std::ptrdiff_t>(end), &span.task);
    }
    return row;
  }

  void add_part(std::size_t first, std::size_t last, std::string& text) const {
    const std::size_t widest = std::to_string(times_.makespan).size() + 1;
    const auto step = static_cast<std::size_t>(round_step(static_cast<double>(widest) / static_cast<double>(cell_)));
    std::string line = fmt::format("{:<{}}", "time", margin_);
    for (std::size_t unit = (first + step - 1) / step * step; unit <= last; unit += step) {
      const std::size_t at = margin_ + (unit - first) * cell_;
      if (unit == last && last < static_cast<std::size_t>(times_.makespan)) break;  // begins the next part
      line.resize(std::max(line.size(), at), ' ');
      line += std::to_string(unit);
    }
    text += line + '\n';
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
      text += fmt::format("{:<{}}", fmt::format("rank {}", rank), margin_);
      add_row(rows_[rank], first * cell_, last * cell_ + 1, text);
    }
  }

  void add_row(const ChartRow& row, std::size_t begin, std::size_t end, std::string& text) const {
    if (!coloured_) {
      std::string line = row.characters.substr(begin, end - begin);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
      return;
    }
    for (std::size_t at = begin; at + 1 < end;) {
      std::size_t next = at;
      while (next + 1 < end && row.tasks[next] == row.tasks[at]) ++next;
      std::string piece = row.characters.substr(at, next - at);
      std::replace(piece.begin(), piece.end(), '|', ' ');  // colours tell tasks apart
      text += row.tasks[at] == nullptr ? piece : coloured_text(piece, colour_of(*row.tasks[at], spec_));
      at = next;
    }
    text += '\n';
  }

  const PipelineSpec& spec_;
  const PipelineTimes& times_;
  bool coloured_;
  std::size_t cell_ = 0, margin_ = 0;
  std::vector<ChartRow> rows_;
};

Expected<BoxPicture> chart_picture(const PipelineSpec& spec, const PipelineTimes& times, const std::string& title) {
  std::size_t boxes = 0;
  for (const auto& spans : times.spans) boxes += spans.size();
  if (boxes > most_boxes)
    return Diagnostic{{}, fmt::format("a picture of {} tasks; expected at most {}; JSON and CSV have every task", boxes, most_boxes)};
  const auto units = static_cast<double>(times.makespan), ranks = static_cast<double>(spec.ranks);
  const double unit = std::min(widest_unit, widest_chart / units), row = std::min(highest_row, highest_chart / ranks);
  constexpr Colour grey{0x44, 0x44, 0x44};
  BoxPicture picture{chart_left + std::max(unit * units, 640.0) + chart_end, chart_top + row * ranks + chart_end};
  picture.texts.push_back({chart_left, 18, 16, 0, Colour{}, title});

  std::array<bool, styles.size()> used{};
  for (std::size_t rank = 0; rank < times.spans.size(); ++rank)
    for (const auto& [task, begin, end] : times.spans[rank]) {
      const PictureBox box{chart_left + unit * static_cast<double>(begin),
                           chart_top + row * static_cast<double>(rank),
                           unit * static_cast<double>(end - begin),
                           row,
                           colour_of(task, spec),
                           unit > 4 && row > 4};
      picture.boxes.push_back(box);
      used[static_cast<std::size_t>(task.kind)] = true;
      const std::string label = label_of(task, spec).substr(1);
      const double size = std::min({14.0, 0.9 * unit / (letter_width * static_cast<double>(label.size())), 0.7 * row});
      if (size >= 7) picture.texts.push_back({box.x + box.width / 2, box.y + row / 2, size, 0.5, text_colour(box.fill), label});
    }

  double at = chart_left;
  for (std::size_t kind = 0; kind < styles.size(); ++kind)
    if (used[kind]) {
      picture.boxes.push_back({at, 34, 14, 14, stages_per_rank(spec) == 1 ? styles[kind].light : styles[kind].dark, false});
      picture.texts.push_back({at + 20, 41, 12, 0, grey, styles[kind].name});
      at += 160;
    }
  const double digits = static_cast<double>(std::to_string(times.makespan).size()) + 1.5;
  for (std::int64_t t = 0, step = round_step(12 * letter_width * digits / unit); t <= times.makespan; t += step)
    picture.texts.push_back({chart_left + unit * static_cast<double>(t), chart_top - 10, 12, 0.5, grey, std::to_string(t)});
  for (std::int64_t rank = 0, step = round_step(14 / row); rank < spec.ranks; rank += step)
    picture.texts.push_back({chart_left - 8, chart_top + row * (static_cast<double>(rank) + 0.5), 12, 1, grey, fmt::format("rank {}", rank)});
  return picture;
}

}  // namespace

Expected<std::string> pipeline_chart(const PipelineSpec& spec, const PipelineTimes& times, bool coloured, std::size_t columns) {
  return TextChart{spec, times, coloured}.draw(columns);
}

Expected<std::string> pipeline_svg(const PipelineSpec& spec, const PipelineTimes& times, const std::string& title) {
  const auto picture = chart_picture(spec, times, title);
  if (!picture) return picture.error();
  return svg_of(*picture);
}

Expected<std::string> pipeline_png(const PipelineSpec& spec, const PipelineTimes& times, const std::string& title) {
  const auto picture = chart_picture(spec, times, title);
  if (!picture) return picture.error();
  return png_of(*picture);
}

}  // namespace podsim
