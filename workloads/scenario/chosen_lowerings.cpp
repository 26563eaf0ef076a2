#include "workloads/scenario/chosen_lowerings.hpp"

#include <algorithm>

#include "workloads/scenario/run_options.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_systems = 256;  // of tens of kilobytes each

}  // namespace

std::shared_ptr<ChosenLowerings> no_lowerings_yet() { return std::make_shared<ChosenLowerings>(); }

bool ChosenLowerings::is_of(const OfSystem& known, const System& system, const Mesh& mesh) {
  return known.topology == system.topology && known.mesh == mesh && known.placement == system.placement && known.machine == system.machine;
}

std::optional<ChosenLowering> ChosenLowerings::find(const System& system, const Mesh& mesh, const std::string& key) const {
  const std::scoped_lock lock{guard_};
  const auto known = std::find_if(systems_.rbegin(), systems_.rend(), [&](const OfSystem& one) { return is_of(one, system, mesh); });
  if (known == systems_.rend()) return std::nullopt;
  const auto found = known->chosen.find(key);
  return found == known->chosen.end() ? std::optional<ChosenLowering>{} : found->second;
}

void ChosenLowerings::add(const System& system, const Mesh& mesh, const std::string& key, const ChosenLowering& chosen) {
  const std::scoped_lock lock{guard_};
  auto known = std::find_if(systems_.begin(), systems_.end(), [&](const OfSystem& one) { return is_of(one, system, mesh); });
  if (known == systems_.end()) {
    if (systems_.size() == most_systems) systems_.erase(systems_.begin());
    known = systems_.insert(systems_.end(), {system.machine, system.topology, system.placement, mesh});
  }
  known->chosen.emplace(key, chosen);
  std::rotate(known, known + 1, systems_.end());
}

}  // namespace podsim
