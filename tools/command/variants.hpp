// The variants that compare looks at: algorithms x dataflows x slice counts, simulated on a pod.
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
  GemmRequest request;
  std::string name;  // "meshslice os S=8"
};

/// --algorithms x --dataflow x --slice-count with the other options of a GEMM. Errors: what is missing or unknown.
Expected<std::vector<Variant>> variants_of(const Options& options, const Pod& pod);

/// Simulates every variant that applies; the others go to `skipped` with the reason. A schedule that occurs twice (one slice is `collective`)
/// is simulated once. As many runs at a time as `manner` has threads; `step` is called before each.
std::vector<Row> simulate_all(const Pod& pod, const std::vector<Variant>& variants, const Manner& manner, std::vector<Skipped>& skipped,
                              const std::function<void(const std::string&)>& step);

}  // namespace podsim
