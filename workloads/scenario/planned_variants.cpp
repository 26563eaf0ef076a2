#include "workloads/scenario/planned_variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/engine/des/des_engine.hpp"
#include "workloads/scenario/best_times.hpp"
#include "workloads/scenario/renamed_axes.hpp"

namespace podsim {

namespace {

/// A collective by `auto`, whose time is known when it is chosen: as des has it; another engine may see it otherwise.
const CollectiveSpec* auto_by_des(const ComparedSystem& on, const Variant& variant, const RunOptions& options) {
  const auto* spec = std::get_if<CollectiveSpec>(&variant.problem);
  const bool is_auto = spec != nullptr && spec->policy.is_auto() && !has_alternatives(on) && options.engine == &des_engine();
  return is_auto ? spec : nullptr;
}

class Planner {
 public:
  Planner(const std::vector<const ComparedSystem*>& systems, const RunOptions& options) : options_{options} {
    for (const ComparedSystem* on : systems) planned_.push_back({on, {}});
  }

  std::vector<PlannedSystem> run() {
    for (std::size_t s = 0; s < planned_.size(); ++s) plan(s);
    keep_fastest_choices();
    find_likes();
    return std::move(planned_);
  }

 private:
  /// The fastest of what `auto` chose on the meshes of a topology, so far.
  struct FastestMesh {
    Picoseconds limit = end_of_clock;  // what takes longer is not faster
    std::size_t system = 0;
    bool is_named = false;  // another variant names it
  };

  /// Whether `auto` chose on a mesh before that is the same but for the names of its axes.
  [[nodiscard]] bool has_chosen(const ComparedSystem& on, const Variant& variant) const {
    return std::ranges::any_of(planned_, [&](const PlannedSystem& earlier) {
      if (earlier.on->topology != on.topology || !differ_in_axis_names_only(earlier.on->system, on.system)) return false;
      return std::ranges::any_of(earlier.variants, [&](const PlannedVariant& plan) {
        return (plan.posed || plan.slower) && on_topology(*earlier.on, *plan.variant) == on_topology(on, variant) &&
               is_same_collective(earlier.on->system, plan.variant->problem, on.system, variant.problem);
      });
    });
  }

  void plan(std::size_t s) {
    const ComparedSystem& on = *planned_[s].on;
    std::vector<PlannedVariant> planned;
    for (const Variant& variant : on.variants) {
      if (std::holds_alternative<WorkloadSpec>(variant.problem) || options_.stopped()) break;
      options_.tell(on.name + " " + variant.name);
      PlannedVariant plan = posed(s, variant);
      plan.same_as = planned.size();
      if (plan.posed) compare_with(planned, plan);
      if (plan.is_fastest_mesh && plan.is_named) fastest_[on_topology(on, variant)].is_named = true;
      planned.push_back(std::move(plan));
    }
    planned_[s].variants = std::move(planned);
  }

  /// Of searched meshes what `auto` chooses only if it is faster than on those before.
  PlannedVariant posed(std::size_t s, const Variant& variant) {
    const ComparedSystem& on = *planned_[s].on;
    PlannedVariant plan{&variant, cancelled_work(), 0, cancelled_work()};
    const CollectiveSpec* spec = auto_by_des(on, variant, options_);
    if (spec == nullptr) {
      plan.posed = pose(on.system, variant.problem, options_);
      return plan;
    }
    plan.slower = on.is_mesh_searched && has_chosen(on, variant);
    if (plan.slower) return plan;
    FastestMesh any;
    FastestMesh& fastest = on.is_mesh_searched ? fastest_[on_topology(on, variant)] : any;
    auto within = pose_within(fastest.limit, on.system, *spec, options_);
    plan.slower = within && !*within;
    if (!within) plan.posed = within.error();
    if (!within || !*within) return plan;
    plan.posed = std::move((*within)->posed), plan.is_fastest_mesh = on.is_mesh_searched;
    plan.auto_time = (*within)->time;
    fastest = {(*within)->time - Picoseconds{1}, s, false};
    return plan;
  }

