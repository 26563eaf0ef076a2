#include "sim/model/fold.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>
#include <utility>

#include "sim/base/rng.hpp"

namespace podsim {

namespace {

using Colour = std::uint64_t;

constexpr std::size_t most_members = 100'000'000;  // of flows on links: beyond it, simulating is not much slower than folding

Colour mix(Colour a, Colour b) { return counter_hash(a, 1, b); }
Colour bits(double value) { return std::bit_cast<Colour>(value); }

/// How many different ones there are. Colours are well mixed, so their low bits are their places in a table; several times as fast as sorting.
std::size_t count_distinct(const std::vector<Colour>& colours, std::vector<Colour>& table) {
  table.assign(std::bit_ceil(colours.size() + colours.size() / 4 + 1), 0);
  std::size_t count = 0;
  bool zero = false;
  for (const Colour colour : colours) {
    if (colour == 0) {  // stands for an empty place
      zero = true;
      continue;
    }
    std::size_t at = colour & (table.size() - 1);
    while (table[at] != 0 && table[at] != colour) at = (at + 1) & (table.size() - 1);
    count += table[at] == 0 ? 1 : 0;
    table[at] = colour;
  }
  return count + (zero ? 1 : 0);
}

/// Rows of a compressed table.
struct Rows {
  std::vector<std::uint32_t> first, entries;
  [[nodiscard]] std::span<const std::uint32_t> of(std::size_t row) const { return {entries.data() + first[row], first[row + 1] - first[row]}; }
};

/// `each(add)` calls add(row, entry) for every entry, twice the same.
template <class Each>
Rows rows_of(std::size_t count, Each each) {
  Rows rows;
  rows.first.assign(count + 1, 0);
  each([&](std::size_t row, std::uint32_t) { ++rows.first[row + 1]; });
  for (std::size_t r = 0; r < count; ++r) rows.first[r + 1] += rows.first[r];
  rows.entries.resize(rows.first.back());
  std::vector<std::uint32_t> next(rows.first.begin(), rows.first.end() - 1);
  each([&](std::size_t row, std::uint32_t entry) { rows.entries[next[row]++] = entry; });
  return rows;
}

/// Elements by class, classes numbered by their lowest member.
struct Partition {
  std::vector<std::uint32_t> class_of;
  std::vector<std::uint32_t> lowest, size;  // per class
};

Partition partition_of(const std::vector<Colour>& colours) {
  Partition result;
  std::unordered_map<Colour, std::uint32_t> classes;
  for (std::uint32_t i = 0; i < colours.size(); ++i) {
    const auto [entry, is_new] = classes.try_emplace(colours[i], static_cast<std::uint32_t>(result.lowest.size()));
    if (is_new) result.lowest.push_back(i), result.size.push_back(0);
    result.class_of.push_back(entry->second);
    ++result.size[entry->second];
  }
  return result;
}

class Folding {
 public:
  Folding(Model& model, Cancellation stop) : model_{model}, deployment_{model.deployment}, stop_{stop} {}

  /// Whether there are fewer classes than devices, proven. Told to stop, no.
  bool run() {
    collect_participants();
    colour_devices();
    if (stop_.requested()) return false;
    if (count_distinct(device_colours_, table_) == model_.nodes()) return false;  // as on an open mesh: flows could not join what guards part
    if (!collect_flows()) return false;
    colour_flows();
    index_members();
    if (!refine()) return false;
    devices_ = partition_of(device_colours_);
    if (devices_.lowest.size() == model_.nodes()) return false;
    flows_classes_ = partition_of(flow_colours_);
    links_ = partition_of(link_colours_);
    return proven();
  }

  /// The model with one node per class of devices.
  Model quotient() const;

 private:
  /// Per program, the positions in it of its nodes' devices, each the lowest of its class.
  using Locals = std::vector<std::vector<std::uint32_t>>;

