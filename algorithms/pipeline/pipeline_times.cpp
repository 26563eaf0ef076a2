#include "algorithms/pipeline/pipeline_times.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>

#include <fmt/format.h>

namespace podsim {
namespace {

constexpr std::size_t kinds_of_tasks = 4, most_told = 4;

Status check_tasks(const PipelineLists& lists) {
  const PipelineSpec& spec = lists.spec;
  if (lists.ranks.size() != static_cast<std::size_t>(spec.ranks))
    return Diagnostic{{}, fmt::format("lists of {} ranks; expected {}", lists.ranks.size(), spec.ranks)};
  std::vector<PipelineTask> all;
  for (int rank = 0; rank < spec.ranks; ++rank)
    for (const PipelineUnit& unit : lists.ranks[static_cast<std::size_t>(rank)]) {
      if (unit.empty()) return Diagnostic{{}, fmt::format("a unit of no task on rank {}", rank)};
      for (const PipelineTask& task : unit) {
        if (task.stage < 0 || task.stage >= spec.stages || task.microbatch < 0 || task.microbatch >= spec.microbatches)
          return Diagnostic{{}, fmt::format("{} is outside of {} stages and {} microbatches", name_of(task), spec.stages, spec.microbatches)};
        if (const int owner = rank_of_stage(spec, task.stage); owner != rank)
          return Diagnostic{{}, fmt::format("{} is on rank {}; expected rank {}, which has its stage", name_of(task), rank, owner)};
        all.push_back(task);
      }
    }
  std::sort(all.begin(), all.end());
  if (const auto twice = std::adjacent_find(all.begin(), all.end()); twice != all.end()) return Diagnostic{{}, name_of(*twice) + " is there twice"};
  return success();
}

/// Units start in the order of their times, so a queue of the ranks whose next unit can start is enough. A rank that cannot go on waits for one task.
class PipelineClock {
 public:
  explicit PipelineClock(const PipelineLists& lists)
      : lists_{lists},
        ends_(kinds_of_tasks * static_cast<std::size_t>(lists.spec.stages) * static_cast<std::size_t>(lists.spec.microbatches), unknown),
        waiting_(ends_.size()),
        next_(lists.ranks.size()),
        awaited_(lists.ranks.size()) {
    times_.finish.resize(lists.ranks.size()), times_.busy.resize(lists.ranks.size());
    times_.spans.resize(lists.ranks.size());
  }

  Expected<PipelineTimes> run() {
    for (std::size_t rank = 0; rank < lists_.ranks.size(); ++rank) look(rank);
    while (!ready_.empty()) {
      const auto [start, rank] = ready_.top();
      ready_.pop();
      execute(rank, start);
      look(rank);
    }
    if (std::any_of(awaited_.begin(), awaited_.end(), [](const auto& task) { return task.has_value(); })) return stuck();
    times_.makespan = times_.finish.empty() ? 0 : *std::max_element(times_.finish.begin(), times_.finish.end());
    return std::move(times_);
  }

 private:
  static constexpr std::int64_t unknown = -1;

  [[nodiscard]] std::size_t index(const PipelineTask& task) const {
    const auto& spec = lists_.spec;
    return (static_cast<std::size_t>(task.kind) * static_cast<std::size_t>(spec.stages) + static_cast<std::size_t>(task.stage)) *
               static_cast<std::size_t>(spec.microbatches) +
           static_cast<std::size_t>(task.microbatch);
  }

  /// Puts the rank into the queue, or notes the first task that its next unit waits for.
  void look(std::size_t rank) {
    awaited_[rank].reset();
    if (next_[rank] == lists_.ranks[rank].size()) return;
    const PipelineUnit& unit = lists_.ranks[rank][next_[rank]];
    std::int64_t start = times_.finish[rank];
    for (auto member = unit.begin(); member != unit.end(); ++member)
      for (const PipelineTask& needed : dependencies_of(*member, lists_.spec)) {
        if (std::find(unit.begin(), member, needed) != member) continue;  // an earlier member
        const std::int64_t end = ends_[index(needed)];
        if (end == unknown) {
          awaited_[rank] = needed;
          waiting_[index(needed)].push_back(rank);
          return;
        }
        start = std::max(start, end);
      }
    ready_.push({start, rank});
  }

  void execute(std::size_t rank, std::int64_t now) {
    const PipelineUnit& unit = lists_.ranks[rank][next_[rank]];
    times_.order.emplace_back(static_cast<int>(rank), static_cast<int>(next_[rank]++));
    for (const PipelineTask& task : unit) {
      const std::int64_t begin = now;
      now += units_of(task.kind);
      times_.spans[rank].push_back({task, begin, now});
      times_.busy[rank] += now - begin;
      ends_[index(task)] = now;
    }
    times_.finish[rank] = now;
    for (const PipelineTask& task : unit)
      for (const std::size_t waiting : std::exchange(waiting_[index(task)], {})) look(waiting);
  }

  [[nodiscard]] Diagnostic stuck() const {
    std::string text = "no rank can go on";
    std::size_t told = 0;
    for (std::size_t rank = 0; rank < awaited_.size(); ++rank) {
      if (!awaited_[rank]) continue;
      if (told++ == most_told) {
        text += "; ...";
        break;
      }
      text += fmt::format("{} rank {} waits at {} for {}", told == 1 ? ":" : ";", rank, name_of(lists_.ranks[rank][next_[rank]]),
                          name_of(*awaited_[rank]));
    }
    return {{}, text};
  }

  const PipelineLists& lists_;
  std::vector<std::int64_t> ends_;                 // of each task
  std::vector<std::vector<std::size_t>> waiting_;  // ranks, for each task
  std::vector<std::size_t> next_;                  // unit of each rank
  std::vector<std::optional<PipelineTask>> awaited_;
  std::priority_queue<std::pair<std::int64_t, std::size_t>, std::vector<std::pair<std::int64_t, std::size_t>>, std::greater<>> ready_;
  PipelineTimes times_;
};

/// The backward that frees what a forward left: the whole one or that of weights.
int peak_live_forwards(const std::vector<PipelineUnit>& list) {
  int live = 0, peak = 0;
  for (const PipelineUnit& unit : list)
    for (const PipelineTask& task : unit) {
      if (task.kind == PipelineTaskKind::forward) peak = std::max(peak, ++live);
      if (task.kind == PipelineTaskKind::backward || task.kind == PipelineTaskKind::backward_weights) --live;
    }
  return peak;
}

}  // namespace

Expected<PipelineTimes> pipeline_times(const PipelineLists& lists) {
  if (auto ok = check_tasks(lists); !ok) return ok.error();
  auto times = PipelineClock{lists}.run();
  if (!times) return times;
  for (const auto& list : lists.ranks) times->peak_live_forwards.push_back(peak_live_forwards(list));
  const auto busy = std::accumulate(times->busy.begin(), times->busy.end(), std::int64_t{0});
  if (times->makespan > 0)
    times->bubble_fraction = 1 - static_cast<double>(busy) / (static_cast<double>(times->makespan) * static_cast<double>(lists.spec.ranks));
  return times;
}

}  // namespace podsim
