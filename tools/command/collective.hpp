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
Expected<Problem> collective_problem(const Options& options, const Pod& pod, DType default_dtype, const Manner& manner);

/// "all-gather". Errors: no such collective (names the near ones).
Expected<CollectiveKind> collective_kind_asked(const std::string& text);
/// --bytes: "16MiB", or a bare number of bytes.
Expected<Bytes> collective_bytes_asked(const std::string& text);

/// Lines `from to`, positions along the axes; # begins a comment. Errors (with line and column): anything else, a position outside
/// [0, devices), one that sends or receives twice, no pair at all.
Expected<std::vector<Collective::Pair>> parse_pairs(const std::string& text, const std::string& file, std::int64_t devices);

/// The algorithm that takes the least time on the pod, the collective alone, by des; and its name. Where the one axis of the collective folds several
/// physical dimensions also "halves over 4x4", on those: several of them at once. Ties: the first of the table. What is too large to be simulated
/// without --force is passed over. Errors: none applies (says why the last did not); cancelled work.
Expected<std::pair<std::string, CollectiveChooser>> cheapest_algorithm(const Pod& pod, const Schedule& schedule, const Collective& collective,
                                                                       const ChunkRule& chunks, const Manner& manner);

/// `auto`: the cheapest algorithm for each Collective; alike ones are looked at once.
CollectiveChooser cheapest(const Pod& pod, ChunkRule chunks, const Manner& manner);

}  // namespace podsim
