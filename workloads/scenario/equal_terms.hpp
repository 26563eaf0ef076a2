// Topologies compared on equal terms.
#pragma once

#include <string>
#include <vector>

#include "topologies/system.hpp"

namespace podsim {

/// What a topology is made of.
struct TopologyCost {
  std::string name;          // with its slice
  int links = 0;             // directed
  int switch_ports = 0;      // ends of cables at switches
  BytesPerSecond total;      // of all links, both directions
  BytesPerSecond injection;  // out of a chip, the least
  BytesPerSecond bisection;
  double scale = 1;  // of link bandwidths, so that the terms are equal
};

/// "bisection", "ports" or "injection": scales the links of every system but the first so that its bisection bandwidth, the bandwidth of all its ports
/// (chips' and switches'), or the bandwidth out of a chip is that of the first; "" leaves them. Errors: another word; a topology without such.
Expected<std::vector<TopologyCost>> make_equal(std::vector<System>& systems, const std::string& what);

}  // namespace podsim
