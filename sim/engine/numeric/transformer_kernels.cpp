#include "sim/engine/numeric/transformer_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "sim/base/invariant.hpp"
#include "sim/engine/numeric/float64_values.hpp"

namespace podsim {
namespace {

std::size_t length(const View& view, int dim) { return static_cast<std::size_t>(view.layout.length[static_cast<std::size_t>(dim)]); }

/// The dimensions of elements, without the parts of complex numbers.
int rank_of(const View& view) { return view.layout.rank - (view.dtype == DType::c64 ? 1 : 0); }

/// The same elements with the last `dims` dimensions before the others.
View last_first(View view, int dims) {
  const auto rotate = [&](BoxExtents& of_dims) {
    const auto end = of_dims.begin() + rank_of(view);
    std::rotate(of_dims.begin(), end - dims, end);
  };
  rotate(view.layout.length), rotate(view.layout.stride);
  return view;
}

// ---- Norms ----

constexpr double epsilon = 1e-5;

/// Of one token.
struct Moments {
  double mean = 0, reciprocal_deviation = 0;
};

/// w sums per token: (sum of x,) sum of x^2.
std::vector<Moments> moments_of(const View& sums, double features) {
  const Values values = load(sums);
  const std::size_t w = length(sums, 1);
  std::vector<Moments> moments(length(sums, 0));
  for (std::size_t t = 0; t < moments.size(); ++t) {
    const double mean = w == 2 ? values[2 * t] / features : 0;
    const double mean_square_deviation = std::max(values[t * w + w - 1] / features - mean * mean, 0.0);  // in this order a NaN stays one
    moments[t] = {mean, 1 / std::sqrt(mean_square_deviation + epsilon)};
  }
  return moments;
}

Values normalised(const View& x, const std::vector<Moments>& moments) {
  Values values = load(x);
  const std::size_t features = length(x, 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Moments& of_token = moments[i / features];
    values[i] = (values[i] - of_token.mean) * of_token.reciprocal_deviation;
  }
  return values;
}

/// Per token (the sum of a,) the sum of a.b.
Values sums_of(const Values& a, const Values& b, std::size_t features, std::size_t w) {
  Values sums(a.size() / features * w, 0.0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    double* of_token = sums.data() + i / features * w;
    if (w == 2) of_token[0] += a[i];
    of_token[w - 1] += a[i] * b[i];
  }
  return sums;
}

// ---- Activations ----

/// f of corresponding elements.
template <class F, class... Others>
Values each(F f, Values first, const Others&... others) {
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = f(first[i], others[i]...);
  return first;
}

constexpr double gelu_cubic = 0.044715, gelu_scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;

double gelu_tanh(double x) { return std::tanh(gelu_scale * (x + gelu_cubic * x * x * x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// ---- Attention ----

/// A token of a sequence, and one of its queries in a group of heads.
struct Query {
  std::size_t s, t, g, h;
};

/// Where the rows of `head` elements of qkv and o begin.
struct AttentionShape {
  std::size_t sequences, sequence, groups, q, head;

  explicit AttentionShape(const View& o)
      : sequences{length(o, 0)}, sequence{length(o, 1)}, groups{length(o, 2)}, q{length(o, 3)}, head{length(o, 4)} {}
  [[nodiscard]] std::size_t query(const Query& at) const { return in_qkv(at.s, at.t, at.g, at.h); }
  [[nodiscard]] std::size_t key(const Query& at, std::size_t token) const { return in_qkv(at.s, token, at.g, q); }
  [[nodiscard]] std::size_t value(const Query& at, std::size_t token) const { return in_qkv(at.s, token, at.g, q + 1); }
  [[nodiscard]] std::size_t out(const Query& at) const { return (((at.s * sequence + at.t) * groups + at.g) * q + at.h) * head; }
  [[nodiscard]] double scale() const { return 1 / std::sqrt(static_cast<double>(head)); }

  template <class Body>
  void for_each_query(Body body) const {
    for (std::size_t s = 0; s < sequences; ++s)
      for (std::size_t t = 0; t < sequence; ++t)
        for (std::size_t g = 0; g < groups; ++g)
          for (std::size_t h = 0; h < q; ++h) body(Query{s, t, g, h});
  }

 private:
  [[nodiscard]] std::size_t in_qkv(std::size_t s, std::size_t t, std::size_t g, std::size_t h) const {
    return (((s * sequence + t) * groups + g) * (q + 2) + h) * head;
  }
};

double dot(const double* a, const double* b, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// to += factor * from
void add_scaled(double factor, const double* from, std::size_t count, double* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

/// softmax(q.k^T / sqrt(head)) of one query, over the tokens that it sees. The largest score is subtracted so that nothing overflows.
void weights_of(const AttentionShape& shape, const Values& qkv, bool causal, const Query& at, Values& weights) {
  weights.resize(causal ? at.t + 1 : shape.sequence);
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t u = 0; u < weights.size(); ++u) {
    weights[u] = shape.scale() * dot(&qkv[shape.query(at)], &qkv[shape.key(at, u)], shape.head);
    largest = std::max(largest, weights[u]);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
}

}  // namespace

View tokens_first(View view) {
  PODSIM_ASSERT(view.layout.rank == 2 || view.layout.rank == 5);
  return last_first(view, view.layout.rank == 2 ? 1 : 2);
}

void transpose(bool features_first, const View& in, const View& out) {
  std::vector<float> room;  // words are moved as they are
  copy(packed(last_first(in, features_first ? 1 : rank_of(in) - 1), room), out);
}

void norm_sums(const View& x, const View& sums) {
  const Values values = load(x);
  store(sums_of(values, values, length(x, 1), length(sums, 1)), sums);
}

void norm(double features, const View& x, const View& sums, const View& xhat) { store(normalised(x, moments_of(sums, features)), xhat); }

void norm_grad_sums(double features, const View& dy, const View& x, const View& sums, const View& gradient_sums) {
  store(sums_of(load(dy), normalised(x, moments_of(sums, features)), length(x, 1), length(gradient_sums, 1)), gradient_sums);
}

void norm_grad(double features, const View& dy, const View& x, const View& sums, const View& gradient_sums, const View& dx) {
  const std::vector<Moments> moments = moments_of(sums, features);
  const Values xhat = normalised(x, moments), of_gradient = load(gradient_sums);
  const std::size_t w = length(sums, 1);
  Values result = load(dy);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t t = i / length(x, 1);
    const double mean = w == 2 ? of_gradient[2 * t] / features : 0, projection = of_gradient[t * w + w - 1] / features;
    result[i] = moments[t].reciprocal_deviation * (result[i] - mean - xhat[i] * projection);
  }
  store(result, dx);
}

void gelu(const View& x, const View& y) {
  store(each([](double value) { return value * (1 + gelu_tanh(value)) / 2; }, load(x)), y);
}

void gelu_grad(const View& dy, const View& x, const View& dx) {
  const auto gradient = [](double dy_value, double value) {
    const double tanh = gelu_tanh(value), slope = gelu_scale * (1 + 3 * gelu_cubic * value * value);
    return dy_value * (1 + tanh + value * (1 - tanh * tanh) * slope) / 2;
  };
  store(each(gradient, load(dy), load(x)), dx);
}

void swiglu(const View& gate, const View& up, const View& y) {
  store(each([](double g, double u) { return g * sigmoid(g) * u; }, load(gate), load(up)), y);
}

void swiglu_grad(const View& dy, const View& gate, const View& up, const View& dgate, const View& dup) {
  const Values gradient = load(dy), g = load(gate), u = load(up);
  const auto by_gate = [](double d, double g_value, double u_value) {
    const double s = sigmoid(g_value);
    return d * u_value * s * (1 + g_value * (1 - s));
  };
  const auto by_up = [](double d, double g_value) { return d * g_value * sigmoid(g_value); };
  store(each(by_gate, gradient, g, u), dgate);
  store(each(by_up, gradient, g), dup);
}

void attention(bool causal, const View& qkv, const View& o) {
  const AttentionShape shape{o};
  const Values in = load(qkv);
  Values result(static_cast<std::size_t>(elements_of(o.layout)), 0.0), weights;
  shape.for_each_query([&](const Query& at) {
    weights_of(shape, in, causal, at, weights);
    for (std::size_t u = 0; u < weights.size(); ++u) add_scaled(weights[u], &in[shape.value(at, u)], shape.head, &result[shape.out(at)]);
  });
  store(result, o);
}

void attention_grad(bool causal, const View& d_o, const View& qkv, const View& dqkv) {
  const AttentionShape shape{d_o};
  const Values in = load(qkv), d_out = load(d_o);
  Values result(in.size(), 0.0), weights, d_weights;
  shape.for_each_query([&](const Query& at) {
    weights_of(shape, in, causal, at, weights);
    const double* d_row = &d_out[shape.out(at)];
    d_weights.resize(weights.size());
    for (std::size_t u = 0; u < weights.size(); ++u) d_weights[u] = dot(d_row, &in[shape.value(at, u)], shape.head);
    const double mean = dot(weights.data(), d_weights.data(), weights.size());
    for (std::size_t u = 0; u < weights.size(); ++u) {
      const double d_score = shape.scale() * weights[u] * (d_weights[u] - mean);  // through the softmax and the division
      add_scaled(d_score, &in[shape.key(at, u)], shape.head, &result[shape.query(at)]);
      add_scaled(d_score, &in[shape.query(at)], shape.head, &result[shape.key(at, u)]);
      add_scaled(weights[u], d_row, shape.head, &result[shape.value(at, u)]);
    }
  });
  store(result, dqkv);
}

namespace {

/// Which experts tokens have.
struct Routing {
  std::size_t tokens, experts, each;
  [[nodiscard]] std::size_t own() const { return tokens * each / experts; }  // tokens of an expert
  [[nodiscard]] std::size_t expert(std::size_t token, std::size_t slot) const { return token / own() * each + slot; }
  /// The row of [experts, own].
  [[nodiscard]] std::size_t row(std::size_t token, std::size_t slot) const { return expert(token, slot) * own() + token % own(); }
};
Routing routing(const View& gates, std::size_t experts) { return {length(gates, 0), experts, length(gates, 1)}; }

}  // namespace

void expert_gates(const View& logits, const View& gates) {
  const Routing of = routing(gates, length(logits, 1));
  const Values from = load(logits);
  Values result(of.tokens * of.each);
  for (std::size_t t = 0; t < of.tokens; ++t) {
    const double* own = from.data() + t * of.experts + of.expert(t, 0);
    const double largest = *std::max_element(own, own + of.each);
    double sum = 0;
    for (std::size_t j = 0; j < of.each; ++j) sum += result[t * of.each + j] = std::exp(own[j] - largest);
    for (std::size_t j = 0; j < of.each; ++j) result[t * of.each + j] /= sum;
  }
  store(result, gates);
}

void expert_gates_grad(const View& dgates, const View& gates, const View& dlogits) {
  const Routing of = routing(gates, length(dlogits, 1));
  const Values slopes = load(dgates), values = load(gates);
  Values result(of.tokens * of.experts, 0.0);
  for (std::size_t t = 0; t < of.tokens; ++t) {
    double mean = 0;
    for (std::size_t j = t * of.each; j < (t + 1) * of.each; ++j) mean += values[j] * slopes[j];
    for (std::size_t j = 0; j < of.each; ++j) result[t * of.experts + of.expert(t, j)] = values[t * of.each + j] * (slopes[t * of.each + j] - mean);
  }
  store(result, dlogits);
}

void expert_combine(const View& y, const View& gates, const View& x) {
  const Routing of = routing(gates, length(y, 0));
  const std::size_t features = length(y, 2);
  const Values rows = load(y), weights = load(gates);
  Values result(of.tokens * features, 0.0);
  for (std::size_t t = 0; t < of.tokens; ++t)
    for (std::size_t j = 0; j < of.each; ++j)
      for (std::size_t n = 0; n < features; ++n) result[t * features + n] += weights[t * of.each + j] * rows[of.row(t, j) * features + n];
  store(result, x);
}

void expert_combine_grad(const View& dx, const View& y, const View& gates, const View& dy, const View& dgates) {
  const Routing of = routing(gates, length(y, 0));
  const std::size_t features = length(y, 2);
  const Values slopes = load(dx), rows = load(y), weights = load(gates);
  Values of_rows(rows.size()), of_gates(weights.size(), 0.0);
  for (std::size_t t = 0; t < of.tokens; ++t)
    for (std::size_t j = 0; j < of.each; ++j)
      for (std::size_t n = 0; n < features; ++n) {
        const std::size_t at = of.row(t, j) * features + n;
        of_rows[at] = weights[t * of.each + j] * slopes[t * features + n];
        of_gates[t * of.each + j] += rows[at] * slopes[t * features + n];
      }
  store(of_rows, dy), store(of_gates, dgates);
}

}  // namespace podsim
