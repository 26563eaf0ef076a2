#include "sim/model/shared_memory.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>
#include <vector>

namespace podsim {

namespace {

bool adds(const Op& op) {
  if (const auto* shift = std::get_if<Shift>(&op)) return shift->combine != Combine::replace;
  if (const auto* receive = std::get_if<Recv>(&op)) return receive->combine != Combine::replace;
  return false;
}

/// Whether a link, which is no memory, bounds what crosses it.
bool limits(const Model& model, const PathLink& link) {
  const ModelLink& of = model.links[link.link];
  return !of.is_memory && !is_unlimited(of.bandwidth);
}

/// What the transfers at the ends of devices could draw at once. All that cross a link together get no more than its bandwidth, so any one link of
/// each path gives a bound. Taken are the two limited links nearest to the device: an injection link may have more than one of the links behind it,
/// and less than all of them.
class Ends {
 public:
  explicit Ends(const Model& model) : model_{model} {}

  /// A transfer at an end, 2 * device where it leaves and 2 * device + 1 where it arrives, which draws `times` its bytes; the links from there on.
  template <class Links>
  void cross(std::uint32_t end, Links&& links, int times) {
    std::array<std::uint32_t, 2> nearest{no_device, no_device};
    std::size_t count = 0;
    for (const PathLink& link : links)
      if (count < nearest.size() && limits(model_, link)) nearest[count++] = link.link;
    if (count == 0) return;
    Nearest& first = ends_[{end, nearest[0]}];
    first.times = std::max(first.times, times);
    if (count == 1 || first.behind.size() == most_behind) first.passed_on = false;
    if (!first.passed_on) return;
    const auto known = std::find_if(first.behind.begin(), first.behind.end(), [&](const auto& link) { return link.first == nearest[1]; });
    if (known == first.behind.end())
      first.behind.emplace_back(nearest[1], times);
    else
      known->second = std::max(known->second, times);
  }

  /// Bytes per second, of the device with the most.
  [[nodiscard]] double most() const {
    double most = 0, device = 0;
    for (auto row = ends_.begin(); row != ends_.end(); ++row) {  // by device
      if (row == ends_.begin() || std::prev(row)->first.first / 2 != row->first.first / 2) device = 0;
      const auto& [place, first] = *row;
      double drawn = first.times * bandwidth(place.second), behind = 0;
      for (const auto& [link, times] : first.behind) behind += times * bandwidth(link);
      device += first.passed_on ? std::min(drawn, behind) : drawn;
      most = std::max(most, device);
    }
    return most;
  }

 private:
  static constexpr std::size_t most_behind = 16;  // a switch has many; the link to it is then bound enough
  struct Nearest {
    int times = 0;
    bool passed_on = true;  // every transfer over it crosses one of the links behind
    std::vector<std::pair<std::uint32_t, int>> behind;
  };
  [[nodiscard]] double bandwidth(std::uint32_t link) const { return model_.links[link].bandwidth.count(); }

