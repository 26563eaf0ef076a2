// Writes the program of a rank from its trace. Internal to this folder.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "workloads/chakra/chakra_schedule.hpp"
#include "workloads/chakra/messages.hpp"
#include "workloads/chakra/rank_program.hpp"

namespace podsim {

/// What all ranks share: the mesh, the groups and what they were found to be.
class GroupTable {
 public:
  GroupTable(const Mesh& mesh, const ChakraGroups& groups);
  /// Groups that a trace tells; those given before count. Errors: a rank that is none; other ranks than a trace before said.
  Status add(const ChakraGroups& groups);

  /// The axes of a collective's group. Errors: a message.
  Expected<std::vector<AxisView>> axes(const ChakraNode& node, int rank);

 private:
  [[nodiscard]] std::vector<AxisView> of_dimensions(const std::vector<bool>& involved) const;

  const Mesh& mesh_;
  ChakraGroups groups_;
  std::set<std::string> given_;  // not by traces
  std::vector<int> every_;
  std::map<std::string, std::set<int>> members_;
  std::map<std::string, std::vector<AxisView>> axes_;
};

/// The program of rank `rank`, relative to its coordinates where it can be. `shifts`: the two halves of a shift that podsim wrote become one again;
/// else a send and a receive. Adds the rank's messages to `messages`. Errors: those of chakra_schedule() that one trace shows.
Expected<RankProgram> write_rank(const Mesh& mesh, GroupTable& groups, int rank, ChakraCost cost, bool shifts, const ChakraTrace& trace,
                                 MessageTable& messages);

}  // namespace podsim
