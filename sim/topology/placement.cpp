#include "sim/topology/placement.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace podsim {
namespace {

std::string shape_text(const Grid& grid) {
  std::string text;
  for (const GridDimension& dimension : grid.dimensions()) text += fmt::format("{}{}", text.empty() ? "" : "x", dimension.extent);
  return text;
}

std::vector<std::pair<std::string, int>> default_sizes(const Grid& grid) {
  static constexpr std::array names = {"row", "col", "depth", "axis3"};
  std::vector<std::pair<std::string, int>> sizes;
  for (const GridDimension& dimension : grid.dimensions()) sizes.emplace_back(names[sizes.size()], dimension.extent);
  return sizes;
}

Diagnostic does_not_fit(const Mesh& mesh, const Grid& grid) {
  std::string fits;
  for (const auto& [name, size] : default_sizes(grid)) fits += fmt::format("{}{}={}", fits.empty() ? "" : ",", name, size);
  return {{},
          fmt::format("the mesh {} has {} devices, but the slice {} has {} chips; {} fits", to_text(mesh), mesh.devices(), shape_text(grid),
                      grid.chips(), fits)};
}

/// What an axis of `size` devices that are `stride` apart in the chip index takes of one dimension.
struct AxisPart {
  GridDimension dimension;
  int size = 1;
  [[nodiscard]] bool whole() const { return size == dimension.extent; }
  [[nodiscard]] bool wraps() const { return whole() ? dimension.wraps || size <= 2 : dimension.switched; }
};

/// From the most significant dimension on, without parts of size 1. Empty if the axis has coordinates that mix those of a dimension.
std::vector<AxisPart> parts_of(const Grid& grid, int stride, int size) {
  std::vector<AxisPart> parts;
  int inner = 1, product = 1;  // chips below the dimension, counted from the last one
  for (std::size_t d = grid.dimensions().size(); d-- > 0;) {
    const GridDimension& dimension = grid.dimensions()[d];
    const int outer = inner * dimension.extent, from = std::max(inner, stride), to = std::min(outer, stride * size);
    if (from < to) {
      if (from % inner != 0 || to % from != 0 || outer % to != 0) return {};
      parts.insert(parts.begin(), {dimension, to / from});
      product *= to / from;
    }
    inner = outer;
  }
  return product == size ? parts : std::vector<AxisPart>{};
}

/// Whether it is made of whole dimensions that wrap and parts of switched ones.
bool wraps_round(const std::vector<AxisPart>& parts) {
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [](const AxisPart& part) { return part.wraps(); });
}

/// Of an axis over several dimensions or parts of them.
std::vector<MeshFactor> factors_of(const std::vector<AxisPart>& parts) {
  std::vector<MeshFactor> factors;
  for (const AxisPart& part : parts) factors.push_back({part.size, part.size <= 2 || part.wraps()});
  return factors.size() > 1 ? factors : std::vector<MeshFactor>{};
}

}  // namespace

Expected<Placement> place_row_major(const Mesh& mesh, const Grid& grid) {
  if (mesh.devices() != grid.chips()) return does_not_fit(mesh, grid);
  Placement placement;
  placement.chip_of.reserve(static_cast<std::size_t>(grid.chips()));
  for (int chip = 0; chip < grid.chips(); ++chip) placement.chip_of.emplace_back(chip);
  return placement;
}

Expected<Mesh> mesh_over(const Grid& grid, const std::vector<std::pair<std::string, int>>& sizes) {
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : sizes) axes.push_back({name, size, false});
  const Expected<Mesh> mesh = Mesh::make(axes);
  if (!mesh) return mesh.error();
  if (mesh->devices() != grid.chips()) return does_not_fit(*mesh, grid);
  int stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const std::vector<AxisPart> parts = parts_of(grid, stride, axes[i].size);
    axes[i].wraps = axes[i].size <= 2 || wraps_round(parts);
    axes[i].factors = factors_of(parts);
    stride *= axes[i].size;
  }
  return Mesh::make(std::move(axes));
}

Expected<Mesh> default_mesh(const Grid& grid) { return mesh_over(grid, default_sizes(grid)); }

}  // namespace podsim
