// The routes that transfers take, each found once.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "sim/mesh/placement.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Route 0 is empty: sender and receiver share a chip.
class RouteTable {
 public:
  /// All must outlive the table.
  RouteTable(const Mesh& mesh, const Topology& topology, const Placement& placement);

  /// The route of a Shift or Send from one device to another. Errors: the chips are not connected, a dimension order that is none.
  Expected<std::uint32_t> find(const Op& op, DeviceId sender, DeviceId receiver);

  struct Route {
    std::vector<LinkId> links;  // in order of travel
    Seconds latency;
    int hops = 0;  // links between chips, without injection and ejection
    BytesPerSecond bottleneck = unlimited<BytesPerSecond>;
  };
  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }

  /// Whether a mesh axis lies along exactly one physical dimension of a grid: only there does the sign of an antipodal shift choose the way.
  [[nodiscard]] bool along_one_dimension(int axis) const { return along_one_dimension_[static_cast<std::size_t>(axis)]; }

 private:
  std::uint32_t inner_route(DeviceId sender, DeviceId receiver);
  RouteOptions options_for(const Op& op, DeviceId sender) const;

  struct Key {
    int from, to, sign, order;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return (static_cast<std::size_t>(key.from) * 0x9e3779b97f4a7c15ULL) ^ (static_cast<std::size_t>(key.to) * 0xd1342543de82ef95ULL) ^
             static_cast<std::size_t>(key.order * 2 + key.sign);
    }
  };

  const Mesh& mesh_;
  const Topology& topology_;
  const Placement& placement_;
  std::vector<bool> along_one_dimension_;  // per mesh axis
  std::map<std::vector<int>, int> orders_;
  std::unordered_map<Key, std::uint32_t, KeyHash> ids_;
  std::vector<Route> routes_;
};

}  // namespace podsim
