// Arithmetic on numbers of files. Internal to sim/config.
#pragma once

#include <cstdint>

namespace podsim {

inline constexpr std::int64_t largest_number = std::int64_t{1} << 62;

/// A number with overflow detection: invalid beyond 2^62, so that code that uses the schedule can calculate with valid ones.
class Checked {
 public:
  Checked(std::int64_t value) : value_{value}, ok_{-largest_number <= value && value <= largest_number} {}  // NOLINT(google-explicit-constructor)
  friend Checked operator+(const Checked& a, const Checked& b) {
    std::int64_t sum = 0;
    const bool overflow = __builtin_add_overflow(a.value_, b.value_, &sum);
    return {sum, a.ok_ && b.ok_ && !overflow};
  }
  friend Checked operator*(const Checked& a, const Checked& b) {
    std::int64_t product = 0;
    const bool overflow = __builtin_mul_overflow(a.value_, b.value_, &product);
    return {product, a.ok_ && b.ok_ && !overflow};
  }
  /// |value|
  [[nodiscard]] Checked size() const { return value_ < 0 ? Checked{-1} * *this : *this; }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::int64_t value() const { return value_; }

 private:
  Checked(std::int64_t value, bool ok) : value_{value}, ok_{ok && -largest_number <= value && value <= largest_number} {}
  std::int64_t value_;
  bool ok_;
};

}  // namespace podsim
