// Pieces of text that many readers and printers share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace podsim {

/// "a,b,c" at every separator; an empty piece stays, for the reader of the piece to complain about. Of an empty text one empty piece.
std::vector<std::string> split(std::string_view text, char separator = ',');

/// Without spaces, tabs and carriage returns around it.
std::string_view trimmed(std::string_view text);

/// A part of a whole for people, with one digit behind the point: "12.3 %".
std::string percent(double part);
/// The same of a difference, which always has a sign: "+3.1 %".
std::string signed_percent(double part);
/// Of an error, with two significant digits: "0.12 %", "3.4 %", "15 %".
std::string rough_percent(double part);

}  // namespace podsim
