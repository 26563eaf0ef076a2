#include "validation/calibration/importers/osu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

namespace {

using enum ObservedOp;

bool is_whole_number(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// A test of OSU by the title of its table, "OSU MPI-CUDA Allreduce Latency Test v7.3", "OSU NCCL-CUDA Allreduce Latency Test v7.5".
struct OsuTest {
  std::string_view title;  // between the library and "Test"
  ObservedOp op;
  enum class Column { latency, bandwidth } column;
  bool between_two;       // ranks
  bool to_each = false;   // sizes are what a rank sends to each other
  int directions = 1;     // whose bandwidths are added up
};
constexpr std::array<OsuTest, 9> osu_tests{{{"Allreduce Latency", all_reduce, OsuTest::Column::latency, false},
                                            {"Allgather Latency", all_gather, OsuTest::Column::latency, false},
                                            {"All-to-All Personalized Exchange Latency", all_to_all, OsuTest::Column::latency, false, true},
                                            {"Broadcast Latency", broadcast, OsuTest::Column::latency, false},
                                            {"Reduce_scatter Latency", reduce_scatter, OsuTest::Column::latency, false},
                                            {"Reduce Latency", reduce, OsuTest::Column::latency, false},
                                            {"Latency", permute, OsuTest::Column::latency, true},
                                            {"Bandwidth", permute, OsuTest::Column::bandwidth, true},
                                            {"Bi-Directional Bandwidth", permute, OsuTest::Column::bandwidth, true, false, 2}}};
constexpr std::int64_t osu_window = 64;  // messages

/// The title in a line; empty: it has none.
std::string_view osu_title(std::string_view line) {
  for (const std::string_view library : {"OSU MPI", "OSU NCCL", "OSU RCCL", "OSU XCCL"}) {
    const std::size_t begin = line.find(library), end = line.find(" Test", begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) continue;
    const std::size_t space = line.find(' ', begin + 4);  // behind MPI, MPI-CUDA, NCCL-CUDA
    return space == std::string_view::npos || space >= end ? std::string_view{} : trimmed(line.substr(space, end - space));
  }
  return {};
}

/// The number behind one of the options of a command line: `-n 8`, `-n8`, `--ntasks=8`.
std::optional<int> option_on(const std::vector<std::string_view>& words, std::initializer_list<std::string_view> names) {
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const std::string_view name : names) {
      if (!words[i].starts_with(name)) continue;
      std::string_view value = words[i].substr(name.size());
      if (value.empty() && i + 1 < words.size()) value = words[i + 1];
      if (name.starts_with("--") && value.starts_with('=')) value.remove_prefix(1);
      int number = 0;
      const auto [rest, status] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (status == std::errc{} && rest == value.data() + value.size() && number >= 1 && number <= most_observed_devices) return number;
    }
  return std::nullopt;
}

/// The ranks that a command line starts: all, or those of a node times the nodes of srun; it tells the nodes then.
std::optional<MeasuredOn> ranks_on(const std::vector<std::string_view>& words) {
  const auto nodes = option_on(words, {"-N", "--nodes"}), of_node = option_on(words, {"--ntasks-per-node"});
  const bool told = nodes && of_node && *nodes <= most_observed_devices / *of_node && *nodes * *of_node > 1;
  if (const auto ranks = option_on(words, {"-n", "-np", "--ntasks"}); ranks && *ranks > 1) return MeasuredOn{*ranks, told && *nodes * *of_node == *ranks ? *nodes : 0};
  return told ? std::optional{MeasuredOn{*nodes * *of_node, *nodes}} : std::nullopt;
}

class OsuReader {
 public:
  OsuReader(const std::string& file, const ImportOptions& options) : file_{file}, options_{options} {}

  Status read_line(const TextLine& line) {
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.empty()) return success();
    if (const std::string_view title = osu_title(line.text); !title.empty()) {
      const auto* const known = std::ranges::find(osu_tests, title, &OsuTest::title);
      test_ = known == osu_tests.end() ? nullptr : known;
      if (test_ == nullptr) ++others_[std::string{title}];
      column_.reset(), any_title_ = true;
      return success();
    }
    if (const auto ranks = ranks_on(words)) ranks_ = *ranks;
    if (words[0] == "#" && words.size() > 1 && words[1] == "Size") return read_heading(line);
    if (test_ == nullptr || !is_whole_number(words[0])) return success();
    return read_row(line, words);
  }

  Expected<Imported> finish() {
    if (!any_title_) return Diagnostic{{file_, 1, 1}, "expected a table of OSU's benchmarks, as # OSU MPI Allreduce Latency Test, found none"};
    if (imported_.observations.empty()) return Diagnostic{{file_, 1, 1}, others_.empty() ? "expected a row of OSU's benchmarks, found none" : fmt::format("expected a test of a collective, of latency or of bandwidth, found {}", quoted(others_.begin()->first))};
    for (const auto& [title, count] : others_) imported_.notes.push_back(fmt::format("the test {} skipped", quoted(title)));
    if (windows_) imported_.notes.push_back(fmt::format("a bandwidth is taken as the time of a window of {} messages", osu_window));
    return std::move(imported_);
  }

