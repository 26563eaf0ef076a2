// The links of a CostedGraph as a SimGrid platform: flows share them at max-min fair rates, on SimGrid's clock. What calls SimGrid is a module of its own
// (module/network.cpp), which is loaded with SimGrid when a run first needs it. At most one network per process, ever: SimGrid's engine is a singleton that
// cannot be started again.
#pragma once

#include <cstdint>
#include <span>

#include "sim/base/expected.hpp"
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

/// Of a flow that may go as fast as its links let it.
inline constexpr double unbounded = -1;

class FlowNetwork {
 public:
  virtual ~FlowNetwork() = default;

  /// Whether a link of the route has limited bandwidth.
  [[nodiscard]] virtual bool limits(std::uint32_t route) const = 0;

  /// Starts a flow of weight 1 now, on a route for which limits() is true; bytes > 0. It never goes faster than `most`, in bytes per second;
  /// `unbounded`: as fast as it can. `flow` identifies it when it ends.
  virtual void start(std::uint32_t route, double bytes, std::uint32_t flow, double most) = 0;

  /// Calls the driver until it has no further date and no flow is in flight.
  virtual void run(Driver& driver) = 0;
};

/// Makes a network of the links and routes of a graph, for the process that it is called in and for the caller to delete.
using MakeNetwork = FlowNetwork*(const CostedGraph& graph);

/// Loads SimGrid, in the parent of the processes that use it. Cost: about 25 ms the first time, then nothing. Errors: those of SharedLibrary.
Expected<MakeNetwork*> load_simgrid();

}  // namespace podsim::simgrid_engine
