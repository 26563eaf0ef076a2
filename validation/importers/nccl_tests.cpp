#include "validation/importers/nccl_tests.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "sim/base/units.hpp"
#include "validation/importers/text_lines.hpp"

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
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, const ImportOptions& options) : lines_{lines_of(text)}, file_{file}, options_{options} {}

  Expected<Imported> read() {
    for (const TextLine& line : lines_)
      if (Done read = read_line(line); !read) return read.error();
    if (!columns_) return Diagnostic{{file_, 1, 1}, "there is no heading of nccl-tests: # size count type redop root time algbw busbw"};
    if (rows_.empty() && empty_ == 0) return Diagnostic{{file_, heading_, 1}, "there is no row below this heading"};
    if (Done closed = close_test(); !closed) return closed.error();
    if (wrong_ > 0) imported_.notes.push_back(counted(wrong_, "row") + " with wrong results skipped");
    if (empty_ > 0) imported_.notes.push_back(counted(empty_, "row") + " of size 0 skipped");
    if (other_ > 0) imported_.notes.push_back(counted(other_, "line") + " among the rows skipped that are none");
    imported_.notes.emplace_back("times are those out of place, means over the repetitions of the test");
    return std::move(imported_);
  }

 private:
  Done read_line(const TextLine& line);
  Done read_row(const TextLine& line, const std::vector<std::string_view>& words);
  Done close_test();

  std::vector<TextLine> lines_;
  const std::string& file_;
  const ImportOptions& options_;
  Imported imported_;
  std::optional<ObservedOp> named_;
  std::set<std::int64_t> ranks_;
  std::optional<Columns> columns_;
  int heading_ = 0;
  std::vector<Row> rows_;  // of this test, until it is known which
  std::size_t wrong_ = 0, empty_ = 0, other_ = 0;
};

Done Reader::read_line(const TextLine& line) {
  auto words = words_of(line.text);
  if (words.empty()) return done();
  if (const auto test = test_named_in(line.text)) {
    if (Done closed = close_test(); !closed) return closed;
    named_ = test;
    ranks_.clear();
    return done();
  }
  if (words[0].starts_with('#')) {
    if (words[0] == "#")
      words.erase(words.begin());
    else
      words[0].remove_prefix(1);
    if (words.size() > 1 && words[0] == "Rank") {
      if (!rows_.empty()) {
        if (Done closed = close_test(); !closed) return closed;
        ranks_.clear();
        named_.reset();
      }
      std::int64_t rank = 0;
      if (std::from_chars(words[1].data(), words[1].data() + words[1].size(), rank).ec == std::errc{}) ranks_.insert(rank);
    } else if (!words.empty() && words[0] == "size") {
      if (Done closed = close_test(); !closed) return closed;
      const auto place = [&words](std::string_view name) { return static_cast<std::size_t>(std::ranges::find(words, name) - words.begin()); };
      const Columns columns{words.size(), place("type"), place("redop"), place("time")};
      if (columns.type != 2 || columns.time + 2 >= words.size())
        return Diagnostic{{file_, line.number, 1}, "a heading must have the columns size, count, type, time, algbw and busbw"};
      columns_ = columns;
      heading_ = line.number;
    }
    return done();
  }
  if (!columns_) return done();
  if (std::isdigit(static_cast<unsigned char>(words[0][0])) == 0) {
    ++other_;
    return done();
  }
  return read_row(line, words);
}

Done Reader::read_row(const TextLine& line, const std::vector<std::string_view>& words) {
  // Some versions print nothing for redop and root where there are none.
  const std::size_t missing = columns_->count > words.size() ? columns_->count - words.size() : 0;
  const std::size_t optional_columns = columns_->time - columns_->type - 1;
  const SourceLocation where{file_, line.number, 1};
  if (words.size() > columns_->count || missing > optional_columns)
    return Diagnostic{where,
                      "a row must have as many columns as the heading, " + std::to_string(columns_->count) + ", got " + std::to_string(words.size())};
  const std::size_t time = columns_->time - missing;
  const auto size = parse_integer(words[0], 0, most_observed_bytes.count(), place_of(file_, line, words[0]));
  if (!size) return size.error();
  if (*size == 0) return ++empty_, done();
  const auto micros = positive_number(words[time], "the time", place_of(file_, line, words[time]));
  if (!micros) return micros.error();
  Row row;
  row.observation.where = where;
  row.observation.bytes = Bytes{*size};
  row.observation.time = Seconds{*micros / 1e6};
  const std::string_view type = words[columns_->type];
  if (type == "float") row.observation.dtype = DType::f32;
  if (type == "bfloat16") row.observation.dtype = DType::bf16;
  row.reduces = missing == 0 && columns_->redop < words.size() && words[columns_->redop] != "none";
  for (auto [value, position] : {std::pair{&row.algorithm, time + 1}, std::pair{&row.bus, time + 2}})
    std::from_chars(words[position].data(), words[position].data() + words[position].size(), *value);
  const std::string_view wrong = time + 3 < words.size() ? words[time + 3] : "N/A";
  row.wrong = wrong.find_first_not_of("0.e+-") != std::string_view::npos && wrong != "N/A";
  if (row.wrong) return ++wrong_, done();
  rows_.push_back(row);
  return done();
}

Done Reader::close_test() {
  if (rows_.empty()) return done();
  const int devices = ranks_.empty() ? options_.devices : static_cast<int>(ranks_.size());
  const SourceLocation& where = rows_.front().observation.where;
  if (devices < 1 || devices > most_observed_devices)
    return Diagnostic{where, "nothing tells how many devices took part: the text has no \"#  Rank\" lines"};
  std::optional<ObservedOp> op = named_ ? named_ : options_.op;
  if (!op) {
    const Row& largest = *std::ranges::max_element(rows_, {}, [](const Row& row) { return row.algorithm; });
    if (largest.reduces && largest.algorithm >= 1) op = reduction_of(largest.bus / largest.algorithm, devices);
    if (op) imported_.notes.push_back("the text does not name its test: " + std::string{name_of(*op)} + " by its bus bandwidth");
  }
  if (!op) return Diagnostic{where, "nothing tells which collective this is: the text does not name its test (all_gather_perf, ...)"};
  std::size_t indivisible = 0;
  for (Row& row : rows_) {
    Observation& observation = row.observation;
    observation.op = *op;
    observation.devices = devices;
    observation.schedule = ObservedSchedule::plain;
    if (*op == all_gather) {
      indivisible += observation.bytes.count() % devices != 0 ? 1 : 0;
      observation.bytes = observation.bytes / static_cast<std::int64_t>(devices);
    }
    if (observation.bytes.count() == 0)
      ++empty_;
    else
      imported_.observations.push_back(observation);
  }
  if (indivisible > 0) imported_.notes.push_back(counted(indivisible, "size") + " of an all-gather rounded down to a multiple of its devices");
  rows_.clear();
  return done();
}

}  // namespace

Expected<Imported> import_nccl_tests(std::string_view text, const std::string& file, const ImportOptions& options) {
  return Reader{text, file, options}.read();
}

}  // namespace podsim
