// A transformer block in plain float64, one function per stage and one for its gradient, on whole matrices [tokens, features]. What schedules are
// held to; it knows no mesh but where the order of features depends on one. Not for production code.
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace podsim::testing {

struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;  // row-major

  Matrix() = default;
  Matrix(std::size_t r, std::size_t c) : rows{r}, columns{c}, values(r * c, 0.0) {}
  double& operator()(std::size_t r, std::size_t c) { return values[r * columns + c]; }
  double operator()(std::size_t r, std::size_t c) const { return values[r * columns + c]; }
};

inline Matrix transposed(const Matrix& a) {
  Matrix t(a.columns, a.rows);
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t c = 0; c < a.columns; ++c) t(c, r) = a(r, c);
  return t;
}

inline Matrix operator*(const Matrix& a, const Matrix& b) {
  assert(a.columns == b.rows);
  Matrix y(a.rows, b.columns);
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t k = 0; k < a.columns; ++k)
      for (std::size_t c = 0; c < b.columns; ++c) y(r, c) += a(r, k) * b(k, c);
  return y;
}

inline Matrix operator+(Matrix a, const Matrix& b) {
  assert(a.rows == b.rows && a.columns == b.columns);
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] += b.values[i];
  return a;
}

/// `count` columns from `first` on, and back.
inline Matrix columns_of(const Matrix& a, std::size_t first, std::size_t count) {
  Matrix part(a.rows, count);
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t c = 0; c < count; ++c) part(r, c) = a(r, first + c);
  return part;
}
inline Matrix rows_of(const Matrix& a, std::size_t first, std::size_t count) { return transposed(columns_of(transposed(a), first, count)); }
inline void add_to(Matrix& a, const Matrix& part, std::size_t row, std::size_t column) {
  for (std::size_t r = 0; r < part.rows; ++r)
    for (std::size_t c = 0; c < part.columns; ++c) a(row + r, column + c) += part(r, c);
}

// ---- Norms ----------------------------------------------------------------------------------------------------------------------------

inline Matrix plain_norm(bool subtract_mean, const Matrix& x) {
  Matrix y = x;
  const auto n = static_cast<double>(x.columns);
  for (std::size_t r = 0; r < x.rows; ++r) {
    double mean = 0, square = 0;
    if (subtract_mean)
      for (std::size_t c = 0; c < x.columns; ++c) mean += x(r, c) / n;
    for (std::size_t c = 0; c < x.columns; ++c) square += (x(r, c) - mean) * (x(r, c) - mean) / n;
    for (std::size_t c = 0; c < x.columns; ++c) y(r, c) = (x(r, c) - mean) / std::sqrt(square + 1e-5);
  }
  return y;
}

/// By the quotient rule: y_j = u_j / s, u = x - mean, s^2 = sum u^2 / n + 1e-5.
inline Matrix plain_norm_gradient(bool subtract_mean, const Matrix& dy, const Matrix& x) {
  Matrix dx(x.rows, x.columns);
  const auto n = static_cast<double>(x.columns);
  for (std::size_t r = 0; r < x.rows; ++r) {
    double mean = 0, square = 0, along = 0, sum = 0;
    if (subtract_mean)
      for (std::size_t c = 0; c < x.columns; ++c) mean += x(r, c) / n;
    for (std::size_t c = 0; c < x.columns; ++c) square += (x(r, c) - mean) * (x(r, c) - mean) / n, along += dy(r, c) * (x(r, c) - mean);
    const double s = std::sqrt(square + 1e-5);
    for (std::size_t c = 0; c < x.columns; ++c) dx(r, c) = dy(r, c) / s - along * (x(r, c) - mean) / (n * s * s * s), sum += dx(r, c);
    if (subtract_mean)
      for (std::size_t c = 0; c < x.columns; ++c) dx(r, c) -= sum / n;
  }
  return dx;
}

// ---- Attention ------------------------------------------------------------------------------------------------------------------------

/// Columns per group: `queries` heads of queries, their keys, their values; `head` each.
struct Heads {
  std::size_t sequence = 0, groups = 0, queries = 0, head = 0;
  bool causal = true;
};

/// softmax(q.k^T / sqrt(head)), what is masked is zero.
inline Matrix plain_scores(const Heads& of, const Matrix& q, const Matrix& k) {
  Matrix p = q * transposed(k);
  for (std::size_t t = 0; t < p.rows; ++t) {
    double sum = 0;
    for (std::size_t u = 0; u < p.columns; ++u) {
      p(t, u) = of.causal && u > t ? 0 : std::exp(p(t, u) / std::sqrt(static_cast<double>(of.head)));
      sum += p(t, u);
    }
    for (std::size_t u = 0; u < p.columns; ++u) p(t, u) /= sum;
  }
  return p;
}

/// Calls body(rows' first, query's, key's, value's and result's first column) for every head of every sequence.
template <class Body>
void for_each_head(const Heads& of, std::size_t tokens, Body body) {
  for (std::size_t s = 0; s < tokens; s += of.sequence)
    for (std::size_t g = 0; g < of.groups; ++g)
      for (std::size_t h = 0; h < of.queries; ++h) {
        const std::size_t group = g * (of.queries + 2);
        body(s, (group + h) * of.head, (group + of.queries) * of.head, (group + of.queries + 1) * of.head, (g * of.queries + h) * of.head);
      }
}

