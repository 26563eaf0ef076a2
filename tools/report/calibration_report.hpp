// A fit to measurements as a table, JSON and SVG.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validation/calibration/fit/calibrate.hpp"

namespace podsim {

/// `held_back`: the cross-validation error, if it could be computed.
std::string calibration_table(const std::vector<Observation>& observations, const Calibration& found, const std::optional<ErrorSummary>& held_back,
                              const std::vector<std::string>& notes);
std::string calibration_json(const std::vector<Observation>& observations, const Calibration& found, const std::optional<ErrorSummary>& held_back,
                             const std::vector<std::string>& notes);
/// Measured against fitted times: one group per operation; outliers with less influence are hollow.
std::string residual_svg(const std::vector<Observation>& observations, const Calibration& found, const std::string& dataset);

}  // namespace podsim
