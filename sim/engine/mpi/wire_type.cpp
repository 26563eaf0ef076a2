#include "sim/engine/mpi/wire_type.hpp"

#include <limits>
#include <utility>

#include "sim/base/invariant.hpp"

namespace podsim {

WireType::WireType(const Layout& layout) {
  const Layout box = coalesced(layout);
  PODSIM_ASSERT(elements_of(box) <= std::numeric_limits<int>::max());
  if (box.rank == 0 || (box.rank == 1 && box.stride[0] == 1)) {
    count_ = static_cast<int>(elements_of(box));
    return;
  }
  count_ = 1;
  MPI_Datatype inner = MPI_FLOAT;
  for (auto i = static_cast<std::size_t>(box.rank); i-- > 0;) {  // from the innermost dimension out
    MPI_Type_create_hvector(static_cast<int>(box.length[i]), 1, box.stride[i] * static_cast<std::int64_t>(sizeof(float)), inner, &type_);
    if (inner != MPI_FLOAT) MPI_Type_free(&inner);
    inner = type_;
  }
  MPI_Type_commit(&type_);
}

WireType::~WireType() {
  if (type_ != MPI_FLOAT) MPI_Type_free(&type_);
}

WireType::WireType(WireType&& other) noexcept : count_{other.count_}, type_{std::exchange(other.type_, MPI_FLOAT)} {}

}  // namespace podsim
