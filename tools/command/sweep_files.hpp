// The files that a sweep reads and writes: none may be another one of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "tools/sweep/sweep_file.hpp"
#include "tools/sweep/sweep_shard.hpp"

namespace podsim {

/// A store with what SQLite puts beside it.
std::vector<std::string> files_of_store(const std::string& store);
/// "x.sqlite" for "x.textproto", and "x-3-of-8.sqlite" for a shard.
std::string store_beside(const std::string& file, const std::optional<SweepShard>& shard);

/// Files of the command line, with the store that it may leave out, and those that values of the sweep name.
std::vector<NamedFile> files_of_sweep(const Options& options, const std::string& store, const std::vector<SweepBlock>& blocks = {});

}  // namespace podsim
