#include "workloads/training/step_axes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace podsim {

namespace {

constexpr std::array<AxisView StepAxes::*, training_axes.size()> members{&StepAxes::slice, &StepAxes::stage, &StepAxes::data, &StepAxes::fsdp,
                                                                         &StepAxes::expert, &StepAxes::row, &StepAxes::col};

}  // namespace

std::vector<AxisView> without_one_device(std::vector<AxisView> axes) {
  std::erase_if(axes, [](const AxisView& axis) { return axis.size == 1; });
  return axes;
}

std::vector<AxisView> StepAxes::tokens() const { return without_one_device({slice, data, fsdp, expert, row}); }
std::vector<AxisView> StepAxes::loss() const { return without_one_device({slice, data, fsdp, expert, row, col}); }

Expected<StepAxes> step_axes(const Mesh& mesh) {
  StepAxes axes;
  std::size_t next = 0;
  for (int a = 0; a < static_cast<int>(mesh.axes().size()); ++a) {
    const std::string& name = mesh.axes()[static_cast<std::size_t>(a)].name;
    const auto found = std::find(training_axes.begin(), training_axes.end(), name);
    const auto at = static_cast<std::size_t>(found - training_axes.begin());
    if (found == training_axes.end() || at < next)
      return Diagnostic{of_field("mesh"), fmt::format("expected axes of a training step, {}, in this order, found {}", fmt::join(training_axes, ", "), to_text(mesh))};
    next = at + 1;
    axes.*members[at] = mesh.whole(a);
  }
  return axes;
}

TrainingMesh sizes_of(const StepAxes& axes) {
  return {axes.slice.size, axes.stage.size, axes.data.size, axes.fsdp.size, axes.expert.size, axes.row.size, axes.col.size};
}

Mesh mesh_of(const TrainingMesh& sizes) {
  std::vector<MeshAxis> axes;
  for (const std::string_view name : training_axes)
    if (const auto size = static_cast<int>(size_of(sizes, name)); size > 1) axes.push_back({std::string{name}, size, true});
  if (axes.empty()) axes.push_back({"data", 1, true});
  return *Mesh::make(std::move(axes));
}

}  // namespace podsim
