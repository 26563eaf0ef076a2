#include "tools/report/side_by_side.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "tools/report/name_numbers.hpp"
#include "tools/report/operation_lines.hpp"
#include "tools/report/run_operations.hpp"

namespace podsim {

namespace {

using Part = OperationEvent::Part;

/// What an operation did once: the event with which it begins, and its time on the core's line.
struct Occurrence {
  std::uint32_t first_event = 0;
  Picoseconds time;
};
using Occurrences = std::vector<std::vector<Occurrence>>;  // by operation, in the order of time

std::string_view ending(Part part) {
  switch (part) {
    case Part::whole: return "";
    case Part::start: return " start";
    case Part::update: return " update";
    case Part::done: return " done";
  }
  return "";
}

class Comparer {
 public:
  Comparer(const Model& model, const Timeline& timeline, DeviceId device, const ProfiledDeviceStep& measured, const std::vector<std::string>& names,
           std::int64_t layers)
      : timeline_{timeline},
        lines_{operation_lines(model, timeline, device)},
        measured_{measured},
        measured_names_{names},
        layers_{layers},
        names_{result_.names} {}

  SideBySide run() {
    result_.measured_as = measured_.device;
    const StepTimes step = step_of(measured_.step);
    result_.diff = diff_steps(step_of(lines_.timeline.operations, timeline_.makespan), step, layers_);
    const Occurrences simulated = lay_out_simulated(), measured = lay_out_measured();
    late_.resize(result_.measured.size()), pace_.resize(result_.measured.size());
    std::vector<bool> matched(simulated.size(), false);
    for (const DiffRow& row : result_.diff.operations) {
      pair(of_group(simulated, row.predicted.of), of_group(measured, row.measured.of), step.time);
      for (const std::size_t operation : row.predicted.of) matched[operation] = true;
    }
    for (std::size_t e = 0; e < lines_.core.size(); ++e)
      result_.simulated[e].matched = matched[lines_.timeline.occurrences[lines_.core[e].occurrence].operation];
    tell_lateness();
    return std::move(result_);
  }

 private:
  Occurrences lay_out_simulated() {
    const OperationTimeline& all = lines_.timeline;
    std::vector<Picoseconds> time(all.occurrences.size());
    for (const OperationStretch& stretch : all.stretches) time[stretch.occurrence] += stretch.when.end - stretch.when.begin;
    Occurrences found(all.operations.size());
    std::vector<bool> seen(all.occurrences.size(), false);
    for (const OperationEvent& event : lines_.core) {
      const std::uint32_t operation = all.occurrences[event.occurrence].operation;
      if (!seen[event.occurrence]) found[operation].push_back({static_cast<std::uint32_t>(result_.simulated.size()), time[event.occurrence]});
      seen[event.occurrence] = true;
      const OperationMetrics& metrics = all.operations[operation];
      result_.simulated.push_back(
          {event.begin, event.end, names_.of(metrics.name + std::string{ending(event.part)}), names_.of(std::string{metrics.category})});
    }
    return found;
  }

  Occurrences lay_out_measured() {
    Occurrences found(measured_.step.operations.size());
    occurrence_of_.reserve(measured_.events.size());
    std::map<std::uint32_t, std::uint32_t> known;  // by name in the profile
    std::vector<Picoseconds> open;                 // ends of the events that contain the next
    std::vector<std::map<std::uint32_t, std::uint32_t>> position(found.size());
    for (const ProfiledDeviceStep::Event& event : measured_.events) {
      const auto at = static_cast<std::uint32_t>(result_.measured.size());
      const auto [occurrence, is_first] =
          position[event.operation].try_emplace(event.occurrence, static_cast<std::uint32_t>(found[event.operation].size()));
      if (is_first) found[event.operation].push_back({at, {}});
      found[event.operation][occurrence->second].time += Picoseconds{event.self_ps};
      occurrence_of_.push_back(found[event.operation][occurrence->second].first_event);
      const auto [name, is_new] = known.try_emplace(event.name, 0);
      if (is_new) name->second = names_.of(measured_names_[event.name]);
      Picoseconds end{event.end_ps};
      const Picoseconds begin{event.begin_ps};
      while (!open.empty() && open.back() <= begin) open.pop_back();
      if (!open.empty()) end = std::min(end, open.back());  // clocks may make an event go on beyond the one that it is in
      open.push_back(end);
      result_.measured.push_back({begin, end, name->second, names_.of(measured_.step.operations[event.operation].category)});
    }
    return found;
  }

  static std::vector<Occurrence> of_group(const Occurrences& all, const std::vector<std::size_t>& operations) {
    std::vector<Occurrence> group;
    for (const std::size_t operation : operations) group.insert(group.end(), all[operation].begin(), all[operation].end());
    std::ranges::sort(group, {}, &Occurrence::first_event);
    return group;
  }

  void pair(const std::vector<Occurrence>& simulated, const std::vector<Occurrence>& measured, Seconds step) {
    const std::size_t p = simulated.size(), m = measured.size();
    if (p == 0 || m == 0) return;
    Picoseconds predicted;
    for (const Occurrence& occurrence : simulated) predicted += layers_ * occurrence.time;
    const bool one_to_one = m == p * static_cast<std::size_t>(layers_);
    const auto among = static_cast<std::int64_t>(m);
    for (std::size_t j = 0; j < m; ++j) {
      const Occurrence& occurrence = measured[j];
      const Picoseconds expected = one_to_one
                                       ? simulated[j % p].time
                                       : Picoseconds{predicted.count() / among + (static_cast<std::int64_t>(j) < predicted.count() % among ? 1 : 0)};
      late_[occurrence.first_event] = occurrence.time - expected;
      pace_[occurrence.first_event] = pace_of(to_seconds(expected), to_seconds(occurrence.time), step);
    }
    const std::size_t first_layer = one_to_one ? p : std::min(p, m), of_layer = one_to_one ? p : m;
    for (std::size_t i = 0; i < first_layer; ++i)
      result_.pairs.emplace_back(simulated[i * p / first_layer].first_event, measured[i * of_layer / first_layer].first_event);
  }

  /// All events of an occurrence show its pace.
  void tell_lateness() {
    for (std::uint32_t e = 0; e < result_.measured.size(); ++e) {
      const std::uint32_t first = occurrence_of_[e];
      result_.measured[e].matched = late_[first].has_value();
      result_.measured[e].pace = pace_[first];
      if (first == e) result_.measured[e].late = late_[e];
    }
  }

  const Timeline& timeline_;
  OperationLines lines_;
  const ProfiledDeviceStep& measured_;
  const std::vector<std::string>& measured_names_;
  std::int64_t layers_;
  SideBySide result_;
  NameNumbers names_;
  std::vector<std::uint32_t> occurrence_of_;      // per measured event the first of its occurrence
  std::vector<std::optional<Picoseconds>> late_;  // per measured event that is the first of its occurrence
  std::vector<Pace> pace_;
};

}  // namespace

SideBySide beside(const Model& model, const Timeline& timeline, DeviceId device, const ProfiledDeviceStep& measured,
                  const std::vector<std::string>& names, std::int64_t layers) {
  return Comparer{model, timeline, device, measured, names, layers}.run();
}

}  // namespace podsim
