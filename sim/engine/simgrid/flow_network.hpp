// The links of a CostedGraph as a SimGrid platform: flows share them at max-min fair rates, on SimGrid's clock. The only file that calls SimGrid. At
// most one network per process, ever: SimGrid's engine is a singleton that cannot be started again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "sim/model/costed_graph.hpp"

namespace podsim::simgrid_engine {

/// Drives the network: it has dates at which the clock must stop, and starts flows.
class Driver {
 public:
  virtual ~Driver() = default;
  /// The next date at which the network calls advance(); infinity: none.
  [[nodiscard]] virtual double next_date() const = 0;
  /// The clock is at `now`, and the flows `ended` have ended there. May start flows.
  virtual void advance(double now, std::span<const std::uint32_t> ended) = 0;
};

class FlowNetwork {
 public:
  explicit FlowNetwork(const CostedGraph& graph);
  ~FlowNetwork();
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  /// Whether a link of the route has limited bandwidth.
  [[nodiscard]] bool limits(std::uint32_t route) const;

  /// Starts a flow of weight 1 now, on a route for which limits() is true; bytes > 0. It never goes faster than `most`, in bytes per second; negative:
  /// as fast as it can. `flow` identifies it when it ends.
  void start(std::uint32_t route, double bytes, std::uint32_t flow, double most = -1);

  /// Calls the driver until it has no further date and no flow is in flight.
  void run(Driver& driver);

 private:
  struct Platform;
  std::unique_ptr<Platform> platform_;
};

}  // namespace podsim::simgrid_engine
