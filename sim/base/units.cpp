#include "sim/base/units.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"

namespace podsim {
namespace {

/// One unit is 10^ten or 2^two of the SI unit; one of the two is zero. Decimal units are applied by moving the point of the text, so that
/// "1.1 us" is the same double as 1.1e-6.
struct Unit {
  std::string_view name;
  int ten = 0;
  int two = 0;
};

// Each table in increasing size, the decimal units first: printing for people uses those only.
constexpr Unit time_units[] = {{"ps", -12}, {"ns", -9}, {"us", -6}, {"ms", -3}, {"s"}};
constexpr Unit data_units[] = {{"B"},          {"kB", 3},      {"MB", 6},      {"GB", 9},      {"TB", 12},    {"PB", 15},
                               {"KiB", 0, 10}, {"MiB", 0, 20}, {"GiB", 0, 30}, {"TiB", 0, 40}, {"PiB", 0, 50}};
constexpr Unit data_rate_units[] = {{"B/s"},          {"kB/s", 3},      {"MB/s", 6},      {"GB/s", 9},      {"TB/s", 12},    {"PB/s", 15},
                                    {"KiB/s", 0, 10}, {"MiB/s", 0, 20}, {"GiB/s", 0, 30}, {"TiB/s", 0, 40}, {"PiB/s", 0, 50}};
constexpr Unit work_units[] = {{"FLOP"},      {"kFLOP", 3},  {"MFLOP", 6},  {"GFLOP", 9},
                               {"TFLOP", 12}, {"PFLOP", 15}, {"EFLOP", 18}, {"ZFLOP", 21}};
constexpr Unit work_rate_units[] = {{"FLOP/s"}, {"kFLOP/s", 3}, {"MFLOP/s", 6}, {"GFLOP/s", 9}, {"TFLOP/s", 12}, {"PFLOP/s", 15}, {"EFLOP/s", 18}};

/// What is parsed, for messages.
struct Kind {
  std::string_view noun;  // "a rate"
  std::span<const Unit> units;
};
constexpr Kind time_kind{"a time", time_units};
constexpr Kind data_kind{"an amount of data", data_units};
constexpr Kind data_rate_kind{"a bandwidth", data_rate_units};
constexpr Kind work_kind{"an amount of work", work_units};
constexpr Kind work_rate_kind{"a rate of work", work_rate_units};

std::vector<std::string> names(std::span<const Unit> units) {
  std::vector<std::string> result;
  for (const Unit& unit : units) result.emplace_back(unit.name);
  return result;
}

// ---- Parsing --------------------------------------------------------------------------------------------------------------------------

struct NumberAndUnit {
  std::string_view number, unit;
};

/// The number at the front and the unit behind it, which may be empty. Nothing if there is no finite number.
std::optional<NumberAndUnit> number_and_unit(std::string_view text) {
  double ignored = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), ignored);
  if (status != std::errc{} || !std::isfinite(ignored)) return std::nullopt;
  const auto length = static_cast<std::size_t>(end - text.data());
  std::string_view unit = text.substr(length);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  return NumberAndUnit{text.substr(0, length), unit};
}

/// number * 10^power, correctly rounded: the power goes into the text.
std::optional<double> scaled(std::string_view number, int power) {
  const std::size_t at = number.find_first_of("eE");
  int exponent = 0;
  if (at != std::string_view::npos) {
    std::string_view digits = number.substr(at + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec != std::errc{}) return std::nullopt;
    if (std::abs(exponent) > 10000) return std::nullopt;  // number_and_unit() let it pass, so the mantissa is zero or absurdly long
  }
  const std::string text = fmt::format("{}e{}", number.substr(0, at), exponent + power);
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value + 0.0;  // "-0" is 0
}

/// "; 100 Gb/s are 12.5 GB/s": of a unit that counts bits, what it is in bytes. Empty: it does not.
std::string in_bytes(const NumberAndUnit& bits, const Kind& kind) {
  using Names = std::pair<std::string_view, std::string_view>;
  for (const auto& [of_bits, of_bytes] : {Names{"b/s", "B/s"}, {"bit/s", "B/s"}, {"bps", "B/s"}, {"b", "B"}, {"bit", "B"}}) {
    if (!bits.unit.ends_with(of_bits)) continue;
    const std::string name = std::string{bits.unit.substr(0, bits.unit.size() - of_bits.size())} + std::string{of_bytes};
    const auto unit = std::find_if(kind.units.begin(), kind.units.end(), [&](const Unit& u) { return u.name == name; });
    const std::optional<double> number = scaled(bits.number, 0);
    if (unit != kind.units.end() && number) return fmt::format("; {} {} are {:g} {}", bits.number, bits.unit, *number / 8, name);
  }
  return {};
}

struct Parsed {
  std::string_view number;
  const Unit* unit;
};

