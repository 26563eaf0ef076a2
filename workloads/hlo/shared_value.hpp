// A constant value that copies share: many instructions have the same shape or no attributes.
#pragma once

#include <memory>
#include <utility>

namespace podsim {

/// Behaves as a const T: compared by value, copied in constant time. Left empty it is T{}.
template <class T>
class SharedValue {
 public:
  SharedValue() = default;
  SharedValue(T value) : value_{std::make_shared<const T>(std::move(value))} {}  // NOLINT(google-explicit-constructor): it stands for the value
  const T& operator*() const { return value_ ? *value_ : none(); }
  const T* operator->() const { return &**this; }
  friend bool operator==(const SharedValue& a, const SharedValue& b) { return a.value_ == b.value_ || *a == *b; }

 private:
  static const T& none() {
    static const T value{};
    return value;
  }
  std::shared_ptr<const T> value_;
};

}  // namespace podsim
