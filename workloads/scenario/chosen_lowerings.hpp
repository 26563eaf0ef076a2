// What `auto` has chosen: each collective of a system is simulated once, for however many runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "topologies/system.hpp"
#include "workloads/scenario/collective_candidates.hpp"

namespace podsim {

/// A lowering, and what the collective takes by it alone.
struct ChosenLowering {
  Lowering lowering;
  Picoseconds time;
};

/// From any thread. It keeps what it knows of the systems that it was asked for last; an older one's is found again by simulation.
class ChosenLowerings {
 public:
  /// `key`: what else the choice depends on. nullopt: not known.
  [[nodiscard]] std::optional<ChosenLowering> find(const System& system, const Mesh& mesh, const std::string& key) const;
  void add(const System& system, const Mesh& mesh, const std::string& key, const ChosenLowering& chosen);

 private:
  struct OfSystem {
    Machine machine;
    std::shared_ptr<const Topology> topology;  // held, so that no other one gets its address
    Placement placement;
    Mesh mesh;
    std::map<std::string, ChosenLowering> chosen{};
  };
  static bool is_of(const OfSystem& known, const System& system, const Mesh& mesh);

  mutable std::mutex guard_;
  std::vector<OfSystem> systems_;  // the one asked for last comes last
};

}  // namespace podsim
