#include "workloads/scenario/collective_candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "algorithms/collectives/builder.hpp"
#include "sim/base/text.hpp"
#include "sim/topology/bisection.hpp"
#include "sim/topology/grid.hpp"
#include "workloads/collectives.hpp"

namespace podsim {

namespace {

constexpr std::string_view over = " over ", ordered = " order ", in = " in ", chunks_word = " chunks";

/// The physical dimensions of the collective's only axis; none if it does not fold several.
std::vector<AxisView> factors_of(const Mesh& mesh, const Collective& collective) {
  if (collective.axes.size() != 1 || collective.axes.front() != mesh.whole(collective.axes.front().axis)) return {};
  std::vector<AxisView> factors = mesh.factors(collective.axes.front().axis);
  return factors.size() < 2 ? std::vector<AxisView>{} : factors;
}

bool is_rooted(CollectiveKind kind) { return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce; }
/// Whether the result does not depend on the order of the axes: of one root the position is another one then.
bool has_any_order(CollectiveKind kind) { return kind == CollectiveKind::all_reduce || is_rooted(kind); }

/// Positions in a list of axes; empty: as they are.
using AxisOrder = std::vector<std::size_t>;

/// All orders of so many axes but the one that they have. Of more the reverse one stands for all, as five axes have 120.
std::vector<AxisOrder> other_orders(std::size_t axes) {
  constexpr std::size_t most = 4;
  AxisOrder order(axes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (axes > most) return {AxisOrder(order.rbegin(), order.rend())};
  std::vector<AxisOrder> orders;
  while (std::next_permutation(order.begin(), order.end())) orders.push_back(order);
  return orders;
}

std::string ordered_name(const Mesh& mesh, const Collective& collective, bool on_factors, std::size_t part) {
  return on_factors ? std::to_string(part + 1) : mesh.name(collective.axes[part]);
}

/// What Lowering::order says of this collective's axes, or of its dimensions.
std::string order_text(const Mesh& mesh, const Collective& collective, bool on_factors, const AxisOrder& order) {
  std::string text;
  for (const std::size_t axis : order) text += (text.empty() ? "" : ",") + ordered_name(mesh, collective, on_factors, axis);
  return text;
}

/// The inverse; nullopt: it is the order of other axes.
std::optional<AxisOrder> order_of(const Lowering& lowering, const Mesh& mesh, const Collective& collective) {
  if (lowering.order.empty()) return AxisOrder{};
  const std::size_t axes = lowering.on_factors ? factors_of(mesh, collective).size() : collective.axes.size();
  AxisOrder order;
  for (const std::string& name : split(lowering.order)) {
    std::size_t axis = 0;
    while (axis < axes && ordered_name(mesh, collective, lowering.on_factors, axis) != name) ++axis;
    if (axis == axes || std::find(order.begin(), order.end(), axis) != order.end()) return std::nullopt;
    order.push_back(axis);
  }
  return order.size() == axes ? std::optional{order} : std::nullopt;
}

template <class T>
std::vector<T> in_order(const std::vector<T>& all, const AxisOrder& order) {
  if (order.empty()) return all;
  std::vector<T> result;
  for (const std::size_t i : order) result.push_back(all[i]);
  return result;
}

/// The position along the axes in this order.
std::int64_t position_in(const std::vector<AxisView>& axes, const AxisOrder& order, std::int64_t position) {
  std::vector<std::int64_t> coordinates(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) coordinates[a] = position % axes[a].size, position /= axes[a].size;
  for (const std::size_t a : order) position = position * axes[a].size + coordinates[a];
  return position;
}

}  // namespace

std::string name_of(const Lowering& lowering, const Mesh& mesh, const Collective& collective) {
  std::string text{lowering.algorithm->name};
  if (lowering.on_factors) {
    std::string sizes;
    for (const AxisView& factor : mesh.factors(collective.axes.front().axis)) sizes += (sizes.empty() ? "" : "x") + std::to_string(factor.size);
    text += fmt::format("{}{}{}{}", over, sizes, lowering.order.empty() ? "" : ordered, lowering.order);
  } else if (!lowering.order.empty()) {
    text += fmt::format("{}{}", over, lowering.order);
  }
  if (lowering.chunks) text += fmt::format("{}{}{}", in, *lowering.chunks, *lowering.chunks == 1 ? " chunk" : chunks_word);
  return text;
}

Expected<Lowering> lowering_named(std::string_view name) {
  Lowering lowering;
  std::string_view rest = name;
  if (const std::size_t at = rest.rfind(in); at != std::string_view::npos) {
    const std::string_view count = rest.substr(at + in.size());
    int chunks = 0;
    const auto [end, problem] = std::from_chars(count.data(), count.data() + count.size(), chunks);
    const std::string_view word = count.substr(static_cast<std::size_t>(end - count.data()));
    if (problem != std::errc{} || chunks < 1 || (word != chunks_word && word != " chunk"))
      return Diagnostic{{}, "expected `NAME in N chunks`, found " + quoted(std::string{name})};
    lowering.chunks = chunks;
    rest = rest.substr(0, at);
  }
  if (const std::size_t at = rest.find(over); at != std::string_view::npos) {
    const std::string_view axes = rest.substr(at + over.size());
    lowering.on_factors = !axes.empty() && axes.front() >= '0' && axes.front() <= '9';
    if (!lowering.on_factors) lowering.order = axes;
    else if (const std::size_t of = axes.find(ordered); of != std::string_view::npos) lowering.order = axes.substr(of + ordered.size());
    rest = rest.substr(0, at);
  }
  if (const auto known = always(rest); !known) return known.error();
  lowering.algorithm = collective_algorithm_named(rest);
  return lowering;
}

bool fits(const Lowering& lowering, const Mesh& mesh, const Collective& collective) {
  return (!lowering.on_factors || !factors_of(mesh, collective).empty()) && order_of(lowering, mesh, collective);
}

CollectiveChooser chooser_of(const Lowering& lowering, const ChunkRule& chunks, const CellRule& cells) {
  const ChunkRule rule = lowering.chunks ? in_chunks(*lowering.chunks) : chunks;
  return [lowering, rule, cells](const Schedule&, const Program&, const Collective&) -> Expected<CollectiveAlgorithm> {
    return CollectiveAlgorithm{[lowering, rule, cells](const Mesh& mesh, const Program& program, const Collective& whole) -> Expected<Expansion> {
      Collective collective = whole;
      if (lowering.on_factors) collective.axes = mesh.factors(whole.axes.front().axis);
      const auto order = order_of(lowering, mesh, whole);
      if (!order) return Diagnostic{{}, "these axes have no order " + quoted(lowering.order)};
      const Levels levels = in_order(collective.axes, *order);
      // Without levels the order of phases is that of the axes; from and to one root it always is.
      if (!lowering.algorithm->has_levels || is_rooted(collective.kind)) {
        if (!order->empty()) collective.root = position_in(collective.axes, *order, collective.root);
        collective.axes = levels;
      }
      const CollectiveAlgorithm algorithm = expansion_by(*lowering.algorithm, rule, levels);
      const auto laid = goes_through_cells(*lowering.algorithm) && collective.axes.size() == 1 && cells ? cells(mesh, collective.axes.front()) : std::nullopt;
      return laid ? in_cells(mesh, program, collective, *laid, algorithm) : algorithm(mesh, program, collective);
    }};
  };
}

bool takes_chunks(const CollectiveAlgorithmEntry& algorithm, CollectiveKind kind) {
  const bool rooted = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  if (rooted && algorithm.pipeline != Pipeline::none) return true;
  if (algorithm.needs.in_switch && kind == CollectiveKind::all_reduce) return true;
  return algorithm.has_levels && algorithm.name != "channels";
}

std::vector<Lowering> candidates(const Mesh& mesh, const Collective& collective, const CellRule& cells) {
  std::vector<Lowering> result;
  const bool laid = cells && collective.axes.size() == 1 && cells(mesh, collective.axes.front());
  const bool axes = moving_along(collective.axes).size() > 1, factors = moving_along(factors_of(mesh, collective)).size() > 1;
  const bool any_order = has_any_order(collective.kind);
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) {
    if (!entry.kinds.has(collective.kind)) continue;
    const bool orders = any_order || (entry.has_levels && entry.kinds.has(CollectiveKind::all_gather));
    const bool by_itself = entry.on_all_axes != nullptr && !entry.has_levels;  // takes the dimensions of folded axes by itself
    const auto add = [&](bool on_factors, std::size_t count) {
      result.push_back({&entry, on_factors});
      if (!orders || count < 2) return;
      for (const AxisOrder& order : other_orders(count)) result.push_back({&entry, on_factors, order_text(mesh, collective, on_factors, order)});
    };
    if (entry.needs.axes == 1 || axes || (by_itself && factors) || (laid && goes_through_cells(entry))) add(false, axes ? collective.axes.size() : 1);
    if (factors && !by_itself) add(true, factors_of(mesh, collective).size());
  }
  return result;
}

namespace {

/// The first dimension of the grid that is like the one that this view is, which has all of its chips; behind those a number for each view that is none.
std::size_t like(const AxisView& view, std::size_t number, const Mesh& mesh, const Grid& grid) {
  int stride = view.stride;
  for (int axis = view.axis + 1; axis < static_cast<int>(mesh.axes().size()); ++axis) stride *= mesh.whole(axis).size;
  const std::vector<GridDimension>& dimensions = grid.dimensions();
  int below = 1;
  for (std::size_t d = dimensions.size(); d-- > 0; below *= dimensions[d].extent) {
    if (below != stride || dimensions[d].extent != view.size || mesh.wraps(view) != (dimensions[d].wraps || view.size <= 2)) continue;
    return static_cast<std::size_t>(std::ranges::find(dimensions, dimensions[d]) - dimensions.begin());
  }
  return dimensions.size() + number;
}

}  // namespace

void leave_out_alike(std::vector<Lowering>& candidates, const System& system, const Mesh& mesh, const Collective& collective) {
  const Grid* grid = system.topology->plain_grid();
  if (grid == nullptr || grid->chips() != mesh.devices() || !system.placement.core_of.empty() || !system.placement.speed.empty()) return;
  for (std::size_t device = 0; device < system.placement.chip_of.size(); ++device)
    if (system.placement.chip_of[device].index() != device) return;
  std::set<std::tuple<std::string_view, bool, std::vector<std::size_t>>> seen;
  std::erase_if(candidates, [&](const Lowering& lowering) {
    const std::vector<AxisView> axes = lowering.on_factors ? factors_of(mesh, collective) : collective.axes;
    std::vector<std::size_t> alike;
    for (std::size_t a = 0; a < axes.size(); ++a) alike.push_back(like(axes[a], a, mesh, *grid));
    alike = in_order(alike, order_of(lowering, mesh, collective).value_or(AxisOrder{}));
    return !seen.emplace(lowering.algorithm->name, lowering.on_factors, std::move(alike)).second;
  });
}

namespace {

/// Transfers one after the other, at least, of a gather along an axis of P devices.
int steps_along(std::string_view algorithm, int P) {
  if (algorithm == "ring-shortest") return P / 2;
  if (algorithm == "ring" || algorithm == "ring-one-way" || algorithm == "line" || algorithm.starts_with("pallas")) return P - 1;
  return 1;
}

double least_latency(const System& system, const Mesh& mesh, const AxisView& axis) {
  double least = std::numeric_limits<double>::infinity();
  for (const double latency : latencies_along(system, mesh, axis)) least = std::min(least, latency);
  return least;
}

/// Each chip sends a part to every other one, in an all-reduce twice. Zero of any other algorithm or topology.
double least_of_all_to_all(const Lowering& lowering, const System& system, const Collective& collective, Bytes input) {
  const Grid* grid = system.topology->plain_grid();
  if (lowering.algorithm->name != "direct" || lowering.on_factors || collective.axes.size() != 1 || grid == nullptr || grid->chips() != collective.axes.front().size) return 0;
  const double others = grid->chips() - 1, size = static_cast<double>(input.count());
  const double sent = collective.kind == CollectiveKind::all_gather ? others * size : others / grid->chips() * size * (collective.kind == CollectiveKind::all_reduce ? 2 : 1);
  return sent / all_to_all_bound(*grid).count() * (1 - 1e-9);
}

}  // namespace

Seconds least_time(const Lowering& lowering, const System& system, const Mesh& mesh, const Collective& collective, Bytes input) {
  using Kind = CollectiveKind;
  const bool gathers = collective.kind == Kind::all_gather || collective.kind == Kind::reduce_scatter || collective.kind == Kind::all_reduce;
  if (!gathers) return {};
  const std::vector<AxisView> axes = moving_along(lowering.on_factors ? mesh.factors(collective.axes.front().axis) : collective.axes);
  double time = 0, devices = 1, least = std::numeric_limits<double>::infinity();
  for (const AxisView& axis : axes) {
    const double latency = least_latency(system, mesh, axis);
    time += latency * steps_along(lowering.algorithm->name, axis.size);
    least = std::min(least, latency);
    devices *= axis.size;
  }
  if (lowering.algorithm->name == "channels" && !axes.empty()) time = (devices - 1) * least;
  return Seconds{std::max(collective.kind == Kind::all_reduce ? 2 * time : time, least_of_all_to_all(lowering, system, collective, input))};
}

bool has_its_switches(const Lowering& lowering, const System& system, const Mesh& mesh, const Collective& collective) {
  if (!lowering.algorithm->needs.in_switch) return true;
  if (!has_adding_switches(system.machine)) return false;
  std::vector<AxisView> axes = lowering.on_factors ? mesh.factors(collective.axes.front().axis) : collective.axes;
  if (lowering.algorithm->has_levels) {
    axes = in_order(axes, order_of(lowering, mesh, collective).value_or(AxisOrder{}));
    axes.erase(axes.begin());  // the outermost is no switch's
  }
  const Topology& topology = *system.topology;
  std::vector<LinkId> links;
  const int devices = system.devices.empty() ? 1 : mesh.devices();  // one group is like all others but on listed devices
  for (int device = 0; device < devices; ++device)
    for (const AxisView& axis : axes)
      for (int by = 1; by < axis.size; ++by) {
        links.clear();
        const ChipId from = system.placement.chip_of[static_cast<std::size_t>(device)];
        const ChipId to = system.placement.chip_of[mesh.shifted(DeviceId{device}, axis, by).index()];
        if (!topology.route(from, to, {}, links) || links.size() != 2) return false;
        if (!(std::min(topology.link(links[0]).in_switch_efficiency, topology.link(links[1]).in_switch_efficiency) > 0)) return false;
      }
  return true;
}

bool another_does_as_well(const Lowering& lowering, const Mesh& mesh, const Collective& collective) {
  constexpr double large = 1e5;
  if (collective.kind != CollectiveKind::all_reduce || (lowering.algorithm->name != "direct" && lowering.algorithm->name != "tree")) return false;
  const std::vector<AxisView> axes = lowering.on_factors ? mesh.factors(collective.axes.front().axis) : collective.axes;
  double devices = 1;
  for (const AxisView& axis : axes) devices *= axis.size;
  if (axes.size() < 2) return false;
  if (lowering.algorithm->name == "direct") {
    double transfers = 0;
    for (const AxisView& axis : axes) transfers += devices * (axis.size - 1);
    return transfers > large;
  }
  const std::vector<AxisView> ordered_axes = in_order(axes, order_of(lowering, mesh, collective).value_or(AxisOrder{}));
  const int inside = std::max_element(ordered_axes.begin() + 1, ordered_axes.end(), [](const AxisView& a, const AxisView& b) { return a.size < b.size; })->size;
  return inside > ordered_axes.front().size && devices * (inside - 1) > large;
}

double least_transfers(const Lowering& lowering, const Mesh& mesh, const Collective& collective) {
  if (lowering.algorithm->name != "channels") return 0;
  // A ring for each device of a node, and in every step of a ring transfers with a guard.
  const std::vector<AxisView> axes = lowering.on_factors ? mesh.factors(collective.axes.front().axis) : collective.axes;
  const std::vector<AxisView> levels = moving_along(in_order(axes, order_of(lowering, mesh, collective).value_or(AxisOrder{})));
  if (levels.size() != 2) return 0;  // it does not apply
  return static_cast<double>(levels.back().size) * (levels.front().size * levels.back().size - 1);
}

}  // namespace podsim
