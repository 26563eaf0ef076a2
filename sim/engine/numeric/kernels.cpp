#include "sim/engine/numeric/kernels.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "sim/base/invariant.hpp"
#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/math_libraries.hpp"
#include "sim/engine/numeric/matrix_view.hpp"

namespace podsim {
namespace {

/// Calls f(i, n) for blocks of n = 16, then 1: a trip count that is a constant is what GCC vectorises at -O2.
template <class F>
inline void in_blocks(std::int64_t count, F f) {
  constexpr std::int64_t block = 16;
  std::int64_t i = 0;
  for (; i + block <= count; i += block) f(i, std::integral_constant<std::int64_t, block>{});
  for (; i < count; ++i) f(i, std::integral_constant<std::int64_t, 1>{});
}

/// Asks for `count` adjacent floats. (Always inline: GCC drops calls of a function that does nothing but prefetch.)
[[gnu::always_inline]] inline void prefetch(const float* data, std::int64_t count) {
  constexpr std::int64_t line = 16, most = 512;
  for (std::int64_t i = 0; i < std::min(count, most); i += line) __builtin_prefetch(data + i);
}

/// out[i] = stored(value(i)) over a run; a block is computed before it is written, so `out` may be an operand.
template <class Value>
void store_run(float* out, std::int64_t stride, std::int64_t count, DType dtype, Value value) {
  if (stride != 1) {
    for (std::int64_t i = 0; i < count; ++i) out[i * stride] = stored_in(dtype, value(i));
    return;
  }
  const auto blocks = [&](auto stored) {
    in_blocks(count, [&](std::int64_t i, auto size) {
      std::array<float, decltype(size)::value> block;
      for (std::int64_t j = 0; j < size; ++j) block[static_cast<std::size_t>(j)] = stored(value(i + j));
      for (std::int64_t j = 0; j < size; ++j) out[i + j] = block[static_cast<std::size_t>(j)];
    });
  };
  if (dtype == DType::bf16) {
    blocks([](float x) { return round_to_bf16(x); });
  } else if (is_narrow(dtype)) {
    blocks([dtype](float x) { return stored_in(dtype, x); });
  } else {
    blocks([](float x) { return x; });
  }
}

// Unsigned, so that sums of integers wrap.
std::uint32_t bits_of(float word) { return std::bit_cast<std::uint32_t>(word); }
float word_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// out = value(in) and value(a, b), element by element.
template <class Value>
void elementwise(const View& in, const View& out, Value value) {
  for_each_run<2>({&in.layout, &out.layout}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
    const float* from = in.data + at[0].offset();
    const std::int64_t step = at[0].stride();
    store_run(out.data + at[1].offset(), at[1].stride(), count, out.dtype, [=](std::int64_t i) { return value(from[i * step]); });
  });
}
template <class Value>
void elementwise(const View& a, const View& b, const View& out, Value value) {
  for_each_run<3>({&a.layout, &b.layout, &out.layout}, [&](std::int64_t count, const std::array<RunCursor, 3>& at) {
    const float* left = a.data + at[0].offset();
    const float* right = b.data + at[1].offset();
    float* to = out.data + at[2].offset();
    const std::int64_t left_step = at[0].stride(), right_step = at[1].stride();
    if (left_step == 1 && right_step == 1) {
      prefetch(left + at[0].ahead(), count), prefetch(right + at[1].ahead(), count);
      store_run(to, at[2].stride(), count, out.dtype, [=](std::int64_t i) { return value(left[i], right[i]); });
    } else {
      store_run(to, at[2].stride(), count, out.dtype, [=](std::int64_t i) { return value(left[i * left_step], right[i * right_step]); });
    }
  });
}

}  // namespace

void copy(const View& in, const View& out) {
  const bool rounds = is_narrow(out.dtype) && in.dtype != out.dtype;
  if (!rounds && in.data == out.data && in.layout == out.layout) return;
  for_each_run<2>({&in.layout, &out.layout}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
    const float* from = in.data + at[0].offset();
    float* to = out.data + at[1].offset();
    const std::int64_t step = at[0].stride();
    if (step == 1 && at[1].stride() == 1 && !rounds) {
      prefetch(from + at[0].ahead(), count);
      std::memmove(to, from, static_cast<std::size_t>(count) * sizeof(float));
    } else {
      store_run(to, at[1].stride(), count, rounds ? out.dtype : DType::f32, [=](std::int64_t i) { return from[i * step]; });
    }
  });
}

