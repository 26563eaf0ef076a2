// Differences of a module that its own schedule shows, with the change that leaves each out. Internal to compare_module().
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "workloads/differences/module_differences.hpp"

namespace podsim {

/// A difference whose gain is not simulated yet.
struct DifferenceCandidate {
  ModuleDifference difference;
  ModuleEdit edit;
  bool if_ours_overlaps = false;  // it is one only beside a schedule that overlaps
};

/// Unused work, collectives that nothing overlaps, copies, layouts and further work.
std::vector<DifferenceCandidate> candidates_of(const HloModule& module, const FlatModule& flat);

/// What transfers carry: the left operand, the right one, (partial) results, anything else.
enum class Carried : std::uint8_t { left, right, result, other };
inline constexpr std::size_t carried_count = 4;
using CarriedBytes = std::array<double, carried_count>;  // link bytes

/// Of each task of a module: what its first read is. `left` and `right` name parameters.
std::vector<Carried> carried_by_module(const FlatModule& flat, const DataFlow& flow, const ModuleProduct& product);
/// Of podsim's schedule of a product, simulated.
CarriedBytes carried_bytes(const Run& ours);

/// Transfers of arrays that podsim's schedule moves with fewer bytes, if all that the module moves and uses is more than ours.
std::vector<DifferenceCandidate> excess_transfers(const FlatModule& flat, const std::vector<Carried>& carried, const CarriedBytes& ours);

/// "in trip 4 of 4 of while.1", "3 times", or "" if it runs once.
std::string where_text(const FlatModule& flat, const std::set<std::size_t>& tasks);

}  // namespace podsim
