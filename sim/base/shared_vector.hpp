// A vector that its copies share: built once, read by many.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace podsim {

/// Copies cost O(1). All members but edit() only read, so copies may be read by several threads.
template <class T>
class SharedVector {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;

  SharedVector() = default;
  SharedVector(std::vector<T> values) : values_{std::make_shared<std::vector<T>>(std::move(values))} {}

  [[nodiscard]] const std::vector<T>& all() const { return values_ == nullptr ? none() : *values_; }
  operator const std::vector<T>&() const { return all(); }
  [[nodiscard]] std::size_t size() const { return values_ == nullptr ? 0 : values_->size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return (*values_)[i]; }
  [[nodiscard]] const T& front() const { return values_->front(); }
  [[nodiscard]] const T& back() const { return values_->back(); }
  [[nodiscard]] const T* data() const { return all().data(); }
  [[nodiscard]] const_iterator begin() const { return all().begin(); }
  [[nodiscard]] const_iterator end() const { return all().end(); }

  /// The vector to write to. One that others share is copied first.
  [[nodiscard]] std::vector<T>& edit() {
    if (values_ == nullptr)
      values_ = std::make_shared<std::vector<T>>();
    else if (values_.use_count() > 1)
      values_ = std::make_shared<std::vector<T>>(*values_);
    return *values_;
  }
  /// Whether both are copies of one vector, so that their elements need no comparison; two empty ones are.
  [[nodiscard]] bool shares(const SharedVector& other) const { return values_ == other.values_ || (empty() && other.empty()); }

 private:
  static const std::vector<T>& none() {
    static const std::vector<T> empty;
    return empty;
  }

  std::shared_ptr<std::vector<T>> values_;
};

}  // namespace podsim