  const Model& model_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Nearest> ends_;  // by end and link
};

InSwitch role_of(const Op& op) {
  const auto* shift = std::get_if<Shift>(&op);
  return shift == nullptr ? InSwitch::none : shift->in_switch;
}

/// Bytes per second that a work on some core may draw; nullopt: works beside cores draw, too.
std::optional<double> drawn_by_works(const Model& model) {
  double work = 0;
  const double fastest = model.speed.empty() ? 1 : *std::max_element(model.speed.begin(), model.speed.end());
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      if (cost.memory_bytes == 0 || model.deployment.who(p, t).doers == 0) continue;
      if (!cost.on_core) return std::nullopt;
      work = std::max(work, fastest * cost.memory_bytes / (cost.work - cost.launch - cost.rest).count());
    }
  return work;
}

/// Whether a transfer adds where it arrives: of a Shift, or per sender.
std::vector<bool> adding(const Model& model, std::uint32_t p, std::size_t t) {
  const Participants& who = model.deployment.who(p, t);
  if (who.to_task.empty()) return {adds(model.task(p, t).op)};
  std::vector<bool> result(who.to.size());
  for (std::size_t l = 0; l < result.size(); ++l) result[l] = who.does(l) && arrival_adds(model, p, t, l);
  return result;
}

/// Bytes per second that transfers may draw of some memory, in passes; nullopt: no link limits one of them.
std::optional<double> drawn_by_transfers(const Model& model, const Orbits* orbits) {
  Ends ends{model};
  std::set<std::pair<std::uint32_t, std::vector<bool>>> known;  // routings, and what adds
  const bool laid = !model.memory_paths.empty();
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      const Participants& who = model.deployment.who(p, t);
      if (cost.kind != TaskCost::Kind::transfer || cost.flow_bytes == 0) continue;
      if (!known.emplace(cost.routing, adding(model, p, t)).second) continue;
      for (std::size_t l = 0; l < who.to.size(); ++l) {
        if (!who.does(l)) continue;
        const Path& path = model.path(cost, l);
        const auto links = model.links_of(path);
        const bool limited = laid ? std::any_of(links.begin(), links.end(), [&](const PathLink& link) { return limits(model, link); }) : !is_unlimited(path.bottleneck);
        if (!limited) return std::nullopt;
        const std::uint32_t from = model.deployment.programs[p].devices[l], to = who.to[l];
        const InSwitch role = role_of(model.task(p, t).op);
        if (role != InSwitch::copy) ends.cross(2 * from, links, 1);
        if (role == InSwitch::addend) continue;
        const DeviceId reached = orbits == nullptr ? DeviceId{} : orbits->reached[model.deployment.programs[p].participants[t]][l];
        const auto at_node = [&](const PathLink& link) {  // `to` is the lowest device of the orbit that the flow reaches
          if (orbits == nullptr || model.links[link.link].is_memory) return PathLink{link};
          const LinkId there = orbits->translations.taken_along(LinkId{static_cast<int>(link.link)}, ChipId{reached.value});
          return PathLink{static_cast<std::uint32_t>(there.value), link.weight};
        };
        ends.cross(2 * to + 1, links | std::views::reverse | std::views::transform(at_node), arrival_adds(model, p, t, l) ? 2 : 1);
      }
    }
  return ends.most();
}

class MemorySharer {
 public:
  MemorySharer(Model& model, const Orbits* orbits) : model_{model}, orbits_{orbits}, chip_{model.machine->chip}, unit_{memory_unit(chip_)} {}

  void run() {
    if (!memory_may_be_short(model_, orbits_)) return;
    for (std::size_t node = 0; node < model_.nodes(); ++node)
      model_.links.push_back({static_cast<double>(unit_) * chip_.hbm_bandwidth, LinkId{model_.first_memory + model_.device_of[node].value}, model_.devices_in[node], true});
    lay_paths();
    for (std::uint32_t node = 0; node < model_.nodes(); ++node) {
      model_.memory_paths.push_back(static_cast<std::uint32_t>(model_.paths.size()));
      Path path;
      path.first = static_cast<std::uint32_t>(model_.path_links.size());
      model_.path_links.edit().push_back({memory_of(node), static_cast<std::uint32_t>(unit_)});
      path.last = path.first + 1;
      path.bottleneck = chip_.hbm_bandwidth;
      model_.paths.push_back(path);
    }
  }

 private:
  [[nodiscard]] std::uint32_t memory_of(std::uint32_t node) const { return static_cast<std::uint32_t>(model_.first_memory) + node; }

