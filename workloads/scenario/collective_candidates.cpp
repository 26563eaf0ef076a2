#include "workloads/scenario/collective_candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "algorithms/collectives/builder.hpp"
#include "workloads/collectives.hpp"

namespace podsim {

namespace {

constexpr std::string_view over = " over ", backwards = " reversed", in = " in ", chunks_word = " chunks";

/// The physical dimensions of the collective's only axis; none if it does not fold several.
std::vector<AxisView> factors_of(const Mesh& mesh, const Collective& collective) {
  if (collective.axes.size() != 1 || collective.axes.front() != mesh.whole(collective.axes.front().axis)) return {};
  std::vector<AxisView> factors = mesh.factors(collective.axes.front().axis);
  return factors.size() < 2 ? std::vector<AxisView>{} : factors;
}

bool is_rooted(CollectiveKind kind) { return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce; }
/// Whether the result does not depend on the order of the axes: of one root the position is another one then.
bool has_any_order(CollectiveKind kind) { return kind == CollectiveKind::all_reduce || is_rooted(kind); }

/// The position along the axes in reverse order.
std::int64_t reversed_position(const std::vector<AxisView>& axes, std::int64_t position) {
  std::int64_t reversed = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) reversed = reversed * axis->size + position % axis->size, position /= axis->size;
  return reversed;
}

}  // namespace

std::string name_of(const Lowering& lowering, const Mesh& mesh, const Collective& collective) {
  std::string text{lowering.algorithm->name};
  if (lowering.on_factors) {
    std::string sizes;
    for (const AxisView& factor : mesh.factors(collective.axes.front().axis)) sizes += (sizes.empty() ? "" : "x") + std::to_string(factor.size);
    text += fmt::format("{}{}{}", over, sizes, lowering.reversed ? backwards : "");
  } else if (lowering.reversed) {
    std::string names;
    for (auto axis = collective.axes.rbegin(); axis != collective.axes.rend(); ++axis) names += (names.empty() ? "" : ",") + mesh.name(*axis);
    text += fmt::format("{}{}", over, names);
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
    lowering.reversed = !lowering.on_factors || axes.ends_with(backwards);
    rest = rest.substr(0, at);
  }
  if (const auto known = always(rest); !known) return known.error();
  lowering.algorithm = collective_algorithm_named(rest);
  return lowering;
}

bool fits(const Lowering& lowering, const Mesh& mesh, const Collective& collective) {
  if (lowering.on_factors) return !factors_of(mesh, collective).empty();
  return !lowering.reversed || collective.axes.size() > 1;
}

CollectiveChooser chooser_of(const Lowering& lowering, const ChunkRule& chunks, const CellRule& cells) {
  const ChunkRule rule = lowering.chunks ? in_chunks(*lowering.chunks) : chunks;
  return [lowering, rule, cells](const Schedule&, const Program&, const Collective&) -> Expected<CollectiveAlgorithm> {
    return CollectiveAlgorithm{[lowering, rule, cells](const Mesh& mesh, const Program& program, const Collective& whole) {
      Collective collective = whole;
      if (lowering.on_factors) collective.axes = mesh.factors(whole.axes.front().axis);
      Levels levels = collective.axes;
      if (lowering.reversed) std::reverse(levels.begin(), levels.end());
      // Without levels the order of phases is that of the axes; from and to one root it always is.
      if (!lowering.algorithm->has_levels || is_rooted(collective.kind)) {
        if (lowering.reversed) collective.root = reversed_position(collective.axes, collective.root);
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
    const bool orders = entry.has_levels ? entry.kinds.has(CollectiveKind::all_gather) || any_order : any_order && entry.on_all_axes == nullptr;
    const bool by_itself = entry.on_all_axes != nullptr && !entry.has_levels;  // takes the dimensions of folded axes by itself
    if (entry.needs.axes == 1 || axes || (by_itself && factors) || (laid && goes_through_cells(entry))) result.push_back({&entry, false, false, {}});
    if (orders && axes) result.push_back({&entry, false, true, {}});
    if (!factors || by_itself) continue;
    result.push_back({&entry, true, false, {}});
    if (orders) result.push_back({&entry, true, true, {}});
  }
  return result;
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

}  // namespace

Seconds least_time(const Lowering& lowering, const System& system, const Mesh& mesh, const Collective& collective) {
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
  return Seconds{collective.kind == Kind::all_reduce ? 2 * time : time};
}

bool has_its_switches(const Lowering& lowering, const System& system, const Mesh& mesh, const Collective& collective) {
  if (!lowering.algorithm->needs.in_switch) return true;
  if (!has_adding_switches(system.machine)) return false;
  std::vector<AxisView> axes = lowering.on_factors ? mesh.factors(collective.axes.front().axis) : collective.axes;
  if (lowering.algorithm->has_levels) axes.erase(lowering.reversed ? axes.end() - 1 : axes.begin());  // the outermost is no switch's
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
  const std::vector<AxisView> axes = moving_along(lowering.on_factors ? mesh.factors(collective.axes.front().axis) : collective.axes);
  double devices = 1;
  for (const AxisView& axis : axes) devices *= axis.size;
  if (axes.size() < 2) return false;
  if (lowering.algorithm->name == "direct") {
    double transfers = 0;
    for (const AxisView& axis : axes) transfers += devices * (axis.size - 1);
    return transfers > large;
  }
  const AxisView &outermost = lowering.reversed ? axes.back() : axes.front(), &other = lowering.reversed ? axes.front() : axes.back();
  return other.size > outermost.size && devices * (other.size - 1) > large;
}

double least_transfers(const Lowering& lowering, const Mesh& mesh, const Collective& collective) {
  if (lowering.algorithm->name != "channels") return 0;
  // A ring for each device of a node, and in every step of a ring transfers with a guard.
  const std::vector<AxisView> axes = moving_along(lowering.on_factors ? mesh.factors(collective.axes.front().axis) : collective.axes);
  double devices = 1, rings = std::numeric_limits<double>::infinity();
  for (const AxisView& axis : axes) devices *= axis.size, rings = std::min<double>(rings, axis.size);
  return axes.size() < 2 ? 0 : rings * (devices - 1);
}

}  // namespace podsim
