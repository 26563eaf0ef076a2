#include "tools/report/pipeline_chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/base/units.hpp"
#include "tools/report/picture.hpp"
#include "tools/report/role_colours.hpp"

namespace podsim {
namespace {

constexpr std::size_t most_characters = std::size_t{1} << 22, most_boxes = std::size_t{1} << 16;
constexpr double chart_left = 80, chart_top = 78, chart_end = 30, widest_chart = 1600, highest_chart = 1200, widest_unit = 34, highest_row = 34;

struct KindStyle {
  char letter;
  const char* name;  // of its role
};
constexpr std::array<KindStyle, pipeline_roles> styles{{{'F', "forward"}, {'B', "backward"}, {'A', "backward of inputs"}, {'W', "backward of weights"}, {'U', "optimizer"}}};
const KindStyle& style_of(const PipelineTask& task) { return styles[static_cast<std::size_t>(task.kind)]; }

int stages_per_rank(const PipelineSpec& spec) { return spec.stages / spec.ranks; }

/// Of the stage that is `way`-th of `ways` on its rank: the first has the colour of the role, later ones are darker.
Colour colour_of(PipelineRole role, std::size_t way, std::size_t ways) {
  constexpr double darkest = 0.3;
  const double share = ways < 2 ? 0 : darkest * static_cast<double>(std::min(way, ways - 1)) / static_cast<double>(ways - 1);
  return mixed(colour_of_role(styles[static_cast<std::size_t>(role)].name), Colour{}, share);
}

Colour colour_of(const PipelineTask& task, const PipelineSpec& spec) {
  return colour_of(static_cast<PipelineRole>(task.kind), static_cast<std::size_t>(task.stage / spec.ranks), static_cast<std::size_t>(stages_per_rank(spec)));
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

DrawnPipeline drawn(const PipelineTimes& times, const std::string& title) {
  DrawnPipeline pipeline{title, {}, times.makespan, false};
  for (std::size_t rank = 0; rank < times.spans.size(); ++rank) {
    pipeline.rows.push_back({fmt::format("rank {}", rank)});
    for (const auto& [task, begin, end] : times.spans[rank])
      pipeline.rows.back().tasks.push_back({static_cast<PipelineRole>(task.kind), task.stage, task.microbatch, begin, end});
  }
  return pipeline;
}

/// The stages of a row, in order.
std::vector<int> stages_of(const DrawnPipeline::Row& row) {
  std::set<int> stages;
  for (const DrawnPipelineTask& task : row.tasks)
    if (task.role != PipelineRole::optimizer) stages.insert(task.stage);
  return {stages.begin(), stages.end()};
}

Expected<BoxPicture> picture_of(const DrawnPipeline& pipeline) {
  std::size_t boxes = 0, ways = 1;
  for (const DrawnPipeline::Row& row : pipeline.rows) boxes += row.tasks.size(), ways = std::max(ways, stages_of(row).size());
  if (boxes > most_boxes)
    return Diagnostic{{}, fmt::format("a picture of {} tasks; expected at most {}; JSON and CSV have every task", boxes, most_boxes)};
  const auto units = static_cast<double>(pipeline.end), ranks = static_cast<double>(pipeline.rows.size());
  const double unit = std::min(widest_unit, widest_chart / units), row_height = std::min(highest_row, highest_chart / ranks);
  constexpr Colour grey{0x44, 0x44, 0x44};
  BoxPicture picture{chart_left + std::max(unit * units, 640.0) + chart_end, chart_top + row_height * ranks + chart_end};
  picture.texts.push_back({chart_left, 18, 16, 0, Colour{}, pipeline.title});

  std::array<bool, pipeline_roles> used{};
  for (std::size_t r = 0; r < pipeline.rows.size(); ++r) {
    const std::vector<int> stages = stages_of(pipeline.rows[r]);
    for (const DrawnPipelineTask& task : pipeline.rows[r].tasks) {
      const std::size_t way = static_cast<std::size_t>(std::ranges::find(stages, task.stage) - stages.begin());
      const double width = unit * static_cast<double>(task.end - task.begin);
      const PictureBox box{chart_left + unit * static_cast<double>(task.begin), chart_top + row_height * static_cast<double>(r), width, row_height, colour_of(task.role, way, stages.size()), width > 4 && row_height > 4};
      picture.boxes.push_back(box);
      used[static_cast<std::size_t>(task.role)] = true;
      if (task.role == PipelineRole::optimizer) continue;
      const std::string label = ways == 1 ? std::to_string(task.microbatch) : fmt::format("{}.{}", task.stage, task.microbatch);
      const double size = std::min({14.0, 0.9 * width / (letter_width * static_cast<double>(label.size())), 0.7 * row_height});
      if (size >= 7) picture.texts.push_back({box.x + box.width / 2, box.y + row_height / 2, size, 0.5, text_colour(box.fill), label});
    }
  }

  double at = chart_left;
  for (std::size_t role = 0; role < styles.size(); ++role)
    if (used[role]) {
      picture.boxes.push_back({at, 34, 14, 14, colour_of(static_cast<PipelineRole>(role), 0, 1), false});
      picture.texts.push_back({at + 20, 41, 12, 0, grey, styles[role].name});
      at += 160;
    }
  const auto time_text = [&](std::int64_t time) { return pipeline.in_picoseconds ? to_text(to_seconds(Picoseconds{time})) : std::to_string(time); };
  const double digits = (pipeline.in_picoseconds ? 8.0 : static_cast<double>(std::to_string(pipeline.end).size())) + 1.5;
  for (std::int64_t t = 0, step = round_step(12 * letter_width * digits / unit); t <= pipeline.end; t += step)
    picture.texts.push_back({chart_left + unit * static_cast<double>(t), chart_top - 10, 12, 0.5, grey, time_text(t)});
  for (std::size_t row = 0, step = static_cast<std::size_t>(round_step(14 / row_height)); row < pipeline.rows.size(); row += step)
    picture.texts.push_back({chart_left - 8, chart_top + row_height * (static_cast<double>(row) + 0.5), 12, 1, grey, pipeline.rows[row].name});
  return picture;
}

}  // namespace

Expected<std::string> pipeline_chart(const PipelineSpec& spec, const PipelineTimes& times, bool coloured, std::size_t columns) {
  return TextChart{spec, times, coloured}.draw(columns);
}

double DrawnPipeline::bubble_fraction() const {
  double busy = 0;
  for (const Row& row : rows)
    for (const DrawnPipelineTask& task : row.tasks) busy += static_cast<double>(task.end - task.begin);
  const double all = static_cast<double>(end) * static_cast<double>(rows.size());
  return all > 0 ? 1 - busy / all : 0;
}

Expected<std::string> pipeline_svg(const DrawnPipeline& pipeline) {
  const auto picture = picture_of(pipeline);
  if (!picture) return picture.error();
  return svg_of(*picture);
}

Expected<std::string> pipeline_svg(const PipelineTimes& times, const std::string& title) { return pipeline_svg(drawn(times, title)); }

Expected<std::string> pipeline_png(const PipelineTimes& times, const std::string& title) {
  const auto picture = picture_of(drawn(times, title));
  if (!picture) return picture.error();
  return png_of(*picture);
}

}  // namespace podsim
