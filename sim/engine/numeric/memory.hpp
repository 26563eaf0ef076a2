// Memory for the buffers of a run.
#pragma once

#include "sim/base/quantity.hpp"

namespace podsim {

/// An array of floats on huge pages. Gigabytes are touched once per order; with small pages the page faults would take as long as the arithmetic.
class FloatMemory {
 public:
  FloatMemory() = default;
  /// data() is nullptr if the size is zero or the memory is not available.
  explicit FloatMemory(Bytes size);
  ~FloatMemory();
  FloatMemory(const FloatMemory&) = delete;
  FloatMemory& operator=(const FloatMemory&) = delete;
  [[nodiscard]] float* data() const { return data_; }

 private:
  float* data_ = nullptr;
};

}  // namespace podsim
