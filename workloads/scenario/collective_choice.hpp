// Which algorithm lowers each collective of a schedule: a pass of its own before lower(), whose choices can be printed.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/problem.hpp"
#include "workloads/scenario/run_options.hpp"

namespace podsim {

struct CollectiveChoice {
  std::string collective;  // "all-gather along row of 1 MiB"
  std::string algorithm;   // "ring"; "halves over 4x4": on the physical dimensions that an axis folds, several of them at once
};

struct CollectiveChoices {
  std::vector<CollectiveChoice> chosen;  // by `auto`: one for all that are alike, in the order of the schedule
  CollectiveChooser chooser;             // for lower()
};

/// `auto` simulates each collective alone, by des, by every algorithm that applies, and takes the one of least time; ties: the first of
/// collective_algorithms(). What is too large to be simulated without `force` is passed over. Any other policy is looked up.
/// Errors: an algorithm that is not known (field `collectives`); none applies (says why the last did not); cancelled work.
Expected<CollectiveChoices> choose_collectives(const System& system, const Schedule& schedule, const CollectivePolicy& policy, const RunOptions& options);

/// A line per choice.
std::string to_text(const CollectiveChoices& choices);

}  // namespace podsim
