// What the tests of factorisations share. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/lu/lu.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim::testing {

inline Mesh lu_mesh(int R, int C) { return *Mesh::make({{"row", R, true}, {"col", C, true}}); }

inline LuProblem lu_problem(const Mesh& mesh, std::int64_t n, std::int64_t block, int look_ahead = 0, Extents right = {}) {
  return {{n, n}, std::move(right), block, {mesh.whole(0)}, {mesh.whole(1)}, look_ahead};
}

inline Schedule lowered_lu(const Expected<Schedule>& schedule) {
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  if (!schedule) return {};
  auto lowered = lower(*schedule, ring_or_line(in_chunks(2)));
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  return lowered ? *lowered : Schedule{};
}

/// Bytes sent by all devices, by the first words of labels; on rings every transfer takes one hop.
inline std::map<std::string, std::int64_t> traffic_of(const Schedule& lowered) {
  const Unrolled unrolled = unroll(lowered);
  EXPECT_TRUE(unrolled.problems.empty());
  std::map<std::string, std::int64_t> bytes;
  const Program& program = lowered.programs.front();
  for (const Activity& activity : unrolled.graph.activities) {
    if (activity.kind != Activity::Kind::transfer) continue;
    const Task& task = program.tasks[activity.task.index()];
    const Region& source = std::holds_alternative<Shift>(task.op) ? std::get<Shift>(task.op).source : std::get<Send>(task.op).source;
    bytes[task.label.substr(0, task.label.find_first_of("0123456789") - 1)] += bytes_of(program, source).count();
  }
  return bytes;
}

}  // namespace podsim::testing
