// Losses and optimisers (formulas in LocalKind), on boxes of values.
//
// Arithmetic is float64. A result is rounded to float32 at the store, then to bf16 if its buffer is bf16. All operands are read completely before
// anything is written, so results may overlap them. Each call allocates 8 bytes per element for that.
#pragma once

#include "sim/base/expected.hpp"
#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/row_kernels.hpp"

namespace podsim {

// Elements correspond in row-major order; `count` is N.
void mean_square(double count, const View& y, const View& target, const View& loss);
void mean_square_grad(double count, const View& y, const View& target, const View& dy);

/// The classes that a device's columns of logits [tokens, columns] stand for. Columns with a number that is none of `count` are padding: they have no
/// part in the softmax, and gradient 0. Statistics of a device that has nothing but padding are -infinity and 0.
struct Classes {
  RowNumbers columns;
  std::int64_t count = 0;
};
void softmax_statistics(const Classes& classes, const View& logits, const View& statistics);
// Statistics are [devices, tokens, 2]. Errors, before anything is written: a target that is no class.
Status cross_entropy(const Classes& classes, double tokens, const View& logits, const View& statistics, const View& targets, const View& loss);
Status cross_entropy_grad(const Classes& classes, double tokens, const View& logits, const View& statistics, const View& targets,
                          const View& dlogits);

void sgd(const Optimiser& optimiser, const View& parameters, const View& gradient, const View& result);
void adamw(const Optimiser& optimiser, const View& parameters, const View& gradient, const View& m, const View& v, const View& new_parameters,
           const View& new_m, const View& new_v);

}  // namespace podsim
