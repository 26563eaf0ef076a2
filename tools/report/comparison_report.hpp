// Comparisons as tables, JSON and CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/report/table.hpp"
#include "workloads/scenario/crossover.hpp"
#include "workloads/scenario/equal_terms.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

std::string result_csv(const std::vector<Row>& rows);

/// A case left out of a comparison, and why.
struct LeftOut {
  std::string what, reason;
};
/// The output of `compare`.
struct ComparisonReport {
  std::vector<TopologyCost> topologies;  // if several were requested
  std::vector<Row> rows;                 // by group, the best of each group first
  std::vector<LeftOut> skipped;
  std::vector<std::string> notes;  // on the request
  std::vector<std::string> verdicts;
  std::vector<Crossovers> crossovers;
};
std::string comparison_table(const ComparisonReport& comparisons);
std::string comparison_json(const ComparisonReport& comparisons);

/// "4x8x8", "32x8 (hypothetical)"
std::string slice_text(const Result& result);
/// "4x4x8 (hypothetical) twisted, without 0.0.0-0.0.1"
std::string slice_and_changes(const Row& row);
/// "row=32,col=8"
std::string mesh_text(const Result& result);
/// The replicated operands: "X gathered first", "X given", "Y left"; "-" if there are none.
std::string replicated_text(const Row& row);
/// "256 sequences of 2048 tokens (524288 tokens)"
std::string tokens_text(const TokenCount& tokens);
/// "os S=8", "transposed rs S=4"
std::string choice_text(const ProductChoice& choice);
/// The word `transposed` in tables.
inline constexpr std::string_view transposed_meaning = "Y.T = W.T X.T is computed: features lie over the rows of the mesh, tokens over its columns";
bool any_transposed(const std::vector<std::pair<std::string, ProductChoice>>& layers);

}  // namespace podsim
