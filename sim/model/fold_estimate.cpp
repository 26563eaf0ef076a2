#include <algorithm>
#include <bit>

#include "sim/base/invariant.hpp"
#include "sim/base/rng.hpp"
#include "sim/model/fold.hpp"
#include "sim/schedule/presence.hpp"

namespace podsim {

namespace {

using Colour = std::uint64_t;

/// Refines colours of devices by whom they send to and receive from, and counts what each round makes of the tasks.
class Estimate {
 public:
  Estimate(const Deployment& deployment, const std::vector<double>& speed) : deployment_{deployment} {
    const std::size_t devices = deployment.places.size();
    program_of_.assign(deployment.participants.size(), no_device);
    tasks_.assign(deployment.participants.size(), 0);
    for (std::uint32_t p = 0; p < deployment.programs.size(); ++p)
      for (const std::uint32_t id : deployment.programs[p].participants) program_of_[id] = p, ++tasks_[id];
    for (std::size_t d = 0; d < devices; ++d)
      colours_.push_back(counter_hash(deployment.places[d].program, 1, speed.empty() ? 1 : std::bit_cast<Colour>(speed[d])));
  }

  [[nodiscard]] const FoldedSize& size() const { return size_; }

  /// Numbers the classes and counts the instances of all tasks in them. Whether there are more classes than before.
  bool count() {
    std::vector<Colour> distinct = colours_;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    const std::uint32_t before = size_.classes;
    size_ = {static_cast<std::uint32_t>(distinct.size()), 0};
    std::vector<std::uint32_t> seen(distinct.size(), no_device);  // by class, the participants it was last counted for
    for (Colour& colour : colours_) colour = static_cast<Colour>(std::lower_bound(distinct.begin(), distinct.end(), colour) - distinct.begin());
    each([&](std::uint32_t id, const Participants& who, const std::vector<std::uint32_t>& devices) {
      std::uint64_t classes = 0;
      for (std::size_t l = 0; l < devices.size(); ++l)
        if (std::uint32_t& last = seen[colours_[devices[l]]]; who.does(l) && last != id) last = id, ++classes;
      size_.instances += classes * tasks_[id];
    });
    return size_.classes > before;
  }

  void refine() {
    std::vector<Colour> met(colours_.size(), 0);
    each([&](std::uint32_t id, const Participants& who, const std::vector<std::uint32_t>& devices) {
      for (std::size_t l = 0; l < devices.size(); ++l) {
        if (!who.does(l)) continue;
        met[devices[l]] += counter_hash(id, 2, colours_[who.to[l]]);
        met[who.to[l]] += counter_hash(id, 3, colours_[devices[l]]);
      }
    });
    for (std::size_t d = 0; d < colours_.size(); ++d) colours_[d] = counter_hash(colours_[d], 4, met[d]);
  }

 private:
  template <class Visit>
  void each(Visit visit) const {
    for (std::uint32_t id = 0; id < program_of_.size(); ++id)
      if (program_of_[id] != no_device) visit(id, deployment_.participants[id], deployment_.programs[program_of_[id]].devices);
  }

  const Deployment& deployment_;
  std::vector<std::uint32_t> program_of_;  // per participants
  std::vector<std::uint64_t> tasks_;       // per participants, how many tasks have them
  std::vector<Colour> colours_;            // per device
  FoldedSize size_;
};

/// Coordinates of one mesh axis in classes: those for which the same conditions hold.
class AxisClasses {
 public:
  AxisClasses(const Mesh& mesh, int axis) : mesh_{mesh}, axis_{axis}, colours_(size(), 0) {}

