// How far a run on a fitted machine can be trusted: whether it is of what the machine was fitted to, and how wrong predictions beyond it are.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/result.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// How far a prediction is from what the machine was fitted to. A headline figure is of the last three.
enum class Tier {
  other_sizes,      // of the same operation
  other_operation,  // all-gather and reduce-scatter -> all-reduce
  other_scale,      // more devices, another mesh
  composite         // several operations that overlap
};
inline constexpr int tier_count = 4;
std::string_view name_of(Tier tier);  // "other sizes"

/// How wrong predictions of a tier are: of the datasets that come with podsim, as `podsim validate` has it, in two digits (a test compares). Of the
/// rows that count; of other scale there are none, so it is of the one dataset that has any.
struct TierError {
  Tier tier = Tier::other_sizes;
  double median = 0, p95 = 0;  // of |error|
};
const std::array<TierError, tier_count>& tier_errors();

/// `run`: operations_in() of what ran.
///   hypothetical   the machine or the slice is a what-if
///   fitted         all of the run is covered, or the machine's file does not say what it was fitted to (`beyond` says so); the error is the fit's
///   extrapolated   some of it is not: another operation, another number of devices or other dimensions, other sizes, several operations at
///                  once; its error is that of the furthest tier. Broken or slow parts, collectives by another algorithm: the error is not known
///   else           as the machine says
/// `lowering` names the algorithm of all collectives, empty: ring, or line on open axes, as fits have it.
RunTrust trust_of(const System& system, const std::vector<Coverage>& run, std::string_view lowering = {});

/// "fitted: v5p 2x2 profile, median error 1.2 %", in lines.
std::vector<std::string> lines_of(const RunTrust& trust);

}  // namespace podsim
