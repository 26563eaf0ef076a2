// Boxes of floats as MPI datatypes.
#pragma once

#include <mpi.h>

#include "sim/engine/numeric/layout.hpp"

namespace podsim {

/// An MPI datatype for the elements of a layout in row-major order, relative to its offset: `count` times `type`. The boxes at the two ends of a
/// transfer may have different shapes, because MPI matches elements one by one.
class WireType {
 public:
  /// The layout has at most 2^31 - 1 elements (an assert).
  explicit WireType(const Layout& layout);
  ~WireType();
  WireType(WireType&& other) noexcept;
  WireType(const WireType&) = delete;
  WireType& operator=(const WireType&) = delete;
  WireType& operator=(WireType&&) = delete;
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] MPI_Datatype type() const { return type_; }

 private:
  int count_ = 0;
  MPI_Datatype type_ = MPI_FLOAT;
};

}  // namespace podsim
