// Boxes of floats as MPI datatypes.
#pragma once

#include <mpi.h>

#include "sim/engine/numeric/layout.hpp"

namespace podsim {

/// The elements of a layout in row-major order, seen from its offset: `count` times `type`. The two sides of a transfer may have boxes of different
/// shapes, as MPI matches elements one by one.
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
