// What one task does to numbers. Values are float32 in memory; those of a bf16 buffer are rounded whenever they are stored.
#pragma once

#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/engine/numeric/layout.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// A box of values.
struct View {
  float* data = nullptr;  // layout offsets count from here
  Layout layout;
  DType dtype = DType::f32;
};

/// Room for operands that BLAS cannot read where they are, kept by each thread. Requested to stop, a long product ends early, unfinished.
struct PackedOperands {
  std::vector<float> left, right, out;
  Cancellation stop{};
};

// Elements correspond in row-major order, whatever the shapes. `out` may be exactly an operand; otherwise they do not overlap.
void copy(const View& in, const View& out);
void add(const View& a, const View& b, const View& out);
void scale(const View& in, double factor, const View& out);

/// The elements of `in` one after the other in `room`.
View packed(const View& in, std::vector<float>& room);

/// out (+)= left * right with the groups, transposes and accumulation of `matmul`. A box that is not a matrix with one row stride and adjacent
/// columns goes through the workspace; so does `out` if `apart`, which it has to be where it overlaps an operand.
void multiply(const Matmul& matmul, const View& left, const View& right, const View& out, bool apart, PackedOperands& workspace);

/// One thread per BLAS call, because tasks of different devices run in parallel and more would only fight over the cores. It is a setting of
/// the whole process (OpenBLAS has no other) and stays: putting it back would race with other engines that run at the same time.
void use_one_blas_thread();

/// out = left * right in float64, row-major, rows [first, last) of out; a transposed operand is stored [k,m] or [n,k].
void multiply_rows(const Product& product, const double* left, const double* right, double* out, std::int64_t first, std::int64_t last);

/// How many rows of a product of n columns over k one BLAS call takes, so that it lasts about a tenth of a second: nothing can end it earlier.
std::int64_t rows_per_call(std::int64_t n, std::int64_t k);

}  // namespace podsim
