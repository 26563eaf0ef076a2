#include "tools/page/timeline_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "sim/analysis/operations.hpp"
#include "sim/base/units.hpp"
#include "tools/report/role_colours.hpp"
#include "tools/report/run_operations.hpp"
#include "tools/report/table.hpp"
#include "tools/report/text_width.hpp"

namespace podsim {

namespace {

constexpr std::string_view marks = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr char no_mark_left = '#', mostly_idle = '.', idle = ' ';
constexpr std::int64_t least_part = 10;  // of a column: one divided by it
constexpr std::string_view line_of_calls = "calls";
constexpr int most_dropped = 8;          // words of a task's name behind that of its operation

using Operation = std::size_t;

/// What a line shows of a call: the core at work, the dma unit, or what is in flight along an axis.
std::string_view role_in_calls(std::string_view line) { return line == "compute" ? "compute" : line.starts_with("dma") ? "copy" : "communication"; }

/// The operations of the tasks of a record: those of its result, and what they lack. A call belongs to its function.
class OperationNames {
 public:
  OperationNames(const std::vector<StepOperation>& known, const Record& record) {
    std::unordered_map<std::string, Operation> numbers;
    const auto number_of = [&](const std::string& name) {
      const auto [entry, is_new] = numbers.try_emplace(name, names_.size());
      if (is_new) names_.push_back(name);
      return entry->second;
    };
    for (const StepOperation& operation : known) number_of(operation.name);
    for (const RecordedCall& call : record.calls) of_call_.push_back(number_of(call.name));
    for (const std::string& task : record.tasks) {
      // "ff1: gather W s3 +1" is a task of "ff1: gather W": the longest beginning that is the name of an operation of the result.
      const std::string name = without_slice(task);
      const auto known_as = [&](std::size_t size) {
        const auto found = numbers.find(name.substr(0, size));
        return found != numbers.end() && found->second < known.size() ? std::optional{found->second} : std::nullopt;
      };
      std::size_t end = name.size();
      auto operation = known_as(end);
      for (int dropped = 0; !operation && dropped < most_dropped && end != std::string::npos && end > 0; ++dropped)
        if (end = name.rfind(' ', end - 1); end != std::string::npos) operation = known_as(end);
      of_task_.push_back(operation ? *operation : number_of(name));
    }
    roles_.resize(names_.size());
    const auto name_role = [&](Operation operation, std::size_t task) {
      if (roles_[operation].empty() && task < record.task_roles.size()) roles_[operation] = record.task_roles[task];
    };
    for (std::size_t task = 0; task < of_task_.size(); ++task) name_role(of_task_[task], task);
    for (const RecordedTimeline& timeline : record.timelines)
      for (const RecordedLine& line : timeline.lines)
        for (const RecordedBar& bar : line.bars)
          if (bar.call != 0 && line.name == line_of_calls) name_role(of(bar), bar.task);
  }
  [[nodiscard]] Operation of(const RecordedBar& bar) const { return bar.call == 0 ? of_task_[bar.task] : of_call_[bar.call - 1]; }
  [[nodiscard]] const std::string& name(Operation operation) const { return names_[operation]; }
  /// What it is on a line, for its colour.
  [[nodiscard]] std::string_view role(Operation operation, const std::string& line) const {
    const bool is_call = std::ranges::find(of_call_, operation) != of_call_.end();
    return is_call && line != line_of_calls ? role_in_calls(line) : roles_[operation];
  }
  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  std::vector<std::string> names_, roles_;
  std::vector<Operation> of_task_, of_call_;
};

/// The time of a run, cut into columns.
struct TimeAxis {
  std::int64_t end, columns;  // end in picoseconds, at least one per column

