#include <algorithm>
#include <unordered_map>

#include "sim/model/fold.hpp"
#include "sim/model/translations.hpp"
#include "sim/schedule/part_taken.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

namespace {

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

/// The nodes of a schedule's orbits, in the order of their lowest devices.
Orbits orbits_of(const Schedule& schedule, Translations translations) {
  Orbits orbits{std::move(translations), {}, {}, {}};
  for (int d = 0; d < schedule.mesh.devices(); ++d) {
    const DeviceId lowest{orbits.translations.lowest(ChipId{d}).value};
    if (lowest.value == d) orbits.lowest.push_back(lowest);
    orbits.node_of.push_back(lowest.value == d ? static_cast<std::uint32_t>(orbits.lowest.size() - 1) : orbits.node_of[lowest.index()]);
  }
  return orbits;
}

/// Deploys a schedule on one device of each orbit, and notes which device each transfer reaches.
class OrbitDeployer {
 public:
  OrbitDeployer(const Schedule& schedule, Orbits& orbits) : mesh_{schedule.mesh}, program_{schedule.programs.front()}, orbits_{orbits} {
    for (const DeviceId device : orbits.lowest) coordinates_.push_back(mesh_.coordinates(device));
  }

  /// nullopt: some index may leave its range, a transfer is not a Shift or may leave its axis, which deploy() is to look at; or there are more than
  /// `most` activities.
  std::optional<Deployment> run(double most) {
    most = std::min(most, static_cast<double>(no_device - 1));
    auto& own = deployment_.programs.edit().emplace_back();
    for (std::uint32_t node = 0; node < orbits_.lowest.size(); ++node) {
      deployment_.places.edit().push_back({0, node});
      own.devices.push_back(node);
    }
    std::uint32_t activities = 0;
    for (const Task& task : program_.tasks) {
      if (!stays_within(program_, task.op)) return std::nullopt;
      const auto* shift = std::get_if<Shift>(&task.op);
      if (shift != nullptr && task.where.empty() && !shift->by_dimension && !mesh_.wraps(shift->axis)) return std::nullopt;
      const auto [entry, is_new] = known_.try_emplace({0, shift, &task.where}, static_cast<std::uint32_t>(deployment_.participants.size()));
      if (is_new && !add(task)) return std::nullopt;
      own.participants.push_back(entry->second);
      own.first_activity.push_back(activities);
      const std::uint32_t doers = deployment_.participants[entry->second].doers;
      if (static_cast<double>(activities) + doers > most) return std::nullopt;
      activities += doers;
    }
    own.first_activity.push_back(activities);
    return std::move(deployment_);
  }

 private:
  /// Whether the task's participants are certain.
  bool add(const Task& task) {
    const std::size_t nodes = orbits_.lowest.size();
    const auto* shift = std::get_if<Shift>(&task.op);
    Participants who;
    who.to.assign(nodes, no_device);
    who.rank.assign(nodes, no_device);
    if (shift != nullptr) who.from.assign(nodes, no_device);
    std::vector<DeviceId> reached(shift == nullptr ? 0 : nodes);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (!holds(task.where, coordinates_[node])) continue;
      std::uint32_t to = node;
      if (shift != nullptr) {
        reached[node] = receiver_of(mesh_, *shift, orbits_.lowest[node]);
        if (reached[node] == orbits_.lowest[node]) continue;
        if (leaves_axis(mesh_, *shift, coordinates_[node])) return false;
        to = orbits_.node_of[reached[node].index()];
        who.from[to] = node;
        ++who.receivers;
      }
      who.to[node] = to;
      who.rank[node] = who.doers++;
    }
    deployment_.participants.edit().push_back(std::move(who));
    orbits_.reached.push_back(std::move(reached));
    return true;
  }

  const Mesh& mesh_;
  const Program& program_;
  Orbits& orbits_;
  std::vector<Coordinates> coordinates_;  // per node
  std::unordered_map<PartTaken, std::uint32_t, PartTakenHash> known_;  // to participants
  Deployment deployment_;
};

/// Joins the links of each orbit. By translation, each of them is crossed by as many equivalent flows as one flow crosses links of the orbit.
void join_links(const Orbits& orbits, Model& model) {
  std::vector<std::uint32_t> class_of(model.links.size(), no_device);  // of the lowest link of an orbit
  std::vector<ModelLink> links;
  std::vector<PathLink> path_links;
  for (Path& path : model.paths) {
    const std::size_t first = path_links.size();
    for (const PathLink& link : model.links_of(path)) {
      const ModelLink& own = model.links[link.link];
      const LinkId lowest = own.is_memory ? own.representative : orbits.translations.lowest(own.representative);
      std::uint32_t& link_class = class_of[own.is_memory ? link.link : static_cast<std::uint32_t>(lowest.value)];
      if (link_class == no_device) {
        link_class = static_cast<std::uint32_t>(links.size());
        links.push_back({own.bandwidth, lowest, orbits.translations.size(), own.is_memory});
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
}

}  // namespace

Expected<std::optional<Model>> fold_by_translations(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                                          Cancellation stop, std::shared_ptr<const PlayedCalls> calls, double most) {
  if (lowered.mesh.devices() == 1) return std::optional<Model>{};
  auto translations = translations_of(lowered, topology, placement);
  if (!translations || !check_shapes(lowered).empty()) return std::optional<Model>{};
  Orbits orbits = orbits_of(lowered, *std::move(translations));
  auto deployment = OrbitDeployer{lowered, orbits}.run(most);
  if (!deployment) return std::optional<Model>{};
  // One device is done sooner than anybody could wish to stop it; the engine then tells how far it came.
  const Cancellation costing = orbits.lowest.size() == 1 ? Cancellation{} : stop;
  auto model = cost_deployment(lowered, machine, topology, placement, *std::move(deployment), costing, std::move(calls), &orbits);
  if (!model) return model.error();
  join_links(orbits, *model);
  return std::optional<Model>{model->nodes() == 1 ? *std::move(model) : fold(*std::move(model), stop)};
}

}  // namespace podsim
