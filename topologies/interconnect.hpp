// What joins the chips of a slice: what the machine builds, or something else made of its chips and links.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/topology/damaged.hpp"
#include "topologies/slice.hpp"

namespace podsim {

/// What is to be other than the machine builds it. Texts as on the command line.
struct WhatIf {
  /// "": the machine's own. torus, mesh: a grid with all or no dimension wrapped. twisted: a twisted torus. crossbar: every chip has one link to one
  /// switch. fat-tree:LEAF[:OVERSUBSCRIPTION]: leaves of LEAF chips, each with LEAF / OVERSUBSCRIPTION spines. rail: nodes of GPUs, see
  /// Interconnect::rail. Links of switches are link[x], of rail both; from chip to chip over a switch are two. Otherwise a file
  /// (network.proto) of as many chips as the slice has.
  std::string topology;
  int pods = 1;                      // slices, joined over their hosts and the data-centre network
  std::vector<std::string> fail;     // cables, between nodes by coordinates or name: "0.0-0.1"
  std::vector<std::string> degrade;  // the same with the part of the bandwidth that is left: "0.0-0.1=0.5"
  friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

/// Errors: a topology that is not known or does not suit the slice; a cable that is not there; those of build_grid().
Expected<std::shared_ptr<const Topology>> build_topology(const Machine& machine, const Slice& slice, const Wrap& wrap, const WhatIf& what_if);

/// Both directions of every cable between two nodes: "0.0-0.1" by the chips' coordinates, "gpu 3-rail 3" by names where there are none. Errors: no
/// such nodes, no cable between them.
Expected<std::vector<LinkId>> cable_named(const Topology& topology, const std::string& text, const SourceLocation& where);

/// The chip at "0.3", or of that number or name. Errors: there is none.
Expected<ChipId> chip_named(const Topology& topology, const std::string& text, const SourceLocation& where);

}  // namespace podsim
