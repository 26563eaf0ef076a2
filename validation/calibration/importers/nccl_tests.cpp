#include "validation/calibration/importers/nccl_tests.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "validation/calibration/importers/collective_row.hpp"
#include "validation/calibration/importers/log_prefix.hpp"
#include "validation/calibration/importers/process_label.hpp"
#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

namespace {

using enum ObservedOp;

struct Test {
  std::string_view name;
  ObservedOp op;
};
constexpr std::array<Test, 7> tests = {{{"all_gather_perf", all_gather},
                                        {"reduce_scatter_perf", reduce_scatter},
                                        {"all_reduce_perf", all_reduce},
                                        {"alltoall_perf", all_to_all},
                                        {"broadcast_perf", broadcast},
                                        {"reduce_perf", reduce},
                                        {"sendrecv_perf", permute}}};

/// The last test that a line names. No name is the end of another but after an underscore.
std::optional<ObservedOp> test_named_in(std::string_view line) {
  std::optional<ObservedOp> op;
  std::size_t last = 0;
  for (const Test& test : tests)
    for (std::size_t at = line.find(test.name); at != std::string_view::npos; at = line.find(test.name, at + 1)) {
      const bool part_of_another = at > 0 && (std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0 || line[at - 1] == '_');
      if (!part_of_another && (!op || at >= last)) {
        op = test.op;
        last = at;
      }
    }
  return op;
}

/// A reduction by how far its bus bandwidth is from the other: 2 (P-1)/P, (P-1)/P or 1, as far as those differ.
std::optional<ObservedOp> reduction_of(double ratio, int devices) {
  const double share = (devices - 1.0) / devices;
  const bool is_all_reduce = std::abs(ratio - 2 * share) < 0.02, is_scatter = std::abs(ratio - share) < 0.02, is_reduce = std::abs(ratio - 1) < 0.02;
  if (is_all_reduce + is_scatter + is_reduce != 1) return std::nullopt;
  return is_all_reduce ? all_reduce : is_scatter ? reduce_scatter : reduce;
}

struct Row {
  Observation observation;  // bytes: the size column
  bool wrong = false, reduces = false;
  double algorithm = 0, bus = 0;  // bandwidths
};

/// Where the columns are, counted from 0; a heading begins with `#`, which is not counted.
struct Columns {
  std::size_t count = 0, type = 0, redop = 0, time = 0;
  bool counts_wrong = false;  // a column `#wrong`; older versions have `error`, the largest difference
};

/// Whether a line is one that nccl-tests print behind `#`; those who paste a log lose that mark, which begins a heading elsewhere.
bool is_comment(const std::vector<std::string_view>& words) {
  if (words[0].starts_with('#') || words[0] == "(B)") return true;
  const auto second = [&](std::string_view word) { return words.size() > 1 && words[1] == word; };
  if (words[0] == "Rank") return std::ranges::find(words, "Pid") != words.end();
  return (words[0] == "size" && second("count")) || (words[0] == "Using" && second("devices")) || (words[0] == "Out" && second("of")) ||
         (words[0] == "Avg" && second("bus"));
}

/// Whether a line begins with a time and two bandwidths, as the rest of a row whose beginning other output followed: NCCL_DEBUG=INFO in the first of a size.
bool are_figures(const std::vector<std::string_view>& words) {
  if (words.size() < 3) return false;
  for (std::size_t i = 0; i < 3; ++i)
    if (words[i].find_first_not_of("0123456789.") != std::string_view::npos || (i > 0 && words[i].find('.') == std::string_view::npos)) return false;
  return true;
}

/// The words without the label in them: mpiexec -l writes it again wherever the process flushed, "sum      -1[0]    1626.5". No figure holds a bracket.
std::vector<std::string_view> words_between(const std::vector<std::string_view>& words, std::string_view label) {
  if (label.find_first_of("[]<>:|") == std::string_view::npos) return words;
  std::vector<std::string_view> between;
  for (std::string_view word : words)
    while (!word.empty()) {
      const std::size_t at = std::min(word.find(label), word.size());
      if (at > 0) between.push_back(word.substr(0, at));
      word.remove_prefix(std::min(at + label.size(), word.size()));
    }
  return between;
}

/// Where a heading begins, whatever stands before its `#`.
std::size_t heading_in(std::string_view line) {
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    const std::vector<std::string_view> words = words_of(line.substr(at + 1, 100));
    if (words.size() > 2 && words[0] == "size" && words[1] == "count" && words[2] == "type") return at;
  }
  return std::string_view::npos;
}

