// The lines of a user's program that instructions come from, as the tables in front of a module's computations have them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "workloads/hlo/hlo_cursor.hpp"

namespace podsim {

/// FileNames, FunctionNames, FileLocations, StackFrames: a word alone, and rows that begin with a number. They change no result, so a row that is not as expected is passed over.
class HloSourceLines {
 public:
  /// Moves behind the table that begins here, or returns false.
  bool take_table(HloCursor& cursor);
  /// "layers.py:85" of the innermost frame of a stack that is not in a library of Python's, as the file is named there; of a stack of libraries alone the
  /// innermost. Empty where the tables do not have it.
  [[nodiscard]] std::string of_frame(std::int64_t stack_frame) const;

 private:
  void take_row(HloCursor& cursor, std::string_view table);

  struct Place {
    std::int64_t file = 0, line = 0;
  };
  std::unordered_map<std::int64_t, std::string> files_;
  std::unordered_map<std::int64_t, Place> places_;          // by the number of a location
  struct Frame {
    std::int64_t place = 0, caller = 0;  // 0: none
  };
  std::unordered_map<std::int64_t, Frame> frames_;
};

}  // namespace podsim