Expected<Parsed> parse_with_unit(std::string_view text, const Kind& kind, const SourceLocation& where) {
  const auto fail = [&](std::string_view problem) {
    return Diagnostic{where, fmt::format("{} {} ({}), got {}", kind.noun, problem, fmt::join(names(kind.units), ", "), quoted(text))};
  };
  const std::optional<NumberAndUnit> parts = number_and_unit(text);
  if (!parts) return fail("needs a finite number and a unit");
  if (parts->unit.empty()) return fail("needs a unit");
  const auto unit = std::find_if(kind.units.begin(), kind.units.end(), [&](const Unit& u) { return u.name == parts->unit; });
  if (unit != kind.units.end()) return Parsed{parts->number, &*unit};
  Diagnostic unknown = fail("needs a known unit");
  const std::string of_bits = in_bytes(*parts, kind);
  unknown.message += of_bits.empty() ? did_you_mean(parts->unit, names(kind.units)) : of_bits;
  return unknown;
}

Expected<double> parse_value(std::string_view text, const Kind& kind, const SourceLocation& where) {
  const Expected<Parsed> parsed = parse_with_unit(text, kind, where);
  if (!parsed) return parsed.error();
  const std::optional<double> number = scaled(parsed->number, parsed->unit->ten);
  const double value = number ? std::ldexp(*number, parsed->unit->two) : 0;
  if (!number || !std::isfinite(value)) return Diagnostic{where, fmt::format("{} is out of range: {}", kind.noun, quoted(text))};
  if (value < 0) return Diagnostic{where, fmt::format("{} must not be negative, got {}", kind.noun, quoted(text))};
  return value;
}

/// An amount of data in plain digits, without the detour over a double, which holds every whole number up to 2^53 only.
std::optional<std::int64_t> whole_bytes(const Parsed& parsed) {
  std::int64_t value = 0;
  const std::string_view number = parsed.number;
  const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (status != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  std::int64_t unit = std::int64_t{1} << parsed.unit->two;
  for (int i = 0; i < parsed.unit->ten; ++i) unit *= 10;
  if (__builtin_mul_overflow(value, unit, &value)) return std::nullopt;
  return value;
}

template <class Rate>
Expected<Rate> parse_rate(std::string_view text, const Kind& kind, const SourceLocation& where) {
  if (text == "unlimited") return unlimited<Rate>;
  const Expected<double> value = parse_value(text, kind, where);
  if (!value) {
    Diagnostic error = value.error();
    if (!number_and_unit(text)) error.message += "; \"unlimited\" is allowed";
    return error;
  }
  if (*value == 0) return Diagnostic{where, fmt::format("{} must be positive, got {}", kind.noun, quoted(text))};
  return Rate{*value};
}

// ---- Printing -------------------------------------------------------------------------------------------------------------------------

/// A positive number digits[0].digits[1..] * 10^exponent, exactly.
struct Decimal {
  std::string digits;
  int exponent = 0;
};

/// The shortest decimal that parses back to the same double.
Decimal decimal_of(double value) {
  char buffer[64];
  const auto [end, status] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  PODSIM_ASSERT(status == std::errc{});
  std::string text(buffer, end);
  const std::size_t at = text.find('e');
  Decimal result{text.substr(0, at), std::atoi(text.c_str() + at + 1)};
  std::erase(result.digits, '.');
  return result;
}

Decimal decimal_of(std::int64_t value) {
  Decimal result{fmt::format("{}", value), 0};
  result.exponent = static_cast<int>(result.digits.size()) - 1;
  result.digits.erase(result.digits.find_last_not_of('0') + 1);
  return result;
}

/// Without an exponent: "0.045", "45", "4500".
std::string plain(const Decimal& number) {
  const int point = number.exponent + 1;  // digits before the point
  const int count = static_cast<int>(number.digits.size());
  if (point <= 0) return "0." + std::string(static_cast<std::size_t>(-point), '0') + number.digits;
  if (point >= count) return number.digits + std::string(static_cast<std::size_t>(point - count), '0');
  return number.digits.substr(0, static_cast<std::size_t>(point)) + '.' + number.digits.substr(static_cast<std::size_t>(point));
}

/// The shortest text over all units, where five or more digits before the point count as two characters more; among equally short ones that with 1 to
/// 999 before the point, then the first of the table.
template <class Value>
std::string exact_text(Value value, std::span<const Unit> units) {
  const auto base = std::find_if(units.begin(), units.end(), [](const Unit& unit) { return unit.ten == 0 && unit.two == 0; });
  if (value == Value{}) return fmt::format("0 {}", base->name);
  const Decimal decimal = decimal_of(value);
  // A count of bytes above 2^53 may not be a double, so it is written without a fraction, which reads back as an integer.
  const bool huge = std::is_integral_v<Value> && static_cast<double>(value) >= 0x1p53;
  std::tuple<std::size_t, bool, std::string> best{std::string::npos, true, ""};
  for (const Unit& unit : units) {
    Decimal in_unit = decimal;
    if (unit.two != 0) {
      if (huge) continue;
      in_unit = decimal_of(std::ldexp(static_cast<double>(value), -unit.two));
    }
    in_unit.exponent -= unit.ten;
    if (huge && in_unit.exponent + 1 < static_cast<int>(in_unit.digits.size())) continue;
    const std::string text = fmt::format("{} {}", plain(in_unit), unit.name);
    const bool awkward = in_unit.exponent < 0 || in_unit.exponent > 2;
    const std::size_t length = text.size() + (in_unit.exponent > 3 ? 2 : 0);
    if (std::tie(std::get<0>(best), std::get<1>(best)) > std::make_tuple(length, awkward)) best = {length, awkward, text};
  }
  return std::get<2>(best);
}

/// Four significant digits.
std::string people_text(double value, std::span<const Unit> units) {
  const auto base = std::find_if(units.begin(), units.end(), [](const Unit& unit) { return unit.ten == 0; });
  if (value == 0) return fmt::format("0 {}", base->name);
  if (!std::isfinite(value)) return value > 0 ? "unlimited" : fmt::format("{}", value);
  std::string text;
  for (const Unit& unit : units) {
    if (unit.two != 0) break;
    const double in_unit = value / std::pow(10.0, unit.ten);
    text = fmt::format("{:.4g}", in_unit);
    // Rounding may carry 999.96 to 1000, so ask the text, not the number.
    if (std::abs(std::strtod(text.c_str(), nullptr)) < 1000) return fmt::format("{} {}", text, unit.name);
    text = fmt::format("{:.0f} {}", in_unit, unit.name);
  }
  return text;
}

}  // namespace

