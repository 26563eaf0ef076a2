#include "algorithms/collectives/closed_form.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

using Steps = std::optional<CollectiveSteps>;

bool over_switch(const CollectiveAxis& axis) { return axis.links == AxisLinks::one_switch; }

/// A device has one link to its switch, which carries everything that it sends.
CollectiveStep step_on(const CollectiveAxis& axis, double times, double link_bytes, double injected, double reduced = 0) {
  CollectiveStep step;
  step.times = times;
  step.link_bytes = over_switch(axis) ? injected : link_bytes;
  step.injected = injected;
  step.shares = over_switch(axis) && injected > link_bytes;
  step.reduced = reduced;
  return step;
}

Steps leaving_out_adds(Steps steps) {
  if (steps)
    for (CollectiveStep& step : *steps) step.adds_left_out = true;
  return steps;
}

/// The larger half, of whole elements.
double larger_half(double bytes, double element) {
  if (element == 0) return bytes / 2;
  const double elements = bytes / element;
  return (elements - static_cast<double>(static_cast<std::int64_t>(elements / 2))) * element;
}

bool gathers_or_scatters(CollectiveKind kind) { return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter; }
bool is_rooted(CollectiveKind kind) { return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce; }

/// V: an all-gather's input, a reduce-scatter's output.
CollectiveStep step_in_switch(double times, double link_bytes) {
  CollectiveStep step;
  step.times = times;
  step.link_bytes = step.injected = link_bytes;
  step.in_switch = true;
  return step;
}

double shard_of(const CollectiveAxis& axis, const CollectiveSize& size) {
  return size.kind == CollectiveKind::reduce_scatter ? size.input / axis.size : size.input;
}
double reduced_of(const CollectiveSize& size, double bytes) { return size.kind == CollectiveKind::reduce_scatter ? bytes : 0; }

/// Chunks one behind the other over so many hops; `ways` leave the root at once.
Steps chain_over(const CollectiveAxis& axis, const CollectiveSize& size, double hops, double ways) {
  double n = size.chunks;
  if (size.element > 0) {
    const double elements = size.input / size.element;
    n = std::min(n, elements);
    if (std::fmod(elements, n) != 0) return std::nullopt;  // chunks of two sizes
  }
  CollectiveStep step = step_on(axis, hops - 1 + n, size.input / n, ways * size.input / n);
  step.adds_left_out = size.kind == CollectiveKind::reduce;
  return CollectiveSteps{step};
}

/// Bundles of blocks go both ways; h = floor(P/2) steps.
Steps store_and_forward(const CollectiveAxis& axis, const CollectiveSize& size) {
  const double block = size.input / axis.size;
  if (axis.size == 2) return CollectiveSteps{step_on(axis, 1, block, block)};
  const bool even = axis.size % 2 == 0;
  if (even && larger_half(block, size.element) * 2 != block) return std::nullopt;  // nor is a bundle the same size both ways
  CollectiveSteps steps;
  const int rounds = axis.size / 2;
  for (int s = 1; s <= rounds; ++s) {
    const double bundle = block * (rounds - s + (even ? 0.5 : 1));
    steps.push_back(step_on(axis, 1, bundle, 2 * bundle));
  }
  return steps;
}

/// Every device sends to position + shift.
Steps shifted(const CollectiveAxis& axis, const CollectiveSize& size) {
  const std::int64_t by = ((size.shift % axis.size) + axis.size) % axis.size, distance = std::min(by, axis.size - by);
  if (by == 0) return std::nullopt;
  CollectiveStep step = step_on(axis, 1, size.input, size.input);
  if (over_switch(axis) || axis.size == 2) return CollectiveSteps{step};
  if (axis.links == AxisLinks::line) {  // the last device's data goes back over all hops
    if (distance != 1) return std::nullopt;
    step.distance = axis.size - 1;
    return CollectiveSteps{step};
  }
  if (2 * distance == axis.size) return std::nullopt;  // two ways are equally short
  step.distance = static_cast<double>(distance);
  step.link_bytes *= step.distance;
  step.shares = distance > 1;
  return CollectiveSteps{step};
}

}  // namespace

