#include "sim/engine/numeric/training_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sim/engine/numeric/float64_values.hpp"

namespace podsim {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// Logits with tokens first.
struct Logits {
  Logits(const Classes& of, const View& view)
      : classes{of},
        values{load(view)},
        tokens{static_cast<std::size_t>(view.layout.length[0])},
        columns{static_cast<std::size_t>(view.layout.length[1])} {
    while (static_cast<std::int64_t>(data_columns) < view.layout.length[1] &&
           classes.columns.of(static_cast<std::int64_t>(data_columns)) < classes.count)
      ++data_columns;  // numbers of columns increase
  }

  const Classes& classes;
  Values values;
  std::size_t tokens, columns;
  std::size_t data_columns = 0;  // the others are padding
};

/// log(sum of exp(logits of all devices)) of each token.
Values log_sums(const View& statistics, std::size_t tokens) {
  const Values of = load(statistics);
  Values result(tokens);
  for (std::size_t t = 0; t < tokens; ++t) {
    double largest = minus_infinity, sum = 0;
    for (std::size_t i = 2 * t; i < of.size(); i += 2 * tokens) largest = std::max(largest, of[i]);
    for (std::size_t i = 2 * t; i < of.size(); i += 2 * tokens) sum += of[i + 1] * std::exp(of[i] - largest);
    result[t] = largest + std::log(sum);
  }
  return result;
}

/// The column of each token's target; nullopt: another device has it.
Expected<std::vector<std::optional<std::int64_t>>> target_columns(const Logits& logits, const View& targets) {
  std::vector<std::optional<std::int64_t>> found;
  Status valid = success();
  for_each_run<1>({&targets.layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t target = std::bit_cast<std::int32_t>(targets.data[at[0].offset() + i * at[0].stride()]);
      if (valid && (target < 0 || target >= logits.classes.count))
        valid = wrong_data(fmt::format("target {} of token {} is outside 0..{}", target, found.size(), logits.classes.count - 1));
      found.push_back(logits.classes.columns.row_of(target, static_cast<std::int64_t>(logits.columns)));
    }
  });
  if (!valid) return valid.error();
  return found;
}

}  // namespace

void mean_square(double count, const View& y, const View& target, const View& loss) {
  const Values values = load(y), targets = load(target);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += (values[i] - targets[i]) * (values[i] - targets[i]);
  store({sum / count}, loss);
}

void mean_square_grad(double count, const View& y, const View& target, const View& dy) {
  Values values = load(y);
  const Values targets = load(target);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * (values[i] - targets[i]) / count;
  store(values, dy);
}

void softmax_statistics(const Classes& classes, const View& logits, const View& statistics) {
  const Logits of{classes, logits};
  Values result;
  for (std::size_t t = 0; t < of.tokens; ++t) {
    const auto first = of.values.begin() + static_cast<std::ptrdiff_t>(t * of.columns), last = first + static_cast<std::ptrdiff_t>(of.data_columns);
    const double largest = first == last ? minus_infinity : *std::max_element(first, last);
    double sum = 0;
    for (auto logit = first; logit != last; ++logit) sum += std::exp(*logit - largest);
    result.push_back(largest), result.push_back(sum);
  }
  store(result, statistics);
}

Status cross_entropy(const Classes& classes, double tokens, const View& logits, const View& statistics, const View& targets, const View& loss) {
  const Logits of{classes, logits};
  const auto columns = target_columns(of, targets);
  if (!columns) return columns.error();
  const Values log_sum = log_sums(statistics, of.tokens);
  double sum = 0;
  for (std::size_t t = 0; t < of.tokens; ++t)
    if (const auto column = (*columns)[t]) sum += log_sum[t] - of.values[t * of.columns + static_cast<std::size_t>(*column)];
  store({sum / tokens}, loss);
  return success();
}

Status cross_entropy_grad(const Classes& classes, double tokens, const View& logits, const View& statistics, const View& targets,
                          const View& dlogits) {
  const Logits of{classes, logits};
  const auto columns = target_columns(of, targets);
  if (!columns) return columns.error();
  const Values log_sum = log_sums(statistics, of.tokens);
  Values result(of.values.size(), 0.0);
  for (std::size_t t = 0; t < of.tokens; ++t) {
    for (std::size_t c = 0; c < of.data_columns; ++c) result[t * of.columns + c] = std::exp(of.values[t * of.columns + c] - log_sum[t]) / tokens;
    if (const auto column = (*columns)[t]) {
      const std::size_t own = t * of.columns + static_cast<std::size_t>(*column);
      result[own] = std::expm1(of.values[own] - log_sum[t]) / tokens;
    }
  }
  store(result, dlogits);
  return success();
}

void sgd(const Optimiser& optimiser, const View& parameters, const View& gradient, const View& result) {
  Values p = load(parameters);
  const Values g = load(gradient);
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= optimiser.learning_rate * (g[i] + optimiser.weight_decay * p[i]);
  store(p, result);
}

void adamw(const Optimiser& optimiser, const View& parameters, const View& gradient, const View& m, const View& v, const View& new_parameters,
           const View& new_m, const View& new_v) {
  const double beta1 = optimiser.beta1, beta2 = optimiser.beta2, step = static_cast<double>(optimiser.step);
  const double first_correction = 1 - std::pow(beta1, step), second_correction = 1 - std::pow(beta2, step);
  Values p = load(parameters), mean = load(m), square = load(v);
  const Values g = load(gradient);
  for (std::size_t i = 0; i < p.size(); ++i) {
    mean[i] = beta1 * mean[i] + (1 - beta1) * g[i];
    square[i] = beta2 * square[i] + (1 - beta2) * g[i] * g[i];
    const double change = mean[i] / first_correction / (std::sqrt(square[i] / second_correction) + optimiser.epsilon);
    p[i] -= optimiser.learning_rate * (change + optimiser.weight_decay * p[i]);
  }
  store(p, new_parameters), store(mean, new_m), store(square, new_v);
}

}  // namespace podsim
