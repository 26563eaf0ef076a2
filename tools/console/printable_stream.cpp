#include "tools/console/printable_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace podsim {

namespace {

bool passes(unsigned char c) { return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\t'; }

/// The bytes of the character of more than one byte that `text` begins with; 0: there is none, or it is a control character (U+0080 to U+009F).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const std::size_t length = byte(0) >= 0xf0 && byte(0) <= 0xf4 ? 4 : byte(0) >= 0xe0 && byte(0) < 0xf0 ? 3 : byte(0) >= 0xc2 && byte(0) < 0xe0 ? 2 : 0;
  for (std::size_t i = 1; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  // The second byte tells forms that are longer than needed, halves of pairs, and numbers that no character has.
  const bool wrong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f) || (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f);
  const bool control = byte(0) == 0xc2 && byte(1) < 0xa0;
  return wrong || control ? 0 : length;
}

/// The bytes of the sequence of ours that `text` begins with, or 0.
std::size_t own_length(std::string_view text, OwnSequences own) {
  constexpr std::string_view erase = "\r\x1b[K", reset = "\x1b[0m", colours = "\x1b[38;2;";
  if (own == OwnSequences::progress) return text.starts_with(erase) ? erase.size() : 0;
  if (own == OwnSequences::none) return 0;
  if (text.starts_with(reset)) return reset.size();
  if (!text.starts_with(colours)) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", colours.size());
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

}  // namespace

std::string printable(std::string_view text, OwnSequences own) {
  std::string result;
  while (!text.empty()) {
    const auto plain = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), [](char c) { return passes(static_cast<unsigned char>(c)); }) - text.begin());
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    std::size_t length = utf8_length(text);
    if (length == 0) length = own_length(text, own);
    if (length == 0) fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(text.front()));
    result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

PrintableStream::int_type PrintableStream::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char c = traits_type::to_char_type(character);
  return xsputn(&c, 1) == 1 ? character : traits_type::eof();
}

std::streamsize PrintableStream::xsputn(const char* text, std::streamsize count) {
  const std::string_view given{text, static_cast<std::size_t>(count)};
  const bool clean = std::all_of(given.begin(), given.end(), [](char c) { return passes(static_cast<unsigned char>(c)); });
  if (clean)
    target_.write(text, count);
  else
    target_ << printable(given, own_);
  return target_.good() ? count : 0;
}

int PrintableStream::sync() { return target_.flush().good() ? 0 : -1; }

}  // namespace podsim
