#include "sim/model/translations.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/invariant.hpp"

namespace podsim {

Translations::Translations(const Symmetry& symmetry, std::vector<int> extents, std::vector<int> steps)
    : symmetry_{symmetry}, extents_{std::move(extents)}, steps_{std::move(steps)}, strides_(steps_.size()) {
  int stride = 1;
  for (std::size_t d = steps_.size(); d-- > 0;) {
    PODSIM_ASSERT(extents_[d] % steps_[d] == 0);
    strides_[d] = stride;
    stride *= extents_[d];
    size_ *= static_cast<std::uint32_t>(extents_[d] / steps_[d]);
  }
}

ChipId Translations::lowest(ChipId chip) const {
  int result = 0;
  for (std::size_t d = 0; d < steps_.size(); ++d) result += chip.value / strides_[d] % extents_[d] % steps_[d] * strides_[d];
  return ChipId{result};
}

LinkId Translations::lowest(LinkId link) const { return taken_along(link, symmetry_.chip_at(link)); }

LinkId Translations::taken_along(LinkId link, ChipId chip) const {
  const int from = symmetry_.chip_at(link).value;
  int to = 0;
  for (std::size_t d = 0; d < steps_.size(); ++d) {
    const int extent = extents_[d], at = chip.value / strides_[d] % extent, back = at - at % steps_[d];
    to += (from / strides_[d] % extent - back + extent) % extent * strides_[d];
  }
  return symmetry_.moved_to(link, ChipId{to});
}

namespace {

/// Adding `step` to a number, modulo `modulus`, while the part above it stays: a translation along a dimension (the step a multiple of the dimension's
/// stride in the chip index), or a shift along a mesh axis or a factor of one, both as seen by the chip index.
struct Addition {
  std::int64_t step = 0, modulus = 1;
};

/// In which order two are done makes no difference.
bool commute(const Addition& a, const Addition& b) {
  if (a.modulus == b.modulus) return true;
  const Addition &smaller = a.modulus < b.modulus ? a : b, &larger = a.modulus < b.modulus ? b : a;
  return larger.modulus % smaller.modulus == 0 && larger.step % smaller.modulus == 0;  // the larger one changes only what is above the other
}

using Dimensions = std::vector<Symmetry::Dimension>;

class Finder {
 public:
  Finder(const Schedule& schedule, const Symmetry& symmetry, const Dimensions& dimensions) : schedule_{schedule}, symmetry_{symmetry} {
    int stride = 1;
    for (std::size_t a = schedule.mesh.axes().size(); a-- > 0;) axis_strides_.insert(axis_strides_.begin(), stride), stride *= schedule.mesh.axes()[a].size;
    stride = 1;
    for (std::size_t d = dimensions.size(); d-- > 0;) strides_.insert(strides_.begin(), stride), stride *= dimensions[d].extent;
    for (const Symmetry::Dimension& dimension : dimensions) {
      extents_.push_back(dimension.extent);
      steps_.push_back(dimension.turns ? 1 : dimension.extent);
      has_two_ways_.push_back(dimension.turns && !dimension.permutes && dimension.extent > 2);
    }
  }

  std::optional<Translations> run() {
    for (const Task& task : schedule_.programs.front().tasks) {
      for (const Condition& condition : task.where) keep(condition.value);
      if (const auto* shift = std::get_if<Shift>(&task.op)) keep(*shift);
      if (steps_ == extents_) break;
    }
    if (steps_ == extents_) return std::nullopt;
    return Translations{symmetry_, extents_, steps_};
  }

 private:
  [[nodiscard]] std::int64_t stride_of(const AxisView& view) const { return std::int64_t{axis_strides_[static_cast<std::size_t>(view.axis)]} * view.stride; }

  /// Enlarges the steps along each dimension until what they add passes. What passes is a group, so the multiples of a step pass with it.
  template <class Passes>
  void enlarge(Passes passes) {
    for (std::size_t d = 0; d < steps_.size(); ++d) {
      const int extent = extents_[d], base = steps_[d];
      const auto passes_here = [&](std::int64_t step) { return extent % step == 0 && passes(d, Addition{step * strides_[d], std::int64_t{extent} * strides_[d]}); };
      while (steps_[d] < extent && !passes_here(steps_[d])) steps_[d] += base;
    }
  }

  /// A value stays the same if the coordinates do that it depends on.
  void keep(const Affine& value) {
    for (const AxisTerm& term : value.terms) {
      const std::int64_t stride = stride_of(term.axis), end = stride * term.axis.size;
      if (!views_.emplace(stride, end).second) continue;
      enlarge([&](std::size_t, const Addition& by) {
        return stride % by.modulus == 0 || (by.modulus % end == 0 && by.step % end == 0);  // below the coordinate, or above it
      });
    }
  }

  void keep(const Shift& shift) {
    if (shift.by_dimension) return keep_by_dimension(shift);
    keep(shift.by);
    const std::int64_t stride = stride_of(shift.axis), end = stride * shift.axis.size;
    const bool constant = shift.by.terms.empty();
    const std::int64_t distance = constant ? (evaluate(shift.by, {}) % shift.axis.size + shift.axis.size) % shift.axis.size * stride : stride;
    if (distance == 0 || !shifts_.emplace(shift.axis, distance, constant).second) return;
    enlarge([&](std::size_t d, const Addition& by) {
      return commute(by, {distance, end}) && (by.step / strides_[d] % 2 == 0 || !may_tie(d, shift.axis, distance, constant));
    });
  }

