// What readers of single fields share: tokens that have to be there, and the first error. Internal to the reader (read_hlo.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "workloads/hlo/hlo_cursor.hpp"

namespace podsim {

inline constexpr std::size_t most_attribute_dims = 64;

/// Functions return false where they have set the error.
class HloFieldText {
 protected:
  explicit HloFieldText(HloCursor& cursor) : cursor_{cursor} {}

  bool fail(std::size_t at, std::string_view what) {
    if (!error_) error_ = cursor_.expected_at(at, what);
    return false;
  }
  bool expected(std::string_view what) { return fail(cursor_.at(), what); }
  bool is(char token, std::string_view what) {
    cursor_.skip_blanks();
    return cursor_.take(token) || expected(what);
  }
  /// Within the integers of a double, so that sums and products of two fit.
  bool integer(std::int64_t& value, std::string_view what) {
    constexpr std::int64_t largest = std::int64_t{1} << 53;
    cursor_.skip_blanks();
    const std::size_t at = cursor_.at();
    const auto found = cursor_.take_integer();
    if (!found || *found > largest || *found < -largest) return fail(at, what);
    value = *found;
    return true;
  }
  [[nodiscard]] Status status(bool ok) const {
    if (!ok) return *error_;
    return success();
  }

  HloCursor& cursor_;
  std::optional<Diagnostic> error_{};
};

}  // namespace podsim
