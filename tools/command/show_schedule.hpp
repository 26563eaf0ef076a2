// `podsim show schedule`.
#pragma once

#include <string>
#include <string_view>

#include "tools/command/scenario_options.hpp"

namespace podsim {

inline constexpr std::string_view schedule_usage =
    R"(usage: podsim show schedule (--mesh row=R,col=C | --slice AxB) (--gemm ... | --collective ... | --schedule FILE) [--lowered] [OPTION...]

A schedule as text, one line per task; with -o FILE.textproto or FILE.pb it is saved and can be run with --schedule FILE.

examples:
  podsim show schedule --mesh row=4,col=2 --gemm m=512,n=1024,k=256 --algorithm meshslice --slice-count 2
  podsim show schedule --slice 4 --collective all-gather --axis row --bytes 1MiB --algorithm ring --lowered -o ring.textproto
)";

/// Errors: those of the system and the problem; with -o a schedule that no reader would take, for its size.
Expected<std::string> show_schedule(const Options& options, Format format, const RunOptions& how);

}  // namespace podsim
