#include "tools/report/text_width.hpp"

#include <locale.h>
#include <wchar.h>

#include <algorithm>

namespace podsim {

namespace {

/// Of this thread, as long as it lives. A system without C.UTF-8 keeps the locale that it has: there, what is not ASCII may count as bytes.
class Utf8Locale {
 public:
  Utf8Locale() : before_{uselocale(static_cast<locale_t>(nullptr))} {
    static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", static_cast<locale_t>(nullptr));
    if (utf8 != static_cast<locale_t>(nullptr)) uselocale(utf8);
  }
  ~Utf8Locale() { uselocale(before_); }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t before_;
};

bool is_plain(char c) { return c >= ' ' && c <= '~'; }

/// Calls `take(bytes, columns)` for each character; columns -1: it is no UTF-8, or a control character.
template <class Take>
void each_character(std::string_view text, Take take) {
  const Utf8Locale utf8;
  for (std::size_t at = 0; at < text.size();) {
    if (is_plain(text[at])) {
      take(text.substr(at++, 1), 1);
      continue;
    }
    mbstate_t state{};
    wchar_t character = 0;
    const std::size_t size = mbrtowc(&character, text.data() + at, text.size() - at, &state);
    const bool valid = size > 0 && size <= text.size() - at;  // 0: the character NUL; else (size_t)-1 and -2
    take(text.substr(at, valid ? size : 1), valid ? wcwidth(character) : -1);
    at += valid ? size : 1;
  }
}

}  // namespace

std::size_t width_of(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) return text.size();
  std::size_t width = 0;
  each_character(text, [&](std::string_view, int columns) { width += columns < 0 ? 1 : static_cast<std::size_t>(columns); });
  return width;
}

std::string on_one_line(std::string_view text, std::size_t columns) {
  static constexpr std::string_view cut = "...";
  std::string line;
  std::size_t width = 0, kept = 0;  // kept: bytes that fit before the dots
  bool fits = true;
  each_character(text, [&](std::string_view bytes, int taken) {
    if (!fits) return;
    width += taken < 0 ? 1 : static_cast<std::size_t>(taken);
    if (taken < 0)
      line += '?';
    else
      line += bytes;
    if (width + cut.size() <= columns) kept = line.size();
    fits = width <= columns;
  });
  return fits ? line : line.substr(0, kept).append(cut);
}

std::string_view first_columns(std::string_view text, std::size_t columns) {
  std::size_t width = 0, kept = 0, end = 0;
  each_character(text, [&](std::string_view bytes, int taken) {
    width += taken < 0 ? 1 : static_cast<std::size_t>(taken);
    end += bytes.size();
    if (width <= columns) kept = end;
  });
  return text.substr(0, kept);
}

std::string left_aligned(std::string_view text, std::size_t columns) {
  return std::string{text}.append(columns - std::min(columns, width_of(text)), ' ');
}

std::string right_aligned(std::string_view text, std::size_t columns) {
  return std::string(columns - std::min(columns, width_of(text)), ' ').append(text);
}

}  // namespace podsim
