#include "tools/report/pipeline_report.hpp"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/csv.hpp"
#include "sim/base/invariant.hpp"
#include "sim/base/text.hpp"
#include "tools/report/json.hpp"
#include "tools/report/table.hpp"

namespace podsim {
namespace {

using Commands = std::vector<PipelineCommand>;

constexpr std::int64_t most_shown_in_full = 1 << 16;  // stages x microbatches: 0.7 GB as JSON is made

/// "0-1, 4-5": the layers of a rank's stages, which are consecutive within a stage.
std::string layers_text(const PipelineStep& step, int rank) {
  const PipelineSpec& spec = step.lists.spec;
  const int each = step.layers / spec.stages;
  std::vector<std::string> ranges;
  for (const int stage : stages_of_rank(spec, rank))
    ranges.push_back(each == 1 ? std::to_string(stage) : fmt::format("{}-{}", stage * each, (stage + 1) * each - 1));
  return fmt::format("{}", fmt::join(ranges, ", "));
}

bool begins_line(const PipelineCommand& command) {
  return command.kind != PipelineCommand::Kind::send && command.kind != PipelineCommand::Kind::erase;
}

/// Commands of one part; what is sent and deleted after a command stands on its line.
std::string part_text(std::string_view part, const Commands& commands) {
  std::string text, line;
  for (const PipelineCommand& command : commands) {
    if (begins_line(command) && !line.empty()) text += fmt::format("  {:<7} {}\n", std::exchange(part, ""), std::exchange(line, ""));
    line += (line.empty() ? "" : "; ") + name_of(command);
  }
  return line.empty() ? text : text + fmt::format("  {:<7} {}\n", part, line);
}

std::string step_text(const PipelineStep& step) {
  std::string text;
  for (std::size_t rank = 0; rank < step.loop.size(); ++rank) {
    text += fmt::format("\nrank {}: layers {}; scalars {}\n", rank, layers_text(step, static_cast<int>(rank)), fmt::join(pipeline_scalars(), ", "));
    text += part_text("before", step.before[rank]) + part_text("loop", step.loop[rank]) + part_text("after", step.after[rank]);
  }
  return text;
}

Json names_json(const Commands& commands) {
  Json names = Json::array();
  for (const PipelineCommand& command : commands) names.push_back(name_of(command));
  return names;
}

Json per_rank(const std::vector<Commands>& ranks) {
  Json json = Json::array();
  for (const Commands& commands : ranks) json.push_back(names_json(commands));
  return json;
}

/// Every deletion with the command that used the value last.
Json deletes_json(const PipelineStep& step) {
  Json deletes = Json::array();
  for (std::size_t rank = 0; rank < step.loop.size(); ++rank)
    for (const Commands* commands : {&step.loop[rank], &step.after[rank]}) {
      const PipelineCommand* last = nullptr;
      for (const PipelineCommand& command : *commands)
        if (command.kind == PipelineCommand::Kind::erase)
          deletes.push_back(Json{{"rank", rank}, {"value", name_of(command.value)}, {"after", name_of(*last)}});
        else
          last = &command;
    }
  return deletes;
}

void add_step(Json& json, const PipelineStep& step) {
  const PipelineSpec& spec = step.lists.spec;
  json.set("layers", step.layers);
  json.set("before", per_rank(step.before));
  json.set("loop", per_rank(step.loop));
  json.set("after", per_rank(step.after));
  Json transfers = Json::array(), placements = Json::array(), scalars = Json::array();
  for (const auto& [from, to, value] : step.transfers) transfers.push_back(Json{{"from", from}, {"to", to}, {"value", name_of(value)}});
  json.set("transfers", std::move(transfers));
  json.set("deletes", deletes_json(step));
  for (int layer = 0; layer < step.layers; ++layer)
    placements.push_back(Json{{"layer", layer}, {"rank", rank_of_stage(spec, stage_of_layer(step, layer))}});
  json.set("placements", std::move(placements));
  Json ranks = Json::array();
  for (int rank = 0; rank < spec.ranks; ++rank) ranks.push_back(rank);
  for (const std::string_view scalar : pipeline_scalars()) scalars.push_back(Json{{"scalar", scalar}, {"ranks", ranks}});
  json.set("scalars", std::move(scalars));
}

Json integers_json(const auto& values) {
  Json json = Json::array();
  for (const auto value : values) json.push_back(value);
  return json;
}

Json unit_json(const PipelineUnit& unit) {
  if (unit.size() == 1) return code_of(unit.front());
  Json codes = Json::array();
  for (const PipelineTask& task : unit) codes.push_back(code_of(task));
  return codes;
}

}  // namespace

Expected<ShownPipeline> shown_pipeline(const PipelineSpec& spec, std::optional<int> layers) {
  auto lists = pipeline_lists(spec);
  if (!lists) return lists.error();
  if (const std::int64_t size = static_cast<std::int64_t>(spec.stages) * spec.microbatches; layers && size > most_shown_in_full)
    return Diagnostic{of_field("full"), fmt::format("{} stages x {} microbatches; expected at most {} with every transfer and deletion", spec.stages,
                                                    spec.microbatches, most_shown_in_full)};
  auto times = pipeline_times(unfused(*lists)), fused_times = pipeline_times(*lists);
  if (!times) return times.error();
  if (!fused_times) return fused_times.error();
  ShownPipeline shown{*std::move(lists), *std::move(times), *std::move(fused_times), {}};
  if (!layers) return shown;
  const auto executed = with_first_stage_merged(shown.lists);
  if (!executed) return executed.error();
  auto step = pipeline_step(*executed, *layers);
  if (!step) return step.error();
  shown.step = *std::move(step);
  return shown;
}

std::string pipeline_title(const PipelineSpec& spec) {
  return fmt::format("{}: {} on {}, {}{}", name_of(spec.schedule), counted(spec.stages, "stage"), counted(spec.ranks, "rank"),
                     counted(spec.microbatches, "microbatch"), spec.fuse_steady_state ? ", fused steady state" : "");
}

std::string pipeline_lines(const PipelineLists& lists) {
  std::string text;
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
    std::vector<std::string> names;
    for (const PipelineUnit& unit : lists.ranks[rank]) names.push_back(name_of(unit));
    text += fmt::format("rank {}: {}\n", rank, fmt::join(names, ", "));
  }
  return text;
}

