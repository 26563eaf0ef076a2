#include "workloads/chakra/groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/text.hpp"

namespace podsim {

namespace {

/// Devices `step` apart, `size` of them.
struct Run {
  std::int64_t step = 0, size = 1;
};

/// The runs of a regular list, last most significant; empty: it is not regular.
std::vector<Run> runs_of(std::vector<int> group) {
  std::vector<Run> runs;
  while (group.size() > 1) {
    const std::int64_t step = group[1] - group[0];
    std::size_t size = 2;
    while (size < group.size() && group[size] - group[size - 1] == step) ++size;
    if (group.size() % size != 0 || step <= 0) return {};
    std::vector<int> firsts;
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (i % size == 0)
        firsts.push_back(group[i]);
      else if (group[i] - group[i - 1] != step)
        return {};
    }
    runs.push_back({step, static_cast<std::int64_t>(size)});
    group = std::move(firsts);
  }
  return runs;
}

}  // namespace

std::vector<int> devices_along(const Mesh& mesh, const std::vector<AxisView>& axes, DeviceId device) {
  for (const AxisView& view : axes) device = mesh.shifted(device, view, -mesh.coordinate(device, view));
  std::vector<int> devices{device.value};
  for (const AxisView& view : axes) {
    std::vector<int> more;
    for (const int first : devices)
      for (int i = 0; i < view.size; ++i) more.push_back(mesh.shifted(DeviceId{first}, view, i).value);
    devices = std::move(more);
  }
  return devices;
}

std::optional<std::vector<AxisView>> axes_of_group(const Mesh& mesh, const std::vector<int>& group) {
  std::vector<AxisView> axes;
  if (group.size() == 1) return axes;
  const std::vector<Run> runs = runs_of(group);
  if (runs.empty()) return std::nullopt;
  for (Run run : runs) {
    std::int64_t stride = 1;  // of an axis, in devices
    for (int a = static_cast<int>(mesh.axes().size()) - 1; a >= 0 && run.size > 1; --a) {
      const std::int64_t size = mesh.axes()[static_cast<std::size_t>(a)].size;
      if (run.step >= stride * size || run.step % stride != 0) {
        stride *= size;
        continue;
      }
      const std::int64_t along = run.step / stride;
      if (size % along != 0) return std::nullopt;
      const std::int64_t count = std::min(run.size, size / along);
      if (size % (along * count) != 0 || run.size % count != 0) return std::nullopt;
      axes.push_back({a, static_cast<int>(along), static_cast<int>(count)});
      run = {run.step * count, run.size / count};
      stride *= size;
    }
    if (run.size > 1) return std::nullopt;
  }
  std::reverse(axes.begin(), axes.end());
  if (devices_along(mesh, axes, DeviceId{group.front()}) != group) return std::nullopt;
  return axes;
}

std::string axes_text(const Mesh& mesh, const std::vector<AxisView>& axes) {
  std::string text;
  for (const AxisView& view : axes)
    text += fmt::format("{}{}:{}:{}", text.empty() ? "" : ",", mesh.axes()[static_cast<std::size_t>(view.axis)].name, view.stride, view.size);
  return text;
}

std::optional<std::vector<AxisView>> axes_from_text(const Mesh& mesh, std::string_view text) {
  std::vector<AxisView> axes;
  for (const std::string& piece : split(std::string{text})) {
    const std::vector<std::string> parts = split(piece, ':');
    if (parts.size() != 3) return std::nullopt;
    const auto axis = mesh.axis(parts[0]);
    if (!axis) return std::nullopt;
    AxisView view{axis->axis, 0, 0};
    for (const auto& [part, number] : {std::pair{&parts[1], &view.stride}, {&parts[2], &view.size}}) {
      const auto [rest, status] = std::from_chars(part->data(), part->data() + part->size(), *number);
      if (status != std::errc{} || rest != part->data() + part->size() || *number < 1) return std::nullopt;
    }
    const std::int64_t size = mesh.axes()[static_cast<std::size_t>(view.axis)].size;
    if (size % (static_cast<std::int64_t>(view.stride) * view.size) != 0) return std::nullopt;
    if (std::any_of(axes.begin(), axes.end(), [&](const AxisView& other) { return other == view; })) return std::nullopt;
    axes.push_back(view);
  }
  return axes;
}

}  // namespace podsim
