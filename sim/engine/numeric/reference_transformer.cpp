#include "sim/engine/numeric/reference_transformer.hpp"

#include <algorithm>
#include <cmath>

namespace podsim {
namespace {

using Numbers = std::vector<double>;

/// Of one token, from its sums: (x - mean) * scale is normalised.
struct Spread {
  double mean = 0, scale = 0;
};
Spread spread_of(const double* sums, std::size_t w, double n) {
  const double mean = w == 2 ? sums[0] / n : 0;
  return {mean, 1 / std::sqrt(std::max(sums[w - 1] / n - mean * mean, 0.0) + 1e-5)};
}

/// The heads of one group of one sequence, by token.
class Group {
 public:
  Group(const Extents& of_qkv, std::size_t group)
      : sequence{static_cast<std::size_t>(of_qkv[1])},
        queries{static_cast<std::size_t>(of_qkv[3] - 2)},
        head{static_cast<std::size_t>(of_qkv[4])},
        groups_{static_cast<std::size_t>(of_qkv[2])},
        group_{group} {}

  std::size_t sequence, queries, head;

  /// The first number of head h of token t in qkv: queries, then the keys, then the values; and in o.
  [[nodiscard]] std::size_t in_qkv(std::size_t t, std::size_t h) const { return at(t, h, queries + 2); }
  [[nodiscard]] std::size_t in_o(std::size_t t, std::size_t h) const { return at(t, h, queries); }

  /// softmax(q . k / sqrt(head)) of head h at token t; 0 for tokens that it does not see.
  [[nodiscard]] Numbers weights(const Numbers& qkv, std::size_t t, std::size_t h, bool causal) const {
    Numbers p(sequence, 0.0);
    const std::size_t seen = causal ? t + 1 : sequence;
    double largest = -INFINITY, sum = 0;
    for (std::size_t u = 0; u < seen; ++u) {
      p[u] = dot(&qkv[in_qkv(t, h)], &qkv[in_qkv(u, queries)]) / std::sqrt(static_cast<double>(head));
      largest = std::max(largest, p[u]);
    }
    for (std::size_t u = 0; u < seen; ++u) sum += p[u] = std::exp(p[u] - largest);
    for (std::size_t u = 0; u < seen; ++u) p[u] /= sum;
    return p;
  }
  double dot(const double* a, const double* b) const {
    double sum = 0;
    for (std::size_t d = 0; d < head; ++d) sum += a[d] * b[d];
    return sum;
  }
  void add(double factor, const double* from, double* to) const {
    for (std::size_t d = 0; d < head; ++d) to[d] += factor * from[d];
  }

 private:
  [[nodiscard]] std::size_t at(std::size_t t, std::size_t h, std::size_t heads) const {
    const std::size_t sequence_number = group_ / groups_, g = group_ % groups_;
    return (((sequence_number * sequence + t) * groups_ + g) * heads + h) * head;
  }
  std::size_t groups_, group_;
};

template <class Body>
void for_each_group(const Extents& of_qkv, ThreadPool& pool, Body body) {
  pool.for_each(static_cast<std::size_t>(of_qkv[0] * of_qkv[2]), [&](std::size_t g, std::size_t) { body(Group{of_qkv, g}); });
}

}  // namespace

Numbers reference_norm_sums(const Numbers& x, const Extents& of_x, std::int64_t w) {
  const auto n = static_cast<std::size_t>(of_x[1]), width = static_cast<std::size_t>(w);
  Numbers sums(static_cast<std::size_t>(of_x[0]) * width, 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    double* of_token = &sums[i / n * width];
    if (width == 2) of_token[0] += x[i];
    of_token[width - 1] += x[i] * x[i];
  }
  return sums;
}

Numbers reference_norm(const Numbers& x, const Numbers& sums, const Extents& of_x, std::int64_t w) {
  const auto n = static_cast<std::size_t>(of_x[1]), width = static_cast<std::size_t>(w);
  Numbers y = x;
  for (std::size_t t = 0; t < static_cast<std::size_t>(of_x[0]); ++t) {
    const Spread spread = spread_of(&sums[t * width], width, static_cast<double>(n));
    for (std::size_t i = t * n; i < (t + 1) * n; ++i) y[i] = (x[i] - spread.mean) * spread.scale;
  }
  return y;
}

// y_j = u_j s with u = x - mean and 1 / s^2 = sum u^2 / n + 1e-5: a change of x_i moves u_i, the mean of all u, and s by -s^3 u_i / n.
Numbers reference_norm_grad(const Numbers& dy, const Numbers& x, const Numbers& sums, const Extents& of_x, std::int64_t w) {
  const auto n = static_cast<std::size_t>(of_x[1]), width = static_cast<std::size_t>(w);
  Numbers dx(x.size());
  for (std::size_t t = 0; t < static_cast<std::size_t>(of_x[0]); ++t) {
    const Spread spread = spread_of(&sums[t * width], width, static_cast<double>(n));
    double mean = 0, along = 0;
    for (std::size_t i = t * n; i < (t + 1) * n; ++i) {
      mean += dy[i] / static_cast<double>(n);
      along += dy[i] * (x[i] - spread.mean) / static_cast<double>(n);
    }
    if (width == 1) mean = 0;
    for (std::size_t i = t * n; i < (t + 1) * n; ++i)
      dx[i] = (dy[i] - mean) * spread.scale - along * (x[i] - spread.mean) * spread.scale * spread.scale * spread.scale;
  }
  return dx;
}

Numbers reference_attention(const Numbers& qkv, const Extents& of_qkv, bool causal, ThreadPool& pool) {
  Numbers o(qkv.size() / static_cast<std::size_t>(of_qkv[3]) * static_cast<std::size_t>(of_qkv[3] - 2), 0.0);
  for_each_group(of_qkv, pool, [&](const Group& group) {
    for (std::size_t h = 0; h < group.queries; ++h)
      for (std::size_t t = 0; t < group.sequence; ++t) {
        const Numbers p = group.weights(qkv, t, h, causal);
        for (std::size_t u = 0; u < group.sequence; ++u) group.add(p[u], &qkv[group.in_qkv(u, group.queries + 1)], &o[group.in_o(t, h)]);
      }
  });
  return o;
}

Numbers reference_attention_grad(const Numbers& d_o, const Numbers& qkv, const Extents& of_qkv, bool causal, ThreadPool& pool) {
  Numbers dqkv(qkv.size(), 0.0);
  for_each_group(of_qkv, pool, [&](const Group& group) {
    const std::size_t keys = group.queries, values = group.queries + 1;
    for (std::size_t h = 0; h < group.queries; ++h)
      for (std::size_t t = 0; t < group.sequence; ++t) {
        const Numbers p = group.weights(qkv, t, h, causal);
        const double* out = &d_o[group.in_o(t, h)];
        Numbers dp(group.sequence);
        double mean = 0;
        for (std::size_t u = 0; u < group.sequence; ++u) {
          dp[u] = group.dot(out, &qkv[group.in_qkv(u, values)]);
          mean += p[u] * dp[u];
        }
        for (std::size_t u = 0; u < group.sequence; ++u) {
          const double score = p[u] * (dp[u] - mean) / std::sqrt(static_cast<double>(group.head));
          group.add(score, &qkv[group.in_qkv(u, keys)], &dqkv[group.in_qkv(t, h)]);
          group.add(score, &qkv[group.in_qkv(t, h)], &dqkv[group.in_qkv(u, keys)]);
          group.add(p[u], out, &dqkv[group.in_qkv(u, values)]);
        }
      }
  });
  return dqkv;
}

}  // namespace podsim
