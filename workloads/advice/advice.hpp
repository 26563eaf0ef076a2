// What would help a run: each remedy simulated, the best together, and how fast links would have to be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/advice/remedies.hpp"
#include "workloads/scenario/run_options.hpp"

namespace podsim {

struct TriedRemedy {
  Remedy remedy;
  double makespan_s = 0, exposed_communication_s = 0;
  Bytes peak_memory;
  bool over_hbm = false;  // does not fit the device
};

struct Advice {
  TriedRemedy before;               // the run itself, without a remedy
  std::vector<TriedRemedy> tried;   // what fits first, then the fastest first; ties in the order of remedies_of()
  std::vector<RefusedRemedy> refused;  // not possible here, or not to be tried
  std::vector<Remedy> not_tried;    // as they, or all of them, would take long
  std::optional<TriedRemedy> together;      // the best three that help, of different fields; nullopt: fewer than two do, or together they are not possible
  std::string why_not_together;             // the reason of the latter
  std::optional<double> links_factor;       // of the bandwidth of all links, at which the exposed communication is half; nullopt: none up to most_links_factor is, or nothing is exposed
  std::optional<TriedRemedy> faster_links;  // a run with that factor, or with most_links_factor; nullopt also where such runs take too long
};

inline constexpr double most_links_factor = 16;
/// Of the time: what counts as a gain.
inline constexpr double least_advised_gain = 1e-3;
/// Tasks that the engine plays for remedies without `options.force`: about two minutes of a core.
inline constexpr double most_played_for_advice = 60e6;

/// Whether it is faster, and fits where the run does; or fits where the run does not. And more so than one of those tried that is a part of it, with fewer changes.
bool helps(const TriedRemedy& tried, const Advice& advice);

/// `run` was simulated from these fields with these options. Every remedy is a run of its own. Errors: those of cancelled work.
Expected<Advice> advise(const Fields& fields, const Run& run, const RunOptions& options);

}  // namespace podsim