/// Whether a word may stand in a row: a number, an operation, a word for none.
bool is_of_row(std::string_view word) {
  constexpr std::array<std::string_view, 9> others{"none", "sum", "prod", "max", "min", "avg", "mulsum", "N/A", "nan"};
  return word.find_first_not_of("0123456789.e+-") == std::string_view::npos || std::ranges::find(others, word) != others.end() || word == "-nan" || word == "inf";
}

/// The collective in the name of a log, nccl_all_reduce0.txt.
std::optional<ObservedOp> test_in_name(std::string_view file) {
  constexpr std::array<std::pair<std::string_view, ObservedOp>, 7> names{{{"allreduce", all_reduce}, {"reducescatter", reduce_scatter}, {"allgather", all_gather}, {"alltoall", all_to_all},
                                                                          {"broadcast", broadcast}, {"sendrecv", permute}, {"reduce", reduce}}};
  std::string plain;
  for (const char c : file.substr(file.rfind('/') + 1))
    if (c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [name, op] : names)
    if (plain.find(name) != std::string::npos) return op;
  return std::nullopt;
}

/// The bus bandwidth that nccl-tests count for each GB/s of size / time.
double bus_factor(ObservedOp op, int devices) {
  const double share = (devices - 1.0) / devices;
  return op == all_reduce ? 2 * share : op == all_gather || op == reduce_scatter || op == all_to_all ? share : 1;
}

/// One table, with what stands above it.
struct TestTable {
  std::vector<Observation> rows;  // never none
  std::size_t indivisible = 0;
  std::string_view known_by{};  // where the text does not name its test
  MeasuredOn on{};
};

/// A line "Rank 3 Group 0 Pid 10 on node1 device 3 [0x10] NVIDIA H100 80GB HBM3".
struct Rank {
  std::string_view host, gpu;
};
Rank rank_in(std::string_view line, const std::vector<std::string_view>& words) {
  const auto on = std::ranges::find(words, "on");
  if (words.end() - on < 4 || on[2] != "device") return {};
  auto name = on + 4;
  if (name != words.end() && name->starts_with('[')) ++name;
  return {on[1], name == words.end() ? std::string_view{} : line.substr(static_cast<std::size_t>(name->data() - line.data()))};
}

/// Nodes of equally many ranks, and the GPU that all have.
MeasuredOn where_are(const std::map<std::int64_t, Rank>& ranks) {
  MeasuredOn on{.devices = static_cast<int>(ranks.size())};
  if (ranks.empty()) return on;
  std::map<std::string_view, int> of_host;
  for (const auto& [number, rank] : ranks) ++of_host[rank.host];
  const int each = of_host.begin()->second;
  if (!of_host.begin()->first.empty() && std::ranges::all_of(of_host, [each](const auto& host) { return host.second == each; })) on.nodes = static_cast<int>(of_host.size());
  const std::string_view gpu = ranks.begin()->second.gpu;
  if (std::ranges::all_of(ranks, [gpu](const auto& rank) { return rank.second.gpu == gpu; })) on.gpu = trimmed(gpu);
  return on;
}

/// The test that lines without a label name: commands that a script echoes.
struct NamedOutside {
  std::optional<ObservedOp> op;
  int line = 0;
};

/// Reads what one process printed, line by line.
class LogReader {
 public:
  LogReader(const std::string& file, const ImportOptions& options, const NamedOutside& outside) : file_{file}, options_{options}, outside_{outside} {}

  /// `label`: what stood before the line.
  Status read_line(const TextLine& line, std::string_view label);
  Status finish() {
    if (columns_ && !any_row_) return Diagnostic{{file_, heading_, 1}, "there is no row below this heading"};
    return close_test();
  }
  [[nodiscard]] const std::vector<TestTable>& tables() const { return tables_; }
  [[nodiscard]] bool has_heading() const { return columns_.has_value(); }
  [[nodiscard]] std::size_t wrong() const { return wrong_; }
  [[nodiscard]] std::size_t empty() const { return empty_; }
  [[nodiscard]] std::size_t other() const { return other_; }
  [[nodiscard]] std::size_t unfinished() const { return unfinished_ + (begun_.empty() ? 0 : 1); }

 private:
  Status read_comment(const TextLine& line, std::vector<std::string_view> words);
  Status read_heading(const TextLine& line, const std::vector<std::string_view>& words);
  Status read_row(const TextLine& line, const std::vector<std::string_view>& words);
  Status read_values(const TextLine& line, const std::vector<std::string_view>& words, std::size_t time);
  Status close_test();
  void drop_begun() { unfinished_ += std::exchange(begun_, {}).empty() ? 0 : 1; }

