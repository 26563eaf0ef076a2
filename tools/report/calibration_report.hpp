// A fit to measurements as a table, JSON and SVG.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validation/calibration/fit/calibrate.hpp"

namespace podsim {

/// `held_back`: the error of predictions of what was held back, where that could be told.
std::string calibration_table(const std::vector<Observation>& observations, const Calibration& found, const std::optional<ErrorSummary>& held_back,
                              const std::vector<std::string>& notes);
std::string calibration_json(const std::vector<Observation>& observations, const Calibration& found, const std::optional<ErrorSummary>& held_back,
                             const std::vector<std::string>& notes);
/// Measured against fitted: a group per operation; what counted less is hollow.
std::string residual_svg(const std::vector<Observation>& observations, const Calibration& found, const std::string& dataset);

}  // namespace podsim