  /// All transfers of one routing by one sender: tasks that share a routing share their flows' place in the pattern. Also the works of a device, as
  /// flows from the device to itself through its memory (routing `work`).
  static constexpr std::uint32_t work = no_device;
  struct Flow {
    std::uint32_t routing, sender, receiver, path, receiver_task;
  };

  void collect_participants();
  void colour_devices();
  bool collect_flows();
  void colour_flows();
  bool refine();
  static std::size_t split_class(Colour colour, std::span<const std::uint32_t> members, const std::vector<Colour>& seen, std::vector<Colour>& colours,
                                 std::unordered_map<Colour, std::uint32_t>& sizes, std::vector<std::uint32_t>& changed);
  void index_members();
  bool proven() const;
  bool devices_equivalent(std::uint32_t a, std::uint32_t b) const;
  std::vector<std::uint32_t> flows_seen_by(std::uint32_t device) const;
  /// Classes of flows or links, each with the flow's weight.
  using Weighted = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  Weighted flows_on(std::uint32_t link) const;
  Weighted classes_of_path(const Flow& flow) const;
  std::uint32_t weight_on(const Flow& flow, std::uint32_t link) const;
  Locals place_nodes(Deployment& deployment) const;
  void fold_participants(const Locals& locals, Deployment& deployment) const;
  /// Links by class, and the path of each class of flows with as many shares of a link as flows of the class cross it. Returns the path per class.
  std::vector<std::uint32_t> fold_paths(Model& result) const;
  void fold_costs(const Locals& locals, const std::vector<std::uint32_t>& path_of_class, Model& result) const;
  void fold_shares(const Locals& locals, Model& result) const;
  std::uint32_t link_position(std::uint32_t link) const { return used_position_[link]; }

