#include "sim/base/diagnostic.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace podsim {
namespace {

// Longer texts are not mistyped names, and the cost of the distance is the product of the lengths.
constexpr std::size_t longest_word = 256;
constexpr std::size_t longest_quote = 120;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string result{text};
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
  return result;
}

/// Insertions, deletions, substitutions and swaps of neighbours that make `a` from `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string to_text(const Diagnostic& diagnostic) {
  const SourceLocation& where = diagnostic.where;
  if (where.file.empty()) return diagnostic.message;
  if (where.line == 0) return fmt::format("{}: {}", where.file, diagnostic.message);
  if (where.column == 0) return fmt::format("{}:{}: {}", where.file, where.line, diagnostic.message);
  return fmt::format("{}:{}:{}: {}", where.file, where.line, where.column, diagnostic.message);
}

std::string to_text(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += to_text(diagnostic) + '\n';
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, longest_quote)) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c < ' ' || c > '~') {  // with a signed char the bytes above 127 are below ' '
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  result += '"';
  if (text.size() > longest_quote) result += fmt::format("... ({} bytes)", text.size());
  return result;
}

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, std::size_t most) {
  struct Match {
    bool begins_otherwise;  // a word left unfinished is the likeliest slip: "--mach" of "--machine"
    std::size_t distance, exact_distance, position;
    auto operator<=>(const Match&) const = default;
  };
  if (word.empty() || word.size() > longest_word) return {};
  const std::string wanted = lower(word);
  std::vector<Match> matches;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].size() > longest_word) continue;
    const std::string candidate = lower(candidates[i]);
    const std::size_t distance = edit_distance(wanted, candidate);
    // At least half of the longer one has to agree, unless the word is a piece of the candidate: "bandwidth" for "link.bandwidth".
    const bool piece = wanted.size() >= 3 && candidate.find(wanted) != std::string::npos;
    if (piece || 2 * distance <= std::max(wanted.size(), candidate.size()))
      matches.push_back({wanted.size() < 3 || !candidate.starts_with(wanted), distance, edit_distance(word, candidates[i]), i});
  }
  std::sort(matches.begin(), matches.end());
  std::vector<std::string> result;
  for (const Match& match : matches) {
    if (result.size() == most) break;
    result.push_back(candidates[match.position]);
  }
  return result;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = nearest(word, candidates);
  if (near.empty()) return {};
  std::string text = ", did you mean ";
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (i > 0) text += i + 1 == near.size() ? " or " : ", ";
    text += quoted(near[i]);
  }
  return text + '?';
}

}  // namespace podsim
