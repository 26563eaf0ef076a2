#include "sim/topology/twisted_torus.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

std::size_t as_index(int position) { return static_cast<std::size_t>(position); }

/// The shifts of the two shapes; empty: another shape.
std::vector<std::vector<int>> twists_of(const std::vector<GridDimension>& dimensions) {
  if (dimensions.size() != 3) return {};
  const auto [shortest, longest] =
      std::minmax_element(dimensions.begin(), dimensions.end(), [](const auto& a, const auto& b) { return a.extent < b.extent; });
  const int k = shortest->extent;
  if (k < 2 || longest->extent != 2 * k) return {};
  std::vector<std::vector<int>> twists(3, std::vector<int>(3, 0));
  for (std::size_t d = 0; d < 3; ++d) {
    if (dimensions[d].extent != k && dimensions[d].extent != 2 * k) return {};
    if (dimensions[d].extent != k) continue;
    for (std::size_t e = 0; e < 3; ++e)
      if (dimensions[e].extent == 2 * k) twists[d][e] = k;
  }
  return twists;
}

}  // namespace

Expected<TwistedTorus> TwistedTorus::make(const std::vector<GridDimension>& dimensions, BytesPerSecond injection, BytesPerSecond ejection) {
  std::vector<GridDimension> wrapped = dimensions;
  for (GridDimension& dimension : wrapped) dimension.wraps = true;
  auto grid = Grid::make(wrapped, injection, ejection);
  if (!grid) return grid.error();
  auto twists = twists_of(dimensions);
  if (twists.empty()) {
    std::string shape;
    for (const GridDimension& dimension : dimensions) shape += (shape.empty() ? "" : "x") + std::to_string(dimension.extent);
    return Diagnostic{{}, fmt::format("a twisted torus is k x k x 2k or k x 2k x 2k chips, as 4x4x8 or 4x8x8, got {}", shape)};
  }
  return TwistedTorus{*std::move(grid), std::move(twists)};
}

ChipId TwistedTorus::next(ChipId chip, int dimension, int sign) const {
  std::vector<int> c = grid_.coordinates(chip);
  const auto d = as_index(dimension);
  const auto& dimensions = grid_.dimensions();
  c[d] += sign;
  if (c[d] < 0 || c[d] == dimensions[d].extent) {
    c[d] -= sign * dimensions[d].extent;
    for (std::size_t e = 0; e < c.size(); ++e) c[e] = (c[e] + sign * twists_[d][e] + dimensions[e].extent) % dimensions[e].extent;
  }
  return grid_.chip(c);
}

LinkId TwistedTorus::link_along(ChipId chip, int dimension, int sign) const {
  return LinkId{(chip.value * static_cast<int>(grid_.dimensions().size()) + dimension) * 2 + (sign < 0 ? 1 : 0)};
}

bool TwistedTorus::closes(int dimension) const {
  const std::vector<int>& shifts = twists_[static_cast<std::size_t>(dimension)];
  return std::all_of(shifts.begin(), shifts.end(), [](int shift) { return shift == 0; });
}

std::vector<OutLink> TwistedTorus::out_links(ChipId chip) const {
  std::vector<OutLink> links;
  for (int d = 0; as_index(d) < grid_.dimensions().size(); ++d)
    for (const int sign : {+1, -1}) links.push_back({link_along(chip, d, sign), next(chip, d, sign)});
  return links;
}

int TwistedTorus::link_class(LinkId link) const {
  const int directions = 2 * static_cast<int>(grid_.dimensions().size());
  if (is_hop(link)) return link.value % directions;
  return link.value - link.value % chips();  // injection or ejection of chip 0: their numbers begin at multiples of chips()
}

Status TwistedTorus::route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const {
  if (from == to) return success();
  // Injection, ejection and the order of dimensions are the grid's.
  std::vector<LinkId> plain;
  if (auto ok = grid_.route(from, to, options, plain); !ok) return ok;
  std::vector<int> order = options.dimension_order;
  if (order.empty()) order = {0, 1, 2};

  const std::vector<int> a = grid_.coordinates(from), b = grid_.coordinates(to);
  std::array<int, 3> best{};
  int fewest = -1;
  const auto consider = [&](const std::array<int, 3>& displacement) {
    const int hops = std::abs(displacement[0]) + std::abs(displacement[1]) + std::abs(displacement[2]);
    const bool prefers = hops == fewest && (options.antipodal_sign >= 0 ? displacement > best : displacement < best);
    if (fewest < 0 || hops < fewest || prefers) best = displacement, fewest = hops;
  };
  // Going i times round dimension 0 is the same as a shift of the others, and so on: all displacements of the lattice near the origin.
  constexpr int around = 2;
  for (int i = -around; i <= around; ++i)
    for (int j = -around; j <= around; ++j)
      for (int m = -around; m <= around; ++m) {
        const std::array<int, 3> times{i, j, m};
        std::array<int, 3> displacement{};
        for (std::size_t e = 0; e < 3; ++e) {
          displacement[e] = b[e] - a[e] + times[e] * grid_.dimensions()[e].extent;
          for (std::size_t d = 0; d < 3; ++d)
            if (d != e) displacement[e] -= times[d] * twists_[d][e];
        }
        consider(displacement);
      }
  if (!grid_.is_hop(plain.front())) links.push_back(plain.front());
  ChipId chip = from;
  for (const int d : order) {
    const int sign = best[as_index(d)] > 0 ? 1 : -1;
    for (int step = std::abs(best[as_index(d)]); step > 0; --step) {
      links.push_back(link_along(chip, d, sign));
      chip = next(chip, d, sign);
    }
  }
  PODSIM_ASSERT(chip == to);
  if (!grid_.is_hop(plain.back())) links.push_back(plain.back());
  return success();
}

std::string TwistedTorus::link_name(LinkId link) const {
  if (!is_hop(link)) return grid_.link_name(link);
  const int directions = 2 * static_cast<int>(grid_.dimensions().size());
  const ChipId from{link.value / directions};
  const int dimension = link.value % directions / 2, sign = link.value % 2 == 0 ? 1 : -1;
  return fmt::format("{}->{} {}{}", chip_name(from), chip_name(next(from, dimension, sign)), dimension_name(dimension), sign > 0 ? '+' : '-');
}

}  // namespace podsim
