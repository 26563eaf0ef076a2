#include "sim/machine/field_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"

namespace podsim {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double largest_memory = 0x1p50;  // whole numbers up to 2^53 are exact in a double
constexpr std::size_t most_points_shown = 3;
constexpr std::int64_t largest_extent = std::int64_t{1} << 40;

std::string range_of(const MachineField& field) {
  if (std::isinf(field.high)) return "at least " + text_of(field.unit, field.low);
  return fmt::format("in [{}, {}]", text_of(field.unit, field.low), text_of(field.unit, field.high));
}

template <class T>
Expected<double> count_of(const Expected<T>& parsed) {
  if (!parsed) return parsed.error();
  return static_cast<double>(parsed->count());
}

Expected<double> parse(const MachineField& field, std::string_view text, const SourceLocation& where) {
  switch (field.unit) {
    case FieldUnit::seconds: return count_of(parse_seconds(text, where));
    case FieldUnit::bytes:
      if (text == "unlimited") return infinite;
      return count_of(parse_bytes(text, where));
    case FieldUnit::bytes_per_second: return count_of(parse_bytes_per_second(text, where));
    case FieldUnit::flops_per_second: return count_of(parse_flops_per_second(text, where));
    case FieldUnit::number:
    case FieldUnit::efficiency:
    case FieldUnit::matmul_efficiency: return parse_number(text, where);
    case FieldUnit::quarters: {
      const Expected<double> number = parse_number(text, where);
      if (number && std::isfinite(*number) && 4 * *number != std::floor(4 * *number))
        return Diagnostic{where, fmt::format("expected a multiple of 0.25, got {}", quoted(text))};
      return number;
    }
    case FieldUnit::sharing:
      if (text == "shared") return 1.0;
      if (text == "separate") return 0.0;
      return Diagnostic{where, fmt::format("expected shared or separate, got {}", quoted(text))};
    case FieldUnit::integer: {
      const Expected<std::int64_t> whole = parse_integer(text, static_cast<std::int64_t>(field.low), static_cast<std::int64_t>(field.high), where);
      if (!whole) return whole.error();
      return static_cast<double>(*whole);
    }
  }
  PODSIM_ASSERT(false);
  return Diagnostic{};
}

/// "1024x12288x12288"
Expected<MatmulPoint> parse_extents(std::string_view text, const std::string& path, const SourceLocation& where) {
  MatmulPoint point;
  std::string_view rest = text;
  const std::array<std::int64_t*, 3> extents{&point.m, &point.n, &point.k};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::size_t end = i + 1 == extents.size() ? rest.size() : std::min(rest.find('x'), rest.size());
    const Expected<std::int64_t> extent = parse_integer(rest.substr(0, end), 1, largest_extent, where);
    if (!extent) return Diagnostic{where, fmt::format("{}: expected extents m, n, k like \"1024x4096x4096\", got {}", path, quoted(text))};
    *extents.at(i) = *extent;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return point;
}

}  // namespace

std::string text_of(FieldUnit unit, double value) {
  switch (unit) {
    case FieldUnit::seconds: return to_exact_text(Seconds{value});
    case FieldUnit::bytes: return std::isinf(value) ? "unlimited" : to_exact_text(Bytes{static_cast<std::int64_t>(value)});
    case FieldUnit::bytes_per_second: return to_exact_text(BytesPerSecond{value});
    case FieldUnit::flops_per_second: return to_exact_text(FlopsPerSecond{value});
    case FieldUnit::sharing: return value != 0 ? "shared" : "separate";
    case FieldUnit::number:
    case FieldUnit::quarters:
    case FieldUnit::integer:
    case FieldUnit::efficiency:
    case FieldUnit::matmul_efficiency: return fmt::format("{}", value);
  }
  PODSIM_ASSERT(false);
  return {};
}

std::vector<EfficiencyPoint> constant_curve(double efficiency) {
  if (efficiency == 1) return {};
  return {EfficiencyPoint{Bytes{1}, efficiency}};
}

Expected<double> parse_admissible(const MachineField& field, const std::string& path, std::string_view text, const SourceLocation& where) {
  const Expected<double> value = parse(field, text, where);
  if (!value) return Diagnostic{where, path + ": " + value.error().message};
  const bool too_much = field.unit == FieldUnit::bytes && std::isfinite(*value) && *value > largest_memory;
  if (*value < field.low || *value > field.high || too_much) {
    const std::string range = too_much ? fmt::format("at most {} or \"unlimited\"", text_of(field.unit, largest_memory)) : range_of(field);
    return Diagnostic{where, fmt::format("{} must be {}, got {}", path, range, quoted(text))};
  }
  return value;
}

