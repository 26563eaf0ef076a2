// Results as tables, JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "tools/command/simulate.hpp"

namespace podsim {

/// Rows of cells as aligned text: the first `left` columns to the left, numbers to the right. The first row is the heading.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

/// A cell for CSV: quoted where it has to be.
std::string csv(const std::vector<std::string>& cells);

/// One result for people.
std::string result_table(const Row& row);
/// One JSON object, with a newline behind it.
std::string result_json(const Row& row);
std::string result_csv(const std::vector<Row>& rows);

/// What compare prints.
struct Skipped {
  std::string what, reason;
};
struct Comparisons {
  std::vector<Row> rows;  // best first
  std::vector<Skipped> skipped;
  std::vector<std::string> verdicts;
};
std::string comparison_table(const Comparisons& comparisons);
std::string comparison_json(const Comparisons& comparisons);

/// "row=32,col=8"
std::string mesh_text(const Result& result);

}  // namespace podsim
