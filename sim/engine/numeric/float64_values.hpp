// Boxes of real numbers as float64, for kernels that are written for clarity. Not for what is outside this folder.
#pragma once

#include <vector>

#include "sim/base/invariant.hpp"
#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/kernels.hpp"

namespace podsim {

using Values = std::vector<double>;  // row-major

inline Values load(const View& view) {
  Values values;
  values.reserve(static_cast<std::size_t>(elements_of(view.layout)));
  for_each_run<1>({&view.layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
    const float* from = view.data + at[0].offset();
    for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(from[i * at[0].stride()]));
  });
  return values;
}

/// Rounds to float32, then to the type of the box.
inline void store(const Values& values, const View& view) {
  PODSIM_ASSERT(static_cast<std::int64_t>(values.size()) == elements_of(view.layout));
  const double* value = values.data();
  for_each_run<1>({&view.layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
    float* to = view.data + at[0].offset();
    for (std::int64_t i = 0; i < count; ++i, ++value) {
      to[i * at[0].stride()] = stored_in(view.dtype, static_cast<float>(*value));
    }
  });
}

}  // namespace podsim
