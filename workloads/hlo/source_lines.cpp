#include "workloads/hlo/source_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace podsim {

namespace {

/// Behind "{": NAME=NUMBER with spaces between them.
std::unordered_map<std::string_view, std::int64_t> take_numbers(HloCursor& cursor) {
  std::unordered_map<std::string_view, std::int64_t> numbers;
  while (true) {
    cursor.skip_spaces();
    const std::string_view name = cursor.take_name();
    if (name.empty() || !cursor.take('=')) return numbers;
    const auto number = cursor.take_integer();
    if (!number) return numbers;
    numbers.emplace(name, *number);
  }
}

bool is_library(std::string_view file) {
  constexpr std::array<std::string_view, 3> folders{"/jax/_src/", "/site-packages/", "/dist-packages/"};
  return std::ranges::any_of(folders, [&](std::string_view folder) { return file.find(folder) != std::string_view::npos; });
}

}  // namespace

bool HloSourceLines::take_table(HloCursor& cursor) {
  constexpr std::array<std::string_view, 4> tables{"FileNames", "FunctionNames", "FileLocations", "StackFrames"};
  const std::size_t begin = cursor.at();
  const std::string_view word = cursor.take_name();
  cursor.skip_spaces();
  if (std::ranges::find(tables, word) == tables.end() || (!cursor.ended() && cursor.peek() != '\n')) {
    cursor.move_to(begin);
    return false;
  }
  while (true) {
    cursor.skip_blanks();
    if (cursor.peek() < '0' || cursor.peek() > '9') return true;
    const std::size_t row = cursor.at(), end = std::min(cursor.text().find('\n', row), cursor.text().size());
    take_row(cursor, word);
    cursor.move_to(end);
  }
}

void HloSourceLines::take_row(HloCursor& cursor, std::string_view table) {
  const auto number = cursor.take_integer();
  if (!number) return;
  cursor.skip_spaces();
  if (table == "FileNames") {
    if (const auto name = cursor.take_quoted()) files_.emplace(*number, unescaped(*name));
    return;
  }
  if (!cursor.take('{')) return;
  const auto numbers = take_numbers(cursor);
  const auto number_of = [&](std::string_view name) {
    const auto found = numbers.find(name);
    return found == numbers.end() ? 0 : found->second;
  };
  if (table == "FileLocations") places_.emplace(*number, Place{number_of("file_name_id"), number_of("line")});
  // XLA prints the number of a caller and 1, so that 1 is none.
  if (table == "StackFrames") frames_.emplace(*number, Frame{number_of("file_location_id"), number_of("parent_frame_id") - 1});
}

std::string HloSourceLines::of_frame(std::int64_t stack_frame) const {
  std::string innermost;
  std::size_t visited = 0;  // a table may have frames in a circle
  for (auto frame = frames_.find(stack_frame); frame != frames_.end() && visited < frames_.size(); frame = frames_.find(frame->second.caller), ++visited) {
    const auto place = places_.find(frame->second.place);
    const auto file = place == places_.end() ? files_.end() : files_.find(place->second.file);
    if (file == files_.end()) continue;
    std::string line = fmt::format("{}:{}", file->second, place->second.line);
    if (!is_library(file->second)) return line;
    if (innermost.empty()) innermost = std::move(line);
  }
  return innermost;
}

}  // namespace podsim