  const std::string& file_;
  const ImportOptions& options_;
  const NamedOutside& outside_;
  std::vector<TestTable> tables_;
  std::optional<ObservedOp> named_;
  int named_line_ = 0;  // where, or since when there is no name
  std::map<std::int64_t, Rank> ranks_;
  std::optional<Columns> columns_;
  int heading_ = 0, last_row_ = 0;  // lines
  std::vector<Row> rows_;           // of this test, until it is known which
  bool any_row_ = false;            // below the heading, and right
  std::vector<std::string_view> begun_;  // size, count, type, ... of a row whose figures stand in a later line, or in none
  std::size_t wrong_ = 0, empty_ = 0, other_ = 0, unfinished_ = 0;
};

Status LogReader::read_line(const TextLine& line, std::string_view label) {
  auto words = words_of(line.text);
  if (words.empty()) return success();
  if (const auto test = test_named_in(line.text)) {
    if (Status closed = close_test(); !closed) return closed;
    named_ = test;
    named_line_ = line.number;
    ranks_.clear();
    return success();
  }
  if (is_comment(words)) return read_comment(line, std::move(words));
  if (!columns_) return success();
  words = words_between(words, label);
  if (words.empty()) return success();
  if (!begun_.empty() && are_figures(words)) {
    std::vector<std::string_view> row = std::exchange(begun_, {});
    const std::size_t time = row.size();
    row.insert(row.end(), words.begin(), words.end());
    return read_values(line, row, time);
  }
  if (!std::ranges::all_of(words[0], [](unsigned char c) { return std::isdigit(c) != 0; })) {
    ++other_;
    return success();
  }
  return read_row(line, words);
}

/// A rank, a heading, or neither.
Status LogReader::read_comment(const TextLine& line, std::vector<std::string_view> words) {
  if (words[0] == "#")
    words.erase(words.begin());
  else if (words[0].starts_with('#'))
    words[0].remove_prefix(1);
  if (words.size() > 1 && words[0] == "Rank") {
    if (!rows_.empty()) {
      if (Status closed = close_test(); !closed) return closed;
      ranks_.clear();
      named_.reset();
      named_line_ = last_row_;
    }
    std::int64_t rank = 0;
    if (std::from_chars(words[1].data(), words[1].data() + words[1].size(), rank).ec == std::errc{}) ranks_.try_emplace(rank, rank_in(line.text, words));
  } else if (!words.empty() && words[0] == "size") {
    return read_heading(line, words);
  } else if (words.size() > 5 && words[0] == "Out" && columns_ && !columns_->counts_wrong) {
    // Out of bounds values : 3 FAILED, of a table whose rows do not tell which.
    std::int64_t values = 0;
    std::from_chars(words[5].data(), words[5].data() + words[5].size(), values);
    if (values > 0) wrong_ += rows_.size(), rows_.clear();
  }
  return success();
}

Status LogReader::read_heading(const TextLine& line, const std::vector<std::string_view>& words) {
  if (Status closed = close_test(); !closed) return closed;
  const auto place = [&words](std::string_view name) { return static_cast<std::size_t>(std::ranges::find(words, name) - words.begin()); };
  const Columns columns{words.size(), place("type"), place("redop"), place("time"), place("#wrong") < words.size()};
  if (columns.type != 2 || columns.time + 2 >= words.size())
    return Diagnostic{{file_, line.number, 1}, "a heading must have the columns size, count, type, time, algbw and busbw"};
  columns_ = columns;
  heading_ = line.number;
  any_row_ = false;
  if (outside_.line > named_line_) named_ = outside_.op;
  return success();
}

Status LogReader::read_row(const TextLine& line, const std::vector<std::string_view>& words) {
  drop_begun();
  // Some versions print nothing for redop and root where there are none. A test that is killed, and some programs made of nccl-tests, print no figures in place.
  const std::size_t optional_columns = columns_->time - columns_->type - 1, out_of_place = columns_->time + 4;
  const auto missing_of = [&](std::size_t full) { return full >= words.size() && full - words.size() <= optional_columns ? std::optional{full - words.size()} : std::nullopt; };
  if (const auto missing = missing_of(columns_->count)) return read_values(line, words, columns_->time - *missing);
  if (const auto missing = missing_of(out_of_place)) return read_values(line, words, columns_->time - *missing);
  const auto strange = std::ranges::find_if(words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), columns_->type + 1)), words.end(), std::not_fn(is_of_row));
  if (words.size() > columns_->type && (strange != words.end() || words.size() <= columns_->time)) {  // other output follows; the figures come later
    begun_.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), columns_->time)));
    const auto size = parse_integer(words[0], 0, most_observed_bytes.count(), place_of(file_, line, words[0]));
    return size ? success() : Status{size.error()};
  }
  return Diagnostic{{file_, line.number, 1},
                    "a row must have as many columns as the heading, " + std::to_string(columns_->count) + ", got " + std::to_string(words.size())};
}

