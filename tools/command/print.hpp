// Results as tables, JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "sim/base/csv.hpp"
#include "sim/base/text.hpp"
#include "tools/command/fairness.hpp"
#include "tools/command/simulate.hpp"

namespace podsim {

/// Rows of cells as aligned text: the first `left` columns to the left, numbers to the right. The first row is the heading.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

/// "1.353 ms"
std::string time_text(double seconds);

/// A sentence in lines of at most 120 characters, broken at blanks.
std::string wrapped(const std::string& text);

std::string result_csv(const std::vector<Row>& rows);

/// What compare prints.
struct Skipped {
  std::string what, reason;
};
/// Notes what does not apply. Work that was cancelled is not noted. Errors: `why` itself, where the computer failed: that is no property of `what`.
Done skip(const std::string& what, const Diagnostic& why, std::vector<Skipped>& skipped);
/// Who is the fastest from which value of a machine to which (see crossover.hpp).
struct CrossoverRange {
  std::string path, unit;
  double low = 0, high = 0;
};
struct Reign {
  double from = 0, to = 0;  // in the range's unit
  Row first, last;          // the fastest at the two ends, at its best slice count
  std::string runner_up;    // at `to`
  double margin = 0;        // of the runner-up there: its time / ours - 1
};
struct Crossovers {
  CrossoverRange range;
  std::string place;
  std::vector<Reign> reigns;  // in order, one after the other
};
struct Comparisons {
  std::vector<TopologyCost> topologies;  // where several were asked for
  std::vector<Row> rows;                 // group by group, each best first
  std::vector<Skipped> skipped;
  std::vector<std::string> notes;  // on what was asked for
  std::vector<std::string> verdicts;
  std::vector<Crossovers> crossovers;
};
std::string comparison_table(const Comparisons& comparisons);
std::string comparison_json(const Comparisons& comparisons);

/// "4x8x8", "32x8 (hypothetical)"
std::string slice_text(const Result& result);
/// "4x4x8 (hypothetical) twisted, without 0.0.0-0.0.1"
std::string slice_and_what_if(const Row& row);
/// "row=32,col=8"
std::string mesh_text(const Result& result);
/// What several devices have of the operands: "X gathered first", "X given", "Y left"; "-".
std::string replicated_text(const Row& row);

}  // namespace podsim
