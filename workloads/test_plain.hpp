// The stages of a transformer block in plain float64 and their gradients, on whole matrices [tokens, features], by the evaluator that `check`
// compares schedules with. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/invariant.hpp"
#include "sim/engine/numeric/reference_evaluator.hpp"

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
  PODSIM_ASSERT(a.columns == b.rows);
  Matrix y(a.rows, b.columns);
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t k = 0; k < a.columns; ++k)
      for (std::size_t c = 0; c < b.columns; ++c) y(r, c) += a(r, k) * b(k, c);
  return y;
}

inline Matrix operator+(Matrix a, const Matrix& b) {
  PODSIM_ASSERT(a.rows == b.rows && a.columns == b.columns);
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] += b.values[i];
  return a;
}

/// The graph's only output, [rows, columns], for these inputs: input node i has the values of inputs[i].
inline Matrix evaluated(const std::vector<ReferenceNode>& nodes, const std::vector<const Matrix*>& inputs, std::size_t rows, std::size_t columns) {
  ReferenceProgram program{nodes, {{"Y", static_cast<int>(nodes.size()) - 1}}, ""};
  for (std::size_t i = 0; i < inputs.size(); ++i) program.nodes[i].tensor = std::to_string(i);
  const Mesh mesh;
  for (const std::string& problem : check_reference(program, mesh)) ADD_FAILURE() << problem;
  ThreadPool pool{1};
  const auto values = evaluate(
      program, mesh, [&](const ReferenceNode& node) { return inputs[std::stoul(node.tensor)]->values; }, pool);
  Matrix y(rows, columns);
  y.values = values->front();
  return y;
}
inline ReferenceNode node(ReferenceKind kind, std::vector<int> operands, Extents extents) {
  ReferenceNode made;
  made.kind = kind, made.operands = std::move(operands), made.extents = std::move(extents);
  return made;
}
inline ReferenceNode given(Extents extents) { return node(ReferenceKind::input, {}, std::move(extents)); }
inline Extents extents_of(const Matrix& a) { return {static_cast<std::int64_t>(a.rows), static_cast<std::int64_t>(a.columns)}; }

// ---- Norms ----------------------------------------------------------------------------------------------------------------------------

inline Matrix plain_norm(bool subtract_mean, const Matrix& x) {
  const Extents of_x = extents_of(x), sums{of_x[0], subtract_mean ? 2 : 1};
  return evaluated({given(of_x), node(ReferenceKind::norm_sums, {0}, sums), node(ReferenceKind::norm, {0, 1}, of_x)}, {&x}, x.rows, x.columns);
}

inline Matrix plain_norm_gradient(bool subtract_mean, const Matrix& dy, const Matrix& x) {
  const Extents of_x = extents_of(x), sums{of_x[0], subtract_mean ? 2 : 1};
  return evaluated({given(of_x), given(of_x), node(ReferenceKind::norm_sums, {1}, sums), node(ReferenceKind::norm_grad, {0, 1, 2}, of_x)}, {&dy, &x},
                   x.rows, x.columns);
}

// ---- Attention ------------------------------------------------------------------------------------------------------------------------

/// Columns per group: `queries` heads of queries, their keys, their values; `head` each.
struct Heads {
  std::size_t sequence = 0, groups = 0, queries = 0, head = 0;
  bool causal = true;
  [[nodiscard]] Extents extents(std::size_t tokens, std::size_t heads) const {
    Extents result;
    for (const std::size_t extent : {tokens / sequence, sequence, groups, heads, head}) result.push_back(static_cast<std::int64_t>(extent));
    return result;
  }
};

inline Matrix plain_attention(const Heads& of, const Matrix& x) {
  ReferenceNode attention = node(ReferenceKind::attention, {0}, of.extents(x.rows, of.queries));
  attention.causal = of.causal;
  return evaluated({given(of.extents(x.rows, of.queries + 2)), attention}, {&x}, x.rows, of.groups * of.queries * of.head);
}

inline Matrix plain_attention_gradient(const Heads& of, const Matrix& dy, const Matrix& x) {
  ReferenceNode gradient = node(ReferenceKind::attention_grad, {0, 1}, of.extents(x.rows, of.queries + 2));
  gradient.causal = of.causal;
  return evaluated({given(of.extents(x.rows, of.queries)), given(gradient.extents), gradient}, {&dy, &x}, x.rows, x.columns);
}

// ---- Activations ----------------------------------------------------------------------------------------------------------------------

/// Of a gated one the columns are [devices along the features, gate | up, own]; not gated: any number of devices.
struct GatedColumns {
  std::size_t devices = 1, own = 0;
  [[nodiscard]] std::size_t gate(std::size_t column) const { return column / own * 2 * own + column % own; }
  [[nodiscard]] std::size_t up(std::size_t column) const { return gate(column) + own; }
};
/// The columns of gate, or of up.
inline Matrix half_of(const Matrix& x, const GatedColumns& columns, bool up) {
  Matrix part(x.rows, x.columns / 2);
  for (std::size_t r = 0; r < part.rows; ++r)
    for (std::size_t c = 0; c < part.columns; ++c) part(r, c) = x(r, up ? columns.up(c) : columns.gate(c));
  return part;
}

inline Matrix plain_activation(bool gated, std::size_t devices, const Matrix& x) {
  const Extents of_x = extents_of(x);
  if (!gated) return evaluated({given(of_x), node(ReferenceKind::gelu, {0}, of_x)}, {&x}, x.rows, x.columns);
  const GatedColumns columns{devices, x.columns / 2 / devices};
  const Matrix gate = half_of(x, columns, false), up = half_of(x, columns, true);
  const Extents of_y = extents_of(up);
  return evaluated({given(of_y), given(of_y), node(ReferenceKind::silu, {0}, of_y), node(ReferenceKind::multiply, {1, 2}, of_y)}, {&gate, &up},
                   up.rows, up.columns);
}

inline Matrix plain_activation_gradient(bool gated, std::size_t devices, const Matrix& dy, const Matrix& x) {
  const Extents of_dy = extents_of(dy);
  if (!gated)
    return evaluated({given(of_dy), given(of_dy), node(ReferenceKind::gelu_slope, {1}, of_dy), node(ReferenceKind::multiply, {0, 2}, of_dy)},
                     {&dy, &x}, x.rows, x.columns);
  const GatedColumns columns{devices, dy.columns / devices};
  const Matrix gate = half_of(x, columns, false), up = half_of(x, columns, true);
  const auto times = [&](ReferenceKind kind, const Matrix& factor) {
    return evaluated({given(of_dy), given(of_dy), given(of_dy), node(ReferenceKind::multiply, {0, 1}, of_dy), node(kind, {2}, of_dy),
                      node(ReferenceKind::multiply, {3, 4}, of_dy)},
                     {&dy, &factor, &gate}, dy.rows, dy.columns);
  };
  Matrix ones = dy;
  std::fill(ones.values.begin(), ones.values.end(), 1.0);
  const Matrix d_gate = times(ReferenceKind::silu_slope, up), d_up = times(ReferenceKind::silu, ones);
  Matrix dx(x.rows, x.columns);
  for (std::size_t r = 0; r < dy.rows; ++r)
    for (std::size_t c = 0; c < dy.columns; ++c) dx(r, columns.gate(c)) = d_gate(r, c), dx(r, columns.up(c)) = d_up(r, c);
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
