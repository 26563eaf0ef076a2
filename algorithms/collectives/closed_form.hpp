// The uncontended duration of a collective on its axes, as a formula of sizes, hops and rates: the one place where podsim has these. Each row of
// collective_algorithms() names its own; what calibration fits, what the tuner prunes with and what tests hold every engine to is built from them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// How the devices along an axis are joined: neighbours by links of their own, first and last too (ring) or not (line), or each by one link to a
/// switch and back.
enum class AxisLinks { ring, line, one_switch };

struct CollectiveAxis {
  int size = 1;
  AxisLinks links = AxisLinks::ring;
};

/// Without a rule, into how many chunks a broadcast or reduce is cut.
inline constexpr int default_chunks = 8;

/// A collective as far as its time goes.
struct CollectiveSize {
  CollectiveKind kind = CollectiveKind::all_gather;
  double input = 0;    // bytes on each device; broadcast: the root's
  double element = 0;  // bytes; what is halved or cut consists of whole ones. 0: of any part
  int chunks = default_chunks;
  std::int64_t root = 0;   // position along the axes
  std::int64_t shift = 1;  // permute: from position i to i + shift
};

/// A step that is taken `times` times, one after the other.
///   cost   times * (per-message overhead + distance hops + the longer of link_bytes over a link and injected bytes through a device's own limit
///          + reduced bytes added up)
struct CollectiveStep {
  double times = 0;
  int axis = 0;           // among the axes of the collective; its links carry the data
  double distance = 1;    // of the longest way, in neighbours; over a switch, one way is all there is
  double link_bytes = 0;  // over one direction of the busiest link
  double injected = 0;    // from one device into its router, or from there into one
  double reduced = 0;     // added up at the receiver
  bool shares = false;    // of several flows over one link: an engine in which nobody shares is faster
  bool adds_left_out = false;  // there are Locals, or additions on the way, that are not counted: the form holds where these are free
};
using CollectiveSteps = std::vector<CollectiveStep>;

/// Along one axis of 2 and more devices; nullopt: no formula is known there.
using CollectiveForm = std::optional<CollectiveSteps>(const CollectiveAxis& axis, const CollectiveSize& size);

struct CollectiveAlgorithmEntry;

/// By an algorithm, along axes whose links nobody else uses; a Collective's own launch comes on top. Several axes as in_phases() and halves() have
/// them; all-reduce is reduce-scatter, then all-gather. nullopt: it does not apply, or no formula is known. Tests hold every timing engine to it.
std::optional<CollectiveSteps> closed_form_of(const CollectiveAlgorithmEntry& algorithm, const std::vector<CollectiveAxis>& axes,
                                              const CollectiveSize& size);

/// The same by what ring_or_line() takes along each axis.
std::optional<CollectiveSteps> usual_closed_form(const std::vector<CollectiveAxis>& axes, const CollectiveSize& size);

/// What a step costs where all links are equal, injection is unlimited and additions are free.
struct StepCost {
  Seconds per_message, hop;
  BytesPerSecond link;
};
Seconds time_of(const CollectiveStep& step, const StepCost& cost);

/// The number of chunks for which a chain of `hops` hops takes least: of (hops - 1 + n) * (alpha + V/n / link) over n. Not rounded.
double best_chunks(int hops, double bytes, Seconds alpha, BytesPerSecond link);

/// The forms of the rows; the costs are explained beside the algorithms in collectives.hpp.
namespace closed_forms {
CollectiveForm ring, ring_one_way, ring_shortest, line, halving_doubling, direct, pairwise, pallas_ring, pallas_bidirectional, pallas_alternating;
}  // namespace closed_forms

}  // namespace podsim