  /// Parts those coordinates for which the conditions on this axis hold from the others.
  void part(const Guard& where) {
    const std::vector<bool> holds = along(where);
    for (std::size_t c = 0; c < colours_.size(); ++c) colours_[c] = counter_hash(colours_[c], 1, holds[c] ? 1 : 0);
  }
  /// Parts all of them.
  void part_all() {
    for (std::size_t c = 0; c < colours_.size(); ++c) colours_[c] = counter_hash(c, 2, 0);
  }
  /// In how many classes those conditions hold for some coordinate.
  [[nodiscard]] std::uint64_t count(const Guard& where) const {
    const std::vector<bool> holds = along(where);
    std::vector<Colour> found;
    for (std::size_t c = 0; c < colours_.size(); ++c)
      if (holds[c]) found.push_back(colours_[c]);
    std::sort(found.begin(), found.end());
    return static_cast<std::uint64_t>(std::unique(found.begin(), found.end()) - found.begin());
  }

 private:
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(mesh_.axes()[static_cast<std::size_t>(axis_)].size); }
  [[nodiscard]] std::vector<bool> along(const Guard& where) const {
    std::vector<bool> holds(size(), true);
    for (const Condition& condition : where) {
      if (axis_of(condition) != axis_) continue;
      const std::vector<bool> here = holds_along(mesh_, condition, axis_);
      for (std::size_t c = 0; c < holds.size(); ++c) holds[c] = holds[c] && here[c];
    }
    return holds;
  }

  const Mesh& mesh_;
  int axis_;
  std::vector<Colour> colours_;
};

/// The only axis that a guard looks at; nullopt: none or several.
std::optional<int> only_axis(const Guard& where) {
  std::optional<int> only;
  for (const Condition& condition : where) {
    const auto axis = axis_of(condition);
    if (!axis || (only && only != axis)) return std::nullopt;
    only = axis;
  }
  return only;
}

/// Whether a task is an activity of every device where its guard holds.
bool runs_where_its_guard_holds(const Task& task) {
  if (!std::all_of(task.where.begin(), task.where.end(), [](const Condition& condition) { return axis_of(condition).has_value(); })) return false;
  const auto* shift = std::get_if<Shift>(&task.op);
  if (shift != nullptr) return shift->by.terms.empty() && evaluate(shift->by, {}) % shift->axis.size != 0;
  return !std::holds_alternative<Recv>(task.op);
}

}  // namespace

FoldedSize least_guarded_size(const Schedule& lowered, bool folds) {
  if (lowered.programs.size() != 1 || size_of(lowered.programs.front().devices) != lowered.mesh.devices()) return {};
  const Program& program = lowered.programs.front();
  std::size_t coordinates = 0;
  for (const MeshAxis& axis : lowered.mesh.axes()) coordinates += static_cast<std::size_t>(axis.size);
  constexpr std::size_t most_looks = 1U << 24U;  // some tenths of a second; what is larger is estimated when it is deployed
  if (program.tasks.size() * coordinates > most_looks) return {};

  std::vector<AxisClasses> axes;
  for (std::size_t a = 0; a < lowered.mesh.axes().size(); ++a) axes.emplace_back(lowered.mesh, static_cast<int>(a));
  for (AxisClasses& axis : axes)
    if (!folds) axis.part_all();
  for (const Task& task : program.tasks)
    if (const auto axis = only_axis(task.where); folds && axis && runs_where_its_guard_holds(task))
      axes[static_cast<std::size_t>(*axis)].part(task.where);
  const auto classes_where = [&](const Guard& where) {
    std::uint64_t classes = 1;
    for (const AxisClasses& axis : axes) classes *= axis.count(where);
    return classes;
  };
  const std::uint64_t all = classes_where({});
  FoldedSize size{static_cast<std::uint32_t>(all), 0};
  for (const Task& task : program.tasks)
    if (runs_where_its_guard_holds(task)) size.instances += task.where.empty() ? all : classes_where(task.where);
  return size;
}

std::optional<FoldedSize> least_folded_size(const Deployment& deployment, const std::vector<double>& speed, double enough, Cancellation stop) {
  PODSIM_ASSERT(speed.empty() || speed.size() == deployment.places.size());
  Estimate estimate{deployment, speed};
  while (estimate.count() && estimate.size().classes < deployment.places.size() && static_cast<double>(estimate.size().instances) <= enough) {
    if (stop.requested()) return std::nullopt;
    estimate.refine();
  }
  return estimate.size();
}

}  // namespace podsim