  [[nodiscard]] std::int64_t begin_of(std::int64_t column) const { return end / columns * column + end % columns * column / columns; }
  [[nodiscard]] std::int64_t column_at(std::int64_t time) const {
    auto column = static_cast<std::int64_t>(static_cast<double>(time) / static_cast<double>(end) * static_cast<double>(columns));
    column = std::clamp<std::int64_t>(column, 0, columns - 1);
    while (column > 0 && begin_of(column) > time) --column;
    while (column + 1 < columns && begin_of(column + 1) <= time) ++column;
    return column;
  }
};

struct Cell {
  bool busy = false;                    // at all
  std::optional<Operation> operation{};  // that takes most of the column, if the line is busy for a tenth of it
};
struct ChartLine {
  std::string name;
  double share = 0;  // of the time that it is busy
  std::vector<Cell> cells;
};

/// Which operation takes most of each column.
ChartLine chart_line(const RecordedLine& line, const OperationNames& names, const TimeAxis& axis) {
  ChartLine drawn{line.name, 0, std::vector<Cell>(static_cast<std::size_t>(axis.columns))};
  std::map<Operation, std::int64_t> times;  // in the column `at`
  std::int64_t at = 0;
  double busy = 0;
  const auto finish = [&] {
    if (times.empty()) return;
    std::int64_t sum = 0;
    for (const auto& [operation, time] : times) sum += time;
    const auto most = std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    Cell& cell = drawn.cells[static_cast<std::size_t>(at)];
    cell.busy = true;
    if (sum >= (axis.begin_of(at + 1) - axis.begin_of(at)) / least_part) cell.operation = most->first;
    times.clear();
  };
  for (const RecordedBar& bar : line.bars) {
    busy += static_cast<double>((bar.end - bar.begin).count());
    const std::int64_t until = std::min(bar.end.count(), axis.end);
    for (std::int64_t from = bar.begin.count(); from < until;) {
      if (const std::int64_t column = axis.column_at(from); column != at) {
        finish();
        at = column;
      }
      const std::int64_t to = std::min(until, axis.begin_of(at + 1));
      times[names.of(bar)] += to - from;
      from = to;
    }
  }
  finish();
  drawn.share = busy / static_cast<double>(axis.end);
  return drawn;
}

/// The letters of the operations that columns show: by the first column, or where there are too few letters for all, the longest have one.
class Marks {
 public:
  struct Use {
    std::int64_t first = 0, columns = 0;
    char mark = no_mark_left;
  };

  explicit Marks(const std::vector<ChartLine>& lines) {
    for (const ChartLine& line : lines)
      for (std::size_t c = 0; c < line.cells.size(); ++c)
        if (const auto& operation = line.cells[c].operation) {
          Use& use = uses_.try_emplace(*operation, Use{static_cast<std::int64_t>(c), 0}).first->second;
          use.first = std::min(use.first, static_cast<std::int64_t>(c));
          ++use.columns;
        }
    for (const auto& [operation, use] : uses_) order_.push_back(operation);
    const auto by = [&](auto key) { std::stable_sort(order_.begin(), order_.end(), [&](Operation a, Operation b) { return key(uses_[a]) < key(uses_[b]); }); };
    by([](const Use& use) { return -use.columns; });
    order_.resize(std::min(order_.size(), marks.size()));
    by([](const Use& use) { return use.first; });
    for (std::size_t i = 0; i < order_.size(); ++i) uses_[order_[i]].mark = marks[i];
  }

  /// Those that have a letter, in its order.
  [[nodiscard]] const std::vector<Operation>& order() const { return order_; }
  [[nodiscard]] char of(Operation operation) const {
    const auto found = uses_.find(operation);
    return found == uses_.end() ? mostly_idle : found->second.mark;
  }
  [[nodiscard]] char of(const Cell& cell) const { return cell.operation ? of(*cell.operation) : cell.busy ? mostly_idle : idle; }

 private:
  std::map<Operation, Use> uses_;
  std::vector<Operation> order_;
};

/// The marks of a line's cells, each on the colour of its role.
std::string coloured_cells(const std::string& cells, const ChartLine& line, const OperationNames& names) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < cells.size(); begin = end) {
    const std::optional<Operation> operation = line.cells[begin].operation;
    for (end = begin + 1; end < cells.size() && cells[end] == cells[begin] && line.cells[end].operation == operation;) ++end;
    const std::string same = cells.substr(begin, end - begin);
    text += operation ? coloured_text(same, colour_of_role(names.role(*operation, line.name))) : same;
  }
  return text;
}

/// "0 us      50 us" and "|---------|----": a tick at every 1, 2 or 5 times a power of ten, a dozen columns apart or more.
std::string axis_text(const TimeAxis& axis, const std::string& margin) {
  constexpr std::int64_t apart = 12;
  const std::int64_t least = std::max<std::int64_t>(1, axis.end / axis.columns * apart + axis.end % axis.columns * apart / axis.columns);
  std::int64_t step = 1;
  for (int turn = 0; step < least; ++turn) step = turn % 3 == 1 ? step / 2 * 5 : step * 2;
  std::string labels, ruler(static_cast<std::size_t>(axis.columns), '-');
  for (std::int64_t time = 0; time < axis.end; time += step) {
    const auto column = static_cast<std::size_t>(axis.column_at(time));
    const std::string label = time == 0 ? "0" : to_text(to_seconds(Picoseconds{time}));
    ruler[column] = '|';
    if (column + label.size() <= static_cast<std::size_t>(axis.columns) && (column == 0 || column > labels.size())) labels.resize(column, ' '), labels += label;
    if (time > axis.end - step) break;
  }
  return margin + labels + "\n" + margin + ruler + "\n";
}

