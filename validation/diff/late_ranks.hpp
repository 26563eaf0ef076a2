// Which rank the others wait for: the collectives of one step of a profile of several devices.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "validation/calibration/importers/profile_operations.hpp"

namespace podsim {

/// All occurrences of a collective in the step.
struct LateCollective {
  std::string name;
  std::string category;           // "all-gather"
  int count = 0;                  // occurrences
  std::size_t last = 0;           // the rank that comes last most often; ties: the first
  int times_last = 0;             // of `count`
  Seconds longest;                // that the rank which comes first waits for the last one, in the worst occurrence
  Seconds waited;                 // of all ranks and occurrences
  std::vector<Seconds> lateness;  // by rank: how much later than the first one it comes, the sum over occurrences
};

struct LateRank {
  std::string device;                 // "/device:GPU:3"
  Seconds waited;                     // for ranks that come later
  int times_last = 0;                 // collectives to which it comes last
  Seconds others_waited;              // for it: of all others, where it is last
  std::vector<Seconds> waited_for{};  // by the rank that is last
};

struct LateRanks {
  std::vector<LateCollective> collectives;  // those that cost most waiting first
  std::vector<LateRank> ranks;              // in the order of the profile
  std::vector<std::string> notes{};         // what was left out
};

/// Clocks of hosts differ, but a collective ends at one time on all its ranks: so a rank comes the later the shorter the collective is there, and it waits for as long as the collective takes longer than on the rank where
/// it is shortest. Of a collective that runs between a start and a done the time from one to the other counts. What takes less than `noise` longer is no wait. Left out, with a note: collectives of groups of fewer devices
/// than the profile has, as it does not say which form a group; those that not all devices have equally often. O(events)
LateRanks late_ranks(const ProfiledStep& step, Seconds noise = Seconds{1e-6});

}  // namespace podsim
