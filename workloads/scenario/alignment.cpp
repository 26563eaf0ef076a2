#include "workloads/scenario/alignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace podsim {

namespace {

/// Of the layout: "dimension y".
std::string name_of_dimension(const System& system, std::size_t d) {
  return d < system.slice.extents.size() ? fmt::format("dimension {}", dimension_name(static_cast<int>(d))) : "the devices of a chip";
}

/// Meshes of two axes with these names that lie along whole dimensions: "row=16,col=256 or row=256,col=16".
std::string aligned_meshes(const std::vector<int>& extents, const std::string& first, const std::string& second) {
  const int devices = std::accumulate(extents.begin(), extents.end(), 1, std::multiplies<>{});
  std::vector<std::string> meshes;
  for (int rows = 1; const int extent : extents) {
    rows *= extent;
    if (extent > 1 && rows < devices) meshes.push_back(fmt::format("{}={},{}={}", first, rows, second, devices / rows));
  }
  return fmt::format("{}", fmt::join(meshes, " or "));
}

}  // namespace

std::vector<Misalignment> misalignments(const System& system) {
  if (system.topology->grid() == nullptr || !std::holds_alternative<RowMajorOrder>(system.order) || !system.devices.empty()) return {};
  std::vector<int> extents;
  for (const GridDimension& dimension : system.layout.dimensions()) extents.push_back(dimension.extent);
  std::vector<MeshAxis> axes = system.mesh.axes();
  std::erase_if(axes, [](const MeshAxis& axis) { return axis.size == 1; });
  std::vector<Misalignment> found;
  int before = system.mesh.devices();  // devices of one coordinate of the axes so far
  for (std::size_t a = 0; a + 1 < axes.size(); ++a) {
    before /= axes[a].size;
    int inner = 1;  // devices of one coordinate of the dimensions up to d
    for (std::size_t d = extents.size(); d-- > 0; inner *= extents[d]) {
      if (!(inner < before && before < inner * extents[d])) continue;
      found.push_back({fmt::format("mesh {} splits {} ({}) between {} and {}: neither has its ring to itself", to_text(system.mesh), name_of_dimension(system, d),
                                   extents[d], axes[a].name, axes[a + 1].name),
                       axes.size() == 2 ? aligned_meshes(extents, axes[0].name, axes[1].name) : ""});
    }
  }
  return found;
}

}  // namespace podsim
