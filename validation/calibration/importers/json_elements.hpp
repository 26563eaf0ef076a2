// The elements of one array of a long JSON text, without the rest of it in memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "validation/calibration/importers/byte_source.hpp"

namespace podsim {

/// Finds the array: the root, or the value of `key` in a root that is an object. Looks only at strings and brackets; what is inside an element is for
/// its reader to check. Errors: brackets that do not match, elements that are no objects or longer than 64 MiB, the end of the text before the
/// root's.
class JsonElements {
 public:
  JsonElements(std::unique_ptr<ByteSource> bytes, std::string file, std::string key);

  /// The text of the next element into `element`; false at the end of the text.
  Expected<bool> next(std::string& element);
  /// Where the last element began.
  [[nodiscard]] const SourceLocation& where() const { return where_; }
  [[nodiscard]] bool found_array() const { return found_; }

 private:
  Expected<bool> fill();
  [[nodiscard]] SourceLocation here() const;
  Status outside(char c);
  [[nodiscard]] bool in_array() const { return found_ && !left_ && open_.size() == array_depth_; }

  std::unique_ptr<ByteSource> bytes_;
  std::string file_, key_;
  std::string_view piece_;  // the bytes at hand
  std::size_t at_ = 0;
  std::size_t line_ = 1, column_ = 0;
  std::vector<char> open_;  // the brackets
  bool in_string_ = false, escaped_ = false, ended_ = false;
  bool found_ = false, left_ = false;
  std::size_t array_depth_ = 0;
  std::string string_;  // the last one directly in the root
  bool string_is_key_ = false;
  SourceLocation where_;
};

}  // namespace podsim
