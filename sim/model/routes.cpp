#include "sim/model/routes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/rng.hpp"

namespace podsim {

namespace {

/// A step along the axis changes one coordinate of the grid, of a dimension as long as the axis, wherever it is made.
bool lies_along_one_dimension(const Mesh& mesh, const AxisView& axis, const Grid& grid, const Placement& placement) {
  if (axis.size <= 1) return false;
  const auto changes_one = [&](ChipId here, ChipId there) {
    const auto a = grid.coordinates(here), b = grid.coordinates(there);
    int differing = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      if (++differing > 1 || grid.dimensions()[i].extent != axis.size) return false;
    }
    return differing == 1;
  };
  for (int d = 0; d < mesh.devices(); ++d)
    if (!changes_one(placement.chip_of[static_cast<std::size_t>(d)], placement.chip_of[mesh.shifted(DeviceId{d}, axis, 1).index()])) return false;
  return true;
}

}  // namespace

RouteTable::RouteTable(const Mesh& mesh, const Topology& topology, const Placement& placement)
    : mesh_{mesh}, topology_{topology}, placement_{placement}, routes_(1) {
  const Grid* grid = topology.grid();
  for (std::size_t a = 0; a < mesh.axes().size(); ++a)
    along_one_dimension_.push_back(grid != nullptr && lies_along_one_dimension(mesh, mesh.whole(static_cast<int>(a)), *grid, placement));
}

bool RouteTable::factor_along_one_dimension(const AxisView& view) {
  const Grid* grid = topology_.grid();
  if (grid == nullptr) return false;
  const auto [entry, is_new] = factors_along_.try_emplace(view, false);
  if (is_new) entry->second = lies_along_one_dimension(mesh_, view, *grid, placement_);
  return entry->second;
}

/// Where both ways round a dimension are equally long: a shift along that dimension goes the way of its sign, everything else by its endpoints.
RouteOptions RouteTable::options_for(const Op& op, DeviceId sender) {
  RouteOptions options;
  if (const auto* shift = std::get_if<Shift>(&op)) {
    options.dimension_order = shift->route_order;
    if (shift->by_dimension) return options;
    const std::int64_t by = shift->by.terms.empty() && shift->by.modulus == 0 ? shift->by.constant : evaluate(shift->by, mesh_.coordinates(sender));
    const bool whole = shift->axis == mesh_.whole(shift->axis.axis);
    const std::int64_t size = shift->axis.size, forward = (by % size + size) % size;
    const int towards = by < 0 && -2 * by <= size ? -1 : +1;
    if (along_one_dimension(shift->axis.axis))
      options.antipodal_sign = whole ? towards : +1;
    else if (!whole && size > 2 && 2 * forward == size && factor_along_one_dimension(shift->axis))
      options.antipodal_sign = towards;
  } else {
    options.dimension_order = std::get<Send>(op).route_order;
  }
  return options;
}

/// Between the devices of one chip.
std::uint32_t RouteTable::inner_route(DeviceId sender, DeviceId receiver) {
  if (placement_.core_of.empty() || sender == receiver) return 0;
  const ChipId chip = placement_.chip_of[sender.index()];
  const int core = placement_.core_of[sender.index()];
  const auto link = topology_.inner_link(chip, core);
  if (!link) return 0;
  const auto [number, added] = numbers_.add({chip.value, chip.value, core}, static_cast<std::uint32_t>(routes_.size()));
  if (!added) return number;
  links_.push_back(*link);
  routes_.push_back({links_.size() - 1, links_.size(), topology_.link(*link).latency, 0, topology_.link(*link).bandwidth});
  return number;
}

Expected<std::uint32_t> RouteTable::find(const Op& op, DeviceId sender, DeviceId receiver) {
  const ChipId from = placement_.chip_of[sender.index()], to = placement_.chip_of[receiver.index()];
  const auto* shift = std::get_if<Shift>(&op);
  const InSwitch role = shift == nullptr ? InSwitch::none : shift->in_switch;
  if (from == to && role != InSwitch::none && sender != receiver)
    return Diagnostic{{}, fmt::format("a switch can add up or copy between chips alone; devices {} and {} are of one", sender.value, receiver.value)};
  if (from == to) return inner_route(sender, receiver);
  const RouteOptions options = options_for(op, sender);
  int order = 0;
  if (!options.dimension_order.empty()) order = orders_.try_emplace(options.dimension_order, static_cast<int>(orders_.size()) + 1).first->second;
  const auto [number, added] = numbers_.add({from.value, to.value, (order * 4 + static_cast<int>(role)) * 3 + options.antipodal_sign + 1}, static_cast<std::uint32_t>(routes_.size()));
  if (!added) return number;
  Route route;
  route.first = links_.size();
  if (auto ok = topology_.route(from, to, options, links_); !ok) return ok.error();
  route.last = links_.size();
  for (std::size_t i = route.first; i < route.last; ++i) {
    const LinkParameters parameters = topology_.link(links_[i]);
    route.latency += parameters.latency;
    route.bottleneck = std::min(route.bottleneck, parameters.bandwidth);
    route.hops += topology_.is_hop(links_[i]) ? 1 : 0;
  }
  if (role != InSwitch::none)
    if (auto ok = use_switch(role, from, to, route); !ok) return ok.error();
  routes_.push_back(route);
  return number;
}

Status RouteTable::use_switch(InSwitch role, ChipId from, ChipId to, Route& route) {
  const auto problem = [&](std::string_view why) {
    return Diagnostic{{}, fmt::format("a switch can add up or copy between {} and {} only if it is between both and can compute (link[..].in_switch_efficiency); {}",
                                      topology_.chip_name(from), topology_.chip_name(to), why)};
  };
  const auto joins = [&](LinkId link) {
    for (const OutLink& out : topology_.out_links(from))
      if (out.link == link) return out.to.value >= topology_.chips();
    return false;
  };
  if (route.last - route.first != 2 || !joins(links_[route.first])) return problem("they have no such switch");
  route.in_switch_efficiency = std::min(topology_.link(links_[route.first]).in_switch_efficiency, topology_.link(links_[route.first + 1]).in_switch_efficiency);
  if (!(route.in_switch_efficiency > 0)) return problem("theirs cannot");
  if (role == InSwitch::copy) ++route.first;
  if (role == InSwitch::addend) --route.last;
  if (role != InSwitch::carrier) --route.hops;
  return success();
}

std::pair<std::uint32_t, bool> RouteTable::Numbers::add(const Key& key, std::uint32_t next) {
  if (4 * used_ >= 3 * slots_.size()) grow();
  Slot& slot = slots_[slot_of(key)];
  if (slot.number != none) return {slot.number, false};
  slot = {key, next};
  ++used_;
  return {next, true};
}

/// Where the key is, or belongs.
std::size_t RouteTable::Numbers::slot_of(const Key& key) const {
  const auto word = [](int high, int low) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32U | static_cast<std::uint32_t>(low);
  };
  std::size_t at = counter_hash(word(key.from, key.to), 0, static_cast<std::uint64_t>(key.how)) & (slots_.size() - 1);
  while (slots_[at].number != none && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return at;
}

void RouteTable::Numbers::grow() {
  std::vector<Slot> old(std::max<std::size_t>(64, 2 * slots_.size()));
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.number != none) slots_[slot_of(slot.key)] = slot;
}

}  // namespace podsim
