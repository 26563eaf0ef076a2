#include <algorithm>
#include <map>

#include "sim/model/fold.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

namespace {

/// The dimensions that the mesh's axes are laid over, an axis or a factor of one along each (sizes of 1 aside).
std::vector<AxisView> dimensions_of(const Mesh& mesh) {
  std::vector<AxisView> views;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
    for (const AxisView& factor : mesh.factors(axis))
      if (factor.size > 1) views.push_back(factor);
  return views;
}

/// A torus with the mesh laid on it row-major, an axis or a factor of one along each dimension (extents of 1 aside).
const Grid* torus_of(const Mesh& mesh, const Topology& topology, const Placement& placement) {
  const Grid* grid = topology.plain_grid();
  if (grid == nullptr || grid->chips() != mesh.devices() || !placement.core_of.empty() || !placement.speed.empty()) return nullptr;
  std::vector<int> extents, sizes;
  for (const GridDimension& dimension : grid->dimensions()) {
    if (dimension.extent > 2 && !dimension.wraps) return nullptr;
    if (dimension.extent > 1) extents.push_back(dimension.extent);
  }
  for (const AxisView& view : dimensions_of(mesh)) sizes.push_back(view.size);
  if (extents != sizes) return nullptr;
  for (std::size_t d = 0; d < placement.chip_of.size(); ++d)
    if (placement.chip_of[d].index() != d) return nullptr;
  return grid;
}

bool stays_within(const Program& program, const Op& op) {
  const auto stays = [&](const Region& region) { return !may_leave(program, region); };
  return std::visit(
      Overloaded{
          [&](const Matmul& m) { return stays(m.left) && stays(m.right) && stays(m.out); },
          [&](const Local& l) { return std::all_of(l.reads.begin(), l.reads.end(), stays) && std::all_of(l.writes.begin(), l.writes.end(), stays); },
          [&](const Shift& s) { return stays(s.source) && stays(s.target); },
          [](const Call&) { return true; },
          [](const auto&) { return false; },
      },
      op);
}

/// What the schedule looks like from device 0, if it looks the same from everywhere; `to` of a Shift is the device that it reaches.
std::optional<Deployment> seen_from_anywhere(const Schedule& schedule) {
  if (schedule.programs.size() != 1 || size_of(schedule.programs.front().devices) != schedule.mesh.devices()) return std::nullopt;
  const Program& program = schedule.programs.front();
  const std::vector<AxisView> dimensions = dimensions_of(schedule.mesh);
  Deployment deployment;
  deployment.places.edit() = {{0, 0}};
  auto& own = deployment.programs.edit().emplace_back();
  own.devices = {0};
  // Participants by the device that is reached, and by what shift: there are two ways to an antipode.
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> known;
  std::uint32_t activities = 0;
  for (const Task& task : program.tasks) {
    if (!task.where.empty() || !stays_within(program, task.op)) return std::nullopt;
    std::uint32_t reached = 0;
    bool absent = false;
    std::int64_t by = 0;
    const auto* shift = std::get_if<Shift>(&task.op);
    if (shift != nullptr) {
      if (!shift->by.terms.empty()) return std::nullopt;
      by = evaluate(shift->by, {});
      absent = by % shift->axis.size == 0;
      if (!absent && std::find(dimensions.begin(), dimensions.end(), shift->axis) == dimensions.end()) return std::nullopt;
      if (!absent && !schedule.mesh.wraps(shift->axis)) return std::nullopt;
      reached = static_cast<std::uint32_t>(schedule.mesh.shifted(DeviceId{0}, shift->axis, by).value);
    }
    const std::uint32_t key = shift == nullptr ? no_device : absent ? no_device - 1 : reached;
    const auto [entry, is_new] = known.try_emplace({key, absent ? 0 : by}, static_cast<std::uint32_t>(deployment.participants.size()));
    if (is_new) {
      Participants who;
      who.to = {absent ? no_device : reached};
      if (shift != nullptr) who.from = {absent ? no_device : 0}, who.receivers = absent ? 0 : 1;
      who.rank = {absent ? no_device : 0};
      who.doers = absent ? 0 : 1;
      deployment.participants.edit().push_back(std::move(who));
    }
    own.participants.push_back(entry->second);
    own.first_activity.push_back(activities);
    activities += absent ? 0 : 1;
  }
  own.first_activity.push_back(activities);
  return deployment;
}

LinkId lowest_like(const Grid& grid, LinkId link) {
  LinkId lowest{0};
  while (grid.direction(lowest) != grid.direction(link)) ++lowest.value;
  return lowest;
}

}  // namespace

Expected<std::optional<Model>> fold_torus(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                                          std::shared_ptr<const PlayedCalls> calls) {
  const Grid* grid = torus_of(lowered.mesh, topology, placement);
  if (grid == nullptr || lowered.mesh.devices() == 1 || !check_shapes(lowered).empty()) return std::optional<Model>{};
  auto deployment = seen_from_anywhere(lowered);
  if (!deployment) return std::optional<Model>{};
  auto costed = cost_deployment(lowered, machine, topology, placement, *std::move(deployment), {}, std::move(calls));
  if (!costed) return costed.error();
  Model model = *std::move(costed);

  const auto devices = static_cast<std::uint32_t>(lowered.mesh.devices());
  model.device_of.edit() = {DeviceId{0}};
  model.devices_in.edit() = {devices};
  model.node_of.edit().assign(devices, 0);
  for (Participants& who : model.deployment.participants.edit())
    if (who.to.front() != no_device) who.to.front() = 0;

  // A class per direction, and one of memories. By translation, each of its links is crossed by as many equivalent flows as one flow crosses links of
  // it.
  std::vector<std::uint32_t> class_of_direction(2 * grid->dimensions().size() + 2, no_device);
  std::uint32_t memory_class = no_device;
  if (!model.memory_paths.empty()) model.memory_paths.resize(1);
  std::vector<ModelLink> links;
  std::vector<PathLink> path_links;
  for (Path& path : model.paths) {
    const std::size_t first = path_links.size();
    for (const PathLink& link : model.links_of(path)) {
      const ModelLink& own = model.links[link.link];
      std::uint32_t& link_class = own.is_memory ? memory_class : class_of_direction[static_cast<std::size_t>(grid->direction(own.representative))];
      if (link_class == no_device) {
        link_class = static_cast<std::uint32_t>(links.size());
        links.push_back({own.bandwidth, own.is_memory ? LinkId{model.first_memory} : lowest_like(*grid, own.representative), devices, own.is_memory});
      }
      const auto known = std::find_if(path_links.begin() + static_cast<std::ptrdiff_t>(first), path_links.end(),
                                      [&](const PathLink& other) { return other.link == link_class; });
      if (known == path_links.end())
        path_links.push_back({link_class, link.weight});
      else
        known->weight += link.weight;
    }
    path.first = static_cast<std::uint32_t>(first);
    path.last = static_cast<std::uint32_t>(path_links.size());
  }
  model.links = std::move(links);
  model.path_links = std::move(path_links);
  return std::optional<Model>{std::move(model)};
}

}  // namespace podsim