void add(const View& a, const View& b, const View& out) {
  if (out.dtype == DType::s32) return elementwise(a, b, out, [](float x, float y) { return word_of(bits_of(x) + bits_of(y)); });
  elementwise(a, b, out, [](float x, float y) { return x + y; });
}
void subtract(const View& a, const View& b, const View& out) {
  if (out.dtype == DType::s32) return elementwise(a, b, out, [](float x, float y) { return word_of(bits_of(x) - bits_of(y)); });
  elementwise(a, b, out, [](float x, float y) { return x - y; });
}
void maximum(const View& a, const View& b, const View& out) {
  elementwise(a, b, out, [](float x, float y) { return x > y || std::isnan(x) ? x : y; });
}
void multiply(const View& a, const View& b, const View& out) {
  elementwise(a, b, out, [](float x, float y) { return x * y; });
}
void divide(const View& a, const View& b, const View& out) {
  elementwise(a, b, out, [](float x, float y) { return x / y; });
}

// In float64, then rounded: as if rounded once, where the number is one of float32.
void scale(const View& in, double factor, const View& out) {
  elementwise(in, out, [factor](float x) { return static_cast<float>(factor * static_cast<double>(x)); });
}
void add_number(const View& in, double number, const View& out) {
  elementwise(in, out, [number](float x) { return static_cast<float>(static_cast<double>(x) + number); });
}
void reciprocal(const View& in, double number, const View& out) {
  elementwise(in, out, [number](float x) { return static_cast<float>(number / static_cast<double>(x)); });
}
void relu(const View& in, const View& out) {
  elementwise(in, out, [](float x) { return x < 0 ? 0.0F : x; });  // a NaN stays one
}

void sum_along(const View& in, const View& out, std::vector<float>& room) {
  PODSIM_ASSERT(in.layout.rank == out.layout.rank);
  std::size_t summed = 0;
  for (std::size_t d = 0; d < static_cast<std::size_t>(in.layout.rank); ++d)
    if (in.layout.length[d] != out.layout.length[d]) summed = d;
  const std::int64_t terms = in.layout.rank == 0 ? 1 : in.layout.length[summed] / std::max<std::int64_t>(out.layout.length[summed], 1);
  View sum = room_for(elements_of(out.layout), room);
  if (out.dtype == DType::s32) sum.dtype = DType::s32;
  View term = in;
  term.layout.length = out.layout.length;
  for (std::int64_t i = 0; i < terms; ++i) {
    i == 0 ? copy(term, sum) : add(sum, term, sum);
    term.layout.offset += in.layout.stride[summed];
  }
  if (terms > 0)
    copy(sum, out);
  else
    scale(out, 0, out);
}

void broadcast_in_dim(const View& in, const View& out, std::vector<float>& room) {
  PODSIM_ASSERT(in.layout.rank == out.layout.rank);
  View repeated = packed(in, room);
  std::int64_t stride = 1;
  repeated.layout = out.layout;
  repeated.layout.offset = 0;
  for (auto d = static_cast<std::size_t>(in.layout.rank); d-- > 0;) {
    repeated.layout.stride[d] = in.layout.length[d] == 1 ? 0 : stride;
    stride *= in.layout.length[d];
  }
  copy(repeated, out);
}

void copy_blocks(const View& in, int in_dim, const View& out, int out_dim, std::int64_t blocks) {
  const auto block = [blocks](View view, int dim, std::int64_t i) {
    const auto d = static_cast<std::size_t>(dim);
    view.layout.length[d] /= blocks;
    view.layout.offset += i * view.layout.length[d] * view.layout.stride[d];
    return view;
  };
  for (std::int64_t i = 0; i < blocks; ++i) copy(block(in, in_dim, i), block(out, out_dim, i));
}

View packed(const View& in, std::vector<float>& room) {
  View result = room_for(elements_of(in.layout), room);
  result.dtype = in.dtype;
  std::int64_t stride = 1;
  result.layout.rank = in.layout.rank;
  for (auto d = static_cast<std::size_t>(in.layout.rank); d-- > 0; stride *= in.layout.length[d]) {
    result.layout.length[d] = in.layout.length[d];
    result.layout.stride[d] = stride;
  }
  copy(in, result);
  return result;
}

