#include "workloads/scenario/alignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

namespace podsim {

namespace {

/// Of the layout: "dimension y".
std::string name_of_dimension(const System& system, std::size_t d) {
  return d < system.slice.extents.size() ? fmt::format("dimension {}", dimension_name(static_cast<int>(d))) : "the devices of a chip";
}

constexpr std::size_t most_meshes = 4;

/// Every way to divide the dimensions, in order, among the axes from this one on, as "row=16,col=256".
void add_aligned_meshes(std::span<const int> extents, std::span<const MeshAxis> axes, const std::string& before, std::vector<std::string>& meshes) {
  const auto devices = [](std::span<const int> some) { return std::accumulate(some.begin(), some.end(), 1, std::multiplies<>{}); };
  const auto with = [&](int size) { return fmt::format("{}{}{}={}", before, before.empty() ? "" : ",", axes.front().name, size); };
  if (axes.size() == 1) return meshes.push_back(with(devices(extents)));
  for (std::size_t own = 1; own + axes.size() <= extents.size() + 1; ++own)
    add_aligned_meshes(extents.subspan(own), axes.subspan(1), with(devices(extents.first(own))), meshes);
}

/// Meshes of these axes that lie along whole dimensions: "row=16,col=256 or row=256,col=16"; empty: there are more axes than dimensions.
std::string aligned_meshes(std::vector<int> extents, std::span<const MeshAxis> axes) {
  std::erase(extents, 1);
  if (axes.size() > extents.size()) return {};
  std::vector<std::string> meshes;
  add_aligned_meshes(extents, axes, "", meshes);
  const std::size_t more = meshes.size() - std::min(meshes.size(), most_meshes);
  meshes.resize(meshes.size() - more);
  return fmt::format("{}{}", fmt::join(meshes, " or "), more == 0 ? "" : fmt::format(" or {} more", more));
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
      found.push_back({fmt::format("mesh {} splits {} ({}) between {} and {}: neither has its ring to itself", to_text(system.mesh),
                                   name_of_dimension(system, d), extents[d], axes[a].name, axes[a + 1].name),
                       found.empty() ? aligned_meshes(extents, axes) : ""});
    }
  }
  return found;
}

}  // namespace podsim
