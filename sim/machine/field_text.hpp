// Values of machines as text and back: what machine_fields.cpp reads and writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/machine/machine_fields.hpp"

namespace podsim {

/// One value; of curves and tables, one of their efficiencies.
std::string text_of(FieldUnit unit, double value);
/// "0.2 at 1 KiB, 0.85 at 1 MiB", or one number.
std::string text_of(const std::vector<EfficiencyPoint>& points);
/// "0.3 at 1024x1024x1024, 0.8 at 4096x4096x4096"
std::string text_of(const MatmulTable& table);

// The same for people: short texts as they are, others to four digits; of more than three points the ends and how many there are.
std::string rounded_text_of(FieldUnit unit, double value);
std::string rounded_text_of(const std::vector<EfficiencyPoint>& points);
std::string rounded_text_of(const MatmulTable& table);

/// A value inside its range; messages begin with the path.
Expected<double> parse_admissible(const MachineField& field, const std::string& path, std::string_view text, const SourceLocation& where);
Expected<std::vector<EfficiencyPoint>> parse_curve(const MachineField& field, const std::string& path, std::string_view text,
                                                   const SourceLocation& where);
/// Errors, besides those of its numbers: extents twice, more than most_matmul_points of them.
Expected<std::vector<MatmulPoint>> parse_matmul_points(const MachineField& field, const std::string& path, std::string_view text,
                                                       const SourceLocation& where);

/// One curve has one form, so that machines compare equal: 1 everywhere has no points, another constant one point at 1 byte.
std::vector<EfficiencyPoint> constant_curve(double efficiency);

}  // namespace podsim