  const Model& model_;
  const Deployment& deployment_;
  Cancellation stop_;
  std::vector<std::vector<std::uint32_t>> participants_of_;  // per program, each once
  std::vector<Flow> flows_;
  std::vector<std::vector<std::uint32_t>> flow_at_;  // [routing][local]
  std::vector<std::uint32_t> used_, used_position_;  // links that carry something, and where each stands among them
  std::vector<Colour> device_colours_, flow_colours_, link_colours_, table_;
  Partition devices_, flows_classes_, links_;
  Rows sent_by_, received_by_, on_link_;  // flows
  Rows weights_on_link_;                  // of the flows in on_link_
};

void Folding::collect_participants() {
  participants_of_.resize(model_.costs.size());
  std::vector<bool> known(deployment_.participants.size(), false);
  for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
    for (std::size_t t = 0; t < model_.costs[p].size(); ++t) {
      if (const std::uint32_t id = deployment_.programs[p].participants[t]; !known[id]) known[id] = true, participants_of_[p].push_back(id);
    }
}

bool Folding::collect_flows() {
  flow_at_.resize(model_.routings.size());
  std::vector<bool> seen(model_.routings.size(), false), used(model_.links.size(), false);
  std::size_t members = 0;
  for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
    for (std::size_t t = 0; t < model_.costs[p].size(); ++t) {
      const TaskCost& cost = model_.costs[p][t];
      if (cost.kind != TaskCost::Kind::transfer || seen[cost.routing]) continue;
      seen[cost.routing] = true;
      const Participants& who = deployment_.who(p, t);
      auto& here = flow_at_[cost.routing];
      here.assign(who.to.size(), no_device);
      for (std::size_t l = 0; l < who.to.size(); ++l) {
        if (!who.does(l)) continue;
        if (stop_.requested()) return false;
        const std::uint32_t path = model_.routings[cost.routing][l];
        here[l] = static_cast<std::uint32_t>(flows_.size());
        flows_.push_back({cost.routing, deployment_.programs[p].devices[l], who.to[l], path, who.to_task.empty() ? no_device : who.to_task[l]});
        for (const PathLink& link : model_.links_of(model_.paths[path])) used[link.link] = true;
        members += model_.links_of(model_.paths[path]).size();
        if (members > most_members) return false;
      }
    }
  for (std::uint32_t d = 0; d < model_.memory_paths.size(); ++d) {
    flows_.push_back({work, d, d, model_.memory_paths[d], no_device});
    for (const PathLink& link : model_.links_of(model_.paths[model_.memory_paths[d]])) used[link.link] = true;
  }
  used_position_.assign(model_.links.size(), no_device);
  for (std::uint32_t link = 0; link < used.size(); ++link)
    if (used[link]) used_position_[link] = static_cast<std::uint32_t>(used_.size()), used_.push_back(link);
  return true;
}

void Folding::colour_devices() {
  device_colours_.resize(model_.nodes());
  for (std::uint32_t d = 0; d < model_.nodes(); ++d)
    device_colours_[d] = mix(mix(2, deployment_.places[d].program), bits(model_.speed.empty() ? 1 : model_.speed[d]));
  // What a device does and receives, by distinct participants: devices of whole programs differ in nothing.
  for (std::uint32_t p = 0; p < model_.costs.size(); ++p) {
    const auto& devices = deployment_.programs[p].devices;
    for (const std::uint32_t id : participants_of_[p]) {
      const Participants& who = deployment_.participants[id];
      if (who.doers == devices.size() && (who.from.empty() || who.receivers == devices.size())) continue;
      if (stop_.requested()) return;
      for (std::size_t l = 0; l < devices.size(); ++l)
        if (const Colour present = (who.does(l) ? 1U : 0U) + (who.receives(l) ? 2U : 0U); present > 0)
          device_colours_[devices[l]] = mix(device_colours_[devices[l]], 4 * Colour{id} + present);
    }
    if (model_.core_shares.empty()) continue;
    for (const CoreShares::Piece& piece : model_.core_shares[p].pieces)
      for (std::size_t l = 0; l < devices.size(); ++l) device_colours_[devices[l]] = mix(device_colours_[devices[l]], bits(piece.time[l].count()));
  }
}

void Folding::colour_flows() {
  for (const Flow& flow : flows_) {
    const Path& path = model_.paths[flow.path];
    Colour colour = mix(mix(3, flow.routing), flow.receiver_task);
    colour = mix(mix(colour, bits(path.latency.count())), bits(path.bottleneck.count()));
    flow_colours_.push_back(mix(colour, path.hops));
  }
  for (const std::uint32_t link : used_)
    link_colours_.push_back(mix(model_.links[link].is_memory ? 9 : 4, bits(model_.links[link].bandwidth.count())));
}

/// Until nothing splits, or every device is on its own. False: told to stop. A round looks at the neighbours of what got a new colour in the round before: those
/// that see the same new colours stay together, and one part of a class that splits keeps its colour, so its neighbours need no look. Thus a straggler costs
/// a ring of devices per round, not all of them.
bool Folding::refine() {
  const auto devices = static_cast<std::uint32_t>(device_colours_.size()), flows = static_cast<std::uint32_t>(flow_colours_.size());
  // All elements by one number: devices, flows, links.
  std::vector<Colour> colours = device_colours_;
  colours.insert(colours.end(), flow_colours_.begin(), flow_colours_.end());
  colours.insert(colours.end(), link_colours_.begin(), link_colours_.end());
  std::vector<Colour> seen(colours.size(), 0);
  std::vector<bool> sees(colours.size(), false);
  std::vector<std::uint32_t> changed, dirty;
  const auto see = [&](std::uint32_t element, Colour colour) {
    seen[element] += colour;
    if (!sees[element]) sees[element] = true, dirty.push_back(element);
  };
  const auto show = [&](std::uint32_t element, Colour colour) {
    if (element < devices) {
      for (const std::uint32_t f : sent_by_.of(element)) see(devices + f, mix(10, colour));
      for (const std::uint32_t f : received_by_.of(element)) see(devices + f, mix(11, colour));
    } else if (element < devices + flows) {
      const Flow& flow = flows_[element - devices];
      see(flow.sender, mix(5, colour));
      see(flow.receiver, mix(6, colour));
      const Colour crosses = mix(7, colour);
      for (const PathLink& link : model_.links_of(model_.paths[flow.path])) see(devices + flows + link_position(link.link), mix(crosses, link.weight));
    } else {
      const std::uint32_t link = element - devices - flows;
      const auto members = on_link_.of(link), weights = weights_on_link_.of(link);
      const Colour crossed = mix(8, colour);
      for (std::size_t m = 0; m < members.size(); ++m) see(devices + members[m], mix(crossed, weights[m]));
    }
  };
  // First all as if of one colour: the members of a class have equally many neighbours.
  for (std::uint32_t e = 0; e < colours.size(); ++e) show(e, 1);
  for (std::uint32_t e = 0; e < colours.size(); ++e) colours[e] = mix(colours[e], seen[e]), seen[e] = 0, sees[e] = false, changed.push_back(e);
  dirty.clear();
  std::unordered_map<Colour, std::uint32_t> sizes;
  for (const Colour colour : colours) ++sizes[colour];
  std::size_t device_classes = count_distinct({colours.begin(), colours.begin() + devices}, table_);
  while (!changed.empty() && device_classes < devices) {
    if (stop_.requested()) return false;
    for (const std::uint32_t e : changed) show(e, colours[e]);
    changed.clear();
    std::sort(dirty.begin(), dirty.end(), [&](std::uint32_t a, std::uint32_t b) { return std::pair{colours[a], seen[a]} < std::pair{colours[b], seen[b]}; });
    for (auto begin = dirty.begin(), end = begin; begin != dirty.end(); begin = end) {
      const Colour colour = colours[*begin];
      end = std::find_if(begin, dirty.end(), [&](std::uint32_t e) { return colours[e] != colour; });
      const std::size_t parts = split_class(colour, {begin, end}, seen, colours, sizes, changed);
      if (*begin < devices) device_classes += parts;
    }
    for (const std::uint32_t e : dirty) seen[e] = 0, sees[e] = false;
    dirty.clear();
  }
  device_colours_.assign(colours.begin(), colours.begin() + devices);
  flow_colours_.assign(colours.begin() + devices, colours.begin() + devices + flows);
  link_colours_.assign(colours.begin() + devices + flows, colours.end());
  return true;
}

/// The members of a class that see something new, sorted by it: each group gets a colour of its own. If that is all of the class, the largest keeps the old one.
/// Returns how many classes came into being.
std::size_t Folding::split_class(Colour colour, std::span<const std::uint32_t> members, const std::vector<Colour>& seen, std::vector<Colour>& colours,
                                 std::unordered_map<Colour, std::uint32_t>& sizes, std::vector<std::uint32_t>& changed) {
  std::vector<std::span<const std::uint32_t>> groups;
  for (std::size_t first = 0, next = 0; first < members.size(); first = next) {
    while (next < members.size() && seen[members[next]] == seen[members[first]]) ++next;
    groups.push_back(members.subspan(first, next - first));
  }
  const bool all = sizes[colour] == members.size();
  const auto kept = all ? std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); }) : groups.end();
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    if (group == kept) continue;
    const Colour own = mix(colour, seen[group->front()]);
    for (const std::uint32_t e : *group) colours[e] = own, changed.push_back(e);
    sizes[own] = static_cast<std::uint32_t>(group->size());
    sizes[colour] -= static_cast<std::uint32_t>(group->size());
  }
  return groups.size() - (all ? 1 : 0);
}

