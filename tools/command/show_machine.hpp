// What `show machine` prints and writes.
#pragma once

#include "tools/command/scenario_options.hpp"
#include "tools/command/options.hpp"

namespace podsim {

inline constexpr std::string_view machine_usage =
    R"(usage: podsim show machine [--machine NAME|FILE] [--set PATH=VALUE]... [-o FILE.textproto] [--format table|json|csv]

Every value of a machine with its unit and its source; without --machine, the shipped machines. The table rounds long values, JSON and CSV do not.
With -o FILE.textproto it is written as a machine file, with --set in it: one to edit and to give to --machine.

examples:
  podsim show machine
  podsim show machine --machine tpu_v4
  podsim show machine --machine tpu_v4 --set link.bandwidth=90GB/s --format json
  podsim show machine --machine tpu_v5p --set link.bandwidth=100GB/s -o mine.textproto
)";

/// Errors: those of the machine; a file without --machine.
Expected<std::string> show_machine(const Options& options, Format format, const RunOptions& manner);

}  // namespace podsim
