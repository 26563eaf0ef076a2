// The routes of transfers, each computed once.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "sim/topology/placement.hpp"

namespace podsim {

/// Route 0 is empty: sender and receiver share a chip.
class RouteTable {
 public:
  /// All must outlive the table.
  RouteTable(const Mesh& mesh, const Topology& topology, const Placement& placement);

  /// The route of a Shift or Send from one device to another; what the switch copies or adds up leaves out a link. Errors: chips that are not connected,
  /// an invalid dimension order, no switch that could.
  Expected<std::uint32_t> find(const Op& op, DeviceId sender, DeviceId receiver);

  struct Route {
    std::size_t first = 0, last = 0;  // in links()
    Seconds latency;
    int hops = 0;  // links between chips, without injection and ejection
    BytesPerSecond bottleneck = unlimited<BytesPerSecond>;
    double in_switch_efficiency = 0;  // the least of its links, where they lead to one switch and from it
  };
  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }
  /// The links of all routes, one route after the other, each in order of travel.
  [[nodiscard]] const std::vector<LinkId>& links() const { return links_; }

  /// Whether a mesh axis lies along exactly one physical dimension of a grid. Only there does the sign of an antipodal shift choose the direction.
  [[nodiscard]] bool along_one_dimension(int axis) const { return along_one_dimension_[static_cast<std::size_t>(axis)]; }

 private:
  std::uint32_t inner_route(DeviceId sender, DeviceId receiver);
  RouteOptions options_for(const Op& op, DeviceId sender);
  /// Whether a view of an axis, as a factor that is one of its dimensions, lies along exactly one physical dimension.
  bool factor_along_one_dimension(const AxisView& view);

  /// Errors: the route does not pass one switch, which adds up and copies.
  Status use_switch(InSwitch role, ChipId from, ChipId to, Route& route);

  /// Small, as there are millions. `how`: sign, order of dimensions and what the switch does, or the core of an inner route.
  struct Key {
    int from = 0, to = 0, how = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Numbers keys in order of insertion. An open-addressing hash table: all-to-all models have millions of routes.
  class Numbers {
   public:
    /// The key's number and whether it is new; a new key gets `next`.
    std::pair<std::uint32_t, bool> add(const Key& key, std::uint32_t next);

   private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    struct Slot {
      Key key;
      std::uint32_t number = none;
    };
    [[nodiscard]] std::size_t slot_of(const Key& key) const;
    void grow();
    std::vector<Slot> slots_;  // a power of two
    std::size_t used_ = 0;
  };

  const Mesh& mesh_;
  const Topology& topology_;
  const Placement& placement_;
  std::vector<bool> along_one_dimension_;  // per mesh axis
  std::map<AxisView, bool> factors_along_;
  std::map<std::vector<int>, int> orders_;
  Numbers numbers_;
  std::vector<Route> routes_;
  std::vector<LinkId> links_;
};

}  // namespace podsim