namespace closed_forms {

Steps ring_one_way(const CollectiveAxis& axis, const CollectiveSize& size) {
  if (is_rooted(size.kind)) return chain_over(axis, size, axis.size - 1, 1);
  if (!gathers_or_scatters(size.kind)) return std::nullopt;
  const double shard = shard_of(axis, size);
  return CollectiveSteps{step_on(axis, axis.size - 1, shard, shard, reduced_of(size, shard))};
}

Steps ring(const CollectiveAxis& axis, const CollectiveSize& size) {
  if (size.kind == CollectiveKind::all_to_all) return store_and_forward(axis, size);
  if (!gathers_or_scatters(size.kind) || axis.size == 2) return ring_one_way(axis, size);
  const double shard = shard_of(axis, size), half = larger_half(shard, size.element);
  // Of two unequal flows over one link the smaller one makes way early, and the rounds drift.
  if (half * 2 != shard && over_switch(axis)) return std::nullopt;
  return CollectiveSteps{step_on(axis, axis.size - 1, half, shard, reduced_of(size, half))};
}

Steps ring_shortest(const CollectiveAxis& axis, const CollectiveSize& size) {
  if (!gathers_or_scatters(size.kind) || over_switch(axis)) return std::nullopt;
  const double shard = shard_of(axis, size);
  const int steps = axis.size / 2, one_way = axis.size % 2 == 0 ? 1 : 0;  // the antipodal shard goes +1 only
  CollectiveSteps result;
  if (steps > one_way) result.push_back(step_on(axis, steps - one_way, shard, 2 * shard));
  if (one_way > 0) result.push_back(step_on(axis, 1, shard, shard));
  return size.kind == CollectiveKind::reduce_scatter ? leaving_out_adds(result) : result;
}

Steps line(const CollectiveAxis& axis, const CollectiveSize& size) {
  if (over_switch(axis)) return std::nullopt;
  if (is_rooted(size.kind)) {
    const std::int64_t before = size.root, behind = axis.size - 1 - size.root;
    return chain_over(axis, size, static_cast<double>(std::max(before, behind)), before > 0 && behind > 0 ? 2 : 1);
  }
  if (!gathers_or_scatters(size.kind)) return std::nullopt;
  const double shard = shard_of(axis, size);
  const CollectiveSteps steps{step_on(axis, axis.size - 1, shard, axis.size == 2 ? shard : 2 * shard)};
  return size.kind == CollectiveKind::reduce_scatter ? leaving_out_adds(steps) : steps;
}

Steps folded_ring(const CollectiveAxis& axis, const CollectiveSize& size) {
  if (!gathers_or_scatters(size.kind)) return std::nullopt;
  if (axis.links == AxisLinks::ring && axis.size == 3) return std::nullopt;  // two hops out are one hop back
  const double shard = shard_of(axis, size);
  CollectiveStep step = step_on(axis, axis.size - 1, shard, shard, reduced_of(size, shard));
  step.distance = over_switch(axis) || axis.size == 2 ? 1 : 2;
  return CollectiveSteps{step};
}

Steps halving_doubling(const CollectiveAxis& axis, const CollectiveSize& size) {
  if (!gathers_or_scatters(size.kind) || !std::has_single_bit(static_cast<unsigned>(axis.size))) return std::nullopt;
  if (!over_switch(axis) && axis.size > (axis.links == AxisLinks::ring ? 4 : 2)) return std::nullopt;
  const double shard = shard_of(axis, size);
  CollectiveSteps steps;
  for (int distance = 1; distance < axis.size; distance *= 2) {
    CollectiveStep step = step_on(axis, 1, distance * distance * shard, distance * shard, reduced_of(size, distance * shard));
    step.distance = over_switch(axis) ? 1 : distance;
    step.shares = !over_switch(axis) && distance > 1;
    steps.push_back(step);
  }
  if (size.kind == CollectiveKind::reduce_scatter) std::reverse(steps.begin(), steps.end());
  return steps;
}

Steps direct(const CollectiveAxis& axis, const CollectiveSize& size) {
  if (size.kind == CollectiveKind::permute) return shifted(axis, size);
  const bool own_links = axis.size <= (axis.links == AxisLinks::ring ? 3 : 2);  // one for every other device
  if (!own_links && !over_switch(axis)) return std::nullopt;
  const double block = size.kind == CollectiveKind::all_to_all ? size.input / axis.size : shard_of(axis, size);
  CollectiveStep step = step_on(axis, 1, block, block * (axis.size - 1));
  step.adds_left_out = size.kind == CollectiveKind::reduce_scatter || size.kind == CollectiveKind::reduce;
  return CollectiveSteps{step};
}

Steps pairwise(const CollectiveAxis& axis, const CollectiveSize& size) {
  if (size.kind != CollectiveKind::all_to_all || (axis.links == AxisLinks::line && axis.size > 2)) return std::nullopt;
  const double block = size.input / axis.size;
  CollectiveSteps steps;
  for (int k = 1; k < axis.size; ++k) {
    const int distance = std::min(k, axis.size - k);
    const bool halved = 2 * k == axis.size && axis.size > 2;  // the antipodal block, half each way
    if (halved && larger_half(block, size.element) * 2 != block) return std::nullopt;
    CollectiveStep step = step_on(axis, 1, distance * (halved ? block / 2 : block), block);
    step.distance = over_switch(axis) ? 1 : distance;
    step.shares = over_switch(axis) ? halved : distance > 1;
    steps.push_back(step);
  }
  return steps;
}

Steps pallas_ring(const CollectiveAxis& axis, const CollectiveSize& size) { return leaving_out_adds(ring_one_way(axis, size)); }

Steps pallas_bidirectional(const CollectiveAxis& axis, const CollectiveSize& size) { return leaving_out_adds(ring(axis, size)); }

Steps pallas_alternating(const CollectiveAxis& axis, const CollectiveSize& size) {
  const double shard = shard_of(axis, size), half = larger_half(shard, size.element);
  if (half * 2 != shard) return std::nullopt;
  return leaving_out_adds(CollectiveSteps{step_on(axis, 2 * axis.size + 1, half, half)});
}

Steps in_switch(const CollectiveAxis& axis, const CollectiveSize& size) {
  return CollectiveSteps{step_in_switch(1, shard_of(axis, size) * (axis.size - 1))};
}

Steps none(const CollectiveAxis&, const CollectiveSize&) { return std::nullopt; }

}  // namespace closed_forms