void Folding::index_members() {
  const auto count = static_cast<std::uint32_t>(flows_.size());
  sent_by_ = rows_of(model_.nodes(), [&](auto add) {
    for (std::uint32_t f = 0; f < count; ++f) add(flows_[f].sender, f);
  });
  received_by_ = rows_of(model_.nodes(), [&](auto add) {
    for (std::uint32_t f = 0; f < count; ++f) add(flows_[f].receiver, f);
  });
  on_link_ = rows_of(used_.size(), [&](auto add) {
    for (std::uint32_t f = 0; f < count; ++f)
      for (const PathLink& link : model_.links_of(model_.paths[flows_[f].path])) add(link_position(link.link), f);
  });
  weights_on_link_ = rows_of(used_.size(), [&](auto add) {
    for (const Flow& flow : flows_)
      for (const PathLink& link : model_.links_of(model_.paths[flow.path])) add(link_position(link.link), link.weight);
  });
}

std::vector<std::uint32_t> Folding::flows_seen_by(std::uint32_t device) const {
  std::vector<std::uint32_t> classes;
  for (const std::uint32_t f : sent_by_.of(device)) classes.push_back(2 * flows_classes_.class_of[f]);
  for (const std::uint32_t f : received_by_.of(device)) classes.push_back(2 * flows_classes_.class_of[f] + 1);
  std::sort(classes.begin(), classes.end());
  return classes;
}

