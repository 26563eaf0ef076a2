#include "validation/calibration/importers/log_prefix.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "sim/base/text.hpp"

namespace podsim {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF", escape = "\x1b[", docker_line = "{\"log\":";
constexpr std::size_t most_labels = 256;  // each line is compared with all

std::string without_escapes(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (true) {
    const std::size_t at = std::min(text.find(escape), text.size());
    plain += text.substr(0, at);
    if (at == text.size()) return plain;
    text.remove_prefix(at + escape.size());
    const std::size_t end = text.find_first_not_of("0123456789;:?");  // parameters; a letter ends the sequence
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + (std::isalpha(static_cast<unsigned char>(text[end])) != 0 ? 1 : 0));
  }
}

/// {"log":"text\n","stream":"stdout","time":"..."}, a line each.
std::string without_docker(std::string_view text) {
  std::string plain;
  simdjson::dom::parser parser;
  for (const TextLine& line : lines_of(text)) {
    std::string_view log;
    simdjson::dom::element element;
    const bool is_docker = line.text.starts_with(docker_line) && parser.parse(line.text.data(), line.text.size()).get(element) == simdjson::SUCCESS && element["log"].get(log) == simdjson::SUCCESS;
    if (!is_docker) log = line.text;
    while (log.ends_with('\n') || log.ends_with('\r')) log.remove_suffix(1);
    for (const char c : log) plain += c == '\n' ? ' ' : c;
    plain += '\n';
  }
  return plain;
}

/// "2024-05-01", "10:01:02.5", "2024-05-01T10:01:02Z", "[10:01:02]", and one bracket of "[2024-05-01 10:01:02]".
bool is_timestamp(std::string_view word) {
  if (word.starts_with('[')) word.remove_prefix(1);
  if (word.ends_with(']')) word.remove_suffix(1);
  if (word.size() < 5 || word.find_first_not_of("0123456789-/:.,TZ+") != std::string_view::npos) return false;
  const auto between_digits = [&](char c) {
    const std::size_t at = word.find(c);
    return at != std::string_view::npos && at > 0 && at + 1 < word.size() && std::isdigit(static_cast<unsigned char>(word[at - 1])) != 0 &&
           std::isdigit(static_cast<unsigned char>(word[at + 1])) != 0;
  };
  return between_digits(':') || std::ranges::count(word, '-') == 2 || std::ranges::count(word, '/') == 2;
}

bool is_month(std::string_view word) {
  constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return std::ranges::find(months, word) != months.end();
}

void cut_front(TextLine& line, std::size_t count) {
  line.column += static_cast<int>(count);
  line.text.remove_prefix(count);
}

/// The first word, and what stands before it; empty at the end.
std::string_view first_word(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_first_of(" \t"));
}
std::size_t end_of(std::string_view word, std::string_view text) { return static_cast<std::size_t>(word.data() + word.size() - text.data()); }

/// How much of the text is a timestamp at its beginning; 0: nothing.
std::size_t timestamp_at(std::string_view text) {
  const std::string_view word = first_word(text);
  if (is_timestamp(word)) return end_of(word, text);
  if (!is_month(word)) return 0;  // Nov 30 22:00:01
  const std::string_view day = first_word(text.substr(end_of(word, text)));
  if (day.empty() || day.size() > 2 || day.find_first_not_of("0123456789") != std::string_view::npos) return 0;
  const std::string_view time = first_word(text.substr(end_of(day, text)));
  return is_timestamp(time) ? end_of(time, text) : 0;
}

}  // namespace

std::string_view plain_log(std::string_view text, std::string& storage) {
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (text.starts_with(docker_line)) text = storage = without_docker(text);
  if (text.find(escape) != std::string_view::npos) text = storage = without_escapes(text);
  return text;
}

void skip_marks(TextLine& line) {
  for (;;) {
    const std::size_t begin = std::min(line.text.find_first_not_of(" \t"), line.text.size());
    if (line.text.substr(begin).starts_with('>'))
      cut_front(line, begin + 1);
    else if (const std::size_t stamp = timestamp_at(line.text); stamp > 0)
      cut_front(line, stamp);
    else
      return;
  }
}

LineLabels::LineLabels(const std::vector<TextLine>& lines, std::size_t (*known)(std::string_view line)) {
  std::set<Label> found;
  for (const TextLine& line : lines) {
    const std::size_t at = known(line.text);
    if (at == std::string_view::npos || found.size() >= most_labels) continue;
    Label label{words_of(line.text.substr(0, at))};
    label.joined = at > 0 && line.text[at - 1] != ' ' && line.text[at - 1] != '\t';
    if (!label.words.empty()) found.insert(std::move(label));
  }
  for (const Label& label : found) {
    constexpr int fewest = 2;  // the heading, and another comment
    int comments = 0;
    for (TextLine line : lines)
      if (take(label, line)) comments += trimmed(line.text).starts_with('#') ? 1 : 0;
    if (comments >= fewest) labels_.push_back(label);
  }
}

std::optional<std::size_t> LineLabels::take(TextLine& line) const {
  for (std::size_t i = 0; i < labels_.size(); ++i)
    if (take(labels_[i], line)) return i;
  return std::nullopt;
}

bool LineLabels::take(const Label& label, TextLine& line) {
  std::string_view rest = line.text;
  for (std::size_t i = 0; i < label.words.size(); ++i) {
    std::string_view word = first_word(rest);
    if (label.joined && i + 1 == label.words.size()) {
      if (!word.starts_with(label.words[i])) return false;
      word = word.substr(0, label.words[i].size());
    } else if (word != label.words[i] && !(is_timestamp(word) && is_timestamp(label.words[i]))) {
      return false;
    }
    rest.remove_prefix(end_of(word, rest));
  }
  cut_front(line, line.text.size() - rest.size());
  return true;
}

}  // namespace podsim