/// The row's words; the time is one of them.
Status LogReader::read_values(const TextLine& line, const std::vector<std::string_view>& words, std::size_t time) {
  const SourceLocation where{file_, line.number, 1};
  const auto size = parse_integer(words[0], 0, most_observed_bytes.count(), place_of(file_, line, words[0]));
  if (!size) return size.error();
  last_row_ = line.number;
  if (*size == 0) return any_row_ = true, ++empty_, success();
  const auto micros = positive_number(words[time], "the time", place_of(file_, line, words[time]));
  if (!micros) return micros.error();
  Row row;
  row.observation.where = where;
  row.observation.bytes = Bytes{*size};
  row.observation.time = Seconds{*micros / 1e6};
  const std::string_view type = words[columns_->type];
  if (type == "float") row.observation.dtype = DType::f32;
  if (type == "bfloat16") row.observation.dtype = DType::bf16;
  row.reduces = time == columns_->time && columns_->redop < words.size() && words[columns_->redop] != "none";
  for (auto [value, position] : {std::pair{&row.algorithm, time + 1}, std::pair{&row.bus, time + 2}})
    std::from_chars(words[position].data(), words[position].data() + words[position].size(), *value);
  if (auto ok = check_bandwidth(*size, *micros, row.algorithm, place_of(file_, line, words[time + 1])); !ok) return ok;
  std::string_view wrong = time + 3 < words.size() ? words[time + 3] : "N/A";
  if (wrong.starts_with("N/A")) wrong = "N/A";
  if (const std::size_t number = std::min(wrong.find_first_not_of("0123456789.e+-"), wrong.size()); columns_->counts_wrong && number > 0) wrong = wrong.substr(0, number);  // other output may follow without a space
  row.wrong = columns_->counts_wrong ? wrong.find_first_not_of("0.e+-") != std::string_view::npos && wrong != "N/A"
                                     : wrong.find("nan") != std::string_view::npos || wrong.find("inf") != std::string_view::npos;
  if (row.wrong) return ++wrong_, success();
  any_row_ = true;
  rows_.push_back(row);
  return success();
}

Status LogReader::close_test() {
  if (rows_.empty()) return success();
  int devices = ranks_.empty() ? options_.devices : static_cast<int>(ranks_.size());
  const SourceLocation& where = rows_.front().observation.where;
  if (devices < 1 || devices > most_observed_devices)
    return Diagnostic{where, "nothing tells how many devices took part: the text has no \"#  Rank\" lines; `devices` tells it"};
  std::optional<ObservedOp> op = named_ ? named_ : options_.op;
  TestTable table;
  table.on = where_are(ranks_);
  if (!op) {
    const Row& largest = *std::ranges::max_element(rows_, {}, [](const Row& row) { return row.algorithm; });
    const bool tells = largest.reduces && largest.algorithm >= 1;
    if (tells) op = reduction_of(largest.bus / largest.algorithm, devices);
    if (tells && !op && options_.devices > 0) op = reduction_of(largest.bus / largest.algorithm, options_.devices);  // lines of ranks are left out
    if (op) table.known_by = "its bus bandwidth";
  }
  if (!op && (op = test_in_name(file_))) table.known_by = "the file's name";
  if (!op) return Diagnostic{where, "nothing tells which collective this is: the text does not name its test (all_gather_perf, ...); `op` tells it"};
  const auto contradicts = [&](const Row& row) {  // those that two decimals tell well
    constexpr double rounded_well = 1, most_off = 0.05;
    return row.algorithm >= rounded_well && std::abs(row.bus / row.algorithm - bus_factor(*op, devices)) > most_off * std::max(bus_factor(*op, devices), 0.5);
  };
  if (options_.devices > 0 && std::ranges::any_of(rows_, contradicts)) devices = options_.devices;  // a paste may leave lines of ranks out
  if (const auto row = std::ranges::find_if(rows_, contradicts); row != rows_.end())
    return Diagnostic{row->observation.where, fmt::format("expected a bus bandwidth of {:.2f} GB/s, as {} on {} devices, found {:.2f}: are lines of ranks missing? `devices` tells how many there are",
                                                          row->algorithm * bus_factor(*op, devices), name_of(*op), devices, row->bus)};
  for (Row& row : rows_) {
    Observation& observation = row.observation;
    observation.op = *op;
    observation.devices = devices;
    observation.schedule = ObservedSchedule::plain;
    if (*op == all_gather) {
      table.indivisible += observation.bytes.count() % devices != 0 ? 1 : 0;
      observation.bytes = observation.bytes / static_cast<std::int64_t>(devices);
    }
    if (observation.bytes.count() == 0)
      ++empty_;
    else
      table.rows.push_back(observation);
  }
  rows_.clear();
  if (!table.rows.empty()) tables_.push_back(std::move(table));
  return success();
}

