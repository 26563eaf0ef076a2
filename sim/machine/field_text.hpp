// Converts machine values to text and back, for machine_fields.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/machine/machine_fields.hpp"

namespace podsim {

/// One value; for curves and tables, one efficiency.
std::string text_of(FieldUnit unit, double value);
/// "0.2 at 1 KiB, 0.85 at 1 MiB", or one number.
std::string text_of(const std::vector<EfficiencyPoint>& points);
/// "0.3 at 1024x1024x1024, 0.8 at 4096x4096x4096"
std::string text_of(const MatmulTable& table);
/// "surface m 1 1024; n 64 4096; k 64 8192; waves 128x256 0.5; 0.1 0.2; 0.2 0.4; 0.3 0.6; 0.4 0.8"
std::string text_of(const MatmulSurface& surface);

// The same, shortened for people: short texts unchanged, longer numbers to four digits; more than three points become the two ends and a count.
std::string rounded_text_of(FieldUnit unit, double value);
std::string rounded_text_of(const std::vector<EfficiencyPoint>& points);
std::string rounded_text_of(const MatmulTable& table);
std::string rounded_text_of(const MatmulSurface& surface);

/// A value within its admissible range; messages begin with the path.
Expected<double> parse_admissible(const MachineField& field, const std::string& path, std::string_view text, const SourceLocation& where);
Expected<std::vector<EfficiencyPoint>> parse_curve(const MachineField& field, const std::string& path, std::string_view text,
                                                   const SourceLocation& where);
/// Errors besides those of its numbers: the same extents twice, more than most_matmul_points of them.
Expected<std::vector<MatmulPoint>> parse_matmul_points(const MachineField& field, const std::string& path, std::string_view text,
                                                       const SourceLocation& where);
/// Whether a text is a surface, good or bad.
bool is_surface_text(std::string_view text);
/// Errors: a list that does not begin with m, n, k in this order; extents that do not increase or are too many; a wrong number of rows, or of
/// efficiencies in a row; efficiencies out of range.
Expected<MatmulSurface> parse_matmul_surface(const MachineField& field, const std::string& path, std::string_view text, const SourceLocation& where);

/// The canonical form of a constant curve, so that equal machines compare equal: no points for 1, otherwise one point at 1 byte.
std::vector<EfficiencyPoint> constant_curve(double efficiency);

}  // namespace podsim
