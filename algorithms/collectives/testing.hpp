// What the tests of the collectives share. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "sim/engine/table/testing.hpp"

namespace podsim::testing {

inline std::vector<AxisView> axes_of(const Mesh& mesh, const std::vector<std::string>& names) {
  std::vector<AxisView> axes;
  for (const std::string& name : names) axes.push_back(*mesh.axis(name));
  return axes;
}

inline Expected<Schedule> try_collective(const SmallSystem& pod, CollectiveKind kind, const std::vector<std::string>& axes, Bytes bytes,
                                         std::string_view algorithm, const CollectiveDetails& details = {}, ChunkRule chunks = {},
                                         DType dtype = DType::f32) {
  const auto schedule = collective_schedule(pod.mesh, kind, axes_of(pod.mesh, axes), bytes, dtype, details);
  if (!schedule) return schedule.error();
  const auto chooser = always(algorithm, std::move(chunks));
  if (!chooser) return chooser.error();
  return lower(*schedule, *chooser);
}

inline Schedule lowered_collective(const SmallSystem& pod, CollectiveKind kind, const std::vector<std::string>& axes, Bytes bytes, std::string_view algorithm,
                                   const CollectiveDetails& details = {}, ChunkRule chunks = {}, DType dtype = DType::f32) {
  const auto result = try_collective(pod, kind, axes, bytes, algorithm, details, std::move(chunks), dtype);
  EXPECT_TRUE(result) << to_text(result.error());
  return result ? *result : Schedule{};
}

/// Of all programs.
inline std::size_t edges_of(const Schedule& schedule) {
  std::size_t edges = 0;
  for (const Program& program : schedule.programs)
    for (const Task& task : program.tasks) edges += task.after.size();
  return edges;
}

inline double seconds_of(const SmallSystem& pod, const Schedule& schedule, std::string_view engine) {
  const auto timeline = run(pod, schedule, engine);
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline ? to_seconds(timeline->makespan).count() : 0;
}

/// Chips around one switch, the last node: a transfer holds the sender's link up and the receiver's link down.
class Switch : public Topology {
 public:
  Switch(int chips, const LinkParameters& link) : chips_{chips}, link_{link} {}
  [[nodiscard]] int chips() const override { return chips_; }
  [[nodiscard]] int nodes() const override { return chips_ + 1; }
  [[nodiscard]] int link_slots() const override { return 2 * chips_; }
  [[nodiscard]] std::vector<OutLink> out_links(ChipId node) const override {
    if (node.value < chips_) return {{LinkId{node.value}, ChipId{chips_}}};
    std::vector<OutLink> out;
    for (int to = 0; to < chips_; ++to) out.push_back({LinkId{chips_ + to}, ChipId{to}});
    return out;
  }
  [[nodiscard]] LinkParameters link(LinkId link) const override {
    return is_hop(link) ? link_ : LinkParameters{link_.bandwidth, {}, link_.in_switch_efficiency};
  }
  [[nodiscard]] bool is_hop(LinkId link) const override { return link.value < chips_; }
  Status route(ChipId from, ChipId to, const RouteOptions&, std::vector<LinkId>& links) const override {
    if (from != to) links.insert(links.end(), {LinkId{from.value}, LinkId{chips_ + to.value}});
    return success();
  }
  [[nodiscard]] std::string link_name(LinkId link) const override { return "link " + std::to_string(link.value); }
  [[nodiscard]] std::string chip_name(ChipId chip) const override { return "chip " + std::to_string(chip.value); }

 private:
  int chips_;
  LinkParameters link_;
};

}  // namespace podsim::testing
