// The interconnect of a slice: the machine's own topology or another one made of its chips and links, and its faults.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/topology/damaged.hpp"
#include "sim/topology/network.hpp"
#include "topologies/slice.hpp"

namespace podsim {

struct NcclSystem;  // topologies/nccl/nccl_system.hpp

/// A topology for a slice. In switched topologies each cable is one link[x] per direction (rail: link[x] and link[y]); a path from chip to chip over
/// a switch has two links.
struct TopologySpec {
  enum class Kind {
    as_built,  // the machine's own
    torus,     // a grid with every dimension wrapped
    mesh,      // a grid without wraparound
    twisted,   // a twisted torus
    crossbar,  // every chip has one link to one switch
    fat_tree,  // leaves of `leaf` chips, each with leaf / oversubscription spines
    rail,      // nodes of GPUs, see Interconnect::rail
    network,   // from a file, with as many chips as the slice has
    nccl       // nodes as NCCL describes one, as many as the slice needs
  };
  Kind kind = Kind::as_built;
  int leaf = 0;
  double oversubscription = 1;
  std::shared_ptr<const Network> network{};
  std::shared_ptr<const NcclSystem> nccl{};
  std::string name{};  // the text it was parsed from: "fat-tree:16:2", a file name; empty: as built
};

/// Parses "", torus, mesh, twisted, crossbar, fat-tree:LEAF[:OVERSUBSCRIPTION], rail, or the name of a file (network.proto; a topology of NCCL is known
/// by its content), which it reads. Errors: any other text; errors in the file.
Expected<TopologySpec> parse_topology(const std::string& text, const SourceLocation& where);

/// The two ends of a cable; it stands for the links of both directions.
struct CableEnds {
  ChipId from, to;
  friend bool operator==(const CableEnds&, const CableEnds&) = default;
};
/// A cable and the fraction of its bandwidth that remains, above 0 and up to 1.
struct SlowCable {
  CableEnds cable;
  double part = 1;
  friend bool operator==(const SlowCable&, const SlowCable&) = default;
};

/// The undamaged topology of one slice. Errors, of the field `topology`: it does not fit the slice; those of build_grid().
Expected<std::shared_ptr<const Topology>> build_topology(const Machine& machine, const Slice& slice, const Wrap& wrap, const TopologySpec& spec);

/// The slice with broken cables removed and slow ones slowed. Errors, of the fields `fail` and `degrade`: no cable between two chips.
Expected<std::shared_ptr<const Topology>> damaged(std::shared_ptr<const Topology> slice, const std::vector<CableEnds>& broken,
                                                  const std::vector<SlowCable>& slow);

/// Which host drives each chip of a slice, from 0 without gaps: blocks of the machine's host extents; one host for all where they are not stated.
std::vector<int> hosts_of(const Machine& machine, const Slice& slice);

/// Several such slices, joined through their hosts and the data-centre network.
std::shared_ptr<const Topology> joined(std::shared_ptr<const Topology> one, const Machine& machine, const Slice& slice, int slices);

/// "0.0-0.1" by chip coordinates; "gpu 3-rail 3" by node names in topologies without coordinates. Errors: unknown nodes, no cable between them.
Expected<CableEnds> parse_cable(const Topology& topology, const std::string& text, const SourceLocation& where);
std::string to_text(const CableEnds& cable, const Topology& topology);

/// The chip at coordinates "0.3", or with that number or name. Errors: no such chip.
Expected<ChipId> chip_named(const Topology& topology, const std::string& text, const SourceLocation& where);

}  // namespace podsim
