// The numeric kernels of tasks. Values are words in memory (storage.hpp); values of a bf16 buffer are rounded at every store.
#pragma once

#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/engine/numeric/layout.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// A box of values in memory.
struct View {
  float* data = nullptr;  // offsets of the layout count from here
  Layout layout;          // of words: complex numbers have a last dimension of length 2
  DType dtype = DType::f32;
};

/// Scratch memory, per thread, for operands that BLAS cannot read in place. If cancelled, a long product ends early, unfinished.
struct PackedOperands {
  std::vector<float> left, right, out;
  Cancellation stop{};
};

// Elements correspond in row-major order, whatever the shapes. `out` is either exactly an operand or overlaps none. Sums and differences of s32 wrap.
void copy(const View& in, const View& out);  // rounds if `out` is narrow and `in` has another type
void add(const View& a, const View& b, const View& out);
void subtract(const View& a, const View& b, const View& out);
void multiply(const View& a, const View& b, const View& out);
void divide(const View& a, const View& b, const View& out);
void scale(const View& in, double factor, const View& out);
void add_number(const View& in, double number, const View& out);
void reciprocal(const View& in, double number, const View& out);  // number / in
void relu(const View& in, const View& out);
void maximum(const View& a, const View& b, const View& out);  // NaN if either is

// Boxes of one rank. Everything is read before anything is written.
/// The sum along the dimension that `out` has length 1 in, in order of increasing index, float32 inside.
void sum_along(const View& in, const View& out, std::vector<float>& room);
/// Repeats the dimensions of length 1.
void broadcast_in_dim(const View& in, const View& out, std::vector<float>& room);

/// Block number i of `blocks` of dimension out_dim of `out` = block number i of dimension in_dim of `in`.
void copy_blocks(const View& in, int in_dim, const View& out, int out_dim, std::int64_t blocks);

/// The elements of `in` with the same dimensions, contiguous in `room`.
View packed(const View& in, std::vector<float>& room);

/// out (+)= left * right with the groups, transposes and accumulation of `matmul`. BLAS needs matrices with one row stride and adjacent columns;
/// other boxes are packed first. `out` is computed aside if `apart`, which is required where it overlaps an operand.
void multiply(const Matmul& matmul, const View& left, const View& right, const View& out, bool apart, PackedOperands& workspace);

/// Before kernels are called: loads OpenBLAS and FFTW, sets OpenBLAS to one thread per call, because tasks of different devices already run in parallel,
/// and ends its idle threads. The setting is process-wide (OpenBLAS has no other) and stays: restoring it would race with other engines that run at the
/// same time. Errors: those of load_math_libraries().
Status use_one_blas_thread();

/// out = left * right in float64, row-major, rows [first, last) of out; a transposed operand is stored [k,m] or [n,k].
void multiply_rows(const Product& product, const double* left, const double* right, double* out, std::int64_t first, std::int64_t last);

/// A matrix in float64, row-major.
struct Float64Matrix {
  const double* first = nullptr;
  std::int64_t stride = 0;  // from row to row, in elements
};
/// out [rows, columns] += left [rows, inner] * right [inner, columns]; no extent is 0. Cost of the multiplications; cannot be interrupted.
void multiply_add(const Float64Matrix& left, const Float64Matrix& right, double* out, std::int64_t out_stride, std::int64_t rows, std::int64_t columns, std::int64_t inner);

/// The number of rows of a product (n columns, contraction k) that one BLAS call computes in about a tenth of a second. A call cannot be interrupted.
std::int64_t rows_per_call(std::int64_t n, std::int64_t k);

}  // namespace podsim
