// Bandwidth bounds of topologies, from the links that cross a plane.
#pragma once

#include "sim/base/cancellation.hpp"
#include "sim/topology/grid.hpp"

namespace podsim {

/// Bisection bandwidth of a grid: the bandwidth, one direction, of all links across the plane that halves a dimension; the least over all dimensions
/// of extent 2 and more.
///
///   formula   min over d of  (N / e_d) * planes_d * b_d     N chips, e_d extent, b_d bandwidth of one direction of one link;
///             planes_d = 2 where the dimension wraps and e_d > 2 (two contiguous pieces of a ring touch twice), else 1
///   halves    floor(e_d / 2) and ceil(e_d / 2) coordinates: equal halves where e_d is even
///   units     bytes per second from one half to the other; the same flows back at the same time
///   source    counted from the links of a grid. For tori and meshes of even extents it is the known bisection bandwidth
///             (Dally and Towles, Principles and Practices of Interconnection Networks, 3.2)
/// Unlimited for a single chip.
BytesPerSecond bisection_bandwidth(const Grid& grid);

/// The most that each chip can send per second if every chip sends equally much to every other chip and no link carries more than its bandwidth.
///
///   formula   min of  injection, ejection,  and over all d of  B_d * (N - 1) / (N1 * N2)
///             B_d: bandwidth across the halving plane of d as above, from N1 to N2 chips. Every one of the N1 chips sends the part
///             N2 / (N - 1) of its rate r to the other side, so r * N1 * N2 / (N - 1) <= B_d; planes off the middle have the same
///             B_d and a smaller N1 * N2, so they bound less.
///   reached   on tori, with dimension-order shortest routes that split antipodal distances both ways: every link of d is then loaded
///             equally and the bound is also the mean hop count's
///   units     bytes per second, payload that leaves a chip (a chip's block for itself is not counted)
/// Unlimited for a single chip.
BytesPerSecond all_to_all_bound(const Grid& grid);

/// Bisection bandwidth of any topology. A Grid: as above. Chips with coordinates (twisted, damaged): the least one-way bandwidth across a plane that
/// halves a dimension, at any position. Others: the max-flow from the first half of the chips to the second.
BytesPerSecond bisection_bandwidth(const Topology& topology);

/// The all-to-all bound of any topology. A Grid: as above. Joined slices: from the capacity of slices, hosts and network interfaces. Others: from the
/// routes of all pairs, half of the traffic each way round at the antipode: the rate at which the first link is full; of equivalent chips one is
/// counted. nullopt: more than 2^24 routes (4096 chips, no two of them equivalent). Errors: chips that are not connected; cancelled work.
/// Cost O(classes of chips * chips * hops).
Expected<std::optional<BytesPerSecond>> all_to_all_bound(const Topology& topology, Cancellation stop = {});

}  // namespace podsim
