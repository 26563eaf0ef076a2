// What terminals, schedulers and containers put around the lines of a log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "validation/calibration/importers/text_lines.hpp"

namespace podsim {

/// The text without a byte order mark, without ANSI escape sequences (colours), and without the JSON in which docker's json-file keeps each line. Lines keep their
/// numbers. A view of `text` where it has none of these, else of `storage`.
std::string_view plain_log(std::string_view text, std::string& storage);

/// Removes the marks of a quoted mail (`> `), and timestamps: 2024-05-01 10:01:02, 2024-05-01T10:01:02Z, [10:01:02], Nov 30 22:00:01.
void skip_marks(TextLine& line);

/// Labels in front of lines, whatever a launcher makes of them: "node1: " of pdsh, "worker-0 | " of docker compose, "[pod/name/container] " of kubectl, "node1 run.sh[123]: " of journald.
/// No list of forms: where a line is known by its content, as a heading of nccl-tests is, what stands before it is a label. It counts if other comments (`#`) stand
/// behind it too. Words of a label are equal in all lines but for timestamps, which may stand between them.
class LineLabels {
 public:
  /// `known` says where in a line a known content begins; npos: it is none.
  LineLabels(const std::vector<TextLine>& lines, std::size_t (*known)(std::string_view line));
  /// Removes the label and returns its number; nullopt: the line has none.
  [[nodiscard]] std::optional<std::size_t> take(TextLine& line) const;

 private:
  struct Label {
    std::vector<std::string_view> words;
    bool joined = false;  // no blank follows: "[rank0]#"
    bool operator<(const Label& other) const { return std::tie(words, joined) < std::tie(other.words, other.joined); }
  };
  static bool take(const Label& label, TextLine& line);

  std::vector<Label> labels_;
};

}  // namespace podsim
