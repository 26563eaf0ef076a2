#include "workloads/hlo/module_axes.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "workloads/hlo/collective_axes.hpp"

namespace podsim {

namespace {

using Strides = std::set<std::int64_t>;  // ids between neighbours along an axis, each dividing the next; with 1 and the number of devices

bool is_chain(const Strides& strides) {
  std::int64_t last = 1;
  return std::ranges::all_of(strides, [&](std::int64_t stride) { return stride % std::exchange(last, stride) == 0; });
}

/// Adds the strides of a group, if its ids are an offset and all multiples of some strides. Changes `strides` only if so.
bool add_group(std::vector<std::int64_t> ids, Strides& strides) {
  Strides more = strides;
  std::ranges::sort(ids);
  while (ids.size() > 1) {
    const std::int64_t stride = ids[1] - ids[0];
    std::size_t run = 2;
    while (run < ids.size() && ids[run] - ids[run - 1] == stride) ++run;
    if (stride < 1 || ids.size() % run != 0) return false;
    std::vector<std::int64_t> firsts;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i % run == 0) firsts.push_back(ids[i]);
      if (ids[i] != firsts.back() + static_cast<std::int64_t>(i % run) * stride) return false;
    }
    more.insert(stride);
    more.insert(stride * static_cast<std::int64_t>(run));
    ids = std::move(firsts);
  }
  if (!is_chain(more)) return false;
  strides = std::move(more);
  return true;
}

std::vector<int> sizes_of(const Strides& strides) {
  std::vector<int> sizes;
  for (auto stride = strides.rbegin(); std::next(stride) != strides.rend(); ++stride) sizes.push_back(static_cast<int>(*stride / *std::next(stride)));
  return sizes;
}

std::optional<Mesh> mesh_of(const Strides& strides) {
  std::vector<MeshAxis> axes;
  for (const int size : sizes_of(strides)) axes.push_back({"a" + std::to_string(axes.size()), size});
  auto mesh = Mesh::make(std::move(axes));
  if (!mesh) return std::nullopt;
  return *std::move(mesh);
}

/// The devices that a permute moves data between, beginning with its first source.
std::vector<std::int64_t> orbit_of(const std::vector<SourceTarget>& pairs, std::int64_t devices) {
  std::vector<std::int64_t> target(static_cast<std::size_t>(devices), -1);
  std::vector<bool> receives(static_cast<std::size_t>(devices));
  for (const auto& [from, to] : pairs) {
    if (from < 0 || to < 0 || from >= devices || to >= devices) return {};
    target[static_cast<std::size_t>(from)] = to;
    receives[static_cast<std::size_t>(to)] = true;
  }
  // An open line begins where nothing arrives.
  std::int64_t at = pairs.front().first;
  for (const auto& [from, to] : pairs)
    if (!receives[static_cast<std::size_t>(from)]) {
      at = from;
      break;
    }
  std::vector<std::int64_t> orbit;
  std::vector<bool> seen(static_cast<std::size_t>(devices));
  for (; at >= 0 && !seen[static_cast<std::size_t>(at)]; at = target[static_cast<std::size_t>(at)]) {
    seen[static_cast<std::size_t>(at)] = true;
    orbit.push_back(at);
  }
  return orbit;
}

/// The names of XLA's own axes: "axis_0".
bool is_generated(const std::string& name) { return name.starts_with("axis_") || name.empty(); }

class CollectiveAxes {
 public:
  explicit CollectiveAxes(const HloModule& module) : module_{module}, devices_{devices_of(module)}, strides_{1, devices_} {}

  std::optional<std::vector<std::pair<std::string, int>>> find() {
    if (devices_ < 2 || devices_ > std::int64_t{1} << 20) return std::nullopt;
    for (const HloComputation& computation : module_.computations)
      for (const HloInstruction& instruction : computation.instructions)
        if (!add(instruction)) return std::nullopt;
    if (!any_) return std::nullopt;
    const auto mesh = mesh_of(strides_);
    if (!mesh || std::ranges::any_of(groups_, [&](const ReplicaGroups& groups) { return !axes_of(groups, *mesh); })) return std::nullopt;
    for (const std::vector<SourceTarget>& pairs : permutes_) add_permute(pairs);
    std::vector<std::pair<std::string, int>> axes;
    for (const int size : sizes_of(strides_)) axes.emplace_back("", size);
    for (const std::vector<ReplicaGroups::Axis>& named : named_)
      if (std::ranges::equal(named, axes, [](const ReplicaGroups::Axis& one, const auto& axis) { return one.size == axis.second; })) {
        for (std::size_t i = 0; i < axes.size(); ++i) axes[i].first = named[i].name;
        break;
      }
    return axes;
  }

 private:
  bool add(const HloInstruction& instruction) {
    const HloAttributes& attributes = *instruction.attributes;
    if (attributes.across_slices) return true;
    if (!attributes.source_target_pairs.empty()) {
      any_ = true;
      if (module_.replica_count == 1 && std::ranges::find(permutes_, attributes.source_target_pairs) == permutes_.end())
        permutes_.push_back(attributes.source_target_pairs);
      return true;
    }
    if (!attributes.replica_groups) return true;
    any_ = true;
    if (std::ranges::find(seen_, *attributes.replica_groups) != seen_.end()) return true;
    seen_.push_back(*attributes.replica_groups);
    if (attributes.replica_groups->spelling() == ReplicaGroups::Spelling::mesh && module_.replica_count == 1)
      add_mesh(attributes.replica_groups->axes());
    const auto flat = groups_among(module_, instruction, devices_);
    if (!flat || flat->count() == 0 || !add_group(flat->devices(0), strides_)) return false;
    groups_.push_back(*flat);
    return true;
  }

  void add_mesh(std::vector<ReplicaGroups::Axis> axes) {
    std::erase_if(axes, [](const ReplicaGroups::Axis& axis) { return axis.size == 1; });
    Strides more = strides_;
    std::int64_t stride = 1;
    for (auto axis = axes.rbegin(); axis != axes.rend() && axis->size > 0 && stride <= devices_ / axis->size; ++axis)
      more.insert(stride *= axis->size);
    if (stride != devices_ || !is_chain(more)) return;
    strides_ = std::move(more);
    if (std::ranges::none_of(axes, [](const ReplicaGroups::Axis& axis) { return is_generated(axis.name); })) named_.push_back(std::move(axes));
  }

  void add_permute(const std::vector<SourceTarget>& pairs) {
    Strides more = strides_;
    if (!add_group(orbit_of(pairs, devices_), more)) return;
    if (const auto mesh = mesh_of(more); mesh && shift_of(pairs, *mesh)) strides_ = std::move(more);
  }

  const HloModule& module_;
  std::int64_t devices_;
  Strides strides_;
  bool any_ = false;
  std::vector<ReplicaGroups> seen_, groups_;
  std::vector<std::vector<SourceTarget>> permutes_;
  std::vector<std::vector<ReplicaGroups::Axis>> named_;
};

}  // namespace

std::optional<std::vector<std::pair<std::string, int>>> axes_of_collectives(const HloModule& module) { return CollectiveAxes{module}.find(); }

}  // namespace podsim
