// The translations of a topology that map a schedule onto itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "sim/topology/placement.hpp"
#include "sim/topology/topology.hpp"

namespace podsim {

/// A group of translations: along dimension d by multiples of `steps[d]`, which divides the extent. A step of the extent leaves the dimension as it is.
/// No translation but that by nothing maps a chip or link onto itself, so all orbits are of one size.
class Translations {
 public:
  /// Of chips row-major over the extents: those of `symmetry`, which must outlive it, or parts of these.
  Translations(const Symmetry& symmetry, std::vector<int> extents, std::vector<int> steps);

  /// How many there are; each orbit has as many members.
  [[nodiscard]] std::uint32_t size() const { return size_; }
  /// The lowest chip that a translation of `chip` reaches.
  [[nodiscard]] ChipId lowest(ChipId chip) const;
  /// The lowest link that a translation of `link` reaches, by the chip that it is at.
  [[nodiscard]] LinkId lowest(LinkId link) const;
  /// Where `link` is taken by the translation that takes `chip` to lowest(chip).
  [[nodiscard]] LinkId taken_along(LinkId link, ChipId chip) const;

 private:
  const Symmetry& symmetry_;
  std::vector<int> extents_, steps_, strides_;  // per dimension; strides in the chip index
  std::uint32_t size_ = 1;
};

/// Translations that change nothing about a schedule on a topology whose chips are alike, with the mesh laid on it row-major: if a task is present on a device, it is present on
/// the device's image, and the image of its route is the route of its image. Dimensions over switches are cut where the mesh's axes, or their dimensions, end: whichever has
/// more translations. nullopt: there are none, or the schedule or placement is not of a form in
/// which they are recognised: one program on all devices, with Shifts and works only, on devices of equal speed.
///   errors  none: what would be one (a shift off the end of an open axis) is left to deploy()
///   cost    O(tasks * dimensions)
std::optional<Translations> translations_of(const Schedule& lowered, const Topology& topology, const Placement& placement);

/// The devices of a schedule, of which one stands for each orbit of a group of translations.
struct Orbits {
  Translations translations;
  std::vector<DeviceId> lowest;                // per node
  std::vector<std::uint32_t> node_of;          // per device
  std::vector<std::vector<DeviceId>> reached;  // per participants and node: the device to which the lowest device of the node sends
};

}  // namespace podsim
