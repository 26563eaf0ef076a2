// Topologies compared on equal terms.
#pragma once

#include <string>
#include <vector>

#include "topologies/system.hpp"

namespace podsim {

/// The size of a topology.
struct TopologyCost {
  std::string name;          // with its slice
  int links = 0;             // directed
  int switch_ports = 0;      // ends of cables at switches
  BytesPerSecond total;      // of all links, both directions
  BytesPerSecond injection;  // out of a chip, the least
  BytesPerSecond bisection;
  double scale = 1;  // of link bandwidths, so that the terms are equal
};

/// Scales the links of every system but the first so that one figure equals that of the first: "bisection" (bisection bandwidth), "ports" (bandwidth of
/// all ports of chips and switches) or "injection" (bandwidth out of a chip); "" scales nothing. Errors: another word; a topology without this figure.
Expected<std::vector<TopologyCost>> make_equal(std::vector<System>& systems, const std::string& what);

}  // namespace podsim
