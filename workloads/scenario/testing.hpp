// What tests of scenarios share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "workloads/scenario/read_scenario.hpp"

namespace podsim::testing {

/// Fields by name; of one that may be given several times, once each.
inline Fields fields(const std::vector<std::pair<std::string, std::string>>& given) {
  Fields result;
  for (const auto& [name, text] : given) result.add(name, text, of_field(name));
  return result;
}

/// A system that must be right: {{"machine", "ideal"}, {"slice", "4x8"}, {"fail", "0.3-0.4"}}.
inline System system_with(const std::vector<std::pair<std::string, std::string>>& given) {
  auto system = read_system(fields(given));
  EXPECT_TRUE(system) << to_text(system.error());
  return *std::move(system);
}

}  // namespace podsim::testing