  /// With the variants of its system before it.
  static void compare_with(std::vector<PlannedVariant>& before, PlannedVariant& plan) {
    const Problem& problem = plan.posed->problem;
    const auto find = [&](auto matches) {
      return std::ranges::find_if(before, [&](const PlannedVariant& other) { return other.posed && !other.is_named && matches(other.posed->problem) && other.posed->problem.schedule == problem.schedule; });
    };
    plan.is_chosen = problem.collectives.chosen.has_value();
    if (plan.variant->unless_named && plan.is_chosen) {
      const auto named = find([&](const Problem& other) { return !other.collectives.chosen && other.collectives == problem.collectives; });
      plan.is_named = named != before.end();
      if (plan.is_named) named->is_chosen = true;
      if (plan.is_named) return;
    }
    if (const auto same = find([&](const Problem& other) { return other.collectives == problem.collectives; }); same != before.end()) plan.same_as = same->same_as;
    if (!plan.variant->unless_same) return;
    if (const auto equal = find([&](const Problem& other) { return other.summary.algorithm == problem.summary.algorithm; }); equal != before.end())
      plan.posed = Diagnostic{{}, fmt::format("the same algorithms as {}: {}", equal->variant->name, problem.summary.algorithm)};
  }

  void keep_fastest_choices() {
    for (std::size_t s = 0; s < planned_.size(); ++s)
      for (PlannedVariant& plan : planned_[s].variants) {
        const auto fastest = fastest_.find(on_topology(*planned_[s].on, *plan.variant));
        if (fastest == fastest_.end()) continue;
        plan.slower |= plan.is_fastest_mesh && fastest->second.system != s;
        plan.is_named |= plan.slower && fastest->second.is_named;
      }
  }

  /// On each system the variants that take as long as on an earlier one, whose axes have other names.
  void find_likes() {
    const auto may_be = [](const PlannedSystem& system, std::size_t p) {
      const PlannedVariant& plan = system.variants[p];
      return plan.same_as == p && plan.is_to_play && !plan.slower && !plan.is_named && plan.posed && !plan.posed->problem.summary.on_mesh;  // on its own axes
    };
    for (std::size_t s = 0; s < planned_.size(); ++s)
      for (std::size_t e = 0; e < s; ++e) {
        PlannedSystem &system = planned_[s], &earlier = planned_[e];
        if (!differ_in_axis_names_only(earlier.on->system, system.on->system)) continue;
        for (std::size_t p = 0; p < system.variants.size(); ++p)
          for (std::size_t q = 0; q < earlier.variants.size(); ++q) {
            PlannedVariant& plan = system.variants[p];
            const PlannedVariant& other = earlier.variants[q];
            if (may_be(system, p) && may_be(earlier, q) && other.posed->problem.collectives == plan.posed->problem.collectives &&
                is_same_collective(earlier.on->system, other.variant->problem, system.on->system, plan.variant->problem))
              plan.like = {earlier.on, &other}, plan.is_to_play = false;
          }
      }
  }

  const RunOptions& options_;
  std::vector<PlannedSystem> planned_;
  std::map<OnTopology, FastestMesh> fastest_;
};

}  // namespace

std::vector<PlannedSystem> plan_variants(const std::vector<const ComparedSystem*>& systems, const RunOptions& options) { return Planner{systems, options}.run(); }

void take_rows(std::vector<PlannedSystem>& systems) {
  for (PlannedSystem& system : systems)
    for (PlannedVariant& plan : system.variants) {
      plan.is_to_play = false;
      const auto [on, other] = plan.like;
      if (other == nullptr) continue;
      plan.slower = other->slower, plan.is_large = other->is_large;
      if (other->row)
        plan.row = with_axes_of(*other->row, on->system, system.on->system);
      else
        plan.is_to_play = !other->slower && !other->is_large;
    }
}

}  // namespace podsim
