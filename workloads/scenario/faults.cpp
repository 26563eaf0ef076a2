#include "workloads/scenario/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <optional>

#include "sim/base/thread_pool.hpp"
#include "sim/engine/busiest_link.hpp"
#include "workloads/scenario/one_axis.hpp"
#include "workloads/scenario/plan_choice.hpp"

namespace podsim {

namespace {

/// Where a cable of a grid lies: the dimension, and the coordinate before it.
struct Cut {
  int dimension = 0, after = 0;
};

std::vector<Cut> cuts_of(const System& system) {
  std::vector<Cut> cuts;
  const Grid* grid = system.topology->grid();
  if (grid == nullptr) return cuts;
  const int directions = 2 * static_cast<int>(grid->dimensions().size());
  for (const LinkId link : system.topology->broken_links())
    if (grid->is_hop(link) && link.value % 2 == 0)  // the + link of each cable
      cuts.push_back(
          {link.value % directions / 2, grid->coordinates(ChipId{link.value / directions})[static_cast<std::size_t>(link.value % directions / 2)]});
  return cuts;
}

/// What of the mesh lies along each dimension of the layout: an axis, or a physical dimension that an axis folds; none where axes split it or take a part of it beside others. Empty where
/// devices are not row-major.
std::vector<std::optional<AxisView>> views_along(const System& system) {
  if (system.slices > 1 || !system.devices.empty() || system.layout.chips() != system.mesh.devices()) return {};
  for (std::size_t d = 0; d < system.placement.chip_of.size(); ++d)
    if (system.machine.chip.devices == 1 && system.placement.chip_of[d].index() != d) return {};
  std::map<std::pair<int, int>, AxisView> by_place;  // by how far its devices are apart, and its size
  int inner = 1;
  for (int axis = static_cast<int>(system.mesh.axes().size()); axis-- > 0; inner *= system.mesh.whole(axis).size)
    for (const AxisView& view : system.mesh.factors(axis)) by_place.emplace(std::pair{inner * view.stride, view.size}, view);
  std::vector<std::optional<AxisView>> views;
  inner = system.layout.chips();
  for (const GridDimension& dimension : system.layout.dimensions()) {
    inner /= dimension.extent;
    const auto found = by_place.find({inner, dimension.extent});
    views.push_back(found == by_place.end() ? std::nullopt : std::optional{found->second});
  }
  return views;
}

/// The dimension open, and what of the mesh lies along it; devices move on so that the cable joins the last and the first.
Expected<System> opened(System system, const Cut& cut, const std::optional<AxisView>& view) {
  std::vector<GridDimension> dimensions = system.layout.dimensions();
  const auto dimension = static_cast<std::size_t>(cut.dimension);
  const int extent = dimensions[dimension].extent;
  int inner = 1;
  for (std::size_t d = dimensions.size(); --d > dimension;) inner *= dimensions[d].extent;
  Placement moved = system.placement;
  for (int d = 0; d < system.mesh.devices(); ++d) {
    const int at = d / inner % extent;
    const auto device = static_cast<std::size_t>(d), to = static_cast<std::size_t>(d + ((at + cut.after + 1) % extent - at) * inner);
    moved.chip_of[device] = system.placement.chip_of[to];
    if (!moved.core_of.empty()) moved.core_of[device] = system.placement.core_of[to];
    if (!moved.speed.empty()) moved.speed[device] = system.placement.speed[to];
  }
  dimensions[dimension].wraps = false;
  auto layout = Grid::make(std::move(dimensions));
  if (!layout) return layout.error();
  std::vector<MeshAxis> axes = system.mesh.axes();
  if (view) {
    MeshAxis& axis = axes[static_cast<std::size_t>(view->axis)];
    if (*view == system.mesh.whole(view->axis)) axis.wraps = false;
    const std::vector<AxisView> factors = system.mesh.factors(view->axis);
    for (std::size_t f = 0; f < axis.factors.size(); ++f)
      if (factors[f] == *view) axis.factors[f].wraps = false;
  }
  auto mesh = Mesh::make(std::move(axes));
  if (!mesh) return mesh.error();
  system.mesh = *std::move(mesh);
  system.layout = *std::move(layout);
  system.placement = std::move(moved);
  return system;
}

}  // namespace

std::vector<Alternative> alternatives(const System& system) {
  std::vector<Alternative> result{{system, system.faults.broken.empty() ? "" : "detour"}};
  System open = system;
  std::string rings;
  const auto views = views_along(system);
  for (const Cut& cut : cuts_of(system)) {
    if (views.empty()) break;
    const GridDimension& dimension = open.layout.dimensions()[static_cast<std::size_t>(cut.dimension)];
    const auto& view = views[static_cast<std::size_t>(cut.dimension)];
    if (dimension.extent <= 2 || !dimension.wraps || (view && !system.mesh.wraps(*view))) continue;  // or open by an earlier cut
    auto one = opened(open, cut, view);
    if (!one) continue;
    open = *std::move(one);
    rings += fmt::format("{}line along {}, cut after {}", rings.empty() ? "" : "; ", view ? system.mesh.name(*view) : std::string{dimension_name(cut.dimension)}, cut.after);
  }
  if (!rings.empty()) result.push_back({std::move(open), rings});
  return result;
}

namespace {

/// An alternative before its clock runs.
struct Prepared {
  Run run;
  bool as_it_is = false;  // routes go around what is broken
  Picoseconds least{};    // of its busiest link
};

/// Whether it may have an axis over all devices, which takes whole the dimensions that the axes of the mesh split.
bool may_lie_on_one_axis(const ProblemSpec& problem) {
  const auto* collective = std::get_if<CollectiveSpec>(&problem);
  return collective != nullptr && (collective->policy.is_auto() || lowered_as_one_axis(collective->policy.algorithm));
}

Expected<Prepared> prepared(const Alternative& alternative, bool as_it_is, const ProblemSpec& problem, const RunOptions& options) {
  const auto posed = pose(alternative.system, problem, options);
  if (!posed) return posed.error();
  auto lowered = lower_problem(posed->system, posed->problem, options);
  if (!lowered) return lowered.error();
  auto run = prepare(posed->system, *std::move(lowered), options);
  if (!run) return run.error();
  run->row.rings = alternative.rings;
  const Picoseconds least = time_of_busiest_link(run->model);
  return Prepared{*std::move(run), as_it_is, least};
}

}  // namespace

Expected<Run> simulate(const System& system, const ProblemSpec& problem, const RunOptions& options) {
  std::vector<Prepared> candidates;
  for (const Alternative& alternative : alternatives(system)) {
    const bool as_it_is = candidates.empty();
    if (!as_it_is && alternative.system.mesh == system.mesh && !may_lie_on_one_axis(problem)) continue;  // whose axes only split what is open
    auto candidate = prepared(alternative, as_it_is, problem, options);
    if (candidate)
      candidates.push_back(*std::move(candidate));
    else if (as_it_is || !is_of_input(candidate.error().cause))  // what does not run as it is, is an error; what else failed may be the best
      return candidate.error();
  }
  // The one with the fewest task instances first: it is the quickest to play, and the others have to play only as long as they may win. Of as many that whose busiest link is
  // done first: where thousands of flows share links, the other may be out before it is played.
  std::stable_sort(candidates.begin(), candidates.end(), [](const Prepared& a, const Prepared& b) {
    const auto first = [](const Prepared& candidate) { return std::pair{candidate.run.model.deployment.activities(), candidate.least}; };
    return first(a) < first(b);
  });
  std::optional<Run> best, cut_short;
  for (Prepared& candidate : candidates) {
    RunOptions within = options;
    if (best) within.control.limit = std::min(within.control.limit, best->timeline.makespan);
    const Status played = play(candidate.run, within);
    if (!played && (candidate.as_it_is || !is_of_input(played.error().cause))) return played.error();
    if (!played) continue;
    const Timeline& timeline = candidate.run.timeline;
    if (timeline.interrupted && options.stopped()) return std::move(candidate.run);
    if (timeline.interrupted) {
      if (!cut_short) cut_short = std::move(candidate.run);
      continue;
    }
    if (!best || timeline.makespan < best->timeline.makespan || (timeline.makespan == best->timeline.makespan && candidate.as_it_is))
      best = std::move(candidate.run);
  }
  return best ? *std::move(best) : *std::move(cut_short);
}

Expected<double> healthy_makespan(const System& system, const ProblemSpec& problem, const RunOptions& given) {
  RunOptions options = given;
  options.control.record = false;
  options.tell("the same without failures");
  const auto healthy = with_faults(system, {});
  if (!healthy) return healthy.error();
  const auto run = simulate(*healthy, problem, options);
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();
  return run->row.result.makespan_s;
}

namespace {

/// Which links the transfers of a run cross.
Expected<std::vector<bool>> links_used(const Run& run, Cancellation stop) {
  std::vector<bool> used(static_cast<std::size_t>(run.system->topology->link_slots()), false);
  const auto mark = [&](const Model& model) {
    for (const PathLink& link : model.path_links)
      if (const ModelLink& of = model.links[link.link]; !of.is_memory) used[of.representative.index()] = true;
  };
  if (!run.model.folded()) {
    mark(run.model);
    return used;
  }
  const auto every_device = make_model(*run.lowered, run.system->machine, *run.system->topology, run.system->placement, stop);  // a class names one link only
  if (!every_device) return every_device.error();
  mark(*every_device);
  return used;
}

}  // namespace

Expected<std::vector<CableLoss>> lose_any_cable(const System& system, const ProblemSpec& problem, const RunOptions& given) {
  RunOptions options = given;
  options.control.record = false;
  options.inline_calls = true;  // each cable is looked at
  if (system.slices > 1) return Diagnostic{of_field("fail"), fmt::format("any tries the cables of one slice, found {} slices", system.slices)};
  Faults others = system.faults;
  others.broken.clear();
  const auto healthy = with_faults(system, others);
  if (!healthy) return healthy.error();
  const auto run = simulate(*healthy, problem, options);
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();

  const auto used = links_used(*run, options.control.stop);
  if (!used) return used.error();
  // A cable is named once, by its ends, though its two directions may be two classes.
  const Topology& topology = *healthy->topology;
  std::map<std::pair<ChipId, ChipId>, bool> cables;  // by their ends, whether they carry something
  std::map<LinkId, std::pair<ChipId, ChipId>> ends;
  for (int node = 0; node < topology.nodes(); ++node)
    for (const OutLink& out : topology.out_links(ChipId{node})) {
      if (!topology.dimension_of(out.link)) continue;
      ends[out.link] = std::minmax(ChipId{node}, out.to);
      cables[ends[out.link]] |= (*used)[out.link.index()];
    }
  std::vector<CableLoss> losses;
  std::set<std::pair<ChipId, ChipId>> named;
  for (const ModelLink& link : run->model.links) {
    const auto found = ends.find(link.representative);
    if (found == ends.end() || !(*used)[link.representative.index()] || !named.insert(found->second).second) continue;
    const CableEnds cable{found->second.first, found->second.second};
    losses.push_back({cable, to_text(cable, topology), link.links, 0, ""});
  }
  std::vector<Status> outcomes(losses.size(), success());
  ThreadPool pool{options.engine->folds ? options.threads : 1};
  RunOptions each = options;
  each.threads = 1;  // as many of them at a time as there may be threads
  each.control.progress = {};
  pool.for_each(losses.size(), [&](std::size_t i, std::size_t) {
    options.tell("without the cable " + losses[i].name);
    Faults without = others;
    without.broken = {losses[i].cable};
    const auto broken = with_faults(*healthy, std::move(without));
    if (!broken) {
      outcomes[i] = broken.error();
      return;
    }
    const auto found = simulate(*broken, problem, each);
    if (!found || found->timeline.interrupted) {
      outcomes[i] = found ? cancelled_work() : found.error();
      return;
    }
    losses[i].makespan_s = found->row.result.makespan_s;
    losses[i].rings = found->row.rings;
  });
  for (const Status& outcome : outcomes)
    if (!outcome) return outcome.error();
  const auto idle = std::find_if(cables.begin(), cables.end(), [](const auto& cable) { return !cable.second; });
  if (idle != cables.end()) {
    const auto count = std::count_if(idle, cables.end(), [](const auto& cable) { return !cable.second; });
    const CableEnds cable{idle->first.first, idle->first.second};
    losses.push_back({cable, to_text(cable, topology), static_cast<std::uint32_t>(count), run->row.result.makespan_s, "", true});
  }
  std::stable_sort(losses.begin(), losses.end(), [](const CableLoss& a, const CableLoss& b) { return a.makespan_s > b.makespan_s; });
  return losses;
}

}  // namespace podsim
