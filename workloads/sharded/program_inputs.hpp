// The arrays that a program may read, as --shape and --shard give them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "workloads/sharded/program.hpp"

namespace podsim {

struct ProgramInput {
  Extents extents;
  DType dtype;
  SourceLocation where;
  std::string shard;  // empty: replicated
  SourceLocation shard_where;
};
using ProgramInputs = std::map<std::string, ProgramInput>;

inline constexpr std::int64_t most_extent = std::int64_t{1} << 40;

/// "A=rest": the name, and the offset of the rest.
Expected<std::pair<std::string, std::size_t>> split_name(const ProgramText::Entry& entry, std::string_view form);

/// Errors: anything but NAME=EXTENTS[,DTYPE] and NAME=SPEC; an array twice; a sharding of what has no shape. Shardings are not parsed.
Expected<ProgramInputs> read_inputs(const ProgramText& text);

}  // namespace podsim
