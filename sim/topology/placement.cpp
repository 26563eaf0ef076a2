#include "sim/topology/placement.hpp"

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

/// Whether an axis of `size` devices that are `stride` apart in the chip index is made of whole dimensions that all wrap.
bool covers_wrapped_dimensions(const Grid& grid, int stride, int size) {
  int inner = 1;  // chips below the dimension, counted from the last one
  bool starts = stride == 1, wraps = true;
  for (std::size_t d = grid.dimensions().size(); d-- > 0;) {
    const GridDimension& dimension = grid.dimensions()[d];
    if (inner == stride) starts = true;
    if (inner >= stride && inner < stride * size) wraps = wraps && (dimension.wraps || dimension.extent <= 2);
    inner *= dimension.extent;
    if (inner == stride * size) return starts && wraps;
  }
  return false;  // the axis ends inside a dimension
}

/// The dimensions of extents above 1 that such an axis is made of, if it takes them whole and there are several.
std::vector<MeshFactor> factors_of(const Grid& grid, int stride, int size) {
  std::vector<MeshFactor> factors;
  int inner = 1;
  for (std::size_t d = grid.dimensions().size(); d-- > 0;) {
    const GridDimension& dimension = grid.dimensions()[d];
    if (inner >= stride && inner < stride * size && dimension.extent > 1) {
      if (inner * dimension.extent > stride * size) return {};
      factors.insert(factors.begin(), {dimension.extent, dimension.wraps || dimension.extent <= 2});
    }
    inner *= dimension.extent;
  }
  int product = 1;
  for (const MeshFactor& factor : factors) product *= factor.size;
  return factors.size() > 1 && product == size ? factors : std::vector<MeshFactor>{};
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
    axes[i].wraps = axes[i].size <= 2 || covers_wrapped_dimensions(grid, stride, axes[i].size);
    axes[i].factors = factors_of(grid, stride, axes[i].size);
    stride *= axes[i].size;
  }
  return Mesh::make(std::move(axes));
}

Expected<Mesh> default_mesh(const Grid& grid) { return mesh_over(grid, default_sizes(grid)); }

}  // namespace podsim
