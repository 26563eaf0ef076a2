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
  int links_of_a_chip = 0;   // out of it, the most
  int switch_ports = 0;      // ends of cables at switches
  BytesPerSecond total;      // of all links, both directions
  BytesPerSecond injection;  // out of a chip, the least
  BytesPerSecond bisection;
  double scale = 1;  // of link bandwidths, so that the terms are equal
};

/// Scales the links of every topology but the first so that one figure equals that of the first: "bisection" (bisection bandwidth), "ports" (bandwidth of
/// all ports of chips and switches) or "injection" (bandwidth out of a chip); "" scales nothing. `topologies`: of each system the number of its topology; those of one number, which differ in their mesh
/// only, stand together. One cost per topology. Errors: another word; a topology without this figure.
Expected<std::vector<TopologyCost>> make_equal(std::vector<System>& systems, const std::vector<std::size_t>& topologies, const std::string& what);

/// What the topologies are equal in, or how far they are apart: "at equal bisection bandwidth, 1.44 TB/s", "not at equal terms: 2 to 6 links of a chip, ..."; empty of one topology. `what`: as make_equal() had it.
std::string terms_of(const std::vector<TopologyCost>& costs, const std::string& what);

}  // namespace podsim
