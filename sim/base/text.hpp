// Small text functions that readers and printers share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace podsim {

/// The pieces of "a,b,c" between separators. Empty pieces are kept, so that the reader of a piece can report them. An empty text gives one empty
/// piece.
std::vector<std::string> split(std::string_view text, char separator = ',');

/// The text without leading and trailing white space.
std::string_view trimmed(std::string_view text);

/// A name without case, - and _, so that spellings of it compare as equal: "allreduce" of "All-Reduce" and "all_reduce".
std::string plain_spelling(std::string_view name);

/// "1 row", "3 rows", "2 microbatches".
std::string counted(std::int64_t count, std::string_view noun);

/// A share as a percentage with one decimal: "12.3 %".
std::string percent(double part);
/// A difference as a percentage, always with its sign: "+3.1 %".
std::string signed_percent(double part);
/// An error as a percentage with two significant digits: "0.12 %", "3.4 %", "15 %".
std::string rough_percent(double part);

}  // namespace podsim
