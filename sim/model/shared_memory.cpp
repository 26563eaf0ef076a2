#include "sim/model/shared_memory.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <ranges>
#include <utility>
#include <vector>

namespace podsim {

namespace {

bool adds(const Op& op) {
  if (const auto* shift = std::get_if<Shift>(&op)) return shift->combine == Combine::add;
  if (const auto* receive = std::get_if<Recv>(&op)) return receive->combine == Combine::add;
  return false;
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
      if (count < nearest.size() && !is_unlimited(model_.links[link.link].bandwidth)) nearest[count++] = link.link;
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

class MemorySharer {
 public:
  MemorySharer(Model& model, const Orbits* orbits) : model_{model}, orbits_{orbits}, chip_{model.machine->chip}, unit_{memory_unit(chip_)} {}

  void run() {
    if (!chip_.memory_shared || is_unlimited(chip_.hbm_bandwidth) || !may_be_short()) return;
    for (std::size_t node = 0; node < model_.nodes(); ++node)
      model_.links.push_back({static_cast<double>(unit_) * chip_.hbm_bandwidth, LinkId{model_.first_memory + model_.device_of[node].value}, model_.devices_in[node], true});
    lay_paths();
    for (std::uint32_t node = 0; node < model_.nodes(); ++node) {
      model_.memory_paths.push_back(static_cast<std::uint32_t>(model_.paths.size()));
      Path path;
      path.first = static_cast<std::uint32_t>(model_.path_links.size());
      model_.path_links.push_back({memory_of(node), static_cast<std::uint32_t>(unit_)});
      path.last = path.first + 1;
      path.bottleneck = chip_.hbm_bandwidth;
      model_.paths.push_back(path);
    }
  }

 private:
  [[nodiscard]] std::uint32_t memory_of(std::uint32_t node) const { return static_cast<std::uint32_t>(model_.first_memory) + node; }

  template <class Visit>
  void each_transfer(Visit visit) const {
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t)
        if (model_.costs[p][t].kind == TaskCost::Kind::transfer) visit(p, t, model_.deployment.who(p, t));
  }

  /// Not sharp: it adds up what the works and links of a device could draw at once. (DES looks again at every moment.)
  [[nodiscard]] bool may_be_short() const {
    if (model_.costs.empty()) return false;
    double work = 0;  // the most that a work on the core draws
    const double fastest = model_.speed.empty() ? 1 : *std::max_element(model_.speed.begin(), model_.speed.end());
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t) {
        const TaskCost& cost = model_.costs[p][t];
        if (cost.memory_bytes == 0 || model_.deployment.who(p, t).doers == 0) continue;
        if (!cost.on_core) return true;
        work = std::max(work, fastest * cost.memory_bytes / (cost.work - cost.launch - cost.rest).count());
      }
    Ends ends{model_};
    std::map<std::pair<std::uint32_t, bool>, bool> known;
    // Of Sends, per path, without and with reading what is there: the last sender and receiver. What they do again says nothing new.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> met;
    bool endless = false;
    each_transfer([&](std::uint32_t p, std::size_t t, const Participants& who) {
      const TaskCost& cost = model_.costs[p][t];
      const bool same = who.to_task.empty();
      if (endless || cost.flow_bytes == 0 || (same && !known.try_emplace({cost.routing, adds(model_.task(p, t).op)}).second)) return;
      for (std::size_t l = 0; l < who.to.size(); ++l) {
        if (!who.does(l)) continue;
        const std::uint32_t number = model_.routings[cost.routing][l];
        const Path& path = model_.paths[number];
        if (is_unlimited(path.bottleneck)) {
          endless = true;
          continue;
        }
        const std::uint32_t from = model_.deployment.programs[p].devices[l], to = who.to[l];
        const bool adding = arrival_adds(model_, p, t, l);
        if (!same) {
          if (met.empty()) met.resize(2 * model_.paths.size(), {no_device, no_device});
          if (std::exchange(met[2 * number + (adding ? 1 : 0)], {from, to}) == std::pair{from, to}) continue;
        }
        const InSwitch role = role_of(model_.task(p, t).op);
        if (role != InSwitch::copy) ends.cross(2 * from, model_.links_of(path), 1);
        if (role == InSwitch::addend) continue;
        const DeviceId reached = orbits_ == nullptr ? DeviceId{} : orbits_->reached[model_.deployment.programs[p].participants[t]][l];
        const auto at_node = [&](const PathLink& link) {  // `to` is the lowest device of the orbit that the flow reaches
          if (orbits_ == nullptr) return PathLink{link};
          const LinkId there = orbits_->translations.taken_along(LinkId{static_cast<int>(link.link)}, ChipId{reached.value});
          return PathLink{static_cast<std::uint32_t>(there.value), link.weight};
        };
        ends.cross(2 * to + 1, model_.links_of(path) | std::views::reverse | std::views::transform(at_node), adding ? 2 : 1);
      }
    });
    if (endless) return chip_.transfer_memory_passes > 0;
    const double most = ends.most() * chip_.transfer_memory_passes;
    return work + most > chip_.hbm_bandwidth.count();
  }

  /// Replaces every routing by one whose paths begin and end in memories.
  void lay_paths() {
    std::map<std::pair<std::uint32_t, std::vector<bool>>, std::uint32_t> routings;  // by the routing without memories, and what adds
    std::vector<std::vector<std::uint32_t>> laid;
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t) {
        TaskCost& cost = model_.costs[p][t];
        if (cost.kind != TaskCost::Kind::transfer) continue;
        const Participants& who = model_.deployment.who(p, t);
        std::vector<bool> adding;
        if (who.to_task.empty())
          adding = {adds(model_.task(p, t).op)};
        else
          for (std::size_t l = 0; l < who.to.size(); ++l) adding.push_back(who.does(l) && arrival_adds(model_, p, t, l));
        const auto [entry, is_new] = routings.try_emplace({cost.routing, adding}, static_cast<std::uint32_t>(laid.size()));
        if (is_new) {
          auto& paths = laid.emplace_back(who.to.size(), 0);
          for (std::size_t l = 0; l < who.to.size(); ++l)
            if (who.does(l))
              paths[l] = path_between(model_.deployment.programs[p].devices[l], who.to[l], model_.routings[cost.routing][l],
                                      adding[adding.size() == 1 ? 0 : l], role_of(model_.task(p, t).op));
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
    if (leaving > 0) model_.path_links.push_back({memory_of(from), leaving});
    for (std::uint32_t i = first; i < last; ++i) model_.path_links.push_back(PathLink{model_.path_links[i]});
    if (arriving > 0) model_.path_links.push_back({memory_of(to), arriving});
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

void share_memory(Model& model, const Orbits* orbits) { MemorySharer{model, orbits}.run(); }

}  // namespace podsim
