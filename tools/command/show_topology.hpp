// What `show topology` prints.
#pragma once

#include <string>
#include <string_view>

#include "tools/command/scenario_options.hpp"
#include "tools/command/options.hpp"
#include "tools/report/comparison_report.hpp"

namespace podsim {

inline constexpr std::string_view topology_usage =
    R"(usage: podsim show topology --machine M --slice AxB[xC] [--wrap auto|all|none|x,y] [--set PATH=VALUE]... [--format table|json]

What a slice's interconnect is: links, distances, bisection bandwidth, a drawing where it is small.

examples:
  podsim show topology --machine tpu_v4 --slice 4x4x8
  podsim show topology --machine ideal --slice 8x8 --wrap none --format json
  podsim show topology --machine tpu_v4 --slice 4x4x8 --topology twisted
  podsim show topology --machine dgx_h100 --slice 4x8 -o h100.dot
  podsim show topology --machine tpu_v4 --slice 4x4x1 --devices
)";

/// Errors: those of the system; cancelled work.
Expected<std::string> show_topology(const Options& options, Format format, const RunOptions& manner);

}  // namespace podsim
