#include "sim/topology/joined_slices.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"

namespace podsim {

JoinedSlices::JoinedSlices(std::shared_ptr<const Topology> slice, int slices, SliceJoin join)
    : slice_{std::move(slice)}, slices_{slices}, join_{std::move(join)} {
  PODSIM_ASSERT(join_.host_of.size() == static_cast<std::size_t>(slice_->chips()));
  for (const int host : join_.host_of) hosts_ = std::max(hosts_, host + 1);
}

ChipId JoinedSlices::global(int slice, ChipId node) const {
  const int chips_each = slice_->chips();
  return ChipId{node.value < chips_each ? slice * chips_each + node.value : chips() + slice * inner_switches() + node.value - chips_each};
}

std::pair<int, ChipId> JoinedSlices::local(ChipId node) const {
  const int chips_each = slice_->chips();
  if (node.value < chips()) return {node.value / chips_each, ChipId{node.value % chips_each}};
  const int position = node.value - chips();
  return {position / inner_switches(), ChipId{chips_each + position % inner_switches()}};
}

std::vector<OutLink> JoinedSlices::out_links(ChipId node) const {
  std::vector<OutLink> links;
  if (node == network_node()) {
    for (int host = 0; host < slices_ * hosts_; ++host) links.push_back({host_link(host, false), host_node(host)});
    return links;
  }
  if (node >= host_node(0)) {
    const int host = node.value - host_node(0).value;
    for (int chip = 0; chip < chips(); ++chip)
      if (host_of(chip) == host) links.push_back({chip_link(chip, false), ChipId{chip}});
    links.push_back({host_link(host, true), network_node()});
    return links;
  }
  const auto [slice, own] = local(node);
  for (const OutLink& out : slice_->out_links(own)) links.push_back({LinkId{slice * slice_->link_slots() + out.link.value}, global(slice, out.to)});
  if (node.value < chips()) links.push_back({chip_link(node.value, true), host_node(host_of(node.value))});
  return links;
}

LinkParameters JoinedSlices::link(LinkId link) const {
  if (link.value < slice_links()) return slice_->link(LinkId{link.value % slice_->link_slots()});
  return link.value < slice_links() + 2 * chips() ? join_.chip_to_host : join_.host_to_network;
}

std::optional<int> JoinedSlices::dimension_of(LinkId link) const {
  if (link.value >= slice_links()) return std::nullopt;
  return slice_->dimension_of(LinkId{link.value % slice_->link_slots()});
}

std::vector<LinkId> JoinedSlices::broken_links() const {
  std::vector<LinkId> links;
  for (int slice = 0; slice < slices_; ++slice)
    for (const LinkId link : slice_->broken_links()) links.push_back(LinkId{slice * slice_->link_slots() + link.value});
  return links;
}

std::optional<LinkId> JoinedSlices::inner_link(ChipId chip, int core) const {
  const auto [slice, own] = local(chip);
  const auto inner = slice_->inner_link(own, core);
  if (!inner) return std::nullopt;
  return LinkId{slice * slice_->link_slots() + inner->value};
}

bool JoinedSlices::is_hop(LinkId link) const { return link.value >= slice_links() || slice_->is_hop(LinkId{link.value % slice_->link_slots()}); }

std::vector<ChipClass> JoinedSlices::chip_classes() const {
  std::vector<ChipClass> classes;
  for (int chip = 0; chip < slice_->chips(); ++chip) classes.push_back({ChipId{chip}, slices_});
  return classes;
}

int JoinedSlices::link_class(LinkId link) const {
  if (link.value < slice_links()) return link.value % slice_->link_slots();
  const int chip_links = 2 * chips();
  const int position = link.value - slice_links();
  return position < chip_links ? slice_links() + position % (2 * slice_->chips()) : slice_links() + chip_links + (position - chip_links) % (2 * hosts_);
}

Status JoinedSlices::route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const {
  const auto [slice, own] = local(from);
  const auto [other_slice, other] = local(to);
  if (slice != other_slice) {
    const int host = host_of(from.value), other_host = host_of(to.value);
    for (const LinkId link : {chip_link(from.value, true), host_link(host, true), host_link(other_host, false), chip_link(to.value, false)})
      links.push_back(link);
    return success();
  }
  std::vector<LinkId> inside;
  if (auto ok = slice_->route(own, other, options, inside); !ok) return ok;
  for (const LinkId link : inside) links.push_back(LinkId{slice * slice_->link_slots() + link.value});
  return success();
}

std::string JoinedSlices::link_name(LinkId link) const {
  if (link.value < slice_links())
    return fmt::format("slice {} {}", link.value / slice_->link_slots(), slice_->link_name(LinkId{link.value % slice_->link_slots()}));
  const int position = link.value - slice_links();
  const bool up = position % 2 == 0;
  if (position < 2 * chips()) {
    const ChipId chip{position / 2};
    return up ? fmt::format("{}->host", chip_name(chip)) : fmt::format("host->{}", chip_name(chip));
  }
  const std::string host = chip_name(host_node((position - 2 * chips()) / 2));
  return up ? host + "->network" : "network->" + host;
}

std::string JoinedSlices::chip_name(ChipId node) const {
  if (node == network_node()) return "network";
  if (node >= host_node(0)) return fmt::format("host {}.{}", (node.value - host_node(0).value) / hosts_, (node.value - host_node(0).value) % hosts_);
  const auto [slice, own] = local(node);
  return fmt::format("{}:{}", slice, slice_->chip_name(own));
}

}  // namespace podsim