 private:
  Status read_heading(const TextLine& line) {
    if (test_ == nullptr) return success();
    const bool latency = test_->column == OsuTest::Column::latency;
    const std::string_view rest = line.text.substr(line.text.find("Size") + 4);
    // The first column behind the size in every version; its name may hold a space: "Latency (us)".
    const std::string_view first = trimmed(rest);
    const std::size_t bracket = std::min(first.find('('), first.size());
    const std::string_view unit = first.substr(bracket, first.substr(bracket).find(')') + 1);
    if (first.starts_with(latency ? "Avg Lat" : "Bandwidth (MB/s)") || (latency && first.starts_with("Latency ("))) column_ = 1;
    if (latency && unit == "(us)") time_unit_ = 1e-6;
    else if (latency && unit == "(ms)") time_unit_ = 1e-3;
    else if (latency && unit == "(s)") time_unit_ = 1;
    else if (latency) column_.reset();
    if (!column_) return Diagnostic{place_of(file_, line, line.text), fmt::format("expected the column {} behind Size, found {}", latency ? "Avg Latency(us) or Latency (us)" : "Bandwidth (MB/s)", quoted(first))};
    return success();
  }

  Status read_row(const TextLine& line, const std::vector<std::string_view>& words) {
    if (!column_) return Diagnostic{place_of(file_, line, words[0]), "expected the heading # Size before this row, found none"};
    if (words.size() <= *column_) return Diagnostic{place_of(file_, line, words[0]), "expected a row of a size and a figure, found the size alone"};
    const auto size = parse_integer(words[0], 0, most_observed_bytes.count() / osu_window, place_of(file_, line, words[0]));
    if (!size) return size.error();
    const auto figure = positive_number(words[*column_], "a figure of OSU", place_of(file_, line, words[*column_]));
    if (!figure) return figure.error();
    if (*size == 0) return success();  // the latency of an empty message
    Observation row;
    row.op = test_->op;
    row.where = {file_, line.number, 1};
    row.schedule = ObservedSchedule::plain;
    row.devices = test_->between_two ? 2 : ranks_.devices > 0 ? ranks_.devices : options_.devices;
    if (row.devices < 1) return Diagnostic{row.where, "nothing tells how many ranks took part: no -n N before the table; `devices` tells it"};
    row.bytes = Bytes{*size * (test_->to_each ? row.devices : 1)};
    row.time = Seconds{*figure * time_unit_};
    if (test_->column == OsuTest::Column::bandwidth) {
      windows_ = true;
      row.bytes = Bytes{*size * osu_window};
      row.time = row.bytes / BytesPerSecond{*figure * 1e6 / test_->directions};
    }
    if (row.bytes > most_observed_bytes) return Diagnostic{row.where, "expected at most 4 TiB, found more"};
    if (!test_->between_two && ranks_.devices > imported_.on.devices) imported_.on = ranks_;
    imported_.observations.push_back(std::move(row));
    return success();
  }

  const std::string& file_;
  const ImportOptions& options_;
  const OsuTest* test_ = nullptr;
  std::optional<std::size_t> column_;
  double time_unit_ = 1e-6;  // s
  MeasuredOn ranks_;
  bool any_title_ = false, windows_ = false;
  std::map<std::string, int> others_;  // titles
  Imported imported_;
};

// ---- perftest ---------------------------------------------------------------------------------------------------------------------------------

/// Columns have spaces in their names; a unit stands in brackets: "BW average[Gb/sec]".
struct PerftestColumns {
  bool bandwidth = false;
  double unit = 1;  // B/s, or s
  std::size_t iterations = 0, column = 0;  // of the figure; 0: there is no table
  std::size_t rate = 0;                    // of messages, in millions a second; 0: there is none
};

/// #bytes #sl #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]: --sl, --report-per-port add columns, -D leaves some out.
Expected<PerftestColumns> perftest_heading(const std::string& file, const TextLine& line) {
  constexpr std::array<std::pair<std::string_view, double>, 4> units{{{"Gb/sec", 1e9 / 8}, {"MB/sec", 1048576}, {"MiB/sec", 1048576}, {"GiB/sec", 1073741824}}};  // perftest's MB is 2^20
  PerftestColumns columns;
  std::optional<std::size_t> average, typical;
  std::size_t column = 0;
  for (const std::string_view word : words_of(line.text)) {
    if (word == "#iterations") columns.iterations = column;
    if (word.starts_with("average[")) average = column, columns.bandwidth = true;
    if (word == "t_avg[usec]") average = average ? average : column;
    if (word == "MsgRate[Mpps]") columns.rate = column;
    if (word == "t_typical[usec]") typical = column;  // old versions have no average
    if (columns.bandwidth && average == column) {
      const std::string_view unit = word.substr(8, word.find(']') - 8);
      const auto* const known = std::ranges::find(units, unit, &std::pair<std::string_view, double>::first);
      if (known == units.end()) return Diagnostic{place_of(file, line, unit), fmt::format("expected Gb/sec, MB/sec, MiB/sec or GiB/sec, found {}", quoted(unit))};
      columns.unit = known->second;
    }
    column += word == "BW" || word.starts_with("99") || word == "tps" ? 0 : 1;  // names of two words
  }
  if (columns.iterations == 0 || (!average && !typical)) return Diagnostic{place_of(file, line, line.text), "expected the columns #iterations and BW average, t_avg or t_typical, found none"};
  columns.column = average ? *average : *typical;
  if (!columns.bandwidth) columns.unit = 1e-6;
  return columns;
}