std::uint32_t Folding::weight_on(const Flow& flow, std::uint32_t link) const {
  for (const PathLink& on : model_.links_of(model_.paths[flow.path]))
    if (on.link == link) return on.weight;
  return 0;
}

Folding::Weighted Folding::flows_on(std::uint32_t link) const {
  Weighted classes;
  const auto flows = on_link_.of(link), weights = weights_on_link_.of(link);
  classes.reserve(flows.size());
  for (std::size_t i = 0; i < flows.size(); ++i) classes.emplace_back(flows_classes_.class_of[flows[i]], weights[i]);
  std::sort(classes.begin(), classes.end());
  return classes;
}

Folding::Weighted Folding::classes_of_path(const Flow& flow) const {
  Weighted classes;
  for (const PathLink& link : model_.links_of(model_.paths[flow.path])) classes.emplace_back(links_.class_of[link_position(link.link)], link.weight);
  std::sort(classes.begin(), classes.end());
  return classes;
}

bool Folding::devices_equivalent(std::uint32_t a, std::uint32_t b) const {
  const auto& [program, local_a] = deployment_.places[a];
  const auto& [other_program, local_b] = deployment_.places[b];
  if (program != other_program || (!model_.speed.empty() && model_.speed[a] != model_.speed[b])) return false;
  if (program == no_device) return true;
  for (const std::uint32_t id : participants_of_[program]) {
    const Participants& who = deployment_.participants[id];
    if (who.does(local_a) != who.does(local_b) || who.receives(local_a) != who.receives(local_b)) return false;
    if (!who.from_task.empty() && who.from_task[local_a] != who.from_task[local_b]) return false;
  }
  if (!model_.core_shares.empty())
    for (const CoreShares::Piece& piece : model_.core_shares[program].pieces)
      if (piece.time[local_a] != piece.time[local_b]) return false;
  return flows_seen_by(a) == flows_seen_by(b);
}

/// Every member of every class sees what the lowest one sees.
bool Folding::proven() const {
  for (std::uint32_t d = 0; d < model_.nodes(); ++d) {
    if (stop_.requested()) return false;
    if (const std::uint32_t other = devices_.lowest[devices_.class_of[d]]; other != d && !devices_equivalent(d, other)) return false;
  }
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    if (stop_.requested()) return false;
    const Flow &a = flows_[f], &b = flows_[flows_classes_.lowest[flows_classes_.class_of[f]]];
    const Path &path_a = model_.paths[a.path], &path_b = model_.paths[b.path];
    if (a.routing != b.routing || a.receiver_task != b.receiver_task || devices_.class_of[a.sender] != devices_.class_of[b.sender] ||
        devices_.class_of[a.receiver] != devices_.class_of[b.receiver] || path_a.latency != path_b.latency ||
        path_a.bottleneck != path_b.bottleneck || path_a.hops != path_b.hops || classes_of_path(a) != classes_of_path(b))
      return false;
  }
  std::vector<Weighted> on_lowest(links_.lowest.size());
  for (std::uint32_t l = 0; l < used_.size(); ++l) {
    const std::uint32_t c = links_.class_of[l], other = links_.lowest[c];
    if (model_.links[used_[l]].bandwidth != model_.links[used_[other]].bandwidth) return false;
    if (l == other) continue;
    if (on_lowest[c].empty()) on_lowest[c] = flows_on(other);
    if (flows_on(l) != on_lowest[c]) return false;
  }
  return true;
}

