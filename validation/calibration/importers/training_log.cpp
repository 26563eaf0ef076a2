#include "validation/calibration/importers/training_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <set>

#include "sim/base/statistics.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

namespace {

/// The word behind `key` and spaces; empty: the line has no such key.
std::string_view behind(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = line.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  return rest.substr(0, rest.find_first_of(" \t|,("));
}

/// "6,585", "116.16GiB": a number with commas between thousands, up to what is no digit.
std::optional<double> number_in_words(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string digits;
  std::string_view rest = line.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  for (const char c : rest) {
    if (c == ',') continue;
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '.') break;
    digits += c;
  }
  double number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return status == std::errc{} && end == digits.data() + digits.size() && std::isfinite(number) ? std::optional{number} : std::nullopt;
}

/// Seconds of "2025-06-04 08:51:48,074", "2025-09-11 14:09:20,363205" or "2026-05-12T08:04:23" anywhere in a line, since some day long ago.
std::optional<double> stamp_in(std::string_view line) {
  for (std::size_t at = 0; at + 19 <= line.size(); ++at) {
    const std::string_view text = line.substr(at, 19);
    if (text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':') continue;
    std::array<int, 6> parts{};
    constexpr std::array<std::pair<int, int>, 6> places{{{0, 4}, {5, 2}, {8, 2}, {11, 2}, {14, 2}, {17, 2}}};
    bool whole = true;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const char* const begin = text.data() + places[i].first;
      const auto [end, status] = std::from_chars(begin, begin + places[i].second, parts[i]);
      whole = whole && status == std::errc{} && end == begin + places[i].second && parts[i] >= 0;
    }
    if (!whole || parts[1] < 1 || parts[1] > 12) continue;
    const int year = parts[0] - (parts[1] <= 2 ? 1 : 0), month = (parts[1] + 9) % 12;  // days from March on
    const double days = 365.0 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + parts[2];
    double seconds = ((days * 24 + parts[3]) * 60 + parts[4]) * 60 + parts[5];
    std::size_t digit = at + 19;
    if (digit < line.size() && (line[digit] == ',' || line[digit] == '.'))
      for (double share = 0.1; ++digit < line.size() && std::isdigit(static_cast<unsigned char>(line[digit])) != 0; share /= 10) seconds += share * (line[digit] - '0');
    return seconds;
  }
  return std::nullopt;
}

/// Where a line of torchtitan begins to tell tokens a second; npos: not at all. "https:" is no such word.
std::size_t tokens_key(std::string_view line) {
  constexpr std::string_view key = "tps:";
  std::size_t at = line.find(key);
  while (at != std::string_view::npos && at > 0 && std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0) at = line.find(key, at + 1);
  return at;
}
bool is_titan_step(std::string_view line) {
  return tokens_key(line) != std::string_view::npos && line.find("step:") != std::string_view::npos && line.find("loss:") != std::string_view::npos && line.find("validate step:") == std::string_view::npos;
}

struct TrainingLog {
  std::vector<double> times;   // s, of a step, in order
  std::vector<double> tokens;  // a second and device
  double memory = 0;           // bytes, the most
  std::int64_t devices = 0, batch = 0, length = 0;
};

class LogOfSteps {
 public:
  explicit LogOfSteps(const std::string& file) : file_{file} {}

  Status read_line(const TextLine& line) {
    const std::string_view text = line.text;
    if (const auto world = number_in_words(text, "world size: "); world && log_.devices == 0) log_.devices = count(*world);
    read_argument(text);
    if (text.find("elapsed time per iteration (ms):") != std::string_view::npos) return read_megatron(line);
    if (text.find("max allocated: ") != std::string_view::npos)
      if (const auto megabytes = number_in_words(text, "max allocated: ")) log_.memory = std::max(log_.memory, *megabytes * 1048576);
    if (is_titan_step(text)) return read_titan(line);
    return success();
  }

  Expected<TrainingLog> finish() {
    constexpr std::size_t fewest = 2;
    if (log_.times.empty() && earlier_ > 0)
      return Diagnostic{{file_, 1, 1}, fmt::format("expected the steps in the order in which they ran, found {} before {}: where the newest line is the first, `tac` turns them", earlier_, last_step_)};
    if (log_.times.size() < fewest) return Diagnostic{{file_, 1, 1}, fmt::format("expected the lines of three steps of torchtitan (step: 10 loss: ... tps: ...) or Megatron-LM (elapsed time per iteration (ms): ...), found {}", lines_)};
    return std::move(log_);
  }

 private:
  static std::int64_t count(double number) { return number >= 1 && number <= most_observed_devices && number == std::floor(number) ? static_cast<std::int64_t>(number) : 0; }

