#include "tools/command/failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/thread_pool.hpp"

namespace podsim {

namespace {

/// Where a cable of a grid lies: the dimension, and the coordinate before it.
struct Cut {
  int dimension = 0, after = 0;
};

std::vector<Cut> cuts_of(const Pod& pod) {
  std::vector<Cut> cuts;
  const Grid* grid = pod.topology->grid();
  const auto* damaged = dynamic_cast<const DamagedTopology*>(pod.topology.get());
  if (grid == nullptr || damaged == nullptr) return cuts;
  const int directions = 2 * static_cast<int>(grid->dimensions().size());
  for (const LinkId link : damaged->damage().broken)
    if (grid->is_hop(link) && link.value % 2 == 0)  // the + link of each cable
      cuts.push_back(
          {link.value % directions / 2, grid->coordinates(ChipId{link.value / directions})[static_cast<std::size_t>(link.value % directions / 2)]});
  return cuts;
}

/// The mesh axis that lies along a dimension of the layout, row-major: nullopt where axes fold or split dimensions.
std::optional<int> axis_along(const Pod& pod, int dimension) {
  const auto& dimensions = pod.layout.dimensions();
  std::vector<int> extents, sizes;
  for (const GridDimension& d : dimensions) extents.push_back(d.extent);
  for (const MeshAxis& axis : pod.mesh.axes()) sizes.push_back(axis.size);
  if (extents != sizes || pod.what_if.pods > 1) return std::nullopt;
  for (std::size_t d = 0; d < pod.placement.chip_of.size(); ++d)
    if (pod.machine.chip.devices == 1 && pod.placement.chip_of[d].index() != d) return std::nullopt;
  return dimension;
}

/// The axis open, and its devices moved on so that the cable joins the last and the first.
Expected<Pod> opened(Pod pod, int axis, int after) {
  std::vector<MeshAxis> axes = pod.mesh.axes();
  const AxisView view = pod.mesh.whole(axis);
  Placement moved = pod.placement;
  for (int d = 0; d < pod.mesh.devices(); ++d) {
    const std::size_t to = pod.mesh.shifted(DeviceId{d}, view, after + 1).index();
    moved.chip_of[static_cast<std::size_t>(d)] = pod.placement.chip_of[to];
    if (!moved.core_of.empty()) moved.core_of[static_cast<std::size_t>(d)] = pod.placement.core_of[to];
    if (!moved.speed.empty()) moved.speed[static_cast<std::size_t>(d)] = pod.placement.speed[to];
  }
  axes[static_cast<std::size_t>(axis)].wraps = false;
  auto mesh = Mesh::make(std::move(axes));
  if (!mesh) return mesh.error();
  pod.mesh = *std::move(mesh);
  pod.placement = std::move(moved);
  return pod;
}

/// "0.3" from "(0,3)".
std::string plain_name(std::string name) {
  std::erase_if(name, [](char c) { return c == '(' || c == ')'; });
  std::replace(name.begin(), name.end(), ',', '.');
  return name;
}

Pod without_failures(Pod pod) {
  pod.what_if.fail.clear();
  pod.what_if.degrade.clear();
  pod.placement.speed.clear();
  return pod;
}

}  // namespace

std::vector<Alternative> alternatives(const Pod& pod) {
  std::vector<Alternative> result{{pod, pod.what_if.fail.empty() ? "" : "detour"}};
  Pod open = pod;
  std::string rings;
  std::set<int> done;
  for (const Cut& cut : cuts_of(pod)) {
    const auto axis = axis_along(pod, cut.dimension);
    if (!axis || !pod.mesh.wraps(pod.mesh.whole(*axis)) || pod.mesh.whole(*axis).size <= 2 || !done.insert(*axis).second) continue;
    auto one = opened(open, *axis, cut.after);
    if (!one) continue;
    open = *std::move(one);
    rings +=
        fmt::format("{}line along {}, cut after {}", rings.empty() ? "" : "; ", pod.mesh.axes()[static_cast<std::size_t>(*axis)].name, cut.after);
  }
  if (!rings.empty()) result.push_back({std::move(open), rings});
  return result;
}

Expected<SimulatedRun> simulate_best(const Pod& pod, const ProblemOf& problem_of, const Manner& manner) {
  std::optional<Expected<SimulatedRun>> best;
  for (Alternative& alternative : alternatives(pod)) {
    const auto problem = problem_of(alternative.pod);
    auto run = problem ? simulate(alternative.pod, *problem, manner) : Expected<SimulatedRun>{problem.error()};
    if (run) run->row.rings = alternative.rings;
    if (!best || (run && *best && run->row.result.makespan_s < (*best)->row.result.makespan_s)) best = std::move(run);
    if (!*best || (*best)->timeline.interrupted) break;  // what does not run as it is, is an error
  }
  return *std::move(best);
}

Expected<double> healthy_makespan(const Pod& pod, const ProblemOf& problem_of, const Manner& manner) {
  Pod healthy = without_failures(pod);
  if (auto ok = rebuild(healthy); !ok) return ok.error();
  const auto problem = problem_of(healthy);
  if (!problem) return problem.error();
  const auto run = simulate(healthy, *problem, manner);
  if (!run) return run.error();
  if (run->timeline.interrupted) return Diagnostic{{}, "interrupted"};
  return run->row.result.makespan_s;
}

Expected<std::vector<CableLoss>> lose_any_cable(const Pod& pod, const ProblemOf& problem_of, const Manner& manner) {
  Pod healthy = pod;
  healthy.what_if.fail.clear();
  if (auto ok = rebuild(healthy); !ok) return ok.error();
  const auto problem = problem_of(healthy);
  if (!problem) return problem.error();
  const auto run = simulate(healthy, *problem, manner);
  if (!run) return run.error();

  // The ends of each class's lowest link; a cable is named once, though its two directions may be two classes.
  const Topology& topology = *healthy.topology;
  std::map<LinkId, std::pair<ChipId, ChipId>> ends;
  for (int node = 0; node < topology.nodes(); ++node)
    for (const OutLink& out : topology.out_links(ChipId{node})) ends[out.link] = {ChipId{node}, out.to};
  std::vector<CableLoss> losses;
  std::set<std::pair<ChipId, ChipId>> named;
  for (const ModelLink& link : run->model.links) {
    if (!topology.dimension_of(link.representative)) continue;
    const auto& [from, to] = ends.at(link.representative);
    if (!named.insert(std::minmax(from, to)).second) continue;
    losses.push_back({plain_name(topology.chip_name(from)) + "-" + plain_name(topology.chip_name(to)), link.links, 0, ""});
  }
  std::vector<Done> outcomes(losses.size(), done());
  ThreadPool pool{manner.engine->folds ? manner.threads : 1};
  pool.for_each(losses.size(), [&](std::size_t i, std::size_t) {
    Pod broken = healthy;
    broken.what_if.fail = {losses[i].cable};
    if (auto ok = rebuild(broken); !ok) {
      outcomes[i] = ok;
      return;
    }
    const auto found = simulate_best(broken, problem_of, manner);
    if (!found) {
      outcomes[i] = found.error();
      return;
    }
    losses[i].makespan_s = found->row.result.makespan_s;
    losses[i].rings = found->row.rings;
  });
  for (const Done& outcome : outcomes)
    if (!outcome) return outcome.error();
  std::stable_sort(losses.begin(), losses.end(), [](const CableLoss& a, const CableLoss& b) { return a.makespan_s > b.makespan_s; });
  return losses;
}

}  // namespace podsim