std::string legend_text(const RecordedTimeline& timeline, const OperationNames& names, const Marks& marks_of, std::size_t columns) {
  struct Bars {
    std::int64_t count = 0;
    double seconds = 0;
  };
  std::vector<Bars> bars(names.size());
  for (const RecordedLine& line : timeline.lines)
    for (const RecordedBar& bar : line.bars) {
      if (bar.call != 0 && line.name != line_of_calls) continue;  // a part of a bar that counts
      Bars& sum = bars[names.of(bar)];
      ++sum.count;
      sum.seconds += to_seconds(bar.end - bar.begin).count();
    }
  const std::size_t room = std::max<std::size_t>(columns - std::min<std::size_t>(columns, 32), 22);  // 32: what the other cells take
  std::vector<std::vector<std::string>> rows{{"mark", "operation", "bars", "their time"}};
  for (const Operation operation : marks_of.order())
    rows.push_back({std::string(1, marks_of.of(operation)), on_one_line(names.name(operation), room), std::to_string(bars[operation].count), time_text(bars[operation].seconds)});
  const auto add_others = [&](char mark, const std::string& what) {
    Bars sum;
    std::size_t operations = 0;
    for (Operation operation = 0; operation < bars.size(); ++operation) {
      if (bars[operation].count == 0 || marks_of.of(operation) != mark) continue;
      ++operations;
      sum.count += bars[operation].count;
      sum.seconds += bars[operation].seconds;
    }
    if (operations > 0)
      rows.push_back({std::string(1, mark == mostly_idle ? ' ' : mark), fmt::format("{} {}", operations, what), std::to_string(sum.count), time_text(sum.seconds)});
  };
  add_others(no_mark_left, "further");
  add_others(mostly_idle, "that no column shows");
  return table(rows, 2) + ".     the line is busy for less than a tenth of the column\n";
}

}  // namespace

Expected<std::string> timeline_chart(const Record& record, const RecordedTimeline& timeline, const std::string& name, std::size_t columns, bool coloured) {
  const auto step = read_run_step(record.result, name + ": result");
  if (!step) return step.error();
  const OperationNames names{step->block.operations, record};
  std::int64_t end = 1;
  for (const RecordedTimeline& other : record.timelines)
    for (const RecordedLine& line : other.lines)
      if (!line.bars.empty()) end = std::max(end, line.bars.back().end.count());

  std::size_t widest = 0;
  for (const RecordedLine& line : timeline.lines) widest = std::max(widest, width_of(on_one_line(line.name, columns / 3)));
  const std::size_t margin = widest + 2 + 7 + 2;  // the name, the share of the time
  const TimeAxis axis{end, std::min<std::int64_t>(end, static_cast<std::int64_t>(columns - std::min(margin, columns - 10)))};
  std::vector<ChartLine> lines;
  for (const RecordedLine& line : timeline.lines) lines.push_back(chart_line(line, names, axis));
  const Marks marks_of{lines};

  const std::string alike = timeline.alike > 1 ? fmt::format(" and {} alike", timeline.alike - 1) : "";
  const double run = to_seconds(Picoseconds{end}).count();
  const std::string whose = fmt::format("device {} ({}){}:", timeline.device, on_one_line(timeline.name, columns), alike);
  const std::string scale = fmt::format("{}, {} a column", time_text(run), time_text(run / static_cast<double>(axis.columns)));
  std::string text = whose + (width_of(whose) + 1 + width_of(scale) > columns ? '\n' : ' ') + scale + "\n\n";
  text += axis_text(axis, std::string(margin, ' '));
  for (const ChartLine& line : lines) {
    std::string cells;
    for (const Cell& cell : line.cells) cells += marks_of.of(cell);
    cells.erase(cells.find_last_not_of(idle) + 1);
    text += left_aligned(on_one_line(line.name, columns / 3), widest) + fmt::format("  {:>7}  ", percent(line.share)) + (coloured ? coloured_cells(cells, line, names) : cells);
    text.erase(text.find_last_not_of(idle) + 1);
    text += '\n';
  }
  return text + "\n" + legend_text(timeline, names, marks_of, columns);
}

}  // namespace podsim
