// What the tests of the collectives share. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "sim/engines/testing.hpp"

namespace podsim::testing {

inline std::vector<AxisView> axes_of(const Mesh& mesh, const std::vector<std::string>& names) {
  std::vector<AxisView> axes;
  for (const std::string& name : names) axes.push_back(*mesh.axis(name));
  return axes;
}

inline Expected<Schedule> try_collective(const Pod& pod, CollectiveKind kind, const std::vector<std::string>& axes, Bytes bytes, std::string_view algorithm,
                                         const CollectiveDetails& details = {}, ChunkRule chunks = {}, DType dtype = DType::f32) {
  const auto schedule = collective_schedule(pod.mesh, kind, axes_of(pod.mesh, axes), bytes, dtype, details);
  if (!schedule) return schedule.error();
  const auto chooser = always(algorithm, std::move(chunks));
  if (!chooser) return chooser.error();
  return lower(*schedule, *chooser);
}

inline Schedule lowered_collective(const Pod& pod, CollectiveKind kind, const std::vector<std::string>& axes, Bytes bytes, std::string_view algorithm,
                                   const CollectiveDetails& details = {}, ChunkRule chunks = {}, DType dtype = DType::f32) {
  const auto result = try_collective(pod, kind, axes, bytes, algorithm, details, std::move(chunks), dtype);
  EXPECT_TRUE(result) << to_text(result.error());
  return result ? *result : Schedule{};
}

inline double seconds_of(const Pod& pod, const Schedule& schedule, std::string_view engine) {
  const auto timeline = run(pod, schedule, engine);
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline ? to_seconds(timeline->makespan).count() : 0;
}

}  // namespace podsim::testing
