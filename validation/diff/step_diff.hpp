// Compares two lists of operations, one predicted and one measured: why a step takes longer than predicted. README.md defines the terms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity.hpp"
#include "validation/calibration/importers/profile_operations.hpp"

namespace podsim {

/// All occurrences of an operation in one step on one device.
struct StepOperation {
  std::string name, category;
  double count = 0;
  Seconds time;     // part of the step's time: the core works on the operation or waits only for it
  Seconds beside;   // in flight while the core does something else; not part of the step's time
  Flops flops;      // of one occurrence of a product; 0: not stated
  Bytes bytes;      // of one occurrence of a collective: input per device; 0: not stated
  int devices = 0;  // that take part in it; 0: not stated
  std::string provenance{};  // of a measured one: where in the program it comes from, "jit(step)/ff1/gather W:"; empty: not stated
  bool of_kernels = false;   // of a measured one: on a GPU, so that its category is a guess from names of kernels
  bool is_kernel = false;    // and the name is a kernel's, as the profile does not tell the instruction
};

struct StepTimes {
  Seconds time;  // of the step; time without operations is idle
  std::vector<StepOperation> operations;
};
/// The mean of a profile's steps.
StepTimes step_of(const ProfiledOperations& profile);

/// Operations of one side that form a group.
struct DiffSide {
  std::vector<std::string> names;  // in the order of their list
  std::vector<std::size_t> of;     // of an operation: their positions in the list
  double count = 0;
  Seconds time, beside;
};

struct DiffRow {
  std::string name, category;  // for an operation: its first predicted name; for a category: the category in both
  DiffSide predicted, measured;
  std::optional<double> share{};  // of the step's gap; nullopt if there is no gap
  [[nodiscard]] Seconds gap() const { return measured.time - predicted.time; }
};

struct UnmatchedOperation {
  bool measured = false;  // false: predicted
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

/// How a time compares with its prediction. As predicted: within 1 %, or within a millionth of the step.
enum class Pace { as_predicted, late, early };
Pace pace_of(Seconds predicted, Seconds measured, Seconds step);
std::string_view name_of(Pace pace);  // "as predicted", "late", "early"

/// `predicted` is one block; the step has `layers` equal blocks in sequence.
/// Kernels in command buffers of GPUs have the instructions that kernels_in_order() finds. Of an instruction and a measured operation of its name the category is the instruction's, where the
/// measured one is a guess, else the measured one, where the instruction is opaque.
/// Other operations are counterparts if they have the same category and
///   1. the same name, or else
///   2. the predicted name stands in the provenance of the measured one, "jit(step)/ff1/gather W:" for "ff1: gather W", or one level above its end, or else
///   3. equal FLOPs or bytes per occurrence, within 1 %, and no different numbers of devices; several on one side are summed, or else
///   4. equal FLOPs or bytes over the whole step (a product in slices against one in a single piece), or else
///   5. each is the only unmatched one of the category on its side, and one of them states no size.
///   cost    O((p + m)^2) at worst
StepDiff diff_steps(const StepTimes& predicted, const StepTimes& measured, std::int64_t layers = 1);

}  // namespace podsim
