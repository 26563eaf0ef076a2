#include "sim/schedule/presence.hpp"

#include <algorithm>

namespace podsim {

namespace {

bool may_leave(const Range& range, std::int64_t extent, const std::vector<KnownCoordinate>& known) {
  std::int64_t low = range.index.constant, high = range.index.constant;
  for (const AxisTerm& term : range.index.terms) {
    std::int64_t first = 0, last = term.axis.size - 1;
    if (term.add == 0)
      for (const KnownCoordinate& coordinate : known)
        if (coordinate.view == term.axis) first = std::max(first, coordinate.low), last = std::min(last, coordinate.high - 1);
    if (first > last) return false;  // on no device
    low += term.coefficient * (term.coefficient < 0 ? last : first);
    high += term.coefficient * (term.coefficient < 0 ? first : last);
  }
  if (const std::int64_t n = range.index.modulus; n > 0 && (low < 0 || high >= n)) low = 0, high = n - 1;
  const std::int64_t a = range.offset + low * range.stride, b = range.offset + high * range.stride;
  return std::min(a, b) < 0 || std::max(a, b) + range.length > extent;
}

}  // namespace

std::optional<int> axis_of(const Condition& condition) {
  int axis = -1;
  for (const AxisTerm& term : condition.value.terms) {
    if (axis >= 0 && term.axis.axis != axis) return std::nullopt;
    axis = term.axis.axis;
  }
  return std::max(axis, 0);
}

std::vector<bool> holds_along(const Mesh& mesh, const Condition& condition, int axis) {
  Coordinates at(mesh.axes().size(), 0);
  int& coordinate = at[static_cast<std::size_t>(axis)];
  std::vector<bool> holds;
  for (; coordinate < mesh.axes()[static_cast<std::size_t>(axis)].size; ++coordinate) {
    const std::int64_t value = evaluate(condition.value, at);
    holds.push_back(condition.low <= value && value < condition.high);
  }
  return holds;
}

std::vector<KnownCoordinate> known_coordinates(const Guard& where) {
  std::vector<KnownCoordinate> known;
  for (const Condition& condition : where) {
    const Affine& value = condition.value;
    if (value.terms.size() != 1 || value.constant != 0 || value.modulus != 0) continue;
    if (const AxisTerm& term = value.terms.front(); term.coefficient == 1 && term.add == 0)
      known.push_back({term.axis, std::max<std::int64_t>(condition.low, 0), std::min<std::int64_t>(condition.high, term.axis.size)});
  }
  return known;
}

std::vector<KnownCoordinate> known_after(std::vector<KnownCoordinate> known, const AxisView& axis, std::int64_t by) {
  std::erase_if(known, [&](KnownCoordinate& coordinate) {
    if (coordinate.view.axis != axis.axis) return false;
    if (coordinate.view != axis) return true;
    coordinate.low += by, coordinate.high += by;
    return coordinate.low < 0 || coordinate.high > axis.size;
  });
  return known;
}

bool may_leave(const Program& program, const Region& region, const std::vector<KnownCoordinate>& known) {
  const Buffer& buffer = program.buffers[region.buffer.index()];
  for (std::size_t i = 0; i < region.dims.size(); ++i)
    if (may_leave(region.dims[i], buffer.extents[i], known)) return true;
  return false;
}

}  // namespace podsim