Model Folding::quotient() const {
  Model result;
  result.schedule = model_.schedule;
  result.machine = model_.machine;
  result.calls = model_.calls;
  for (const std::uint32_t node : model_.node_of) result.node_of.edit().push_back(devices_.class_of[node]);
  for (const std::uint32_t node : devices_.lowest) {
    result.device_of.edit().push_back(model_.device_of[node]);
    result.devices_in.edit().push_back(model_.devices_in[node] * devices_.size[result.devices_in.size()]);
    if (!model_.speed.empty()) result.speed.push_back(model_.speed[node]);
  }
  const Locals locals = place_nodes(result.deployment);
  fold_participants(locals, result.deployment);
  fold_costs(locals, fold_paths(result), result);
  return result;
}

Folding::Locals Folding::place_nodes(Deployment& deployment) const {
  deployment.programs.edit().resize(deployment_.programs.size());
  Locals locals(deployment_.programs.size());
  for (std::uint32_t node = 0; node < devices_.lowest.size(); ++node) {
    const auto& [p, local] = deployment_.places[devices_.lowest[node]];
    deployment.places.edit().push_back({p, p == no_device ? 0 : static_cast<std::uint32_t>(locals[p].size())});
    if (p == no_device) continue;
    deployment.programs.edit()[p].devices.push_back(node);
    locals[p].push_back(local);
  }
  return locals;
}

void Folding::fold_participants(const Locals& locals, Deployment& deployment) const {
  const auto fold_one = [&](const Participants& all, const std::vector<std::uint32_t>& nodes, Participants& who) {
    for (const std::uint32_t l : nodes) {
      if (!all.to.empty()) {
        who.to.push_back(all.does(l) ? devices_.class_of[all.to[l]] : no_device);
        who.rank.push_back(all.does(l) ? who.doers++ : no_device);
      }
      if (!all.from.empty())
        who.from.push_back(all.receives(l) ? devices_.class_of[all.from[l]] : no_device), who.receivers += all.receives(l) ? 1 : 0;
      if (!all.to_task.empty()) who.to_task.push_back(all.to_task[l]);
      if (!all.from_task.empty()) who.from_task.push_back(all.from_task[l]);
    }
  };
  deployment.participants.edit().resize(deployment_.participants.size());
  std::uint32_t activities = 0;
  for (std::uint32_t p = 0; p < deployment_.programs.size(); ++p) {
    auto& program = deployment.programs.edit()[p];
    program.participants = deployment_.programs[p].participants;
    for (const std::uint32_t id : program.participants) {
      Participants& who = deployment.participants.edit()[id];
      if (who.to.empty() && who.from.empty()) fold_one(deployment_.participants[id], locals[p], who);
      program.first_activity.push_back(activities);
      activities += who.doers;
    }
    program.first_activity.push_back(activities);
  }
}

