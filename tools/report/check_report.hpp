// A proof as a table and JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

/// An edge and its purpose.
struct NamedEdge {
  std::string from, to, purpose, race;
};
/// Errors: cancelled work.
Expected<std::vector<NamedEdge>> named_edges(const Schedule& lowered, Cancellation stop);
std::string edges_table(const std::vector<NamedEdge>& edges);

std::string check_table(const CheckReport& report);
/// Quantities that were not compared are null. `edges`: null if they were not audited.
std::string check_json(const CheckReport& report, const std::vector<NamedEdge>* edges);

}  // namespace podsim
