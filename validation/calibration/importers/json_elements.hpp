// Iterates over the elements of one array of a long JSON text without holding the whole text in memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/config/byte_source.hpp"

namespace podsim {

/// Finds the array: the root itself, or the value of `key` in a root object. Only strings and brackets are checked; the reader of an element checks
/// its inside. Errors: brackets that do not match, elements that are not objects or are longer than 64 MiB, a text that ends before its root does.
class JsonElements {
 public:
  JsonElements(std::unique_ptr<ByteSource> bytes, std::string file, std::string key);

  /// Stores the text of the next element in `element`; false at the end of the text.
  Expected<bool> next(std::string& element);
  /// The location at which the last element began.
  [[nodiscard]] const SourceLocation& where() const { return where_; }
  [[nodiscard]] bool found_array() const { return found_; }
  /// The root without the elements of the array, `{"schemaVersion": 1, "traceEvents": []}`, once its end is reached; empty if that is longer than 1 MiB.
  [[nodiscard]] const std::string& rest() const { return rest_; }

 private:
  Expected<bool> fill();
  [[nodiscard]] SourceLocation here() const;
  Status outside(char c);
  void keep(char c);
  [[nodiscard]] bool in_array() const { return found_ && !left_ && open_.size() == array_depth_; }

  std::unique_ptr<ByteSource> bytes_;
  std::string file_, key_;
  std::string_view piece_;  // the current piece of bytes
  std::size_t at_ = 0;
  std::size_t line_ = 1, column_ = 0;
  std::vector<char> open_;  // the open brackets
  bool in_string_ = false, escaped_ = false, ended_ = false;
  bool found_ = false, left_ = false;
  std::size_t array_depth_ = 0;
  std::string string_;  // the last string directly in the root
  bool string_is_key_ = false;
  SourceLocation where_;
  std::string rest_;
  bool rest_fits_ = true;
};

}  // namespace podsim
