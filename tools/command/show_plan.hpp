// `podsim show plan`.
#pragma once

#include <string>
#include <string_view>

#include "tools/command/scenario_options.hpp"

namespace podsim {

inline constexpr std::string_view plan_usage = R"(usage: podsim show plan --plan FILE [OPTION...]

A plan of a workload: how each stage is computed, what it takes there, and the memory that a device needs. --machine, --slice, --mesh and --set say
otherwise where it runs.

examples:
  podsim tune --machine tpu_v4 --chips 64 --workload gpt3-block -o plan.textproto && podsim show plan --plan plan.textproto
)";

/// Errors: no plan; those of the system, the plan and its parts.
Expected<std::string> show_plan(const Options& options, Format format, const RunOptions& how);

}  // namespace podsim