/// All rows but those that a process before measured too.
Expected<Imported> merged(std::map<std::int64_t, LogReader>& readers, const std::string& file) {
  using Measured = std::tuple<ObservedOp, int, Bytes, std::optional<DType>>;
  Imported imported;
  std::map<Measured, std::int64_t> measured_by;  // the process
  std::size_t headings = 0, wrong = 0, empty = 0, other = 0, again = 0, indivisible = 0, unfinished = 0;
  std::set<std::string> guessed;
  for (auto& [process, reader] : readers) {
    if (!reader.has_heading()) continue;
    ++headings;
    if (Status finished = reader.finish(); !finished) return finished.error();
    bool any_new = reader.tables().empty();
    for (const TestTable& table : reader.tables()) {
      const std::size_t before = imported.observations.size();
      for (const Observation& row : table.rows)
        if (measured_by.try_emplace({row.op, row.devices, row.bytes, row.dtype}, process).first->second == process)
          imported.observations.push_back(row);
        else
          ++again;
      if (imported.observations.size() == before) continue;
      any_new = true;
      if (table.on.devices > imported.on.devices) imported.on = table.on;
      indivisible += table.indivisible;
      if (!table.known_by.empty()) guessed.insert(fmt::format("the text does not name its test: {} by {}", name_of(table.rows.front().op), table.known_by));
    }
    if (any_new) wrong += reader.wrong(), empty += reader.empty(), other += reader.other(), unfinished += reader.unfinished();
  }
  if (headings == 0) return Diagnostic{{file, 1, 1}, "there is no heading of nccl-tests: # size count type redop root time algbw busbw"};
  imported.notes.assign(guessed.begin(), guessed.end());
  const auto note = [&imported](std::size_t count, std::string_view noun, const std::string& what) {
    if (count > 0) imported.notes.push_back(counted(count, noun) + what);
  };
  note(indivisible, "size", " of an all-gather rounded down to a multiple of its devices");
  note(wrong, "row", " with wrong results skipped");
  note(empty, "row", " of size 0 skipped");
  note(unfinished, "row", " without a time skipped");
  note(other, "line", " among the rows skipped that are none");
  note(again, "row", " skipped that another process printed too");
  imported.notes.emplace_back("times are those out of place, means over the repetitions of the test");
  return imported;
}

}  // namespace

Expected<Imported> import_nccl_tests(std::string_view text, const std::string& file, const ImportOptions& options) {
  constexpr std::int64_t unlabelled = -1;
  NamedOutside outside;
  std::map<std::int64_t, LogReader> readers;  // of each process
  std::vector<TextLine> lines = lines_of(text);
  std::vector<std::int64_t> process(lines.size(), unlabelled);
  std::vector<std::string_view> label(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    skip_marks(lines[i]);
    const std::string_view whole = lines[i].text;
    process[i] = take_process_label(lines[i]).value_or(unlabelled);
    label[i] = whole.substr(0, whole.size() - lines[i].text.size());
    skip_marks(lines[i]);
  }
  const LineLabels other_labels{lines, &heading_in};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view whole = lines[i].text;
    if (const auto other = other_labels.take(lines[i])) {
      process[i] = most_observed_devices + static_cast<std::int64_t>(*other);
      label[i] = whole.substr(0, whole.size() - lines[i].text.size());
      skip_marks(lines[i]);
    }
    if (process[i] == unlabelled)
      if (const auto op = test_named_in(lines[i].text)) outside = {op, lines[i].number};
    if (Status read = readers.try_emplace(process[i], file, options, outside).first->second.read_line(lines[i], trimmed(label[i])); !read) return read.error();
  }
  return merged(readers, file);
}

}  // namespace podsim