namespace {

/// A product of whole numbers in s32, which wraps. Float64 holds the sum of 2^37 products of s8 exactly.
void multiply_integers(const Matmul& matmul, const View& left, const View& right, const View& out, PackedOperands& workspace) {
  const auto numbers = [](const View& view, std::vector<float>& room) {
    const View dense = packed(view, room);
    return std::vector<double>(dense.data, dense.data + elements_of(view.layout));
  };
  const MatmulExtents e = extents_of(matmul);
  const Product product{{}, {}, {}, e.m, e.n, e.k, matmul.transpose_left, matmul.transpose_right};
  const std::vector<double> a = numbers(left, workspace.left), b = numbers(right, workspace.right);
  std::vector<double> y(static_cast<std::size_t>(e.m * e.n));
  const std::int64_t most_rows = rows_per_call(e.n, e.k);
  for (std::int64_t first = 0; first < e.m && !workspace.stop.requested(); first += most_rows)
    multiply_rows(product, a.data(), b.data(), y.data() + first * e.n, first, std::min(e.m, first + most_rows));
  const View sums = room_for(e.m * e.n, workspace.out);
  for (std::size_t i = 0; i < y.size(); ++i)  // what is no number stays visible
    sums.data[i] = std::isfinite(y[i]) ? word_of(static_cast<std::uint32_t>(static_cast<std::int64_t>(y[i]))) : std::numeric_limits<float>::quiet_NaN();
  const View whole{sums.data, contiguous(e.m * e.n), DType::s32};
  matmul.accumulate ? add(out, whole, out) : copy(whole, out);
}

}  // namespace

void multiply(const Matmul& matmul, const View& left, const View& right, const View& out, bool apart, PackedOperands& workspace) {
  if (out.dtype == DType::s32) return multiply_integers(matmul, left, right, out, workspace);
  const auto operand = [](const View& view, int split, std::vector<float>& room) {
    const std::optional<Matrix> in_place = as_matrix(view, split);
    return in_place ? *in_place : packed_matrix(view, split, packed(view, room).data);
  };
  const Matrix a = operand(left, matmul.left_split, workspace.left);
  const Matrix b = operand(right, matmul.right_split, workspace.right);
  const std::optional<Matrix> in_place = apart ? std::nullopt : as_matrix(out, matmul.out_split);
  const auto elsewhere = [&] {
    const View room = matmul.accumulate ? packed(out, workspace.out) : room_for(elements_of(out.layout), workspace.out);
    return packed_matrix(out, matmul.out_split, room.data);
  };
  const Matrix y = in_place ? *in_place : elsewhere();
  const int k = matmul.transpose_left ? a.rows : a.cols;
  PODSIM_ASSERT((matmul.transpose_left ? a.cols : a.rows) == y.rows && (matmul.transpose_right ? b.rows : b.cols) == y.cols);
  PODSIM_ASSERT((matmul.transpose_right ? b.cols : b.rows) == k);

  // beta = 0 does not read `out`, so what it held before (a NaN, if nothing) does not matter.
  const std::int64_t most_rows = rows_per_call(y.cols, k);
  for (std::int64_t first = 0; first < y.rows && !workspace.stop.requested(); first += most_rows)
    math().cblas_sgemm(CblasRowMajor, matmul.transpose_left ? CblasTrans : CblasNoTrans, matmul.transpose_right ? CblasTrans : CblasNoTrans,
                       static_cast<int>(std::min<std::int64_t>(most_rows, y.rows - first)), y.cols, k, 1.0F,
                       a.data + first * (matmul.transpose_left ? 1 : a.ld), a.ld, b.data, b.ld, matmul.accumulate ? 1.0F : 0.0F,
                       y.data + first * y.ld, y.ld);

  if (!in_place) {
    copy({y.data, contiguous(elements_of(out.layout)), DType::f32}, out);
  } else if (is_narrow(out.dtype)) {
    const View products{out.data, out.layout, DType::f32};
    copy(products, out);
  }
}

std::int64_t rows_per_call(std::int64_t n, std::int64_t k) {
  constexpr double multiply_adds = 0x1p32;
  constexpr std::int64_t least = 64;  // of fewer, the packing of the other operand would count
  return std::max(least, static_cast<std::int64_t>(std::min(multiply_adds / static_cast<double>(n) / static_cast<double>(k), 0x1p62)) / least * least);
}

void multiply_rows(const Product& product, const double* left, const double* right, double* out, std::int64_t first, std::int64_t last) {
  const auto m = static_cast<int>(product.m), n = static_cast<int>(product.n), k = static_cast<int>(product.k);
  math().cblas_dgemm(CblasRowMajor, product.transpose_left ? CblasTrans : CblasNoTrans, product.transpose_right ? CblasTrans : CblasNoTrans,
                     static_cast<int>(last - first), n, k, 1.0, left + (product.transpose_left ? first : first * product.k),
                     product.transpose_left ? m : k, right, product.transpose_right ? k : n, 0.0, out + first * product.n, n);
}

void multiply_add(const Float64Matrix& left, const Float64Matrix& right, double* out, std::int64_t out_stride, std::int64_t rows, std::int64_t columns, std::int64_t inner) {
  PODSIM_ASSERT(rows > 0 && columns > 0 && inner > 0);
  math().cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(inner), 1.0,
                     left.first, static_cast<int>(left.stride), right.first, static_cast<int>(right.stride), 1.0, out, static_cast<int>(out_stride));
}

}  // namespace podsim
