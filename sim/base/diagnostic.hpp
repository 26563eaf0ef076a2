// Bad input is a value: its location, what was expected, what was found.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace podsim {

/// A location in an input. Line and column count from 1; 0 = not in a text (a command-line value, a schedule in memory).
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
  bool is_field = false;  // `file` is not a file but a field of a function's argument: "mesh" of a SystemSpec
  friend bool operator==(const SourceLocation&, const SourceLocation&) = default;
};
/// The location of an argument's field. The caller knows where the value came from: an option, a line of a file.
inline SourceLocation of_field(std::string name) { return {std::move(name), 0, 0, true}; }

/// Why there is no result. Tells whether the same input would fail again.
enum class Cause {
  input,        // the input is wrong, or the request does not apply to it: it always fails
  cut_off,      // the same: a text ends before it is complete
  too_large,    // the same: more work than is done without being asked twice, as devices are simulated one by one
  cancelled,    // nothing is wrong: the work was told to stop (sim/base/cancellation.hpp)
  data,         // of a run on numbers: the schedule cannot work on these, such as a singular matrix
  environment,  // the computer failed: a process died, the disk is full, there is no memory. The same input may succeed at another time
};

/// Whether the same input always fails.
constexpr bool is_of_input(Cause cause) { return cause == Cause::input || cause == Cause::cut_off || cause == Cause::too_large; }

/// An error in an input, or another reason why there is no result. Printed as `FILE:LINE:COLUMN: message`; the message says what was expected and
/// what was found.
struct Diagnostic {
  SourceLocation where;
  std::string message;
  Cause cause = Cause::input;
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// `FILE:LINE:COLUMN: message`; without line and column `FILE: message`, without a file `message`.
std::string to_text(const Diagnostic& diagnostic);

/// One diagnostic per line, in the order given.
std::string to_text(const std::vector<Diagnostic>& diagnostics);

/// `"text"` for a message. Control characters and bytes that are not printable ASCII are escaped; very long texts are cut.
std::string quoted(std::string_view text);
// Exact matches, or argument-dependent lookup would prefer std::quoted where <iomanip> is included.
inline std::string quoted(const std::string& text) { return quoted(std::string_view{text}); }
inline std::string quoted(std::string& text) { return quoted(std::string_view{text}); }
inline std::string quoted(const char* text) { return quoted(std::string_view{text}); }

/// The candidates nearest to `word`, best first, at most `most`: first those that begin with it, then by edit distance. Candidates that share nothing
/// with it are left out.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, std::size_t most = 3);

/// `, did you mean "a" or "b"?`, or an empty text when nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace podsim
