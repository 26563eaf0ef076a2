// Room for the buffers of a run.
#pragma once

#include "sim/base/quantity.hpp"

namespace podsim {

/// Floats on whole huge pages: gigabytes are touched once per order, and page by page the kernel would take as long as the arithmetic.
class FloatMemory {
 public:
  FloatMemory() = default;
  /// data() is nullptr if the system does not have them, or if there are none.
  explicit FloatMemory(Bytes size);
  ~FloatMemory();
  FloatMemory(const FloatMemory&) = delete;
  FloatMemory& operator=(const FloatMemory&) = delete;
  [[nodiscard]] float* data() const { return data_; }

 private:
  float* data_ = nullptr;
};

}  // namespace podsim
