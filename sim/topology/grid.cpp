#include "sim/topology/grid.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/invariant.hpp"

namespace podsim {
namespace {

constexpr std::size_t most_dimensions = 4;
constexpr std::int64_t most_chips = std::int64_t{1} << 24;

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// Whether the cable between the last and the first chip of a line is another one than that between chip 0 and chip 1.
bool has_wraparound(const GridDimension& dimension) { return dimension.wraps && dimension.extent > 2; }

}  // namespace

// Link ids: chip * 2D + 2 * dimension + (0 for +, 1 for -), D dimensions; then one injection per chip, one ejection per chip, and two inner links
// per chip, each only where it is limited. At most 2^24 * (2 * 4 + 4) ids, so an int holds them.

Expected<Grid> Grid::make(std::vector<GridDimension> dimensions, BytesPerSecond injection, BytesPerSecond ejection,
                          std::optional<LinkParameters> inner) {
  if (dimensions.empty() || dimensions.size() > most_dimensions)
    return Diagnostic{{}, fmt::format("a grid has 1 to {} dimensions, got {}", most_dimensions, dimensions.size())};
  std::int64_t chips = 1;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const int extent = dimensions[d].extent;
    if (extent < 1)
      return Diagnostic{{}, fmt::format("dimension {} needs an extent of at least 1, got {}", dimension_name(static_cast<int>(d)), extent)};
    chips *= extent;
    if (chips > most_chips) return Diagnostic{{}, fmt::format("a grid has at most {} chips, got {} or more", most_chips, chips)};
  }
  Grid grid;
  grid.chips_ = static_cast<int>(chips);
  grid.injection_ = injection;
  grid.ejection_ = ejection;
  grid.inner_ = inner;
  grid.strides_.resize(dimensions.size());
  int stride = 1;
  for (std::size_t d = dimensions.size(); d-- > 0;) {
    grid.strides_[d] = stride;
    stride *= dimensions[d].extent;
  }
  grid.dimensions_ = std::move(dimensions);
  return grid;
}

Grid Grid::routed_by_endpoints() const {
  Grid grid = *this;
  grid.by_endpoints_ = true;
  return grid;
}

std::vector<int> Grid::coordinates(ChipId chip) const {
  PODSIM_ASSERT(0 <= chip.value && chip.value < chips_);
  std::vector<int> result(dimensions_.size());
  for (std::size_t d = 0; d < dimensions_.size(); ++d) result[d] = chip.value / strides_[d] % dimensions_[d].extent;
  return result;
}

ChipId Grid::chip(const std::vector<int>& coordinates) const {
  PODSIM_ASSERT(coordinates.size() == dimensions_.size() && "one coordinate per dimension");
  int index = 0;
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    PODSIM_ASSERT(0 <= coordinates[d] && coordinates[d] < dimensions_[d].extent);
    index += coordinates[d] * strides_[d];
  }
  return ChipId{index};
}

std::optional<LinkId> Grid::link_from(ChipId chip, int dimension, int sign) const {
  PODSIM_ASSERT(sign == 1 || sign == -1);
  const GridDimension& along = dimensions_[at(dimension)];
  const int coordinate = chip.value / strides_[at(dimension)] % along.extent;
  const bool at_end = sign > 0 ? coordinate == along.extent - 1 : coordinate == 0;
  if (at_end && !has_wraparound(along)) return std::nullopt;
  return LinkId{(chip.value * static_cast<int>(dimensions_.size()) + dimension) * 2 + (sign < 0 ? 1 : 0)};
}

int Grid::link_slots() const { return first_inner() + (inner_ ? 2 * chips_ : 0); }

std::vector<OutLink> Grid::out_links(ChipId chip) const {
  std::vector<OutLink> result;
  result.reserve(2 * dimensions_.size());
  for (int d = 0; at(d) < dimensions_.size(); ++d) {
    const int extent = dimensions_[at(d)].extent, stride = strides_[at(d)];
    const int coordinate = chip.value / stride % extent;
    for (const int sign : {+1, -1}) {
      const std::optional<LinkId> link = link_from(chip, d, sign);
      if (!link) continue;
      const int next = (coordinate + sign + extent) % extent;
      result.push_back({*link, ChipId{chip.value + (next - coordinate) * stride}});
    }
  }
  return result;
}

LinkParameters Grid::link(LinkId link) const {
  const int directions = 2 * static_cast<int>(dimensions_.size());
  const int between_chips = chips_ * directions;
  PODSIM_ASSERT(0 <= link.value && link.value < link_slots());
  if (is_hop(link)) return dimensions_[at(link.value % directions / 2)].link;
  if (link.value >= first_inner()) return *inner_;
  const bool is_injection = !is_unlimited(injection_) && link.value - between_chips < chips_;
  return {is_injection ? injection_ : ejection_, Seconds{}};
}

