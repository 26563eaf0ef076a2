#include "topologies/pod.hpp"

namespace podsim {

Done rebuild(Pod& pod) {
  auto topology = build_topology(pod.machine, pod.slice, pod.wrap, pod.what_if);
  if (!topology) return topology.error();
  pod.topology = *std::move(topology);
  return done();
}

}  // namespace podsim
