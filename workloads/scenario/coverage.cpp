#include "workloads/scenario/coverage.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace podsim {

namespace {

/// In what two devices of a system may differ: the dimensions of the slice, the device of a chip, the slice.
constexpr std::array<const char*, 6> differences{"x", "y", "z", "w", "core", "slice"};

/// Finds the dimensions along which the devices of a group lie.
class Groups {
 public:
  Groups(const Mesh& mesh, const System& system) : mesh_{mesh}, system_{system} {}

  std::string along(const std::vector<AxisView>& views) {
    std::array<bool, differences.size()> differs{};
    for (const AxisView& view : views) {
      const auto [found, is_new] = known_.try_emplace(view);
      if (is_new) found->second = of(view);
      for (std::size_t d = 0; d < differs.size(); ++d) differs.at(d) |= found->second.at(d);
    }
    std::string text;
    for (std::size_t d = 0; d < differs.size(); ++d)
      if (differs.at(d)) text += (text.empty() ? "" : ",") + std::string{differences.at(d)};
    return text;
  }

 private:
  using Differs = std::array<bool, differences.size()>;

  /// Of the first device and those that a view joins it with; on listed devices, of every one.
  Differs of(const AxisView& view) const {
    Differs differs{};
    const int devices = system_.devices.empty() ? 1 : mesh_.devices();
    for (int device = 0; device < devices; ++device) {
      if (mesh_.coordinate(DeviceId{device}, view) != 0) continue;
      const std::array<std::int64_t, differences.size()> here = place_of(DeviceId{device});
      for (int by = 1; by < view.size; ++by) {
        const std::array<std::int64_t, differences.size()> there = place_of(mesh_.shifted(DeviceId{device}, view, by));
        for (std::size_t d = 0; d < differs.size(); ++d) differs.at(d) |= here.at(d) != there.at(d);
      }
    }
    return differs;
  }

  std::array<std::int64_t, differences.size()> place_of(DeviceId device) const {
    std::array<std::int64_t, differences.size()> place{};
    const std::vector<int>& extents = system_.slice.extents;
    std::int64_t chip = system_.placement.chip_of[device.index()].value;
    for (std::size_t d = extents.size(); d-- > 0; chip /= extents[d]) place.at(d) = chip % extents[d];
    place[max_dimensions] = system_.placement.core_of.empty() ? 0 : system_.placement.core_of[device.index()];
    place[max_dimensions + 1] = chip;
    return place;
  }

  const Mesh& mesh_;
  const System& system_;
  std::map<AxisView, Differs> known_;
};

class Operations {
 public:
  Operations(const Schedule& schedule, const System& system) : mesh_{schedule.mesh}, groups_{schedule.mesh, system} {
    for (const Function& function : schedule.functions)
      for (const Task& task : function.body.tasks) add(function.body, task.op);
    for (const Program& program : schedule.programs)
      for (const Task& task : program.tasks) add(program, task.op);
  }

  std::vector<Coverage> take() && { return std::move(found_.empty() ? copies_ : found_); }

 private:
  void add(const Program& program, const Op& op) {
    if (const auto* matmul = std::get_if<Matmul>(&op)) {
      const MatmulExtents e = extents_of(*matmul);
      merge(found_, {{CostKind::matmul, 1, "", {}, {e.m, e.m}, {e.n, e.n}, {e.k, e.k}}});
    } else if (const auto* collective = std::get_if<Collective>(&op)) {
      communicate(cost_kind_of(collective->kind), collective->axes, bytes_of(program, collective->input));
    } else if (const auto* shift = std::get_if<Shift>(&op)) {
      communicate(CostKind::permute, {shift->axis}, bytes_of(program, shift->source));
    } else if (const auto* send = std::get_if<Send>(&op)) {
      std::vector<AxisView> all;
      for (int a = 0; a < static_cast<int>(mesh_.axes().size()); ++a) all.push_back(mesh_.whole(a));
      communicate(CostKind::permute, all, bytes_of(program, send->source));
    } else if (const auto* local = std::get_if<Local>(&op); local != nullptr && local->kind == LocalKind::copy) {
      const std::int64_t bytes = bytes_of(program, local->reads.front()).count();
      merge(copies_, {{CostKind::local, 1, "", {bytes, bytes}, {}, {}, {}}});
    }
  }

  void communicate(CostKind kind, const std::vector<AxisView>& axes, Bytes input) {
    int devices = 1;
    for (const AxisView& axis : axes) devices *= axis.size;
    if (devices > 1) merge(found_, {{kind, devices, groups_.along(axes), {input.count(), input.count()}, {}, {}, {}}});
  }

  const Mesh& mesh_;
  Groups groups_;
  std::vector<Coverage> found_, copies_;
};

}  // namespace

std::vector<Coverage> operations_in(const Schedule& schedule, const System& system) { return Operations{schedule, system}.take(); }

void merge(std::vector<Coverage>& into, const std::vector<Coverage>& more) {
  for (const Coverage& one : more) {
    const auto known = std::find_if(into.begin(), into.end(), [&](const Coverage& other) {
      return std::tie(other.operation, other.devices, other.along) == std::tie(one.operation, one.devices, one.along);
    });
    if (known == into.end()) {
      into.push_back(one);
      continue;
    }
    widen(known->bytes, one.bytes);
    widen(known->m, one.m);
    widen(known->n, one.n);
    widen(known->k, one.k);
  }
}

}  // namespace podsim
