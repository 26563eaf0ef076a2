// The collective that a command line asks for, and which algorithm is the cheapest for it.
#pragma once

#include <string>
#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "sim/engine/engine.hpp"
#include "tools/command/options.hpp"
#include "tools/command/pod.hpp"
#include "tools/command/problem.hpp"

namespace podsim {

/// --collective with --axis --bytes --dtype --root --shift --pairs --chunks --algorithm. Errors: what is missing, does not belong to this
/// kind of collective, or does not fit the mesh.
Expected<Problem> collective_problem(const Options& options, const Pod& pod, DType default_dtype);

/// Lines `from to`, positions along the axes; # begins a comment. Errors (with line and column): anything else, a position outside
/// [0, devices), one that sends or receives twice, no pair at all.
Expected<std::vector<Collective::Pair>> parse_pairs(const std::string& text, const std::string& file, std::int64_t devices);

/// The algorithm that takes the least time on the pod alone by the analytic engine, which is exact where no two flows share a link. Where two
/// would (`direct` on a ring), that engine would be far too hopeful: such an algorithm loses if the time without bytes plus what the busiest
/// link needs for everything routed over it is no better than the best so far; else simgrid decides. Ties: the first of the table.
/// Errors: none applies (says why the last did not).
Expected<std::string> cheapest_algorithm(const Pod& pod, const Schedule& schedule, const Collective& collective, const ChunkRule& chunks);

/// `auto`: the cheapest algorithm for each Collective. The pod must outlive the chooser.
CollectiveChooser cheapest(const Pod& pod, ChunkRule chunks);

}  // namespace podsim
