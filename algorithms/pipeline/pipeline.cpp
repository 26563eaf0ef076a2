#include "algorithms/pipeline/pipeline.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/invariant.hpp"

namespace podsim {
namespace {

enum class StagesPerRank { one, two, any };

struct ScheduleRow {
  PipelineSchedule schedule;
  std::string_view name;
  StagesPerRank stages_per_rank;
  bool splits_backward, fuses;
};
constexpr std::array<ScheduleRow, 7> rows{{
    {PipelineSchedule::gpipe, "gpipe", StagesPerRank::one, false, false},
    {PipelineSchedule::one_f_one_b, "1f1b", StagesPerRank::one, false, false},
    {PipelineSchedule::eager_one_f_one_b, "eager-1f1b", StagesPerRank::one, false, false},
    {PipelineSchedule::interleaved, "interleaved-1f1b", StagesPerRank::any, false, true},
    {PipelineSchedule::kimi_k2, "kimi-k2", StagesPerRank::any, false, true},
    {PipelineSchedule::zero_bubble, "zero-bubble", StagesPerRank::one, true, false},
    {PipelineSchedule::dual_pipe_v, "dual-pipe-v", StagesPerRank::two, true, false},
}};

const ScheduleRow& row_of(PipelineSchedule schedule) {
  const ScheduleRow& row = rows[static_cast<std::size_t>(schedule)];
  PODSIM_ASSERT(row.schedule == schedule);
  return row;
}

struct KindRow {
  std::string_view name, code;
  int units;
};
constexpr std::array<KindRow, 4> kinds{{{"fwd", "F", 1}, {"bwd", "B", 2}, {"bwdA", "BI", 1}, {"bwdW", "BW", 1}}};
const KindRow& row_of(PipelineTaskKind kind) { return kinds[static_cast<std::size_t>(kind)]; }

Status check_stages(const PipelineSpec& spec, const ScheduleRow& row) {
  const int S = spec.stages, D = spec.ranks;
  const auto wrong = [&](const std::string& expected) {
    return Diagnostic{of_field("stages"), fmt::format("{} stages on {} ranks; expected {}", S, D, expected)};
  };
  switch (row.stages_per_rank) {
    case StagesPerRank::one:
      if (S != D) return wrong(fmt::format("one stage per rank with {}; interleaved-1f1b and kimi-k2 take several", row.name));
      break;
    case StagesPerRank::two:
      if (S != 2 * static_cast<std::int64_t>(D)) return wrong(fmt::format("{}, two per rank with {}", 2 * static_cast<std::int64_t>(D), row.name));
      break;
    case StagesPerRank::any:
      if (S % D != 0) return wrong(fmt::format("a multiple of {}", D));
      break;
  }
  return success();
}

bool has_equal_rounds(int microbatches, int ranks) { return microbatches % std::max(1, microbatches / ranks) == 0; }

/// The microbatches of an interleaved schedule go round in floor(m / D) rounds, all equally long.
Status check_rounds(const PipelineSpec& spec) {
  const int m = spec.microbatches, D = spec.ranks;
  if (has_equal_rounds(m, D)) return success();
  int below = m, above = m;
  while (!has_equal_rounds(below, D)) --below;
  while (!has_equal_rounds(above, D)) ++above;
  return Diagnostic{of_field("microbatches"),
                    fmt::format("{} microbatches in {} equal rounds over {} ranks; expected a multiple of {}, or the nearest that "
                                "divide: {} or {}",
                                m, m / D, D, D, below, above)};
}

}  // namespace

std::string_view name_of(PipelineSchedule schedule) { return row_of(schedule).name; }

std::span<const PipelineSchedule> all_pipeline_schedules() {
  static constexpr std::array<PipelineSchedule, rows.size()> all = [] {
    std::array<PipelineSchedule, rows.size()> schedules{};
    for (std::size_t i = 0; i < rows.size(); ++i) schedules[i] = rows[i].schedule;
    return schedules;
  }();
  return all;
}

Expected<PipelineSchedule> pipeline_schedule_named(std::string_view name, const SourceLocation& where) {
  std::vector<std::string> names;
  for (const ScheduleRow& row : rows) {
    if (row.name == name) return row.schedule;
    names.emplace_back(row.name);
  }
  return Diagnostic{where, fmt::format("no pipeline schedule {}{}; expected {}", quoted(name), did_you_mean(name, names), fmt::join(names, ", "))};
}

int units_of(PipelineTaskKind kind) { return row_of(kind).units; }
std::string name_of(const PipelineTask& task) { return fmt::format("{}_{}__{}", row_of(task.kind).name, task.stage, task.microbatch); }

std::optional<PipelineTask> pipeline_task_named(std::string_view name) {
  const std::size_t first = name.find('_'), second = name.find("__", std::min(first, name.size()));
  if (second == std::string_view::npos || second <= first) return std::nullopt;
  const auto kind = std::ranges::find(kinds, name.substr(0, first), &KindRow::name);
  const auto number = [](std::string_view digits, int& value) {
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return status == std::errc{} && end == digits.data() + digits.size() && value >= 0;
  };
  PipelineTask task{static_cast<PipelineTaskKind>(kind - kinds.begin())};
  if (kind == kinds.end() || !number(name.substr(first + 1, second - first - 1), task.stage) || !number(name.substr(second + 2), task.microbatch))
    return std::nullopt;
  if (name_of(task) != name) return std::nullopt;  // leading zeros
  return task;
}

std::string code_of(const PipelineTask& task) { return fmt::format("{}{}.{}", row_of(task.kind).code, task.stage, task.microbatch); }

std::string name_of(const PipelineUnit& unit) {
  PODSIM_ASSERT(!unit.empty());
  if (unit.size() == 1) return name_of(unit.front());
  std::vector<std::string> names;
  for (const PipelineTask& task : unit) names.push_back(name_of(task));
  return fmt::format("FusedTask({})", fmt::join(names, ", "));
}

Status check_pipeline(const PipelineSpec& spec) {
  for (const auto& [count, field] : {std::pair{spec.stages, "stages"}, std::pair{spec.ranks, "ranks"}, std::pair{spec.microbatches, "microbatches"}})
    if (count < 1) return Diagnostic{of_field(field), fmt::format("expected at least 1, got {}", count)};
  const ScheduleRow& row = row_of(spec.schedule);
  if (auto ok = check_stages(spec, row); !ok) return ok;
  if (spec.stages > most_stage_microbatches)
    return Diagnostic{of_field("stages"), fmt::format("expected at most {}, got {}", most_stage_microbatches, spec.stages)};
  if (const std::int64_t most = most_stage_microbatches / spec.stages; spec.microbatches > most)
    return Diagnostic{of_field("microbatches"), fmt::format("expected at most {}, that is {} over {} stages, got {}", most, most_stage_microbatches,
                                                            spec.stages, spec.microbatches)};
  if (spec.fuse_steady_state && !row.fuses)
    return Diagnostic{of_field("fuse_steady_state"),
                      fmt::format("expected interleaved-1f1b or kimi-k2, which alone fuse by choice, got {}", row.name)};
  if (row.stages_per_rank == StagesPerRank::any) return check_rounds(spec);
  if (spec.schedule == PipelineSchedule::zero_bubble && spec.stages < 2)
    return Diagnostic{of_field("stages"), fmt::format("expected at least 2 stages with zero-bubble, got {}", spec.stages)};
  if (row.splits_backward && spec.microbatches < spec.stages)
    return Diagnostic{of_field("microbatches"),
                      fmt::format("expected at least as many as the {} stages with {}, got {}", spec.stages, row.name, spec.microbatches)};
  return success();
}

bool splits_backward(PipelineSchedule schedule) { return row_of(schedule).splits_backward; }

int rank_of_stage(const PipelineSpec& spec, int stage) {
  PODSIM_ASSERT(stage >= 0 && stage < spec.stages);
  const int there = stage % spec.ranks;
  return row_of(spec.schedule).stages_per_rank == StagesPerRank::two && stage >= spec.ranks ? spec.ranks - 1 - there : there;
}

std::vector<int> stages_of_rank(const PipelineSpec& spec, int rank) {
  std::vector<int> stages;
  for (int first = 0; first < spec.stages; first += spec.ranks)
    for (const int stage : {first + rank, first + spec.ranks - 1 - rank})
      if (rank_of_stage(spec, stage) == rank) {
        stages.push_back(stage);
        break;
      }
  return stages;
}

std::vector<PipelineTask> dependencies_of(const PipelineTask& task, const PipelineSpec& spec) {
  using enum PipelineTaskKind;
  const auto [kind, s, k] = task;
  std::vector<PipelineTask> needed;
  if (kind == backward_weights) return {{backward_inputs, s, k}};
  if (kind == forward) {
    if (s > 0) needed.push_back({forward, s - 1, k});
    return needed;
  }
  needed.push_back({forward, s, k});
  if (s + 1 < spec.stages) needed.push_back({splits_backward(spec.schedule) ? backward_inputs : backward, s + 1, k});
  return needed;
}

}  // namespace podsim
