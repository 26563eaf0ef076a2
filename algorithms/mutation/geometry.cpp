// The interpreter's own arithmetic of coordinates and regions.
#include "algorithms/mutation/interpreter.hpp"

namespace podsim::mutation {

namespace {

std::int64_t modulo(std::int64_t value, std::int64_t size) {
  const std::int64_t rest = value % size;
  return rest < 0 ? rest + size : rest;
}

std::int64_t on_view(const Coordinates& at, const AxisView& view) { return at[static_cast<std::size_t>(view.axis)] / view.stride % view.size; }

}  // namespace

Coordinates coordinates_of(const Mesh& mesh, int device) {
  Coordinates at(mesh.axes().size());
  for (std::size_t a = at.size(); a-- > 0;) {
    at[a] = device % mesh.axes()[a].size;
    device /= mesh.axes()[a].size;
  }
  return at;
}

int device_at(const Mesh& mesh, const Coordinates& at) {
  int device = 0;
  for (std::size_t a = 0; a < at.size(); ++a) device = device * mesh.axes()[a].size + at[a];
  return device;
}

int moved(const Mesh& mesh, Coordinates at, const AxisView& view, std::int64_t by) {
  const std::int64_t from = on_view(at, view);
  at[static_cast<std::size_t>(view.axis)] += static_cast<int>((modulo(from + by, view.size) - from) * view.stride);
  return device_at(mesh, at);
}

int moved_by_dimension(const Mesh& mesh, Coordinates at, int axis, std::int64_t by) {
  int& coordinate = at[static_cast<std::size_t>(axis)];
  const std::int64_t sign = by < 0 ? -1 : 1;
  std::int64_t rest = coordinate, digits = sign * by, place = 1, result = 0;
  const std::vector<MeshFactor>& factors = mesh.axes()[static_cast<std::size_t>(axis)].factors;
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    result += place * modulo(rest + sign * digits, factor->size);
    rest /= factor->size, digits /= factor->size, place *= factor->size;
  }
  coordinate = static_cast<int>(result);
  return device_at(mesh, at);
}

std::int64_t value_of(const Affine& affine, const Coordinates& at) {
  std::int64_t sum = affine.constant;
  for (const AxisTerm& term : affine.terms) {
    const std::int64_t own = on_view(at, term.axis);
    sum += term.coefficient * (term.add == 0 ? own : modulo(own + term.add, term.axis.size));
  }
  return affine.modulus == 0 ? sum : modulo(sum, affine.modulus);
}

bool runs_on(const Task& task, const Coordinates& at) {
  for (const Condition& condition : task.where) {
    const std::int64_t value = value_of(condition.value, at);
    if (value < condition.low || value >= condition.high) return false;
  }
  return true;
}

std::optional<int> device_of(const Mesh& mesh, const Peer& peer, const Coordinates& at) {
  if (peer.size() != mesh.axes().size()) return std::nullopt;
  Coordinates other;
  for (std::size_t a = 0; a < peer.size(); ++a) {
    const std::int64_t coordinate = value_of(peer[a], at);
    if (coordinate < 0 || coordinate >= mesh.axes()[a].size) return std::nullopt;
    other.push_back(static_cast<int>(coordinate));
  }
  return device_at(mesh, other);
}

std::optional<Positions> positions_of(const Buffer& buffer, const Region& region, const Coordinates& at) {
  if (region.dims.size() != buffer.extents.size()) return std::nullopt;
  Positions positions{0};
  for (std::size_t i = 0; i < region.dims.size(); ++i) {
    const Range& range = region.dims[i];
    const std::int64_t begin = range.offset + value_of(range.index, at) * range.stride;
    if (range.length < 1 || begin < 0 || begin + range.length > buffer.extents[i]) return std::nullopt;
    Positions finer;
    finer.reserve(positions.size() * static_cast<std::size_t>(range.length));
    for (const std::int64_t position : positions)
      for (std::int64_t j = 0; j < range.length; ++j) finer.push_back(position * buffer.extents[i] + begin + j);
    positions = std::move(finer);
  }
  return positions;
}

}  // namespace podsim::mutation
