// What joins the chips of a slice: what the machine builds, or something else made of its chips and links; and what is broken of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/topology/damaged.hpp"
#include "sim/topology/network.hpp"
#include "topologies/slice.hpp"

namespace podsim {

/// What joins the chips of a slice. The links of switches are link[x], of rails both; from chip to chip over a switch are two.
struct TopologySpec {
  enum class Kind {
    as_built,  // what the machine builds
    torus,     // a grid, every dimension wrapped
    mesh,      // a grid, none wrapped
    twisted,   // a twisted torus
    crossbar,  // every chip has one link to one switch
    fat_tree,  // leaves of `leaf` chips, each with leaf / oversubscription spines
    rail,      // nodes of GPUs, see Interconnect::rail
    network    // of a file, with as many chips as the slice has
  };
  Kind kind = Kind::as_built;
  int leaf = 0;
  double oversubscription = 1;
  std::shared_ptr<const Network> network{};
  std::string name{};  // as it was asked for: "fat-tree:16:2", a file's name; empty: as built
};

/// "", torus, mesh, twisted, crossbar, fat-tree:LEAF[:OVERSUBSCRIPTION], rail, or a file (network.proto), which is read. Errors: anything else; what is
/// wrong with the file.
Expected<TopologySpec> parse_topology(const std::string& text, const SourceLocation& where);

/// Both directions of what joins two chips.
struct CableEnds {
  ChipId from, to;
  friend bool operator==(const CableEnds&, const CableEnds&) = default;
};
/// A cable with the part of its bandwidth that is left, above 0 and up to 1.
struct SlowCable {
  CableEnds cable;
  double part = 1;
  friend bool operator==(const SlowCable&, const SlowCable&) = default;
};

/// One slice, whole. Errors, of the field `topology`: it does not suit the slice; those of build_grid().
Expected<std::shared_ptr<const Topology>> build_topology(const Machine& machine, const Slice& slice, const Wrap& wrap, const TopologySpec& spec);

/// The slice without broken cables and with slow ones. Errors, of the fields `fail` and `degrade`: no cable between two chips.
Expected<std::shared_ptr<const Topology>> damaged(std::shared_ptr<const Topology> slice, const std::vector<CableEnds>& broken,
                                                  const std::vector<SlowCable>& slow);

/// So many such slices, joined over their hosts and the data-centre network.
std::shared_ptr<const Topology> joined(std::shared_ptr<const Topology> one, const Machine& machine, const Slice& slice, int slices);

/// "0.0-0.1" by the chips' coordinates, "gpu 3-rail 3" by names where there are none. Errors: no such nodes, no cable between them.
Expected<CableEnds> parse_cable(const Topology& topology, const std::string& text, const SourceLocation& where);
std::string to_text(const CableEnds& cable, const Topology& topology);

/// The chip at "0.3", or of that number or name. Errors: there is none.
Expected<ChipId> chip_named(const Topology& topology, const std::string& text, const SourceLocation& where);

}  // namespace podsim