  /// Replaces every routing by one whose paths begin and end in memories.
  void lay_paths() {
    std::map<std::pair<std::uint32_t, std::vector<bool>>, std::uint32_t> routings;  // by the routing without memories, and what adds
    std::vector<std::vector<std::uint32_t>> laid;
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t) {
        TaskCost& cost = model_.costs[p][t];
        if (cost.kind != TaskCost::Kind::transfer) continue;
        const Participants& who = model_.deployment.who(p, t);
        const std::vector<bool> at_arrival = adding(model_, p, t);
        const auto [entry, is_new] = routings.try_emplace({cost.routing, at_arrival}, static_cast<std::uint32_t>(laid.size()));
        if (is_new) {
          auto& paths = laid.emplace_back(who.to.size(), 0);
          for (std::size_t l = 0; l < who.to.size(); ++l)
            if (who.does(l))
              paths[l] = path_between(model_.deployment.programs[p].devices[l], who.to[l], model_.routings[cost.routing][l],
                                      at_arrival[at_arrival.size() == 1 ? 0 : l], role_of(model_.task(p, t).op));
        }
        cost.routing = entry->second;
      }
    model_.routings = std::move(laid);
  }

  /// A bare path has one role: what a switch copies or adds up has paths of its own. A copy is read once, by its carrier; a sum is written once.
  std::uint32_t path_between(std::uint32_t from, std::uint32_t to, std::uint32_t bare, bool adding, InSwitch role) {
    if (bare_paths_ == 0) bare_paths_ = model_.paths.size(), laid_on_.resize(2 * (bare_paths_ + model_.nodes()), no_device);
    std::uint32_t& newest = laid_on_[2 * (bare == 0 ? bare_paths_ + from : bare) + (adding ? 1 : 0)];  // all chips share the empty path
    for (std::uint32_t i = newest; i != no_device; i = laid_[i].before)
      if (laid_[i].from == from && laid_[i].to == to) return laid_[i].path;
    laid_.push_back({from, to, static_cast<std::uint32_t>(model_.paths.size()), newest});
    newest = static_cast<std::uint32_t>(laid_.size() - 1);
    const auto passes = static_cast<std::uint32_t>(chip_.transfer_memory_passes * unit_);
    const std::uint32_t leaving = role == InSwitch::copy ? 0 : passes, arriving = role == InSwitch::addend ? 0 : adding ? 2 * passes : passes;
    Path path = model_.paths[bare];
    const std::uint32_t first = path.first, last = path.last;
    path.first = static_cast<std::uint32_t>(model_.path_links.size());
    if (leaving > 0) model_.path_links.edit().push_back({memory_of(from), leaving});
    for (std::uint32_t i = first; i < last; ++i) model_.path_links.edit().push_back(PathLink{model_.path_links[i]});
    if (arriving > 0) model_.path_links.edit().push_back({memory_of(to), arriving});
    path.last = static_cast<std::uint32_t>(model_.path_links.size());
    if (leaving + arriving > 0)
      path.bottleneck = std::min(path.bottleneck, static_cast<double>(unit_) / std::max(leaving, arriving) * chip_.hbm_bandwidth);
    model_.paths.push_back(path);
    return laid_.back().path;
  }

  Model& model_;
  const Orbits* orbits_;
  const Chip& chip_;
  int unit_;
  struct Laid {
    std::uint32_t from = 0, to = 0, path = 0;
    std::uint32_t before = no_device;  // the one that was laid on the same bare path before
  };
  std::vector<Laid> laid_;
  std::vector<std::uint32_t> laid_on_;  // per bare path, or sender on the empty one, without and with reading what is there: the newest in laid_
  std::size_t bare_paths_ = 0;
};

}  // namespace

bool arrival_adds(const Model& model, std::uint32_t program, std::size_t task, std::size_t local) {
  const Participants& who = model.deployment.who(program, task);
  if (who.to_task.empty()) return adds(model.task(program, task).op);
  return adds(model.task(model.deployment.places[who.to[local]].program, who.to_task[local]).op);
}

bool memory_may_be_short(const Model& model, const Orbits* orbits) {
  const Chip& chip = model.machine->chip;
  if (!chip.memory_shared || is_unlimited(chip.hbm_bandwidth) || model.costs.empty()) return false;
  const auto works = drawn_by_works(model);
  if (!works) return true;
  const auto transfers = drawn_by_transfers(model, orbits);
  if (!transfers) return chip.transfer_memory_passes > 0;
  return *works + *transfers * chip.transfer_memory_passes > chip.hbm_bandwidth.count();
}

DrawnBesideCores drawn_beside_cores(const Model& model) {
  constexpr double endless = std::numeric_limits<double>::infinity();
  const auto transfers = drawn_by_transfers(model, nullptr);
  if (!drawn_by_works(model) || !transfers) return {endless, endless};
  DrawnBesideCores drawn{*transfers * model.machine->chip.transfer_memory_passes};
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      const Participants& who = model.deployment.who(p, t);
      for (std::size_t l = 0; l < who.to.size() && cost.kind == TaskCost::Kind::transfer; ++l)
        if (who.does(l)) drawn.fastest = std::max(drawn.fastest, model.path(cost, l).bottleneck.count());
    }
  return drawn;
}

void share_memory(Model& model, const Orbits* orbits) { MemorySharer{model, orbits}.run(); }

}  // namespace podsim
