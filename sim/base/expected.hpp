// The subset of std::expected that podsim uses; GCC 12 has the real one only in C++23.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <variant>  // std::monostate

#include "sim/base/diagnostic.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

/// A value, or the Diagnostic that says why there is none. A union by hand: a std::variant per type takes a tenth more time to compile.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : value_(std::move(value)), has_value_{true} {}                      // NOLINT(google-explicit-constructor): as std::expected
  Expected(Diagnostic diagnostic) : error_(std::move(diagnostic)), has_value_{false} {}  // NOLINT(google-explicit-constructor)

  Expected(const Expected& other) requires std::is_copy_constructible_v<T> : has_value_{other.has_value_} {
    if (has_value_)
      std::construct_at(std::addressof(value_), other.value_);
    else
      std::construct_at(&error_, other.error_);
  }
  Expected(Expected&& other) noexcept : has_value_{other.has_value_} {
    if (has_value_)
      std::construct_at(std::addressof(value_), std::move(other.value_));
    else
      std::construct_at(&error_, std::move(other.error_));
  }
  Expected& operator=(Expected other) noexcept {
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
  }
  ~Expected() {
    if (has_value_)
      std::destroy_at(std::addressof(value_));
    else
      std::destroy_at(&error_);
  }

  [[nodiscard]] bool has_value() const { return has_value_; }
  explicit operator bool() const { return has_value_; }

  T& operator*() & { return PODSIM_ASSERT(has_value()), value_; }
  const T& operator*() const& { return PODSIM_ASSERT(has_value()), value_; }
  T&& operator*() && { return PODSIM_ASSERT(has_value()), std::move(value_); }
  T* operator->() { return PODSIM_ASSERT(has_value()), std::addressof(value_); }
  const T* operator->() const { return PODSIM_ASSERT(has_value()), std::addressof(value_); }
  [[nodiscard]] const Diagnostic& error() const { return PODSIM_ASSERT(!has_value()), error_; }

 private:
  union {
    T value_;
    Diagnostic error_;
  };
  bool has_value_;
};

/// The outcome of an action without a value: success, or the Diagnostic that says why it failed.
using Status = Expected<std::monostate>;
inline Status success() { return std::monostate{}; }

}  // namespace podsim