Expected<std::vector<EfficiencyPoint>> parse_curve(const MachineField& field, const std::string& path, std::string_view text,
                                                   const SourceLocation& where) {
  std::vector<EfficiencyPoint> points;
  for (std::string_view rest = text; !rest.empty() || points.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view point = trimmed(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t word = point.find(" at ");
    const Expected<double> efficiency = parse_admissible(field, path, point.substr(0, word), where);
    if (!efficiency) return efficiency.error();
    if (word == std::string_view::npos) {
      if (points.empty() && rest.empty()) return constant_curve(*efficiency);
      return Diagnostic{where, fmt::format("{}: expected points like \"0.85 at 1 MiB\", got {}", path, quoted(point))};
    }
    const Expected<Bytes> input = parse_bytes(trimmed(point.substr(word + 4)), where);
    if (!input) return Diagnostic{where, path + ": " + input.error().message};
    if (*input <= (points.empty() ? Bytes{} : points.back().input))
      return Diagnostic{where, fmt::format("{}: points need increasing, positive amounts of data, got {}", path, quoted(text))};
    points.push_back({*input, *efficiency});
  }
  return points;
}

std::string text_of(const std::vector<EfficiencyPoint>& points) {
  if (points.empty()) return "1";
  if (points.size() == 1 && points == constant_curve(points[0].efficiency)) return fmt::format("{}", points[0].efficiency);
  std::string text;
  for (const EfficiencyPoint& point : points)
    text += fmt::format("{}{} at {}", text.empty() ? "" : ", ", point.efficiency, to_exact_text(point.input));
  return text;
}

std::string text_of(const MatmulTable& table) {
  std::string text;
  for (const MatmulPoint& p : table.points) text += fmt::format("{}{} at {}x{}x{}", text.empty() ? "" : ", ", p.efficiency, p.m, p.n, p.k);
  return text;
}

std::string rounded_text_of(FieldUnit unit, double value) {
  constexpr std::size_t short_enough = 16;
  const std::string exact = text_of(unit, value);
  if (exact.size() <= short_enough) return exact;
  switch (unit) {
    case FieldUnit::seconds: return to_text(Seconds{value});
    case FieldUnit::bytes: return to_text(Bytes{static_cast<std::int64_t>(value)});
    case FieldUnit::bytes_per_second: return to_text(BytesPerSecond{value});
    case FieldUnit::flops_per_second: return to_text(FlopsPerSecond{value});
    case FieldUnit::sharing: return text_of(unit, value);
    case FieldUnit::number:
    case FieldUnit::quarters:
    case FieldUnit::integer:
    case FieldUnit::efficiency:
    case FieldUnit::matmul_efficiency: return fmt::format("{:.4g}", value);
  }
  PODSIM_ASSERT(false);
  return {};
}

std::string rounded_text_of(const std::vector<EfficiencyPoint>& points) {
  if (points.empty()) return "1";
  if (points == constant_curve(points[0].efficiency)) return fmt::format("{:.4g}", points[0].efficiency);
  std::vector<std::string> texts;
  for (const auto& [input, efficiency] : points)
    texts.push_back(fmt::format("{:.4g} at {}", efficiency, rounded_text_of(FieldUnit::bytes, static_cast<double>(input.count()))));
  if (texts.size() <= most_points_shown) return fmt::format("{}", fmt::join(texts, ", "));
  return fmt::format("{} to {} ({} points)", texts.front(), texts.back(), texts.size());
}

std::string rounded_text_of(const MatmulTable& table) {
  std::vector<std::string> texts;
  for (const MatmulPoint& p : table.points) texts.push_back(fmt::format("{:.4g} at {}x{}x{}", p.efficiency, p.m, p.n, p.k));
  if (texts.size() <= most_points_shown) return fmt::format("{}", fmt::join(texts, ", "));
  const auto [least, most] = std::minmax_element(table.points.begin(), table.points.end(),
                                                 [](const MatmulPoint& a, const MatmulPoint& b) { return a.efficiency < b.efficiency; });
  return fmt::format("{:.4g} to {:.4g} ({} points)", least->efficiency, most->efficiency, table.points.size());
}

Expected<std::vector<MatmulPoint>> parse_matmul_points(const MachineField& field, const std::string& path, std::string_view text,
                                                       const SourceLocation& where) {
  std::vector<MatmulPoint> points;
  std::set<std::array<std::int64_t, 3>> seen;
  for (const std::string& piece : split(text)) {
    const std::string_view part = trimmed(piece);
    const std::size_t word = part.find(" at ");
    if (word == std::string_view::npos)
      return Diagnostic{where, fmt::format("{}: expected points like \"0.85 at 1024x4096x4096\", got {}", path, quoted(part))};
    const Expected<double> efficiency = parse_admissible(field, path, part.substr(0, word), where);
    if (!efficiency) return efficiency.error();
    Expected<MatmulPoint> point = parse_extents(trimmed(part.substr(word + 4)), path, where);
    if (!point) return point.error();
    if (!seen.insert({point->m, point->n, point->k}).second)
      return Diagnostic{where, fmt::format("{}: extents are given twice, {}x{}x{}", path, point->m, point->n, point->k)};
    if (seen.size() > most_matmul_points) return Diagnostic{where, fmt::format("{}: expected at most {} points", path, most_matmul_points)};
    point->efficiency = *efficiency;
    points.push_back(*point);
  }
  return points;
}

}  // namespace podsim
