#include "sim/mesh/mesh.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"

namespace podsim {
namespace {

constexpr std::int64_t most_devices = std::int64_t{1} << 24;

}  // namespace

Expected<Mesh> Mesh::make(std::vector<MeshAxis> axes) {
  std::int64_t devices = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const MeshAxis& axis = axes[i];
    if (axis.name.empty()) return Diagnostic{{}, fmt::format("mesh axis {} (of size {}) needs a name", i, axis.size)};
    for (std::size_t j = 0; j < i; ++j)
      if (axes[j].name == axis.name) return Diagnostic{{}, fmt::format("mesh axis {} is named twice", quoted(axis.name))};
    if (axis.size < 1) return Diagnostic{{}, fmt::format("mesh axis {} needs a size of at least 1, got {}", quoted(axis.name), axis.size)};
    if (!axis.factors.empty()) {
      std::int64_t product = 1;
      for (const MeshFactor& factor : axis.factors) product = factor.size < 1 || product > most_devices ? 0 : product * factor.size;
      if (product != axis.size)
        return Diagnostic{{}, fmt::format("the factors of mesh axis {} must multiply to its size {}", quoted(axis.name), axis.size)};
    }
    devices *= axis.size;  // both factors are below 2^31, so the product fits
    if (devices > most_devices) return Diagnostic{{}, fmt::format("a mesh has at most {} devices, got {} or more", most_devices, devices)};
  }
  Mesh mesh;
  mesh.devices_ = static_cast<int>(devices);
  mesh.strides_.resize(axes.size());
  int stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    mesh.strides_[i] = stride;
    stride *= axes[i].size;
  }
  mesh.axes_ = std::move(axes);
  return mesh;
}

Expected<AxisView> Mesh::axis(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return whole(static_cast<int>(i));
    names.push_back(axes_[i].name);
  }
  if (names.empty()) return Diagnostic{{}, fmt::format("no mesh axis {}: the mesh has no axes", quoted(name))};
  return Diagnostic{{}, fmt::format("no mesh axis {} in {}{}", quoted(name), to_text(*this), did_you_mean(name, names))};
}

AxisView Mesh::whole(int axis) const { return {axis, 1, axes_.at(static_cast<std::size_t>(axis)).size}; }

AxisView Mesh::factor(int axis, const std::vector<int>& factors, int position) const {
  PODSIM_ASSERT(position >= 0 && static_cast<std::size_t>(position) < factors.size());
  std::int64_t product = 1, stride = 1;
  for (std::size_t i = factors.size(); i-- > 0;) {
    if (static_cast<int>(i) == position) stride = product;
    product *= factors[i];
  }
  PODSIM_ASSERT(product == axes_.at(static_cast<std::size_t>(axis)).size && "the factors of an axis multiply to its size");
  return {axis, static_cast<int>(stride), factors[static_cast<std::size_t>(position)]};
}

bool Mesh::wraps(const AxisView& view) const {
  const MeshAxis& axis = axes_.at(static_cast<std::size_t>(view.axis));
  if (view.size <= 2 || (view.size == axis.size && axis.wraps)) return true;
  int stride = axis.size;
  return std::any_of(axis.factors.begin(), axis.factors.end(), [&](const MeshFactor& factor) {
    stride /= factor.size;
    return factor.wraps && factor.size == view.size && stride == view.stride;
  });
}

std::vector<AxisView> Mesh::factors(int axis) const {
  std::vector<int> sizes;
  for (const MeshFactor& f : axes_.at(static_cast<std::size_t>(axis)).factors) sizes.push_back(f.size);
  std::vector<AxisView> views;
  for (std::size_t i = 0; i < sizes.size(); ++i) views.push_back(factor(axis, sizes, static_cast<int>(i)));
  if (views.empty()) views.push_back(whole(axis));
  return views;
}

std::string Mesh::name(const AxisView& view) const {
  const MeshAxis& axis = axes_.at(static_cast<std::size_t>(view.axis));
  if (view.size == axis.size) return axis.name;
  return fmt::format("{}/{}:{}", axis.name, view.stride, view.size);
}

Coordinates Mesh::coordinates(DeviceId device) const {
  PODSIM_ASSERT(0 <= device.value && device.value < devices_);
  Coordinates result(axes_.size());
  for (std::size_t i = 0; i < axes_.size(); ++i) result[i] = device.value / strides_[i] % axes_[i].size;
  return result;
}

// A factor's stride and size divide the axis, so neither this function nor shifted() needs the coordinate on the whole axis in between.
int Mesh::coordinate(DeviceId device, const AxisView& view) const {
  return device.value / (strides_[static_cast<std::size_t>(view.axis)] * view.stride) % view.size;
}

DeviceId Mesh::device(const Coordinates& coordinates) const {
  PODSIM_ASSERT(coordinates.size() == axes_.size() && "one coordinate per mesh axis");
  int index = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    PODSIM_ASSERT(0 <= coordinates[i] && coordinates[i] < axes_[i].size);
    index += coordinates[i] * strides_[i];
  }
  return DeviceId{index};
}

DeviceId Mesh::shifted(DeviceId device, const AxisView& view, std::int64_t by) const {
  const int stride = strides_[static_cast<std::size_t>(view.axis)] * view.stride;
  const int from = device.value / stride % view.size;
  if (by >= view.size || by <= -view.size) by %= view.size;
  int to = from + static_cast<int>(by);
  if (to >= view.size) to -= view.size;
  if (to < 0) to += view.size;
  return DeviceId{device.value + (to - from) * stride};
}

DeviceId Mesh::shifted_by_dimension(DeviceId device, int axis, std::int64_t by) const {
  const MeshAxis& along = axes_.at(static_cast<std::size_t>(axis));
  PODSIM_ASSERT(std::abs(by) < along.size);
  int stride = along.size;
  for (const MeshFactor& factor : along.factors) {
    stride /= factor.size;
    device = shifted(device, {axis, stride, factor.size}, by / stride % factor.size);
  }
  return device;
}

std::string Mesh::name(DeviceId device) const {
  const Coordinates at = coordinates(device);
  std::string text;
  for (std::size_t i = 0; i < axes_.size(); ++i) text += fmt::format("{}{}={}", i == 0 ? "" : ",", axes_[i].name, at[i]);
  return text;
}

std::string to_text(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  return text;
}

}  // namespace podsim