  /// Each dimension of the axis by its digit. Halfway round a dimension of the torus the parity of coordinates chooses the way, so that only even
  /// translations along it keep routes.
  void keep_by_dimension(const Shift& shift) {
    for (const AxisView& view : schedule_.mesh.factors(shift.axis.axis)) {
      const std::int64_t stride = stride_of(view), digit = std::abs(shift.by.constant) / view.stride % view.size, distance = digit * stride;
      if (digit == 0 || !turns_.emplace(view, digit).second) continue;
      enlarge([&](std::size_t d, const Addition& by) {
        if (!commute(by, {distance, stride * view.size})) return false;
        const bool is_dimension = stride == strides_[d] && view.size == extents_[d], is_beside = stride >= by.modulus || stride * view.size <= strides_[d];
        const bool may_tie = has_two_ways_[d] && (is_dimension ? 2 * digit == extents_[d] : !is_beside);
        return !may_tie || by.step / strides_[d] % 2 == 0;
      });
    }
  }

  /// Whether some shift by `distance` may cross half of a dimension, so that coordinates choose between the two ways round. (Along an axis or a view
  /// that is just this dimension, the sign of the shift does.)
  [[nodiscard]] bool may_tie(std::size_t d, const AxisView& view, std::int64_t distance, bool constant) const {
    const std::int64_t extent = extents_[d], stride = strides_[d], end = stride_of(view) * view.size;
    if (extent % 2 != 0 || !has_two_ways_[d] || end <= stride) return false;
    for (const AxisView& whole : {view, schedule_.mesh.whole(view.axis)})
      if (stride_of(whole) == stride && whole.size == extent) return false;
    if (!constant || end % stride != 0) return true;
    const bool carries = distance % stride != 0;
    const std::int64_t forward = distance / stride, round_the_end = (distance - end) / stride - (carries ? 1 : 0);
    for (const std::int64_t crossed : {forward, round_the_end})
      for (const std::int64_t carry : {0, 1})
        if ((carry == 0 || carries) && (crossed + carry - extent / 2) % extent == 0) return true;
    return false;
  }

  const Schedule& schedule_;
  const Symmetry& symmetry_;
  std::vector<int> axis_strides_, strides_;  // of axes and dimensions in the chip index
  std::vector<int> extents_, steps_;         // per dimension
  std::vector<bool> has_two_ways_;           // per dimension: round a ring
  std::set<std::pair<std::int64_t, std::int64_t>> views_;         // that values depend on: stride and end
  std::set<std::tuple<AxisView, std::int64_t, bool>> shifts_;     // seen: distance, whether it is the same everywhere
  std::set<std::pair<AxisView, std::int64_t>> turns_;             // of dimensions by digits
};

/// Strides in the chip index at which the axes of a mesh end, or with `dimensions` the dimensions that they fold.
std::set<int> ends_of(const Mesh& mesh, bool dimensions) {
  std::set<int> ends;
  int stride = 1;
  for (int axis = static_cast<int>(mesh.axes().size()); axis-- > 0; stride *= mesh.whole(axis).size) {
    ends.insert(stride);
    if (dimensions)
      for (const AxisView& view : mesh.factors(axis)) ends.insert(stride * view.stride);
  }
  return ends;
}

/// The same chips: what permutes is cut at these strides, where they divide it.
Dimensions cut(const Dimensions& dimensions, const std::set<int>& ends) {
  Dimensions result;
  int end = 1;  // stride of the dimension before
  for (const Symmetry::Dimension& dimension : dimensions) end *= dimension.extent;
  for (const Symmetry::Dimension& dimension : dimensions) {
    const int stride = end / dimension.extent;
    if (dimension.permutes)
      for (auto at = ends.rbegin(); at != ends.rend(); ++at)
        if (*at > stride && *at < end && end % *at == 0 && *at % stride == 0) {
          result.push_back({end / *at, true, true});
          end = *at;
        }
    result.push_back({end / stride, dimension.turns, dimension.permutes});
    end = stride;
  }
  return result;
}

bool is_row_major(const Placement& placement) {
  for (std::size_t d = 0; d < placement.chip_of.size(); ++d)
    if (placement.chip_of[d].index() != d) return false;
  return placement.core_of.empty() && placement.speed.empty();
}

}  // namespace

std::optional<Translations> translations_of(const Schedule& lowered, const Topology& topology, const Placement& placement) {
  const Symmetry* symmetry = topology.symmetry();
  if (symmetry == nullptr || topology.chips() != lowered.mesh.devices() || !is_row_major(placement)) return std::nullopt;
  if (lowered.programs.size() != 1 || size_of(lowered.programs.front().devices) != lowered.mesh.devices()) return std::nullopt;
  const Dimensions dimensions = symmetry->symmetric_dimensions();
  std::optional<Translations> most = Finder{lowered, *symmetry, cut(dimensions, ends_of(lowered.mesh, false))}.run();
  if (std::ranges::none_of(dimensions, &Symmetry::Dimension::permutes)) return most;
  std::optional<Translations> finer = Finder{lowered, *symmetry, cut(dimensions, ends_of(lowered.mesh, true))}.run();
  return finer && (!most || finer->size() > most->size()) ? std::move(finer) : std::move(most);
}

}  // namespace podsim