std::vector<std::uint32_t> Folding::fold_paths(Model& result) const {
  for (std::size_t c = 0; c < links_.lowest.size(); ++c) {
    const ModelLink& link = model_.links[used_[links_.lowest[c]]];
    result.links.push_back({link.bandwidth, link.representative, link.links * links_.size[c], link.is_memory});
  }
  for (std::size_t l = 0; l < used_.size(); ++l) {
    LinkId& lowest = result.links[links_.class_of[l]].representative;
    lowest = std::min(lowest, model_.links[used_[l]].representative);
  }
  std::vector<std::uint32_t> path_of_class;
  for (std::uint32_t c = 0; c < flows_classes_.lowest.size(); ++c) {
    const Flow& flow = flows_[flows_classes_.lowest[c]];
    Path path = model_.paths[flow.path];
    std::vector<std::uint32_t> seen;
    const auto links = model_.links_of(path);
    path.first = static_cast<std::uint32_t>(result.path_links.size());
    for (const PathLink& link : links) {
      const std::uint32_t link_class = links_.class_of[link_position(link.link)];
      if (std::find(seen.begin(), seen.end(), link_class) != seen.end()) continue;
      seen.push_back(link_class);
      const std::uint32_t lowest = links_.lowest[link_class];
      std::uint32_t weight = 0;
      for (const std::uint32_t f : on_link_.of(lowest))
        if (flows_classes_.class_of[f] == c) weight += weight_on(flows_[f], used_[lowest]);
      result.path_links.edit().push_back({link_class, weight});
    }
    path.last = static_cast<std::uint32_t>(result.path_links.size());
    path_of_class.push_back(static_cast<std::uint32_t>(result.paths.size()));
    result.paths.push_back(path);
  }
  result.first_memory = model_.first_memory;
  if (!model_.memory_paths.empty()) {
    result.memory_paths.resize(devices_.lowest.size());
    for (std::size_t f = 0; f < flows_.size(); ++f)
      if (flows_[f].routing == work) result.memory_paths[devices_.class_of[flows_[f].sender]] = path_of_class[flows_classes_.class_of[f]];
  }
  return path_of_class;
}

void Folding::fold_costs(const Locals& locals, const std::vector<std::uint32_t>& path_of_class, Model& result) const {
  result.costs = model_.costs;
  result.routings.edit().resize(model_.routings.size());
  for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
    for (const TaskCost& cost : model_.costs[p]) {
      if (cost.kind == TaskCost::Kind::transfer && result.routings[cost.routing].empty())
        for (const std::uint32_t l : locals[p]) {
          const std::uint32_t flow = flow_at_[cost.routing][l];
          result.routings.edit()[cost.routing].push_back(flow == no_device ? 0 : path_of_class[flows_classes_.class_of[flow]]);
        }
    }
  fold_shares(locals, result);
}

void Folding::fold_shares(const Locals& locals, Model& result) const {
  for (std::uint32_t p = 0; p < model_.core_shares.size(); ++p) {
    const auto of_nodes = [&](const std::vector<Seconds>& all) {
      std::vector<Seconds> times;
      if (!all.empty())
        for (const std::uint32_t l : locals[p]) times.push_back(all[l]);
      return times;
    };
    CoreShares& shares = result.core_shares.emplace_back();
    for (const CoreShares::Piece& piece : model_.core_shares[p].pieces) shares.pieces.push_back({piece.of, piece.place, of_nodes(piece.time)});
    for (const auto& behind : model_.core_shares[p].behind) shares.behind.push_back(of_nodes(behind));
    shares.first = of_nodes(model_.core_shares[p].first);
  }
}

}  // namespace

Model fold(Model model, Cancellation stop) {
  Folding folding{model, stop};
  if (!folding.run()) return model;
  return folding.quotient();
}

Expected<Model> make_folded_model(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                                  Cancellation stop, std::shared_ptr<const PlayedCalls> calls) {
  auto torus = fold_by_translations(lowered, machine, topology, placement, stop, calls);
  if (!torus) return torus.error();
  if (*torus) return **std::move(torus);
  auto model = make_model(lowered, machine, topology, placement, stop, std::move(calls));
  if (!model) return model.error();
  Model folded = fold(*std::move(model), stop);
  if (stop.requested()) return cancelled_work();
  return folded;
}

}  // namespace podsim
