// Why a step takes longer than predicted: two lists of operations, one predicted and one measured, held against each other. README.md has the words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.hpp"
#include "validation/calibration/importers/profile_operations.hpp"

namespace podsim {

/// All occurrences of an operation in one step on one device.
struct StepOperation {
  std::string name, category;
  double count = 0;
  Seconds time;     // of the step: the core works on it or waits for it, and for nothing else
  Seconds beside;   // in flight while the core does something else; not part of the step's time
  Flops flops;      // of one occurrence of a product; 0: not told
  Bytes bytes;      // of one occurrence of a collective: its input on each device; 0: not told
  int devices = 0;  // that take part in it; 0: not told
};

struct StepTimes {
  Seconds time;  // of the step; what operations do not account for is idle
  std::vector<StepOperation> operations;
};
/// The mean of a profile's steps.
StepTimes step_of(const ProfiledOperations& profile);

/// Operations of one side that belong together.
struct DiffSide {
  std::vector<std::string> names;  // in the order of their side
  double count = 0;
  Seconds time, beside;
};

struct DiffRow {
  std::string name, category;  // of an operation, the first predicted name; of a category, the category twice
  DiffSide predicted, measured;
  std::optional<double> share{};  // of the step's gap; none where there is no gap
  [[nodiscard]] Seconds gap() const { return measured.time - predicted.time; }
};

struct UnmatchedOperation {
  bool measured = false;  // else predicted
  StepOperation operation;
};

struct StepDiff {
  Seconds predicted, measured;                // of the step
  std::int64_t layers = 1;                    // blocks in the predicted step
  std::vector<DiffRow> categories;            // `idle` among them; both sides sum to the step; largest gap first, ties by name
  std::vector<DiffRow> operations;            // that have a counterpart; largest gap first, ties in the order of the prediction
  std::vector<UnmatchedOperation> unmatched;  // longest first, ties predicted ones first
  std::string sentence;
};

/// `predicted` is one of `layers` equal blocks that the step has, one after the other.
/// Operations are counterparts if they are of one category and
///   1. have the same name, or else
///   2. take the same FLOPs or bytes in one occurrence, to 1 %, and are not told to be of different numbers of devices; several on a side are summed,
///   3. do so over the whole step (a product in slices against one in a piece),
///   4. are the only ones left in it on their side, and one of the two tells no size.
///   cost    O((p + m)^2) at worst
StepDiff diff_steps(const StepTimes& predicted, const StepTimes& measured, std::int64_t layers = 1);

}  // namespace podsim
