#include "tools/report/operation_lines.hpp"

#include <algorithm>
#include <tuple>

namespace podsim {

namespace {

using Part = OperationEvent::Part;

class Arranger {
 public:
  Arranger(const Model& model, const Timeline& timeline, DeviceId device)
      : model_{model}, activity_{model, timeline, model.node_of[device.index()]}, program_{model.deployment.places[model.node_of[device.index()]].program} {
    result_.timeline = operation_timeline(model, timeline, device);
  }

  OperationLines run() {
    const std::size_t count = result_.timeline.occurrences.size();
    if (count == 0) return std::move(result_);
    place_on_core();
    cut_stretches();
    result_.asynchronous.assign(result_.timeline.operations.size(), false);
    for (std::uint32_t o = 0; o < count; ++o)
      if (!is_call(o) && !is_whole(o)) result_.asynchronous[operation_of(o)] = true;
    for (std::uint32_t o = 0; o < count; ++o) add(o);
    const auto key = [](const OperationEvent& e) {
      return std::tuple{e.begin, e.end > e.begin, Picoseconds{} - e.end, e.occurrence, e.part};  // instants first, then what contains the other
    };
    std::ranges::sort(result_.core, [&](const OperationEvent& a, const OperationEvent& b) { return key(a) < key(b); });
    std::ranges::sort(result_.in_flight, [](const OperationEvent& a, const OperationEvent& b) {
      return std::tuple{a.begin, a.end, a.occurrence} < std::tuple{b.begin, b.end, b.occurrence};
    });
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::size_t operation_of(std::uint32_t occurrence) const { return result_.timeline.occurrences[occurrence].operation; }
  [[nodiscard]] bool is_call(std::uint32_t occurrence) const {
    return model_.call(program_, result_.timeline.occurrences[occurrence].first.index()) != nullptr;
  }

  /// Where the tasks of the core are, by task: of Calls their whole extent, of works without time their place.
  void place_on_core() {
    on_core_.resize(model_.costs[program_].size());
    for (const NodeActivity::CoreTime& time : activity_.core_times()) {
      if (time.share) continue;
      on_core_[time.task.index()] = time.interval;
      if (model_.call(program_, time.task.index()) != nullptr) calls_.push_back(time.interval);
    }
  }

  /// The stretches of each occurrence, those that touch as one. None goes across the beginning or end of a Call, which is one event.
  void cut_stretches() {
    pieces_.resize(result_.timeline.occurrences.size());
    auto next_call = calls_.begin();  // the first that ends behind the time
    for (const OperationStretch& stretch : result_.timeline.stretches) {
      if (is_call(stretch.occurrence)) continue;
      Picoseconds at = stretch.when.begin;
      while (at < stretch.when.end) {
        while (next_call != calls_.end() && next_call->end <= at) ++next_call;
        Picoseconds end = stretch.when.end;
        if (next_call != calls_.end()) end = std::min(end, at < next_call->begin ? next_call->begin : next_call->end);
        std::vector<Interval>& pieces = pieces_[stretch.occurrence];
        const bool at_call = next_call != calls_.end() && next_call->begin == at;
        const bool behind_call = next_call != calls_.begin() && std::prev(next_call)->end == at;
        if (!pieces.empty() && pieces.back().end == at && !at_call && !behind_call)
          pieces.back().end = end;
        else
          pieces.push_back({at, end});
        at = end;
      }
    }
  }

  /// From the first moment to the last at which it is in flight or the core turns to it.
  [[nodiscard]] Interval extent(std::uint32_t o) const {
    const OperationOccurrence& occurrence = result_.timeline.occurrences[o];
    const std::vector<Interval>& pieces = pieces_[o];
    if (pieces.empty()) return occurrence.flies ? occurrence.flight : on_core_[occurrence.first.index()];
    Interval extent{pieces.front().begin, pieces.back().end};
    if (occurrence.flies) extent = {std::min(extent.begin, occurrence.flight.begin), std::max(extent.end, occurrence.flight.end)};
    return extent;
  }

  /// Whether one event says all.
  [[nodiscard]] bool is_whole(std::uint32_t o) const {
    if (pieces_[o].empty()) return !result_.timeline.occurrences[o].flies;
    return pieces_[o].size() == 1 && pieces_[o].front() == extent(o);
  }

  void add(std::uint32_t o) {
    std::vector<OperationEvent>& core = result_.core;
    if (is_call(o)) {
      const Interval& when = on_core_[result_.timeline.occurrences[o].first.index()];
      core.push_back({when.begin, when.end, o, Part::whole});
      return;
    }
    const Interval whole = extent(o);
    if (!result_.asynchronous[operation_of(o)]) {
      core.push_back({whole.begin, whole.end, o, Part::whole});
      return;
    }
    result_.in_flight.push_back({whole.begin, whole.end, o, Part::whole});
    const std::vector<Interval>& pieces = pieces_[o];
    std::size_t first = 0, last = pieces.size();
    OperationEvent start{whole.begin, whole.begin, o, Part::start}, done{whole.end, whole.end, o, Part::done};
    if (last > first && pieces[last - 1].end == whole.end) done.begin = pieces[--last].begin;
    if (last > first && pieces[first].begin == whole.begin) start.end = pieces[first++].end;
    core.push_back(start);
    for (; first < last; ++first) core.push_back({pieces[first].begin, pieces[first].end, o, Part::update});
    core.push_back(done);
  }

  const Model& model_;
  NodeActivity activity_;
  std::uint32_t program_;
  OperationLines result_;
  std::vector<Interval> on_core_, calls_;
  std::vector<std::vector<Interval>> pieces_;  // per occurrence
};

}  // namespace

OperationLines operation_lines(const Model& model, const Timeline& timeline, DeviceId device) {
  if (model.deployment.places[model.node_of[device.index()]].program == no_device) return {};
  return Arranger{model, timeline, device}.run();
}

}  // namespace podsim
