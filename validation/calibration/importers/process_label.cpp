#include "validation/calibration/importers/process_label.hpp"

#include <algorithm>
#include <charconv>

namespace podsim {

namespace {

class Label {
 public:
  explicit Label(std::string_view text) : rest_{text} { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  /// What stands behind the label, once read() has read one.
  [[nodiscard]] std::string_view rest() const { return rest_; }

  std::optional<std::int64_t> read() {
    if (!skip("[")) return closed_by(":");
    const std::size_t end = rest_.find_first_of(",]");
    if (end == std::string_view::npos || rest_[end] == ']') return closed_by("]");
    rest_.remove_prefix(end + 1);  // the job
    const auto process = number();
    if (!process || !skip("]<") || !(skip("stdout") || skip("stderr")) || !skip(">:")) return std::nullopt;
    return process;
  }

 private:
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::optional<std::int64_t> number() {
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (status != std::errc{} || value < 0 || value >= most_observed_devices) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  /// A number and an end behind which no word goes on; a comment may.
  std::optional<std::int64_t> closed_by(std::string_view end) {
    const auto process = number();
    if (!process || !skip(end) || !(rest_.empty() || rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '#')) return std::nullopt;
    return process;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<std::int64_t> take_process_label(TextLine& line) {
  Label label{line.text};
  const auto process = label.read();
  if (!process) return std::nullopt;
  line.column += static_cast<int>(line.text.size() - label.rest().size());
  line.text = label.rest();
  return process;
}

}  // namespace podsim
