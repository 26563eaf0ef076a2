#include "tools/report/trace_levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "workloads/ledger/label_place.hpp"
#include "tools/report/lines.hpp"

namespace podsim {

namespace {

using Level = ProgramLevels::Level;

/// Finds the levels of labels, each once.
class LevelTree {
 public:
  explicit LevelTree(std::vector<Level>& levels) : levels_{levels} { levels_.push_back({0, 0, "step", "step"}); }

  std::uint32_t of(const LabelPlace& place, StepPass pass, bool recompute) {
    std::uint32_t at = 0;
    if (pass != StepPass::none) at = within(at, std::string{name_of(pass)}, "pass", {});
    if (place.microbatch) at = within(at, fmt::format("microbatch {}", place.microbatch->number), "microbatch", place.microbatch);
    if (recompute) at = within(at, "recompute", "recompute", place.microbatch);
    for (const std::string& layer : place.layers) at = within(at, layer, "layer", place.microbatch);
    return at;
  }

 private:
  std::uint32_t within(std::uint32_t parent, const std::string& name, const char* kind, const std::optional<LabelPlace::Microbatch>& microbatch) {
    const int number = microbatch ? microbatch->number : -1, stage = microbatch ? microbatch->stage : -1;
    const auto [known, added] = known_.try_emplace({parent, name, kind, number, stage}, static_cast<std::uint32_t>(levels_.size()));
    if (added) levels_.push_back({parent, levels_[parent].depth + 1, name, kind, number, stage});
    return known->second;
  }

  std::vector<Level>& levels_;
  std::map<std::tuple<std::uint32_t, std::string, std::string, int, int>, std::uint32_t> known_;
};

bool is_backward(StepPass pass) { return pass == StepPass::backward || pass == StepPass::backward_inputs || pass == StepPass::backward_weights; }

/// Keeps the words that both begin with.
void keep_common_words(std::string& name, std::string_view label) {
  const auto [mine, other] = std::ranges::mismatch(name, label);
  const auto between_words = [](auto at, auto end) { return at == end || *at == ' '; };
  const bool whole = between_words(mine, name.end()) && between_words(other, label.end());
  name.erase(mine, name.end());
  if (!whole) name.erase(std::min(name.size(), name.rfind(' ') + 1));  // nothing if there is no space
  while (name.ends_with(' ')) name.pop_back();
}

/// The spans of levels that the core turns to one after the other.
std::vector<LevelSpan> spans_on_core(const ProgramLevels& program, const DeviceEvents& events, Picoseconds makespan) {
  const std::vector<Level>& levels = program.levels;
  std::vector<LevelSpan> spans{{{}, makespan, 0}};
  std::vector<std::size_t> steps{0};  // in `spans`
  bool updates = false;               // the task before was the optimiser's
  std::vector<std::size_t> open;      // in `spans`, by depth from 1
  std::vector<std::uint32_t> path;    // of a task, likewise
  for (const TraceEvent& event : events.events) {
    if (event.kind != TraceEvent::Kind::work || event.end == event.begin || !event.on_core) continue;
    std::uint32_t at = program.level_of[event.task.index()];
    path.resize(levels[at].depth);
    for (; at != 0; at = levels[at].parent) path[levels[at].depth - 1] = at;
    std::size_t same = 0;
    while (same < std::min(open.size(), path.size()) && spans[open[same]].of == path[same]) ++same;
    open.resize(same);
    const bool update = !path.empty() && levels[path.front()].kind == "pass" && levels[path.front()].name == name_of(StepPass::optimiser);
    if (updates && !update) {
      spans[steps.back()].end = event.begin;
      steps.push_back(spans.size());
      spans.push_back({event.begin, makespan, 0});
    }
    updates = update;
    for (; same < path.size(); ++same) {
      open.push_back(spans.size());
      spans.push_back({event.begin, event.end, path[same]});
    }
    for (const std::size_t span : open) spans[span].end = event.end;
  }
  for (std::uint32_t s = 0; s < steps.size() && steps.size() > 1; ++s) spans[steps[s]].number = s + 1;
  return spans;
}

}  // namespace

ProgramLevels levels_of(const Program& program) {
  ProgramLevels result;
  std::vector<LabelPlace> places;
  bool has_backward = false;
  for (const Task& task : program.tasks) {
    places.push_back(place_of(task.label));
    has_backward |= is_backward(places.back().pass);
  }
  LevelTree tree{result.levels};
  std::vector<bool> named;
  for (std::size_t t = 0; t < places.size(); ++t) {
    const Task& task = program.tasks[t];
    StepPass pass = places[t].pass;
    if (pass == StepPass::none && has_backward && !places[t].layers.empty()) pass = StepPass::forward;
    result.level_of.push_back(tree.of(places[t], pass, task.recompute));
    if (!task.origin) continue;
    const auto number = static_cast<std::size_t>(task.origin->collective);
    if (number >= result.operations.size()) result.operations.resize(number + 1), named.resize(number + 1, false);
    ProgramLevels::Operation& operation = result.operations[number];
    if (named[number])
      keep_common_words(operation.name, task.label);
    else
      operation = {task.label, result.level_of.back()};
    named[number] = true;
  }
  return result;
}

DeviceLevels levels_of(const ProgramLevels& program, const Program& tasks, const DeviceEvents& events, Picoseconds makespan) {
  DeviceLevels result{spans_on_core(program, events, makespan), {}};
  std::vector<LevelSpan> extents(program.operations.size());
  std::vector<bool> seen(extents.size(), false);
  for (const TraceEvent& event : events.events) {
    const auto& origin = tasks.tasks[event.task.index()].origin;
    if (!origin || event.end == event.begin || event.kind == TraceEvent::Kind::core_share) continue;
    const auto number = static_cast<std::size_t>(origin->collective);
    LevelSpan& extent = extents[number];
    extent = {seen[number] ? std::min(extent.begin, event.begin) : event.begin, std::max(extent.end, event.end), static_cast<std::uint32_t>(number)};
    seen[number] = true;
  }
  std::erase_if(extents, [](const LevelSpan& extent) { return extent.end == extent.begin; });
  std::ranges::sort(extents, {}, [](const LevelSpan& span) { return std::tuple{span.begin, span.end, span.of}; });
  std::vector<Interval> intervals;
  for (const LevelSpan& extent : extents) intervals.push_back({extent.begin, extent.end});
  const std::vector<std::uint32_t> lines = allot_lines(intervals);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (lines[i] >= result.operations.size()) result.operations.resize(lines[i] + 1);
    result.operations[lines[i]].push_back(extents[i]);
  }
  return result;
}

}  // namespace podsim
