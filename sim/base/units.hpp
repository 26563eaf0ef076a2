// Quantities as text: a number and its unit, with or without one space between them ("45GB/s", "1 us", "16MiB"). GB means 1e9 bytes, GiB 2^30.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

// Parsing. Errors: no number; no unit or an unknown one (the message lists the units); a negative or non-finite value; for rates, zero.
// Rates also take "unlimited". Bytes must be a whole number.
Expected<Seconds> parse_seconds(std::string_view text, const SourceLocation& where);                  // ps ns us ms s
Expected<Bytes> parse_bytes(std::string_view text, const SourceLocation& where);                      // B kB … PB, KiB … PiB
Expected<Flops> parse_flops(std::string_view text, const SourceLocation& where);                      // FLOP kFLOP … ZFLOP
Expected<BytesPerSecond> parse_bytes_per_second(std::string_view text, const SourceLocation& where);  // the same, per second
Expected<FlopsPerSecond> parse_flops_per_second(std::string_view text, const SourceLocation& where);  // FLOP/s kFLOP/s … EFLOP/s
/// A dimensionless number ("0.85"); a unit behind it is an error.
Expected<double> parse_number(std::string_view text, const SourceLocation& where);
/// A whole number in [low, high]; a unit, a fraction or an exponent is an error.
Expected<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high, const SourceLocation& where);

// Printing for people: four significant digits, the unit that leaves 1 to 999 before the point; "unlimited" for an infinite rate.
// Bytes and byte rates in decimal units. Beyond the largest unit the digits before the point grow.
std::string to_text(Seconds time);
std::string to_text(Picoseconds time);  // exact: "5607405187 ps"
std::string to_text(Bytes data);
std::string to_text(Flops work);
std::string to_text(BytesPerSecond rate);
std::string to_text(FlopsPerSecond rate);
/// An amount of data that may be fractional or exceed the range of Bytes: traffic summed over links.
std::string bytes_text(double bytes);

// Printing for files: a short text that parses back to the same value ("4.5e+10 B/s" is written "45 GB/s"). Never an exponent, and no five
// digits before the point if another unit is as short. Zero is "0 s", "0 B", "0 B/s"; a rate of zero does not parse back.
// The value must be finite (rates may be unlimited) and not negative: an assert.
std::string to_exact_text(Seconds time);
std::string to_exact_text(Bytes data);
std::string to_exact_text(BytesPerSecond rate);
std::string to_exact_text(FlopsPerSecond rate);

}  // namespace podsim
