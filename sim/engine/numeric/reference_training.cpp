#include "sim/engine/numeric/reference_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/engine/numeric/row_kernels.hpp"

namespace podsim {
namespace {

/// The row that each entry names.
Expected<std::vector<std::size_t>> rows_named(const std::vector<double>& index, std::int64_t rows) {
  std::vector<std::size_t> named;
  for (const double number : index) {
    if (!(number >= 0 && number < static_cast<double>(rows) && number == std::floor(number)))
      return wrong_data(fmt::format("row number {} is outside 0..{}", number, rows - 1));
    named.push_back(static_cast<std::size_t>(number));
  }
  return named;
}

}  // namespace

std::vector<double> reference_softmax(std::vector<double> a, std::int64_t last) {
  const std::vector<double> log_sums = reference_log_sum_exp(a, last);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::exp(a[i] - log_sums[i / static_cast<std::size_t>(last)]);
  return a;
}

std::vector<double> reference_log_sum_exp(const std::vector<double>& a, std::int64_t last) {
  std::vector<double> result;
  for (auto line = a.begin(); line != a.end(); line += last) {
    const double largest = *std::max_element(line, line + last);
    double sum = 0;
    for (auto value = line; value != line + last; ++value) sum += std::exp(*value - largest);
    result.push_back(largest + std::log(sum));
  }
  return result;
}

Expected<std::vector<double>> reference_one_hot(const std::vector<double>& index, std::int64_t rows) {
  const auto named = rows_named(index, rows);
  if (!named) return named.error();
  std::vector<double> result(index.size() * static_cast<std::size_t>(rows), 0.0);
  for (std::size_t i = 0; i < named->size(); ++i) result[i * static_cast<std::size_t>(rows) + (*named)[i]] = 1;
  return result;
}

Expected<std::vector<double>> reference_take_rows(const std::vector<double>& a, const std::vector<double>& index, std::int64_t rows) {
  const auto named = rows_named(index, rows);
  if (!named) return named.error();
  const auto width = static_cast<std::ptrdiff_t>(a.size()) / rows;
  std::vector<double> result;
  result.reserve(named->size() * static_cast<std::size_t>(width));
  for (const std::size_t row : *named) {
    const auto from = a.begin() + static_cast<std::ptrdiff_t>(row) * width;
    result.insert(result.end(), from, from + width);
  }
  return result;
}

Expected<std::vector<double>> reference_add_rows(const std::vector<double>& b, const std::vector<double>& index, std::int64_t rows) {
  const auto named = rows_named(index, rows);
  if (!named) return named.error();
  const std::size_t width = b.size() / index.size();
  std::vector<double> result(static_cast<std::size_t>(rows) * width, 0.0);
  for (std::size_t i = 0; i < b.size(); ++i) result[(*named)[i / width] * width + i % width] += b[i];
  return result;
}

}  // namespace podsim
