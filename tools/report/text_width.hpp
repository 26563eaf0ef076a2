// Columns that texts take on a terminal, whatever their alphabet: tables align by them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace podsim {

/// Columns of a UTF-8 text: the sum of its characters', as the C library's wcwidth() has them in the locale C.UTF-8, whatever the locale of the process.
/// Two for most characters of East Asia and emoji, none for what combines with the character before. A byte that is no UTF-8 and a control character
/// count as one: on_one_line() shows each as `?`.
std::size_t width_of(std::string_view text);

/// The text as a terminal can show it on one line, in at most `columns` (at least 3): control characters, among them those that begin escape sequences,
/// and bytes that are no UTF-8 as `?`; what is too long ends with `...`.
std::string on_one_line(std::string_view text, std::size_t columns);

/// The first characters of the text that fit in so many columns.
std::string_view first_columns(std::string_view text, std::size_t columns);

/// Spaces behind or before the text, up to `columns`.
std::string left_aligned(std::string_view text, std::size_t columns);
std::string right_aligned(std::string_view text, std::size_t columns);

}  // namespace podsim