Expected<Seconds> parse_seconds(std::string_view text, const SourceLocation& where) {
  const Expected<double> value = parse_value(text, time_kind, where);
  if (!value) return value.error();
  return Seconds{*value};
}

Expected<Bytes> parse_bytes(std::string_view text, const SourceLocation& where) {
  const Expected<double> value = parse_value(text, data_kind, where);
  if (!value) return value.error();
  if (*value != std::floor(*value)) return Diagnostic{where, fmt::format("an amount of data must be whole bytes, got {}", quoted(text))};
  if (const std::optional<std::int64_t> whole = whole_bytes(*parse_with_unit(text, data_kind, where))) return Bytes{*whole};
  if (*value >= 0x1p63) return Diagnostic{where, fmt::format("an amount of data must be below 2^63 bytes, got {}", quoted(text))};
  return Bytes{static_cast<std::int64_t>(*value)};
}

Expected<Flops> parse_flops(std::string_view text, const SourceLocation& where) {
  const Expected<double> value = parse_value(text, work_kind, where);
  if (!value) return value.error();
  return Flops{*value};
}

Expected<BytesPerSecond> parse_bytes_per_second(std::string_view text, const SourceLocation& where) {
  return parse_rate<BytesPerSecond>(text, data_rate_kind, where);
}

Expected<FlopsPerSecond> parse_flops_per_second(std::string_view text, const SourceLocation& where) {
  return parse_rate<FlopsPerSecond>(text, work_rate_kind, where);
}

Expected<double> parse_number(std::string_view text, const SourceLocation& where) {
  const std::optional<NumberAndUnit> parts = number_and_unit(text);
  if (!parts) return Diagnostic{where, fmt::format("expected a finite number, got {}", quoted(text))};
  if (parts->number.size() != text.size()) return Diagnostic{where, fmt::format("expected a number without a unit, got {}", quoted(text))};
  const std::optional<double> value = scaled(parts->number, 0);
  if (!value) return Diagnostic{where, fmt::format("number out of range: {}", quoted(text))};
  return *value;
}

Expected<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high, const SourceLocation& where) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = status != std::errc::invalid_argument && end == text.data() + text.size();
  if (whole && status == std::errc{} && low <= value && value <= high) return value;
  if (high == std::numeric_limits<std::int64_t>::max())
    return Diagnostic{where, fmt::format("expected a whole number, at least {}, got {}", low, quoted(text))};
  return Diagnostic{where, fmt::format("expected a whole number from {} to {}, got {}", low, high, quoted(text))};
}

std::string to_text(Seconds time) { return people_text(time.count(), time_units); }
std::string to_text(Picoseconds time) { return fmt::format("{} ps", time.count()); }
std::string to_text(Bytes data) { return people_text(static_cast<double>(data.count()), data_units); }
std::string bytes_text(double bytes) { return people_text(bytes, data_units); }
std::string to_text(Flops work) { return people_text(work.count(), work_units); }
std::string to_text(BytesPerSecond rate) { return people_text(rate.count(), data_rate_units); }
std::string to_text(FlopsPerSecond rate) { return people_text(rate.count(), work_rate_units); }

std::string to_exact_text(Seconds time) {
  PODSIM_ASSERT(time.count() >= 0 && std::isfinite(time.count()));
  return exact_text(time.count(), time_units);
}
std::string to_exact_text(Bytes data) {
  PODSIM_ASSERT(data.count() >= 0);
  return exact_text(data.count(), data_units);
}
std::string to_exact_text(BytesPerSecond rate) { return is_unlimited(rate) ? "unlimited" : exact_text(rate.count(), data_rate_units); }
std::string to_exact_text(FlopsPerSecond rate) { return is_unlimited(rate) ? "unlimited" : exact_text(rate.count(), work_rate_units); }

}  // namespace podsim
