// Twisted tori: their wraparound links are shifted along other dimensions.
#pragma once

#include "sim/topology/grid.hpp"

namespace podsim {

/// A torus whose wraparound along dimension d also shifts the other coordinates: twists[d][e] is added to coordinate e when + along d wraps.
///
///   k x k x 2k     wrapping a short axis shifts the long one by k
///   k x 2k x 2k    wrapping the short axis shifts both long ones by k
///   source         Camarero, Martinez, Beivide, "Lattice graphs for high-scale interconnection topologies", IEEE TPDS 2015; Jouppi et al.,
///                  "TPU v4", arXiv:2304.01433, section 2.8
///
/// Chips, links and names are those of the plain grid; every dimension of extent above 1 has two links at every chip. A route follows a displacement
/// of fewest hops, ties by the greater first coordinate (antipodal_sign -1: the lesser), in dimension order.
///   cost    route O(hops + 5^dimensions)
class TwistedTorus final : public Topology {
 public:
  /// Errors: those of the grid; a shape that is neither k x k x 2k nor k x 2k x 2k, in any order of dimensions.
  static Expected<TwistedTorus> make(const std::vector<GridDimension>& dimensions, BytesPerSecond injection = unlimited<BytesPerSecond>,
                                     BytesPerSecond ejection = unlimited<BytesPerSecond>);

  [[nodiscard]] int chips() const override { return grid_.chips(); }
  [[nodiscard]] int link_slots() const override { return grid_.link_slots(); }
  [[nodiscard]] std::vector<OutLink> out_links(ChipId chip) const override;
  [[nodiscard]] LinkParameters link(LinkId link) const override { return grid_.link(link); }
  [[nodiscard]] std::optional<int> dimension_of(LinkId link) const override { return grid_.dimension_of(link); }
  [[nodiscard]] const Grid* grid() const override { return &grid_; }
  /// True for the long dimensions. Going once round a short one ends at shifted coordinates.
  [[nodiscard]] bool closes(int dimension) const override;
  [[nodiscard]] bool parts_close(int /*dimension*/) const override { return false; }
  [[nodiscard]] bool is_hop(LinkId link) const override { return grid_.is_hop(link); }
  /// Any translation maps the torus to itself: all chips are equivalent, and so are all links of one direction.
  [[nodiscard]] std::vector<ChipClass> chip_classes() const override { return {{ChipId{0}, chips()}}; }
  [[nodiscard]] int link_class(LinkId link) const override;
  Status route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const override;
  [[nodiscard]] std::string link_name(LinkId link) const override;
  [[nodiscard]] std::string chip_name(ChipId chip) const override { return grid_.chip_name(chip); }

 private:
  TwistedTorus(Grid grid, std::vector<std::vector<int>> twists) : grid_{std::move(grid)}, twists_{std::move(twists)} {}
  [[nodiscard]] ChipId next(ChipId chip, int dimension, int sign) const;
  [[nodiscard]] LinkId link_along(ChipId chip, int dimension, int sign) const;

  Grid grid_;
  std::vector<std::vector<int>> twists_;
};

}  // namespace podsim
