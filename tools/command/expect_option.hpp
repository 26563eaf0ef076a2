// `podsim run --expect`: bounds that a run has to keep, for automatic checks.
#pragma once

#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// --expect
OptionGroup expect_option();

struct Expectation {
  std::string text;      // "time<=820ms"
  std::string quantity;  // "time"
  bool is_most = true;   // <=; false: >=
  double bound = 0;      // seconds, bytes or a share
};

/// "time<=820ms,memory<=90GB". Errors: another form; an unknown quantity; a bound of another unit.
Expected<std::vector<Expectation>> expectations(const Options& options);

struct Judged {
  std::string sentence;  // "expected time<=820ms: kept, 815 ms"
  bool is_kept = true;
};
/// Each of them on a run, in order.
std::vector<Judged> judge(const std::vector<Expectation>& expected, const Row& row);

}  // namespace podsim
