// What a command line asks to compare.
#pragma once

#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "workloads/scenario/read_comparison.hpp"

namespace podsim {

/// --vary --equal --crossover
OptionGroup comparison_options();

/// The fields of a comparison: --algorithms is the field `algorithm`.
Fields compared_fields(const Options& options);

/// Errors: as read_comparison(); options that rule each other out.
Expected<ComparisonSetup> comparison_of(const Options& options);

/// What is beyond the range of hardware in their machines, each once.
std::vector<Diagnostic> doubts_about(const ComparisonSetup& setup);

/// Meshes that share a dimension between two axes, where not every mesh is compared.
std::vector<std::string> notes_of(const ComparisonSetup& setup, const Options& options);

}  // namespace podsim
