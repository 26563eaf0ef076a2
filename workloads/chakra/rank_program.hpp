// Programs of ranks, and what ranks share. Internal to this folder.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The program of one rank. Labels are apart, so that equal programs of differently named nodes are one.
struct RankProgram {
  Program program;
  std::vector<std::string> labels;
  std::vector<int> records;  // of each task
  std::string file;
};

/// Ranks with one program.
struct ProgramClass {
  RankProgram shared;
  std::vector<int> ranks;  // increasing
};

/// The same classes, but those whose programs have one shape are one: the same tasks with the same edges, of which only the costs of computations and
/// the messages may differ. What differs is a task for each such rank or run of ranks, guarded. Cost O(tasks * ranks that differ).
std::vector<ProgramClass> merged_by_shape(const Mesh& mesh, const std::vector<ProgramClass>& classes);

}  // namespace podsim