namespace {

/// The position along `axes` as one on each of them.
std::vector<std::int64_t> positions_of(std::int64_t position, const std::vector<CollectiveAxis>& axes) {
  std::vector<std::int64_t> positions(axes.size());
  for (std::size_t a = axes.size(); a-- > 0; position /= axes[a].size) positions[a] = position % axes[a].size;
  return positions;
}

/// Which row each axis takes.
using RowOf = std::function<const CollectiveAlgorithmEntry&(const CollectiveAxis&)>;

/// One axis after the other: a reduce-scatter, broadcast and all-to-all the first first, an all-gather and reduce the last first.
Steps phases(const RowOf& row_of, const std::vector<CollectiveAxis>& axes, CollectiveSize size) {
  const std::vector<std::int64_t> roots = positions_of(size.root, axes);
  const bool last_first = size.kind == CollectiveKind::all_gather || size.kind == CollectiveKind::reduce;
  CollectiveSteps steps;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t a = last_first ? axes.size() - 1 - i : i;
    if (axes[a].size == 1) continue;
    size.root = roots[a];
    const Steps phase = row_of(axes[a]).closed_form(axes[a], size);
    if (!phase) return std::nullopt;
    for (CollectiveStep step : *phase) step.axis = static_cast<int>(a), steps.push_back(step);
    if (size.kind == CollectiveKind::all_gather) size.input *= axes[a].size;
    if (size.kind == CollectiveKind::reduce_scatter) size.input /= axes[a].size;
  }
  return steps;
}

