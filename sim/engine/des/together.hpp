// Many models at once, those that are variants of each other in one walk.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/engine/engine.hpp"

namespace podsim {

/// Of models that differ in costs only, what run_des() gives, computed as lanes of one max-plus pass (../max_plus/lanes.hpp). nullopt: there is no other such
/// model among them, or no lane can play this one.
std::vector<std::optional<Timeline>> run_des_together(std::span<const Model* const> models, const RunControl& control, std::span<TimesReader* const> readers,
                                                      int threads);

}  // namespace podsim
