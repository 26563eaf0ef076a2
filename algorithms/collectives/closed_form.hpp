// Closed forms: the uncontended duration of a collective as a formula of sizes, hops and rates. They are defined only here; each row of
// collective_algorithms() names its own. Calibration fits with them, the tuner prunes with them, and tests compare every engine to them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// How the devices along an axis are connected: ring and line have links between neighbours (a ring also between the last and the first); one_switch
/// has one link per device to a switch, each way.
enum class AxisLinks { ring, line, one_switch };

struct CollectiveAxis {
  int size = 1;
  AxisLinks links = AxisLinks::ring;
  bool adds = false;  // of one_switch: it adds up and copies
};

/// The number of chunks of a broadcast, reduce or in-switch all-reduce without a chunk rule.
inline constexpr int default_chunks = 8;

/// The sizes of a collective that its duration depends on.
struct CollectiveSize {
  CollectiveKind kind = CollectiveKind::all_gather;
  double input = 0;    // bytes on each device; broadcast: on the root
  double element = 0;  // bytes; data is halved or cut at multiples of it. 0: at any byte
  int chunks = default_chunks;
  std::int64_t root = 0;   // position along the axes
  std::int64_t shift = 1;  // permute: from position i to i + shift
};

/// A step that is repeated `times` times, sequentially.
///   cost   times * (per-message overhead + distance hops + max(link_bytes / link, injected / injection) + reduced / reduce_bandwidth)
struct CollectiveStep {
  double times = 0;
  int axis = 0;           // among the axes of the collective; the axis whose links carry the data
  double distance = 1;    // of the longest path, in neighbours; over a switch 1
  double link_bytes = 0;  // over one direction of the busiest link
  double injected = 0;    // by one device into its router, or from the router into one device
  double reduced = 0;     // bytes added at the receiver
  bool in_switch = false;  // the links reach in_switch_efficiency of their bandwidth
  bool shares = false;    // several flows share a link: an engine without contention is faster
  bool adds_left_out = false;  // the form omits Locals, or additions on the way: it holds where these are free
};
using CollectiveSteps = std::vector<CollectiveStep>;

/// The steps along one axis of two or more devices; nullopt: no closed form.
using CollectiveForm = std::optional<CollectiveSteps>(const CollectiveAxis& axis, const CollectiveSize& size);

struct CollectiveAlgorithmEntry;

/// The steps of an algorithm along axes whose links carry nothing else, without the Collective's launch. Several axes run as in in_phases() or
/// rotations(); all-reduce is reduce-scatter, then all-gather. nullopt: the algorithm does not apply, or has no closed form. Tests compare every timing
/// engine to it.
std::optional<CollectiveSteps> closed_form_of(const CollectiveAlgorithmEntry& algorithm, const std::vector<CollectiveAxis>& axes,
                                              const CollectiveSize& size);

/// The same for the algorithms that ring_or_line() chooses.
std::optional<CollectiveSteps> usual_closed_form(const std::vector<CollectiveAxis>& axes, const CollectiveSize& size);

/// The duration of a step if all links are equal, injection is unlimited and additions are free.
struct StepCost {
  Seconds per_message, hop;
  BytesPerSecond link;
  double in_switch_efficiency = 1;
};
Seconds time_of(const CollectiveStep& step, const StepCost& cost);

/// The optimal number of chunks of a chain of `hops` hops: the n that minimises (hops - 1 + n) * (alpha + V/n / link). Not rounded.
double best_chunks(int hops, double bytes, Seconds alpha, BytesPerSecond link);

/// The closed forms of the table's rows; collectives.hpp derives the costs beside the algorithms.
namespace closed_forms {
CollectiveForm ring, ring_one_way, ring_shortest, line, folded_ring, halving_doubling, direct, pairwise, pallas_ring, pallas_bidirectional, pallas_alternating;
CollectiveForm in_switch;  // of an all-reduce its halves; closed_form_of() pipelines them
CollectiveForm none;       // no closed form
}  // namespace closed_forms

}  // namespace podsim