inline Matrix plain_attention(const Heads& of, const Matrix& x) {
  Matrix y(x.rows, of.groups * of.queries * of.head);
  for_each_head(of, x.rows, [&](std::size_t s, std::size_t q, std::size_t k, std::size_t v, std::size_t o) {
    const Matrix rows = rows_of(x, s, of.sequence);
    add_to(y, plain_scores(of, columns_of(rows, q, of.head), columns_of(rows, k, of.head)) * columns_of(rows, v, of.head), s, o);
  });
  return y;
}

inline Matrix plain_attention_gradient(const Heads& of, const Matrix& dy, const Matrix& x) {
  Matrix dx(x.rows, x.columns);
  for_each_head(of, x.rows, [&](std::size_t s, std::size_t q, std::size_t k, std::size_t v, std::size_t o) {
    const Matrix rows = rows_of(x, s, of.sequence), d_o = columns_of(rows_of(dy, s, of.sequence), o, of.head);
    const Matrix Q = columns_of(rows, q, of.head), K = columns_of(rows, k, of.head), V = columns_of(rows, v, of.head);
    const Matrix p = plain_scores(of, Q, K), dp = d_o * transposed(V);
    Matrix scores(p.rows, p.columns);  // gradient of q.k^T
    for (std::size_t t = 0; t < p.rows; ++t) {
      double inner = 0;
      for (std::size_t u = 0; u < p.columns; ++u) inner += p(t, u) * dp(t, u);
      for (std::size_t u = 0; u < p.columns; ++u) scores(t, u) = p(t, u) * (dp(t, u) - inner) / std::sqrt(static_cast<double>(of.head));
    }
    add_to(dx, scores * K, s, q);
    add_to(dx, transposed(scores) * Q, s, k);
    add_to(dx, transposed(p) * d_o, s, v);
  });
  return dx;
}

// ---- Activations ----------------------------------------------------------------------------------------------------------------------

inline double plain_gelu(double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); }
inline double plain_gelu_slope(double x) {
  const double a = std::sqrt(2 / std::acos(-1.0)), s = 1 / (1 + std::exp(-2 * a * (x + 0.044715 * x * x * x)));
  return s + x * s * (1 - s) * 2 * a * (1 + 3 * 0.044715 * x * x);
}

/// Of a gated one the columns are [devices along the features, gate | up, own]; not gated: any number of devices.
struct GatedColumns {
  std::size_t devices = 1, own = 0;
  [[nodiscard]] std::size_t gate(std::size_t column) const { return column / own * 2 * own + column % own; }
  [[nodiscard]] std::size_t up(std::size_t column) const { return gate(column) + own; }
};

inline Matrix plain_activation(bool gated, std::size_t devices, const Matrix& x) {
  Matrix y(x.rows, gated ? x.columns / 2 : x.columns);
  const GatedColumns columns{devices, y.columns / devices};
  for (std::size_t r = 0; r < y.rows; ++r)
    for (std::size_t c = 0; c < y.columns; ++c) {
      const double gate = gated ? x(r, columns.gate(c)) : 0;
      y(r, c) = gated ? gate / (1 + std::exp(-gate)) * x(r, columns.up(c)) : plain_gelu(x(r, c));
    }
  return y;
}

inline Matrix plain_activation_gradient(bool gated, std::size_t devices, const Matrix& dy, const Matrix& x) {
  Matrix dx(x.rows, x.columns);
  const GatedColumns columns{devices, dy.columns / devices};
  for (std::size_t r = 0; r < dy.rows; ++r)
    for (std::size_t c = 0; c < dy.columns; ++c) {
      if (!gated) {
        dx(r, c) = dy(r, c) * plain_gelu_slope(x(r, c));
        continue;
      }
      const double gate = x(r, columns.gate(c)), up = x(r, columns.up(c)), s = 1 / (1 + std::exp(-gate));
      dx(r, columns.gate(c)) = dy(r, c) * up * (s + gate * s * (1 - s));
      dx(r, columns.up(c)) = dy(r, c) * gate * s;
    }
  return dx;
}

// ---- Re-layouts -----------------------------------------------------------------------------------------------------------------------

/// Which feature is at each place after a re-layout between P devices along the tokens and Q along the features. Afterwards P devices share the
/// features: a place is (p, q, own), its feature (q, p, own).
inline std::vector<std::size_t> relayout_order(std::size_t features, std::size_t P, std::size_t Q) {
  std::vector<std::size_t> order;
  const std::size_t f = features / (P * Q);
  for (std::size_t p = 0; p < P; ++p)
    for (std::size_t q = 0; q < Q; ++q)
      for (std::size_t i = 0; i < f; ++i) order.push_back((q * P + p) * f + i);
  return order;
}
inline Matrix plain_relayout(const std::vector<std::size_t>& order, const Matrix& x) {
  Matrix y(x.rows, x.columns);
  for (std::size_t r = 0; r < x.rows; ++r)
    for (std::size_t c = 0; c < x.columns; ++c) y(r, c) = x(r, order[c]);
  return y;
}
inline Matrix plain_relayout_gradient(const std::vector<std::size_t>& order, const Matrix& dy) {
  Matrix dx(dy.rows, dy.columns);
  for (std::size_t r = 0; r < dy.rows; ++r)
    for (std::size_t c = 0; c < dy.columns; ++c) dx(r, order[c]) = dy(r, c);
  return dx;
}

}  // namespace podsim::testing
