// Random programs of shifts, for tests of folding by translations.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim::testing {

/// Factors of `n` in some order, none of them 1.
inline std::vector<int> random_factors(int n, Rng& rng) {
  std::vector<int> factors;
  while (n > 1) {
    int factor = 2;
    while (n % factor != 0) ++factor;
    if (!factors.empty() && rng.below(2) == 0)
      factors[rng.below(factors.size())] *= factor;
    else
      factors.insert(factors.begin() + static_cast<std::ptrdiff_t>(rng.below(factors.size() + 1)), factor);
    n /= factor;
  }
  return factors;
}

/// Axes "a", "b", ... of so many devices, most of which wrap; with `factors` each folds some.
inline std::vector<MeshAxis> random_axes_of(int devices, bool factors, Rng& rng) {
  std::vector<MeshAxis> axes;
  for (const int size : random_factors(devices, rng)) axes.push_back({std::string(1, static_cast<char>('a' + axes.size())), size, rng.below(4) > 0});
  for (MeshAxis& axis : axes)
    if (factors)
      for (const int size : random_factors(axis.size, rng)) axis.factors.push_back({size, rng.below(2) == 0});
  return axes;
}

/// How many shifts were of which kind.
struct ShiftKinds {
  int guarded = 0, skewed = 0, by_dimension = 0;
};

/// Up to six shifts along these axes and parts of them; some guarded, some by coordinates, some by dimension.
inline Schedule random_shifts(const std::vector<MeshAxis>& axes, ShiftKinds& kinds, Rng& rng) {
  Writer w{axes};
  const BufferId a = w.scratch("a", {1000});
  for (int t = 0, count = rng.between(1, 6); t < count; ++t) {
    AxisView axis = w.axis(static_cast<int>(rng.below(axes.size())));
    if (rng.below(3) == 0)
      for (const int stride : {1, 2, 4})
        if (axis.size % (2 * stride) == 0 && rng.below(2) == 0) axis = {axis.axis, stride, 2};
    const AxisView other = w.axis(static_cast<int>(rng.below(axes.size())));
    Affine by{rng.between(-axis.size, axis.size)};
    if (rng.below(6) == 0 && other.axis != axis.axis && w.schedule.mesh.wraps(axis)) by.terms.push_back({other, 1}), ++kinds.skewed;
    const std::int64_t size = rng.between(1, 400);
    Guard where;
    const bool turns = !axes[static_cast<std::size_t>(axis.axis)].factors.empty() && rng.below(2) == 0;
    if (turns) {
      axis = w.axis(axis.axis);
      by = rng.between(-(axis.size - 1), axis.size - 1);
      if (rng.below(5) == 0) where = between(other, 0, rng.between(1, other.size)), ++kinds.guarded;
      ++kinds.by_dimension;
    } else if (!w.schedule.mesh.wraps(axis)) {
      by.constant = rng.between(-(axis.size - 1), axis.size - 1);
      where = between(axis, std::max<std::int64_t>(0, -by.constant), axis.size - std::max<std::int64_t>(0, by.constant));
    } else if (rng.below(5) == 0) {
      where = between(other, 0, rng.between(1, other.size)), ++kinds.guarded;
    }
    const TaskId task = w.add("t" + std::to_string(t), shift(axis, std::move(by), part(a, 0, size), part(a, 500, size)), {}, where);
    std::get<Shift>(w.task(task).op).by_dimension = turns;
    for (int before = 0; before < t; ++before)
      if (rng.below(3) == 0) w.task(task).after.push_back(after(TaskId{before}));
  }
  return w.schedule;
}

}  // namespace podsim::testing
