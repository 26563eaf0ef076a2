// The links of a CostedGraph as a SimGrid platform: flows on them share at their max-min fair rates, on SimGrid's clock. The only file of the
// engine that speaks SimGrid. One network per process, ever: SimGrid's engine is a singleton that cannot be started again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "sim/model/costed_graph.hpp"

namespace podsim::simgrid_engine {

/// What drives the network: it has dates of its own at which time has to stop, and it starts flows.
class Driver {
 public:
  virtual ~Driver() = default;
  /// The next date at which advance() has to be called; infinity: none.
  [[nodiscard]] virtual double next_date() const = 0;
  /// Time has moved to `now`, and these flows have ended there. May start flows.
  virtual void advance(double now, std::span<const std::uint32_t> ended) = 0;
};

class FlowNetwork {
 public:
  explicit FlowNetwork(const CostedGraph& graph);
  ~FlowNetwork();
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  /// Whether a route has a link that limits a flow.
  [[nodiscard]] bool limits(std::uint32_t route) const;

  /// A flow of weight 1 that begins now, on a route with a limit; bytes > 0. `flow` names it when it ends.
  void start(std::uint32_t route, double bytes, std::uint32_t flow);

  /// Calls the driver until it has no date left and no flow is in flight.
  void run(Driver& driver);

 private:
  struct Platform;
  std::unique_ptr<Platform> platform_;
};

}  // namespace podsim::simgrid_engine
