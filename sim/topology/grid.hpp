// A grid of 1 to 4 dimensions, each open or wrapped: torus, mesh, line, ring. Implicit: nothing is stored per chip or link.
#pragma once

#include "sim/topology/topology.hpp"

namespace podsim {

struct GridDimension {
  int extent = 1;
  bool wraps = false;  // no effect on extents 1 and 2: no link, or one cable, either way
  LinkParameters link{};
  bool switched = false;  // of a grid that a mesh is laid over: a switch joins its chips, so any part of it wraps, too
  friend bool operator==(const GridDimension&, const GridDimension&) = default;
};

/// Chips are row-major, dimension 0 most significant; a chip sits at coordinates (c0, c1, ...).
///
///   links     per dimension one cable between c and c+1, and one between extent-1 and 0 if it wraps and extent > 2; two links per cable
///   route     dimension order (dimension 0 first unless the options name another), the shortest way round, ties by antipodal_sign; where that is 0,
///             increasing from even coordinates on the dimension, decreasing from odd ones. A grid routed by endpoints has one route for each
///             pair of chips, as networks whose nodes look at a packet's addresses alone: ties as if antipodal_sign were 0
///   cost      route O(hops), everything else O(dimensions); no memory per chip
class Grid final : public Topology, public Symmetry {
 public:
  /// Errors: no or more than 4 dimensions, an extent below 1, more than 2^24 chips.
  /// `inner`: between the two devices of a chip; absent or unlimited: no link.
  static Expected<Grid> make(std::vector<GridDimension> dimensions, BytesPerSecond injection = unlimited<BytesPerSecond>,
                             BytesPerSecond ejection = unlimited<BytesPerSecond>, std::optional<LinkParameters> inner = std::nullopt);

  [[nodiscard]] Grid routed_by_endpoints() const;

  [[nodiscard]] const std::vector<GridDimension>& dimensions() const { return dimensions_; }
  [[nodiscard]] std::vector<int> coordinates(ChipId chip) const;
  [[nodiscard]] ChipId chip(const std::vector<int>& coordinates) const;
  /// The link that leaves `chip` along `dimension` in direction `sign` (+1 or -1); nullopt at an open end or where extent is 1. With extent
  /// 2 the one cable is the + link of coordinate 0 and the - link of coordinate 1.
  [[nodiscard]] std::optional<LinkId> link_from(ChipId chip, int dimension, int sign) const;
  /// A number for the link's direction: 2 * dimension + (0 for +, 1 for -; extent 2: 0); then one number each for injection, ejection and inner
  /// links. On a torus the links of one direction are equivalent: each is a translation of any other.
  [[nodiscard]] int direction(LinkId link) const;
  [[nodiscard]] BytesPerSecond injection() const { return injection_; }
  [[nodiscard]] BytesPerSecond ejection() const { return ejection_; }

  [[nodiscard]] int chips() const override { return chips_; }
  [[nodiscard]] int link_slots() const override;
  [[nodiscard]] std::vector<OutLink> out_links(ChipId chip) const override;
  [[nodiscard]] LinkParameters link(LinkId link) const override;
  [[nodiscard]] std::optional<int> dimension_of(LinkId link) const override;
  [[nodiscard]] const Grid* grid() const override { return this; }
  [[nodiscard]] const Grid* plain_grid() const override { return by_endpoints_ ? nullptr : this; }  // closed forms know shifts by their sign
  [[nodiscard]] const Symmetry* symmetry() const override { return plain_grid(); }
  [[nodiscard]] std::vector<Symmetry::Dimension> symmetric_dimensions() const override;
  [[nodiscard]] ChipId chip_at(LinkId link) const override;
  [[nodiscard]] LinkId moved_to(LinkId link, ChipId chip) const override;
  [[nodiscard]] bool closes(int dimension) const override { return dimensions_[static_cast<std::size_t>(dimension)].wraps; }
  [[nodiscard]] bool parts_close(int /*dimension*/) const override { return false; }
  [[nodiscard]] std::optional<LinkId> inner_link(ChipId chip, int core) const override;
  [[nodiscard]] bool is_hop(LinkId link) const override { return link.value < chips_ * 2 * static_cast<int>(dimensions_.size()); }
  Status route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const override;
  [[nodiscard]] std::string link_name(LinkId link) const override;
  [[nodiscard]] std::string chip_name(ChipId chip) const override;

 private:
  [[nodiscard]] int first_inner() const;

  std::vector<GridDimension> dimensions_;
  std::vector<int> strides_;  // of each dimension in the chip index
  int chips_ = 1;
  BytesPerSecond injection_ = unlimited<BytesPerSecond>, ejection_ = unlimited<BytesPerSecond>;
  std::optional<LinkParameters> inner_;
  bool by_endpoints_ = false;
};

/// The name of a dimension: x, y, z, w.
char dimension_name(int dimension);

}  // namespace podsim
