#include "sim/engine/numeric/memory.hpp"

#include <sys/mman.h>

#include <cstdlib>

namespace podsim {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

FloatMemory::FloatMemory(Bytes size) {
  const std::size_t bytes = (static_cast<std::size_t>(size.count()) + huge_page - 1) / huge_page * huge_page;
  if (bytes == 0) return;
  data_ = static_cast<float*>(std::aligned_alloc(huge_page, bytes));
  if (data_ != nullptr) madvise(data_, bytes, MADV_HUGEPAGE);  // a hint: what it returns does not matter
}

FloatMemory::~FloatMemory() { std::free(data_); }

}  // namespace podsim
