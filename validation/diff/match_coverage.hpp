// How much of two steps diff_steps() matched, and a warning if that is next to nothing: then they are hardly the same program.
#pragma once

#include <string>
#include <vector>

#include "validation/diff/step_diff.hpp"

namespace podsim {

struct MatchCoverage {
  /// Operations of one side that have a counterpart, and their time.
  struct Side {
    std::size_t matched = 0, all = 0;
    Seconds matched_time, time;
    /// Of the time; of the number, if the operations take none. 1 without operations.
    [[nodiscard]] double share() const;
  };
  /// Operations without a counterpart that are most alike.
  struct Pair {
    StepOperation predicted, measured;
  };
  Side predicted, measured;
  std::vector<Pair> nearest{};  // of the longest predicted ones, at most 3

  /// Of several devices. The pairs of the first that has some stay.
  MatchCoverage& operator+=(const MatchCoverage& other);
};

/// A predicted operation is most like the measured one of its category with the nearest size, else with the nearest name, else the longest; where the category has none, like
/// one of another category, by name.
///   cost    O(n) for n operations
MatchCoverage coverage_of(const StepDiff& diff);

/// "matched 5 of 6 predicted operations (98 % of their time) and 7 of 40 measured ones (91 %)"
std::string to_text(const MatchCoverage& coverage);

/// Less than a tenth of either side matched: which operations are most alike. Empty: more.
std::string warning_of(const MatchCoverage& coverage);

}  // namespace podsim
