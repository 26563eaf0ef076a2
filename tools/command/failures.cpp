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
  if (grid == nullptr) return cuts;
  const int directions = 2 * static_cast<int>(grid->dimensions().size());
  for (const LinkId link : pod.topology->broken_links())
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

namespace {

/// An alternative before its clock runs.
struct Prepared {
  Problem problem;
  SimulatedRun run;
  bool as_it_is = false;  // routes go around what is broken
};

Expected<Prepared> prepared(Alternative& alternative, bool as_it_is, const ProblemOf& problem_of, const Manner& manner) {
  auto problem = problem_of(alternative.pod, manner);
  if (!problem) return problem.error();
  auto run = prepare(alternative.pod, *problem, manner);
  if (!run) return run.error();
  run->row.rings = alternative.rings;
  return Prepared{*std::move(problem), *std::move(run), as_it_is};
}

}  // namespace

Expected<SimulatedRun> simulate_best(const Pod& pod, const ProblemOf& problem_of, const Manner& manner) {
  std::vector<Prepared> candidates;
  for (Alternative& alternative : alternatives(pod)) {
    const bool as_it_is = candidates.empty();
    auto candidate = prepared(alternative, as_it_is, problem_of, manner);
    if (candidate)
      candidates.push_back(*std::move(candidate));
    else if (as_it_is || candidate.error().cause != Cause::input)  // what does not run as it is, is an error; what else failed may be the best
      return candidate.error();
  }
  // The one with the fewest task instances first: it is the quickest to play, and the others have to play only as long as they may win.
  std::stable_sort(candidates.begin(), candidates.end(), [](const Prepared& a, const Prepared& b) {
    return a.run.model.deployment.activities() < b.run.model.deployment.activities();
  });
  std::optional<SimulatedRun> best;
  for (Prepared& candidate : candidates) {
    Manner within = manner;
    if (best) within.control.limit = best->timeline.makespan;
    const Done played = play(candidate.run, candidate.problem, within);
    if (!played && (candidate.as_it_is || played.error().cause != Cause::input)) return played.error();
    if (!played) continue;
    const Timeline& timeline = candidate.run.timeline;
    if (timeline.interrupted && (!best || manner.control.stop.requested())) return std::move(candidate.run);
    if (timeline.interrupted) continue;
    if (!best || timeline.makespan < best->timeline.makespan || (timeline.makespan == best->timeline.makespan && candidate.as_it_is))
      best = std::move(candidate.run);
  }
  return *std::move(best);
}

Expected<double> healthy_makespan(const Pod& pod, const ProblemOf& problem_of, const Manner& manner) {
  manner.tell("the same without failures");
  Pod healthy = without_failures(pod);
  if (auto ok = rebuild(healthy); !ok) return ok.error();
  const auto problem = problem_of(healthy, manner);
  if (!problem) return problem.error();
  const auto run = simulate(healthy, *problem, manner);
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();
  return run->row.result.makespan_s;
}

namespace {

/// Which links the transfers of a run cross.
Expected<std::vector<bool>> links_used(const SimulatedRun& run, Cancellation stop) {
  std::vector<bool> used(static_cast<std::size_t>(run.pod->topology->link_slots()), false);
  const auto mark = [&](const Model& model) {
    for (const PathLink& link : model.path_links) used[model.links[link.link].representative.index()] = true;
  };
  if (!run.model.folded()) {
    mark(run.model);
    return used;
  }
  const auto every_device = make_model(*run.lowered, run.pod->machine, *run.pod->topology, run.pod->placement, stop);  // a class names one link only
  if (!every_device) return every_device.error();
  mark(*every_device);
  return used;
}

}  // namespace

Expected<std::vector<CableLoss>> lose_any_cable(const Pod& pod, const ProblemOf& problem_of, const Manner& manner) {
  Pod healthy = pod;
  healthy.what_if.fail.clear();
  if (auto ok = rebuild(healthy); !ok) return ok.error();
  const auto problem = problem_of(healthy, manner);
  if (!problem) return problem.error();
  const auto run = simulate(healthy, *problem, manner);
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();

  const auto used = links_used(*run, manner.control.stop);
  if (!used) return used.error();
  // A cable is named once, by its ends, though its two directions may be two classes.
  const Topology& topology = *healthy.topology;
  std::map<std::pair<ChipId, ChipId>, bool> cables;  // by their ends, whether they carry something
  std::map<LinkId, std::pair<ChipId, ChipId>> ends;
  for (int node = 0; node < topology.nodes(); ++node)
    for (const OutLink& out : topology.out_links(ChipId{node})) {
      if (!topology.dimension_of(out.link)) continue;
      ends[out.link] = std::minmax(ChipId{node}, out.to);
      cables[ends[out.link]] |= (*used)[out.link.index()];
    }
  const auto name_of = [&](const std::pair<ChipId, ChipId>& cable) {
    return plain_name(topology.chip_name(cable.first)) + "-" + plain_name(topology.chip_name(cable.second));
  };
  std::vector<CableLoss> losses;
  std::set<std::pair<ChipId, ChipId>> named;
  for (const ModelLink& link : run->model.links) {
    const auto found = ends.find(link.representative);
    if (found == ends.end() || !(*used)[link.representative.index()] || !named.insert(found->second).second) continue;
    losses.push_back({name_of(found->second), link.links, 0, ""});
  }
  std::vector<Done> outcomes(losses.size(), done());
  ThreadPool pool{manner.engine->folds ? manner.threads : 1};
  Manner each = manner;
  each.threads = 1;  // as many of them at a time as there may be threads
  each.control.progress = {};
  pool.for_each(losses.size(), [&](std::size_t i, std::size_t) {
    manner.tell("without the cable " + losses[i].cable);
    Pod broken = healthy;
    broken.what_if.fail = {losses[i].cable};
    if (auto ok = rebuild(broken); !ok) {
      outcomes[i] = ok;
      return;
    }
    const auto found = simulate_best(broken, problem_of, each);
    if (!found || found->timeline.interrupted) {
      outcomes[i] = found ? cancelled_work() : found.error();
      return;
    }
    losses[i].makespan_s = found->row.result.makespan_s;
    losses[i].rings = found->row.rings;
  });
  for (const Done& outcome : outcomes)
    if (!outcome) return outcome.error();
  const auto idle = std::find_if(cables.begin(), cables.end(), [](const auto& cable) { return !cable.second; });
  if (idle != cables.end()) {
    const auto count = std::count_if(idle, cables.end(), [](const auto& cable) { return !cable.second; });
    losses.push_back({name_of(idle->first), static_cast<std::uint32_t>(count), run->row.result.makespan_s, "", true});
  }
  std::stable_sort(losses.begin(), losses.end(), [](const CableLoss& a, const CableLoss& b) { return a.makespan_s > b.makespan_s; });
  return losses;
}

}  // namespace podsim
