// Grids for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "sim/topology/grid.hpp"

namespace podsim::test {

inline constexpr LinkParameters ordinary_link{BytesPerSecond{45e9}, Seconds{1e-6}};

inline Grid grid(const std::vector<int>& extents, const std::vector<bool>& wraps, BytesPerSecond injection = unlimited<BytesPerSecond>,
                 BytesPerSecond ejection = unlimited<BytesPerSecond>) {
  std::vector<GridDimension> dimensions;
  for (std::size_t d = 0; d < extents.size(); ++d) dimensions.push_back({extents[d], wraps[d], ordinary_link});
  Expected<Grid> made = Grid::make(std::move(dimensions), injection, ejection);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}
inline Grid torus(const std::vector<int>& extents) { return grid(extents, std::vector<bool>(extents.size(), true)); }
inline Grid open_mesh(const std::vector<int>& extents) { return grid(extents, std::vector<bool>(extents.size(), false)); }

/// 1 to 4 dimensions of extents 1 to 6, each open or wrapped, links of different bandwidth per dimension.
inline Grid random_grid(std::uint64_t seed) {
  Rng rng{seed, stream_of("random_grid")};
  std::vector<GridDimension> dimensions;
  for (int d = 0, count = rng.between(1, 4); d < count; ++d)
    dimensions.push_back({rng.between(1, count > 2 ? 4 : 7), rng.below(2) == 1, {BytesPerSecond{rng.between(1, 9) * 1e9}, Seconds{(d + 1) * 1e-7}}});
  return *Grid::make(std::move(dimensions));
}

/// The same chips and links, but not recognisable: no grid, and no two chips or links are equivalent.
class Disguised final : public Topology {
 public:
  explicit Disguised(const Topology& topology) : topology_{topology} {}
  [[nodiscard]] int chips() const override { return topology_.chips(); }
  [[nodiscard]] int nodes() const override { return topology_.nodes(); }
  [[nodiscard]] int link_slots() const override { return topology_.link_slots(); }
  [[nodiscard]] std::vector<OutLink> out_links(ChipId chip) const override { return topology_.out_links(chip); }
  [[nodiscard]] LinkParameters link(LinkId link) const override { return topology_.link(link); }
  [[nodiscard]] bool is_hop(LinkId link) const override { return topology_.is_hop(link); }
  Status route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const override {
    return topology_.route(from, to, options, links);
  }
  [[nodiscard]] std::string link_name(LinkId link) const override { return topology_.link_name(link); }
  [[nodiscard]] std::string chip_name(ChipId chip) const override { return topology_.chip_name(chip); }

 private:
  const Topology& topology_;
};

}  // namespace podsim::test