/// Rotated orders at once on equal rings: the phases of all parts last equally long, each on an axis that no other one uses then.
Steps rotated(const RowOf& row_of, const std::vector<CollectiveAxis>& given, CollectiveSize size) {
  std::vector<CollectiveAxis> axes;
  std::vector<int> place;
  for (std::size_t a = 0; a < given.size(); ++a)
    if (given[a].size > 1) axes.push_back(given[a]), place.push_back(static_cast<int>(a));
  double devices = 1;
  for (const CollectiveAxis& axis : axes) {
    if (axis.size != axes.front().size || axis.links != AxisLinks::ring) return std::nullopt;
    devices *= axis.size;
  }
  // What remains if parts, or the halves of a part, differ by an element.
  const double block = size.kind == CollectiveKind::all_gather ? size.input : size.input / devices, part = block / static_cast<double>(axes.size());
  if (size.element > 0 && std::fmod(part, (axes.front().size > 2 ? 2 : 1) * size.element) != 0) return std::nullopt;
  size.input /= static_cast<double>(axes.size());
  Steps steps = phases(row_of, axes, size);
  if (steps)
    for (CollectiveStep& step : *steps) step.axis = place[static_cast<std::size_t>(step.axis)];
  return steps;
}

/// The first chunk is added up and the last one copied alone; between them the links carry a chunk of each.
Steps in_switch_all_reduce(const std::vector<CollectiveAxis>& axes, const CollectiveSize& size) {
  CollectiveSteps steps;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const double P = axes[a].size;
    if (axes[a].size == 1) continue;
    if (!steps.empty()) return std::nullopt;  // in phases: halves of an all-reduce
    const double chunk = size.input / size.chunks;
    steps = {step_in_switch(2, chunk * (P - 1) / P), step_in_switch(size.chunks - 1, chunk)};
    for (CollectiveStep& step : steps) step.axis = static_cast<int>(a);
  }
  return steps;
}

Steps form_of(const RowOf& row_of, bool rotates, const std::vector<CollectiveAxis>& axes, const CollectiveSize& size) {
  if (size.kind == CollectiveKind::all_reduce) {
    double devices = 1;
    for (const CollectiveAxis& axis : axes) devices *= axis.size;
    CollectiveSize part = size;
    part.kind = CollectiveKind::reduce_scatter;
    Steps steps = form_of(row_of, rotates, axes, part);
    part.kind = CollectiveKind::all_gather, part.input = size.input / devices;
    const Steps gather = form_of(row_of, rotates, axes, part);
    if (!steps || !gather) return std::nullopt;
    steps->insert(steps->end(), gather->begin(), gather->end());
    return steps;
  }
  const auto several = std::count_if(axes.begin(), axes.end(), [](const CollectiveAxis& axis) { return axis.size > 1; }) > 1;
  if (size.kind == CollectiveKind::permute && several) return std::nullopt;
  return rotates ? rotated(row_of, axes, size) : phases(row_of, axes, size);
}

}  // namespace

Steps closed_form_of(const CollectiveAlgorithmEntry& algorithm, const std::vector<CollectiveAxis>& axes, const CollectiveSize& size) {
  if (!applies(algorithm, size.kind, axes)) return std::nullopt;
  if (algorithm.needs.in_switch && size.kind == CollectiveKind::all_reduce) return in_switch_all_reduce(axes, size);
  return form_of([&](const CollectiveAxis&) -> const CollectiveAlgorithmEntry& { return algorithm; }, algorithm.needs.axes > 1, axes, size);
}

Steps usual_closed_form(const std::vector<CollectiveAxis>& axes, const CollectiveSize& size) {
  const auto row_of = [&](const CollectiveAxis& axis) -> const CollectiveAlgorithmEntry& {
    return usual_algorithm(size.kind, axis.links != AxisLinks::line || axis.size == 2);
  };
  return form_of(row_of, false, axes, size);
}

Seconds time_of(const CollectiveStep& step, const StepCost& cost) {
  return step.times * (cost.per_message + step.distance * cost.hop + Seconds{step.link_bytes / (cost.link.count() * (step.in_switch ? cost.in_switch_efficiency : 1))});
}

double best_chunks(int hops, double bytes, Seconds alpha, BytesPerSecond link) {
  return std::sqrt(std::max(hops - 1, 0) * bytes / (alpha.count() * link.count()));
}

}  // namespace podsim
