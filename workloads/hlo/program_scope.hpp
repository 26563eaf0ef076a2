// A computation while its instructions are written. Internal to hlo_schedule().
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "workloads/hlo/program_writer.hpp"

namespace podsim {

/// Behind the others.
void add_edges(Edges& edges, const Edges& more);
/// Each task once. Edges of modules are from both halves to both halves.
void keep_each_once(Edges& edges);

struct ProgramWriter::Scope {
  Scope(const HloComputation& of, std::vector<int> in_order, const std::vector<HloValue>& given, const std::vector<std::optional<BufferId>>& wanted);

  const HloComputation& computation;
  const std::vector<HloValue>& arguments;
  HloUsers users;
  std::vector<int> order;  // instructions in the order in which they are written
  LastUses last_uses;
  std::vector<HloValue> values;
  std::vector<std::vector<BufferId>> dying;             // by position in `order`, and the end: what it uses last
  std::map<std::pair<int, std::size_t>, BufferId> hints;  // instruction, leaf: where it belongs
  std::map<int, Pending> pending;                       // by start
  std::map<int, int> own_blocks;                        // all-reduces that become reduce-scatters, with the slice that takes the own block
  std::map<int, HloValue> slices;                       // slices that have become results of collectives
  int position = 0;
};

/// The first collective in the computation that a fusion or asynchronous operation calls, to any depth.
InsideCollective collective_inside(const HloModule& module, const HloInstruction& caller);
/// The computation of a role, as a number; it must be there.
int called_number(const HloInstruction& instruction, HloRole role);

}  // namespace podsim
