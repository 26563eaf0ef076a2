// The variants that compare looks at, simulated on a pod: of a GEMM algorithms x dataflows x slice counts, of collectives kinds x sizes x axes x
// algorithms.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/engine/engine.hpp"
#include "tools/command/print.hpp"
#include "tools/command/problem.hpp"
#include "tools/command/simulate.hpp"

namespace podsim {

struct Variant {
  std::string name;           // "meshslice os S=8", "all-reduce along row of 1MiB by ring"
  ProblemOf problem;          // on a pod
  std::string lowering{};     // what lowers its collectives: equal schedules are simulated once where this is equal too
  std::size_t group = 0;      // variants of one group compute the same, and are ranked against each other
  bool unless_named = false;  // `auto` beside all names: left out, without a word, where another variant names what it chose
};

/// One GEMM, on the pod as its algorithm uses it.
Variant gemm_variant(const GemmRequest& request, std::string name);

/// --gemm: --algorithms x --dataflow x --slice-count with the other options of a GEMM. Errors: what is missing or unknown.
Expected<std::vector<Variant>> gemm_variants(const Options& options, const Pod& pod);

/// --collective: kinds x --axis x --bytes, a group each, x --algorithms with the other options of a collective. Errors: what is missing or unknown,
/// whatever the pod; what does not suit a pod is an error of the variant there.
Expected<std::vector<Variant>> collective_variants(const Options& options);

/// Simulates every variant that applies; the others go to `skipped` with the reason, what happened at `place`. A schedule that occurs twice (one
/// slice is `collective`) is simulated once. As many runs at a time as `manner` has threads, which is told of each. Interrupted: those that have ended.
/// Errors: what the computer failed to run.
Expected<std::vector<Row>> simulate_all(const Pod& pod, const std::string& place, const std::vector<Variant>& variants, const Manner& manner,
                                        std::vector<Skipped>& skipped);

}  // namespace podsim
