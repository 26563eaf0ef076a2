// Winning intervals: which variant is the fastest in which range of a machine value.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/compare.hpp"

namespace podsim {

struct CrossoverRange {
  std::string path, unit;
  double low = 0, high = 0;
};
/// PATH=lo..hi, both ends with the same unit. Errors: not of that form, different units, lo not below hi.
Expected<CrossoverRange> parse_crossover(const std::string& text, const SourceLocation& where);

/// A range in which one algorithm and dataflow is the fastest.
struct WinningInterval {
  double from = 0, to = 0;  // in the range's unit
  Row first, last;          // the fastest at the two ends, at its best slice count
  std::string runner_up;    // at `to`
  double margin = 0;        // of the runner-up there: its time / ours - 1
};
struct Crossovers {
  CrossoverRange range;
  std::string place;                       // the system's name
  std::vector<WinningInterval> intervals;  // in order, one after the other
};

/// Simulates the variants at seven evenly spaced values (by ratio if lo > 0), then halves every interval whose ends have different winners until it is
/// within 2 %. An algorithm that wins only between two of the seven values is missed. Errors: an unknown path, a value out of its range, no variant
/// applies.
Expected<Crossovers> find_crossovers(const ComparedSystem& on, const CrossoverRange& range, const RunOptions& options);

}  // namespace podsim