std::string pipeline_figures(const ShownPipeline& shown) {
  const PipelineTimes& times = shown.times;
  std::string text = fmt::format("\nmakespan {} units, with fused tasks {}; bubble {}; a unit is a forward, transfers take no time\n\n",
                                 times.makespan, shown.fused_times.makespan, percent(times.bubble_fraction));
  std::vector<std::vector<std::string>> rows{{"rank", "stages", "ends at", "idle", "peak live forwards"}};
  for (std::size_t rank = 0; rank < times.finish.size(); ++rank)
    rows.push_back({std::to_string(rank), fmt::format("{}", fmt::join(stages_of_rank(shown.lists.spec, static_cast<int>(rank)), ",")),
                    std::to_string(times.finish[rank]), std::to_string(times.makespan - times.busy[rank]),
                    std::to_string(times.peak_live_forwards[rank])});
  text += table(rows, 2);
  return shown.step ? text + step_text(*shown.step) : text;
}

std::string pipeline_json(const ShownPipeline& shown) {
  const PipelineSpec& spec = shown.lists.spec;
  Json ranks = Json::array();
  for (const auto& list : shown.lists.ranks) {
    Json units = Json::array();
    for (const PipelineUnit& unit : list) units.push_back(unit_json(unit));
    ranks.push_back(std::move(units));
  }
  Json json{{"schedule", name_of(spec.schedule)},
            {"stages", spec.stages},
            {"microbatches", spec.microbatches},
            {"fuse_steady_state", spec.fuse_steady_state},
            {"ranks", std::move(ranks)},
            {"makespan", shown.times.makespan},
            {"bubble_fraction", shown.times.bubble_fraction},
            {"peak_live_forwards", Json{shown.times.peak_live_forwards}},
            {"fused_makespan", shown.fused_times.makespan},
            {"finish", integers_json(shown.times.finish)}};
  if (shown.step) add_step(json, *shown.step);
  return json.dump(2) + "\n";
}

std::string pipeline_csv(const ShownPipeline& shown) {
  if (shown.step) {
    const PipelineStep& step = *shown.step;
    std::string text = csv_row({"rank", "part", "command"});
    for (std::size_t rank = 0; rank < step.loop.size(); ++rank)
      for (const auto& [part, commands] : {std::pair{"before", &step.before}, std::pair{"loop", &step.loop}, std::pair{"after", &step.after}})
        for (const PipelineCommand& command : (*commands)[rank]) text += csv_row({std::to_string(rank), part, name_of(command)});
    return text;
  }
  std::string text = csv_row({"rank", "unit", "task", "code", "stage", "microbatch", "begin", "end"});
  for (std::size_t rank = 0; rank < shown.lists.ranks.size(); ++rank) {
    auto span = shown.times.spans[rank].begin();
    for (std::size_t unit = 0; unit < shown.lists.ranks[rank].size(); ++unit)
      for (const PipelineTask& task : shown.lists.ranks[rank][unit]) {
        PODSIM_ASSERT(span->task == task);
        text += csv_row({std::to_string(rank), std::to_string(unit), name_of(task), code_of(task), std::to_string(task.stage),
                         std::to_string(task.microbatch), std::to_string(span->begin), std::to_string(span->end)});
        ++span;
      }
  }
  return text;
}

}  // namespace podsim
