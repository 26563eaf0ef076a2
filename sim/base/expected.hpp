// The subset of std::expected that podsim uses; GCC 12 has the real one only in C++23.
#pragma once

#include <cassert>
#include <utility>
#include <variant>

#include "sim/base/diagnostic.hpp"

namespace podsim {

/// A value, or the Diagnostic that says why there is none.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_{std::in_place_index<0>, std::move(value)} {}                     // NOLINT(google-explicit-constructor): as std::expected
  Expected(Diagnostic diagnostic) : state_{std::in_place_index<1>, std::move(diagnostic)} {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& operator*() & { return assert(has_value()), std::get<0>(state_); }
  const T& operator*() const& { return assert(has_value()), std::get<0>(state_); }
  T&& operator*() && { return assert(has_value()), std::get<0>(std::move(state_)); }
  T* operator->() { return assert(has_value()), &std::get<0>(state_); }
  const T* operator->() const { return assert(has_value()), &std::get<0>(state_); }
  [[nodiscard]] const Diagnostic& error() const { return assert(!has_value()), std::get<1>(state_); }

 private:
  std::variant<T, Diagnostic> state_;
};

/// The outcome of an action without a value: success, or the Diagnostic that says why it failed.
using Status = Expected<std::monostate>;
inline Status success() { return std::monostate{}; }

}  // namespace podsim
