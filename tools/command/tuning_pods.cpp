#include "tools/command/tuning_pods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace podsim {

namespace {

std::vector<Slice> slices_2d(std::int64_t chips) {
  std::vector<Slice> slices;
  for (std::int64_t rows = chips; rows >= 1; --rows)
    if (chips % rows == 0) slices.push_back({{static_cast<int>(rows), static_cast<int>(chips / rows)}, true});
  return slices;
}

Expected<std::vector<Slice>> slices_asked_for(const Options& options, const Machine& machine) {
  if (options.has("chips") == options.has("slice"))
    return Diagnostic{{}, options.has("chips") ? "expected --chips or --slice, found both" : "expected --chips N or --slice AxB, found neither"};
  const std::string& which = options.text("slices");
  if (which != "offered" && which != "2-d") return Diagnostic{option("slices"), "expected offered or 2-d, found " + quoted(which)};
  if (options.has("slice")) {
    std::vector<Slice> slices;
    for (const std::string& text : split(options.text("slice"))) {
      auto slice = parse_slice(text, machine, option("slice"));
      if (!slice) return slice.error();
      slices.push_back(*std::move(slice));
    }
    return slices;
  }
  const auto chips = options.integer("chips", 1, 1 << 20);
  if (!chips) return chips.error();
  if (which == "2-d" || machine.slices.any_shape) return slices_2d(*chips);
  std::vector<Slice> slices = offered_slices(machine, *chips);
  if (!slices.empty()) return slices;
  std::string near;
  for (const Slice& slice : near_slices(machine, {{static_cast<int>(*chips)}, true}))
    near += fmt::format("{}{} ({} chips)", near.empty() ? "" : ", ", to_text(slice), chips_of(slice));
  return Diagnostic{option("chips"),
                    fmt::format("{} offers no slice of {} chips; near are {}; --slices 2-d searches what-if tori", machine.name, *chips, near)};
}

bool equal_links(const Machine& machine, const Slice& slice) {
  for (std::size_t d = 1; d < slice.extents.size(); ++d)
    if (machine.link[d] != machine.link[0]) return false;
  return machine.interconnect == Interconnect::grid;
}

/// Every way to turn the slice, as it is first.
std::vector<std::string> turned(const Slice& slice, bool turns) {
  std::vector<std::string> texts{to_text(slice)};
  if (!turns) return texts;
  Slice other = slice;
  std::sort(other.extents.begin(), other.extents.end());
  do {
    if (other.extents != slice.extents) texts.push_back(to_text(other));
  } while (std::next_permutation(other.extents.begin(), other.extents.end()));
  return texts;
}

std::string mesh_of(std::int64_t rows, std::int64_t cols) { return fmt::format("row={},col={}", rows, cols); }

/// Axes that take whole dimensions, or every row x col.
std::vector<std::string> meshes_of(const Pod& pod, bool split_axes) {
  std::vector<std::string> meshes;
  const int devices = pod.mesh.devices();
  if (split_axes) {
    for (int rows = devices; rows >= 1; --rows)
      if (devices % rows == 0) meshes.push_back(mesh_of(rows, devices / rows));
    return meshes;
  }
  std::set<int> seen;
  int rows = 1;
  const auto& dimensions = pod.layout.dimensions();
  for (std::size_t d = 0; d <= dimensions.size(); ++d) {
    if (seen.insert(rows).second) meshes.push_back(mesh_of(rows, devices / rows));
    if (d < dimensions.size()) rows *= dimensions[d].extent;
  }
  return meshes;
}

/// What the axes of a pod are laid over, whatever the order of dimensions within an axis.
std::string shape_of(const Pod& pod) {
  std::string text;
  for (int axis = 0; axis < static_cast<int>(pod.mesh.axes().size()); ++axis) {
    std::vector<std::pair<int, bool>> factors;
    const auto& folded = pod.mesh.axes()[static_cast<std::size_t>(axis)].factors;
    for (const MeshFactor& factor : folded) factors.emplace_back(factor.size, factor.wraps);
    if (folded.empty()) factors.emplace_back(pod.mesh.axes()[static_cast<std::size_t>(axis)].size, pod.mesh.wraps(pod.mesh.whole(axis)));
    std::sort(factors.begin(), factors.end());
    for (const auto& [size, wraps] : factors) text += fmt::format("{}{} ", size, wraps ? "o" : "-");
    text += "|";
  }
  return text;
}

}  // namespace

po::options_description tuning_pod_options() {
  po::options_description group{"where to search"};
  group.add_options()                                                                       //
      ("chips", po::value<std::string>()->value_name("N"), "every slice of so many chips")  //
      ("slices", po::value<std::string>()->value_name("offered|2-d")->default_value("offered"),
       "of --chips: what the vendor offers, or every AxB as a what-if");
  return group;
}

Expected<std::vector<Pod>> tuning_pods(const Options& options) {
  auto base = pod_request_anywhere(options, "");
  if (!base) return base.error();
  const auto machine = machine_of(base->machine, base->sets);
  if (!machine) return machine.error();
  const auto slices = slices_asked_for(options, *machine);
  if (!slices) return slices.error();
  const std::vector<std::string> asked = options.texts("mesh");
  const bool split_axes = options.flag("allow-split-axes") || asked == std::vector<std::string>{"all"};
  std::vector<Pod> pods;
  std::set<std::string> seen;
  for (const Slice& slice : *slices) {
    const bool turns = equal_links(*machine, slice) && asked.empty() && base->what_if == WhatIf{} && base->stragglers.empty() && !split_axes;
    for (const std::string& text : turned(slice, turns)) {
      PodRequest request = *base;
      request.slice = text;
      request.mesh.clear();
      const auto plain = make_pod(request);
      if (!plain) return plain.error();
      for (const std::string& mesh : asked.empty() || split_axes ? meshes_of(*plain, split_axes) : asked) {
        request.mesh = mesh;
        auto pod = make_pod(request);
        if (!pod) return pod.error();
        if (turns && !seen.insert(shape_of(*pod)).second) continue;
        pods.push_back(*std::move(pod));
      }
    }
  }
  return pods;
}

Expected<Pod> tuning_pod_of_shape(const Options& options, const Slice& slice, int rows, int cols) {
  auto request = pod_request_anywhere(options, "");
  if (!request) return request.error();
  request->slice = to_text(slice);
  request->mesh = mesh_of(rows, cols);
  return make_pod(*request);
}

}  // namespace podsim