Status Grid::route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const {
  PODSIM_ASSERT(0 <= from.value && from.value < chips_ && 0 <= to.value && to.value < chips_);
  const int count = static_cast<int>(dimensions_.size());
  std::array<int, most_dimensions> order{0, 1, 2, 3};
  if (!options.dimension_order.empty()) {
    unsigned seen = 0;
    for (const int d : options.dimension_order)
      if (0 <= d && d < count) seen |= 1U << d;
    if (options.dimension_order.size() != dimensions_.size() || seen != (1U << count) - 1)
      return Diagnostic{{}, fmt::format("a dimension order names each of the {} dimensions once, got {}", count, options.dimension_order)};
    std::copy(options.dimension_order.begin(), options.dimension_order.end(), order.begin());
  }
  if (from == to) return success();

  const int between_chips = chips_ * 2 * count;
  if (!is_unlimited(injection_)) links.push_back(LinkId{between_chips + from.value});
  int chip = from.value;
  for (int i = 0; i < count; ++i) {
    const int d = order[at(i)];
    const GridDimension& along = dimensions_[at(d)];
    const int extent = along.extent, stride = strides_[at(d)];
    int coordinate = chip / stride % extent;
    int distance = to.value / stride % extent - coordinate;
    if (distance == 0) continue;
    int sign = distance > 0 ? 1 : -1;
    distance *= sign;
    if (has_wraparound(along)) {
      const int other_way = extent - distance;
      const int tie_sign = options.antipodal_sign != 0 && !by_endpoints_ ? options.antipodal_sign : coordinate % 2 == 0 ? +1 : -1;
      if (distance > other_way || (distance == other_way && sign != tie_sign)) {
        distance = other_way;
        sign = -sign;
      }
    }
    const int last = sign > 0 ? extent - 1 : 0;  // the step from here goes round the end
    const int around = -sign * (extent - 1) * stride;
    const int slot = 2 * d + (sign < 0 ? 1 : 0);
    for (; distance > 0; --distance) {
      links.push_back(LinkId{chip * 2 * count + slot});
      if (coordinate == last) {
        chip += around;
        coordinate = extent - 1 - last;
      } else {
        chip += sign * stride;
        coordinate += sign;
      }
    }
  }
  if (!is_unlimited(ejection_)) links.push_back(LinkId{between_chips + (is_unlimited(injection_) ? 0 : chips_) + to.value});
  return success();
}

std::optional<int> Grid::dimension_of(LinkId link) const {
  if (!is_hop(link)) return std::nullopt;
  return link.value % (2 * static_cast<int>(dimensions_.size())) / 2;
}

std::optional<LinkId> Grid::inner_link(ChipId chip, int core) const {
  if (!inner_) return std::nullopt;
  return LinkId{first_inner() + 2 * chip.value + core};
}

int Grid::first_inner() const {
  const int limited = (is_unlimited(injection_) ? 0 : 1) + (is_unlimited(ejection_) ? 0 : 1);
  return chips_ * (2 * static_cast<int>(dimensions_.size()) + limited);
}

int Grid::direction(LinkId link) const {
  const int directions = 2 * static_cast<int>(dimensions_.size());
  if (link.value >= first_inner()) return directions + 2;
  if (!is_hop(link)) return directions + (!is_unlimited(injection_) && link.value - chips_ * directions < chips_ ? 0 : 1);
  const int slot = link.value % directions;
  return dimensions_[at(slot / 2)].extent == 2 ? slot / 2 * 2 : slot;
}

std::vector<Symmetry::Dimension> Grid::symmetric_dimensions() const {
  std::vector<Symmetry::Dimension> dimensions;
  for (const GridDimension& dimension : dimensions_) dimensions.push_back({dimension.extent, dimension.wraps || dimension.extent <= 2, false});
  return dimensions;
}

ChipId Grid::chip_at(LinkId link) const {
  const int directions = 2 * static_cast<int>(dimensions_.size());
  if (is_hop(link)) return ChipId{link.value / directions};
  if (link.value >= first_inner()) return ChipId{(link.value - first_inner()) / 2};
  return ChipId{link.value % chips_};
}

// The one cable of an extent of 2 is the + link of one end and the - link of the other.
LinkId Grid::moved_to(LinkId link, ChipId chip) const {
  const int directions = 2 * static_cast<int>(dimensions_.size()), from = chip_at(link).value, by = chip.value - from;
  if (is_hop(link)) {
    const auto d = at(direction(link) / 2);
    const bool turned = dimensions_[d].extent == 2 && chip.value / strides_[d] % 2 != from / strides_[d] % 2;
    return LinkId{(link.value + by * directions) ^ (turned ? 1 : 0)};
  }
  return LinkId{link.value + (link.value >= first_inner() ? 2 : 1) * by};
}

std::string Grid::link_name(LinkId link) const {
  PODSIM_ASSERT(0 <= link.value && link.value < link_slots());
  const int directions = 2 * static_cast<int>(dimensions_.size());
  const int between_chips = chips_ * directions;
  if (link.value >= first_inner()) {
    const int position = link.value - first_inner();
    return fmt::format("inner {} core {}->{}", chip_name(ChipId{position / 2}), position % 2, 1 - position % 2);
  }
  if (!is_hop(link)) {
    const int position = link.value - between_chips;
    const bool is_injection = !is_unlimited(injection_) && position < chips_;
    return fmt::format("{} {}", is_injection ? "injection" : "ejection", chip_name(ChipId{position % chips_}));
  }
  const ChipId from{link.value / directions};
  const int dimension = link.value % directions / 2;
  const char sign = link.value % 2 == 0 ? '+' : '-';
  for (const OutLink& out : out_links(from))
    if (out.link == link) return fmt::format("{}->{} {}{}", chip_name(from), chip_name(out.to), dimension_name(dimension), sign);
  return fmt::format("no link {} {}{}", chip_name(from), dimension_name(dimension), sign);
}

std::string Grid::chip_name(ChipId chip) const { return fmt::format("({})", fmt::join(coordinates(chip), ",")); }

char dimension_name(int dimension) {
  PODSIM_ASSERT(0 <= dimension && at(dimension) < most_dimensions);
  return "xyzw"[dimension];
}

}  // namespace podsim
