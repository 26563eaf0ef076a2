// What hardware has: the least and the most of each quantity of a machine and of an observation. A value beyond is admissible, but most often a slip of a
// unit: whoever reads it warns.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"

namespace podsim {

struct Machine;

/// One row per quantity. Both ends belong to the range, in SI units.
struct HardwareRange {
  std::string_view quantity;  // a field of a machine without its index, "link.bandwidth"; of an observation "observed time"
  std::string_view unit;      // "s", "B", "B/s", "FLOP/s", or none
  double low = 0, high = 0;
  std::string_view evidence;  // what stands at both ends
};
std::span<const HardwareRange> hardware_ranges();

/// "link[x].latency is 1 ps, hardware has 10 ns to 10 ms: ...". nullopt: within the range; zero or unlimited, which say that something does not count; a
/// quantity without a row.
std::optional<std::string> doubt_about(std::string_view quantity, double value, std::string_view name);

/// The values of a machine beyond the range of hardware, by their paths, and where they were read. Machines are equal wherever they were read.
struct DoubtfulValues {
  std::map<std::string, Diagnostic> by_path;
  friend bool operator==(const DoubtfulValues&, const DoubtfulValues&) { return true; }
};

/// Those of a machine, each once, though a value without an index is that of every entry.
std::vector<Diagnostic> doubts_about(const Machine& machine);

}  // namespace podsim
