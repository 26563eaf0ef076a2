#include "tools/report/product_classes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

constexpr std::size_t many_products = 200;
constexpr std::array<std::int64_t, 4> most_rows{16, 128, 1024, std::numeric_limits<std::int64_t>::max()};  // m of a class

std::size_t class_of(const Observation& o) {
  return static_cast<std::size_t>(std::lower_bound(most_rows.begin(), most_rows.end(), o.m) - most_rows.begin());
}

}  // namespace

std::string product_class_table(const std::vector<DatasetValidation>& validations) {
  std::vector<std::vector<std::string>> lines{{"dataset", "case", "m to 16", "to 128", "to 1024", "above"}};
  for (const DatasetValidation& validation : validations)
    for (const ValidatedCase& found : validation.cases) {
      std::array<std::vector<double>, most_rows.size()> errors;
      std::size_t products = 0;
      for (const ValidatedRow& row : found.rows) {
        if (row.observation.op != ObservedOp::matmul) continue;
        errors.at(class_of(row.observation)).push_back(row.error);
        ++products;
      }
      if (products < many_products) continue;
      std::vector<std::string> line{validation.dataset, found.name};
      for (const std::vector<double>& of_class : errors) {
        const ErrorSummary summary = summary_of(of_class);
        line.push_back(summary.rows == 0 ? "" : fmt::format("{} / {}", percent(summary.median), percent(summary.p95)));
      }
      lines.push_back(std::move(line));
    }
  return lines.size() == 1 ? "" : table(lines, 2);
}

}  // namespace podsim
