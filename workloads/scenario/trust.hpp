// How far a run on a fitted machine can be trusted: whether the fit covers it, and the error of predictions beyond the fit.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/result.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// How far a prediction goes beyond what the machine was fitted to. Headline figures are over other_operation, other_scale and composite.
enum class Tier {
  other_sizes,      // of the same operation
  other_operation,  // all-gather and reduce-scatter -> all-reduce
  other_scale,      // more devices, another mesh
  composite,        // several operations that overlap
  other_products    // matrix products of other extents
};
inline constexpr int tier_count = 5;
std::string_view name_of(Tier tier);  // "other sizes"

/// The error of predictions of a tier over the shipped datasets, as `podsim validate` computes it, in two digits (a test compares). Counted rows only;
/// other_scale has no counted rows: its error is that of all rows that were predicted from other numbers of devices.
struct TierError {
  Tier tier = Tier::other_sizes;
  double median = 0, p95 = 0;  // of |error|
};
const std::array<TierError, tier_count>& tier_errors();

/// The error of predictions of published training steps that the machine was not fitted to, over all rows of the shipped datasets of that machine, as `podsim validate`
/// computes it, in two digits (a test compares).
struct StepError {
  std::string_view machine, datasets;  // with a space between
  bool fitted_elsewhere = false;  // the machine as shipped, which none of the rows was fitted to; else models held back from fits to the others
  int predictions = 0, too_fast = 0;  // a row may be predicted by several fits to others
  double median = 0, p95 = 0;  // of |error|
};
const std::vector<StepError>& step_errors();
/// That of a shipped machine: its own, or of its nearest relative; null: another machine.
const StepError* step_error_of(std::string_view machine);

/// Whether a system has several nodes of several GPUs: collectives inside a node and between nodes take very unlike times.
bool has_nodes(const System& system);

/// How collectives are lowered, if not as in fits.
struct OtherLowering {
  std::string name;        // "direct"
  bool in_switch = false;  // a switch adds up, in one phase
};

/// `run`: operations_in() of what ran.
///   hypothetical   the machine or the slice is a what-if, or parts are broken or slow
///   fitted         the fit covers the whole run, or the machine's file does not say what it was fitted to (`beyond` says so); the error is the fit's
///   extrapolated   the fit does not cover an operation, a number of devices, dimensions, sizes, or several operations at once; the error is that of the
///                  furthest tier. With collectives by another algorithm the error is unknown
///   else           the level in the machine's file
/// `lowering`: of all collectives; nullopt: ring or line, inside nodes before between them, as in fits.
RunTrust trust_of(const System& system, const std::vector<Coverage>& run, const std::optional<OtherLowering>& lowering = {});

/// The trust in a training step of `--training` or `--maxtext`. On a shipped machine whose values were measured the error is that of training steps, and `beyond`
/// says of which, and what would narrow it; elsewhere it stays as it is. Of models with experts one published step was predicted: it says that.
RunTrust of_training_step(RunTrust trust, const System& system, bool has_experts = false);

/// The trust in a what-if on the same machine: hypothetical, without an error. For results of an engine in which no transfers share a link.
RunTrust as_what_if(RunTrust trust);

/// "fitted: v5p 2x2 profile, median error 1.2 %", in lines.
std::vector<std::string> lines_of(const RunTrust& trust);

}  // namespace podsim