/// Errors: messages of `size` bytes at this rate are another bandwidth: columns are not those of the heading.
Status check_message_rate(std::int64_t size, double bandwidth, std::string_view rate, const SourceLocation& where) {
  constexpr double rounded_well = 1e-3, rounded_bandwidth = 1e6, most_off = 1.2;  // six decimals of the one, two of the other
  double millions = 0;
  if (std::from_chars(rate.data(), rate.data() + rate.size(), millions).ec != std::errc{} || millions < rounded_well || bandwidth < rounded_bandwidth) return success();
  const double right = static_cast<double>(size) * millions * 1e6;
  if (bandwidth <= most_off * right && right <= most_off * bandwidth) return success();
  return Diagnostic{where, fmt::format("expected the bandwidth of {} bytes a message at {} million messages a second, {:.2f} GB/s, found {:.2f}", size, rate, right / 1e9, bandwidth / 1e9)};
}

}  // namespace

bool is_osu_table(std::string_view head) {
  return std::ranges::any_of(lines_of(head), [](const TextLine& line) { return trimmed(line.text).starts_with("# OSU ") && !osu_title(line.text).empty(); });
}

Expected<Imported> import_osu(std::string_view text, const std::string& file, const ImportOptions& options) {
  OsuReader reader{file, options};
  for (const TextLine& line : lines_of(text))
    if (auto ok = reader.read_line(line); !ok) return ok.error();
  return reader.finish();
}

Expected<Imported> import_perftest(std::string_view text, const std::string& file, const ImportOptions&) {
  Imported imported;
  PerftestColumns columns;
  double directions = 1;  // whose bandwidths are added up
  for (const TextLine& line : lines_of(text)) {
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.empty()) continue;
    if (words.back() == "Test") directions = line.text.find("Bidirectional") == std::string_view::npos ? 1 : 2;
    if (words[0] == "#bytes") {
      const auto heading = perftest_heading(file, line);
      if (!heading) return heading.error();
      columns = *heading;
      continue;
    }
    if (columns.column == 0 || !is_whole_number(words[0])) {
      if (words[0].starts_with("---") && columns.column > 0 && !imported.observations.empty()) columns = {};  // what stands below is another test
      continue;
    }
    if (words.size() <= columns.column) return Diagnostic{place_of(file, line, words[0]), fmt::format("expected a row of at least {} columns, found {}", columns.column + 1, words.size())};
    const auto size = parse_integer(words[0], 1, most_observed_bytes.count(), place_of(file, line, words[0]));
    if (!size) return size.error();
    const auto iterations = parse_integer(words[columns.iterations], 0, std::int64_t{1} << 40, place_of(file, line, words[columns.iterations]));
    if (!iterations) return iterations.error();
    const auto figure = positive_number(words[columns.column], columns.bandwidth ? "a bandwidth" : "a time", place_of(file, line, words[columns.column]));
    if (!figure) return figure.error();
    if (columns.rate > 0 && columns.rate < words.size())
      if (auto ok = check_message_rate(*size, *figure * columns.unit, words[columns.rate], place_of(file, line, words[0])); !ok) return ok.error();
    Observation row;
    row.op = ObservedOp::permute;
    row.devices = 2;
    row.where = {file, line.number, 1};
    row.schedule = ObservedSchedule::plain;
    const std::int64_t messages = columns.bandwidth ? std::clamp<std::int64_t>(*iterations, 1, most_observed_bytes.count() / *size) : 1;
    row.bytes = Bytes{*size * messages};
    row.time = columns.bandwidth ? row.bytes / BytesPerSecond{*figure * columns.unit / directions} : Seconds{*figure * columns.unit};
    imported.observations.push_back(std::move(row));
  }
  if (imported.observations.empty()) return Diagnostic{{file, 1, 1}, "expected a table of perftest, #bytes #iterations BW average, with a row, found none"};
  imported.notes.emplace_back("between two devices; a bandwidth is taken as the time of all messages of its test together");
  return imported;
}

}  // namespace podsim