  /// "  seq_length ...................................... 2048" of Megatron's list of arguments, and what torchtitan says at the start.
  void read_argument(std::string_view text) {
    if (text.find(":print]") != std::string_view::npos) return;  // DeepSpeed's list, whose world_size counts the data-parallel ranks
    const auto words = words_of(text);
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      if (!words[i + 1].starts_with("...")) continue;
      const auto value = number_in_words(words[i + 2], "");
      if (words[i] == "seq_length" && value) log_.length = count(*value);
      if (words[i] == "world_size" && value) log_.devices = count(*value);
    }
    if (const auto length = number_in_words(text, "sequence length "); length && text.find("global batch size ") != std::string_view::npos) {
      log_.length = count(*length);
      if (const auto batch = number_in_words(text, "global batch size ")) log_.batch = count(*batch);
    }
  }

  Status read_megatron(const TextLine& line) {
    std::string_view word = behind(line.text, "elapsed time per iteration (ms):");
    if (const std::size_t mean = word.find('/'); mean != std::string_view::npos && mean > 0) word = word.substr(0, mean);
    const auto milliseconds = positive_number(word, "the time of a step", place_of(file_, line, word));
    if (!milliseconds) return milliseconds.error();
    if (const auto batch = number_in_words(line.text, "global batch size:")) log_.batch = count(*batch);
    if (lines_++ > 0) log_.times.push_back(*milliseconds * 1e-3);  // the first is that of compilers and caches
    return success();
  }

  Status read_titan(const TextLine& line) {
    const std::string_view word = behind(line.text, "step:");
    const auto step = parse_integer(word, 0, std::int64_t{1} << 40, place_of(file_, line, word));
    if (!step) return step.error();
    const auto stamp = stamp_in(line.text);
    if (!stamp) return Diagnostic{place_of(file_, line, line.text), "expected the date and time of a step before it, found none"};
    if (!steps_.insert(*step).second) return success();  // another rank's line
    ++lines_;
    if (last_step_ > 0 && *step > last_step_) {
      const double time = (*stamp - last_stamp_) / static_cast<double>(*step - last_step_);
      if (!(time > 0)) return Diagnostic{place_of(file_, line, word), fmt::format("expected a later time than that of step {}, found none", last_step_)};
      log_.times.push_back(time);
      if (const auto tokens = number_in_words(line.text.substr(tokens_key(line.text)), "tps:"); tokens && *tokens > 0) log_.tokens.push_back(*tokens);
    }
    if (const auto memory = number_in_words(line.text, "memory:")) log_.memory = std::max(log_.memory, *memory * 1073741824);
    if (*step < last_step_) earlier_ = last_step_;
    last_step_ = *step, last_stamp_ = *stamp;
    return success();
  }

  const std::string& file_;
  TrainingLog log_;
  std::set<std::int64_t> steps_;
  std::int64_t lines_ = 0, last_step_ = 0, earlier_ = 0;  // earlier_: a step whose line stood before that of a smaller one
  double last_stamp_ = 0;
};

std::string name_without_folder(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1);
  return name.substr(0, name.find('.', 1));
}

}  // namespace

bool has_training_log(std::string_view text) {
  for (const std::string_view mark : std::initializer_list<std::string_view>{"elapsed time per iteration (ms):", "[titan]", "using world size: "})
    if (text.find(mark) != std::string_view::npos) return true;
  for (std::size_t at = tokens_key(text); at != std::string_view::npos; at = tokens_key(text)) {
    const std::size_t begin = text.rfind('\n', at) + 1;  // 0 where there is none
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (is_titan_step(text.substr(begin, end - begin))) return true;
    text.remove_prefix(end);
  }
  return false;
}

Expected<Imported> import_training_log(std::string_view text, const std::string& file, const ImportOptions& options) {
  LogOfSteps reader{file};
  for (const TextLine& line : lines_of(text))
    if (auto ok = reader.read_line(line); !ok) return ok.error();
  const auto log = reader.finish();
  if (!log) return log.error();
  const std::int64_t devices = log->devices > 0 ? log->devices : options.devices;
  if (devices < 1) return Diagnostic{{file, 1, 1}, "nothing tells how many devices took part: no line says the world size; `devices` tells it"};
  Imported imported;
  Observation row;
  row.op = ObservedOp::training_step;
  row.devices = static_cast<int>(devices);
  row.time = Seconds{median(log->times)};
  row.step = name_without_folder(file);
  row.where = {file, 1, 1};
  imported.notes.push_back(fmt::format("the step {}: the median of {}, {} to {}", quoted(row.step), counted(static_cast<std::int64_t>(log->times.size()), "time"),
                                       to_text(Seconds{*std::ranges::min_element(log->times)}), to_text(Seconds{*std::ranges::max_element(log->times)})));
  const double tokens = static_cast<double>(log->batch * log->length) / row.time.count() / static_cast<double>(devices);
  if (!log->tokens.empty() || tokens > 0) imported.notes.push_back(fmt::format("{:.0f} tokens a second and device", log->tokens.empty() ? tokens : median(log->tokens)));
  if (log->memory > 0) imported.notes.push_back(fmt::format("memory up to {}", to_text(Bytes{static_cast<std::int64_t>(std::min(log->memory, 1e15))})));
  imported.observations.push_back(std::move(row));
  return imported;
}

}  // namespace podsim
