#include "tools/report/step_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/units.hpp"
#include "tools/report/lines.hpp"
#include "tools/report/table.hpp"

namespace podsim {

namespace {

Json split_json(const TrainingSplit& split) {
  Json exposed = Json::object();
  for (const auto& [axis, time] : split.exposed) exposed.set(axis, time);
  return Json{{"compute_s", split.compute},     {"recompute_s", split.recompute}, {"exposed_s", std::move(exposed)}, {"bubble_s", split.bubble},
              {"optimizer_s", split.optimizer}, {"copies_s", split.copies},       {"launch_s", split.launch},        {"waiting_s", split.waiting}};
}

Json paddings_json(const DividedStep& divided) {
  Json paddings = Json::array();
  for (const Padding& padding : divided.paddings) paddings.push_back(Json{{"extent", padding.extent}, {"from", padding.from}, {"to", padding.to}});
  return paddings;
}

std::string paddings_text(const DividedStep& divided) {
  std::vector<std::string> texts;
  for (const Padding& padding : divided.paddings) texts.push_back(fmt::format("{} {} to {}", padding.extent, padding.from, padding.to));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::string mfu_text(const TrainingResult& result) { return percent(result.mfu) + (result.mfu > 1 ? " (all scores)" : ""); }

Json step_json(const Row& row) {
  const TrainingResult& result = *row.training;
  const TrainingSummary& summary = *row.problem.training;
  const TrainingStep& step = summary.given;
  Json stages = Json::array();
  for (std::size_t rank = 0; rank < result.stages.size(); ++rank) {
    const RankFigures& figures = result.stages[rank];
    Json own = Json::array();
    for (const int stage : figures.stages) own.push_back(stage);
    stages.push_back(Json{{"rank", static_cast<std::int64_t>(rank)}, {"stages", std::move(own)}, {"layers", figures.layers}, {"peak_memory_bytes", figures.peak_memory.count()},
                          {"busy_s", figures.busy_s}, {"bubble_s", figures.bubble_s}});
  }
  const TrainingMemory& memory = result.memory;
  return Json{{"training", step.model.name},
              {"batch", step.batch},
              {"sequence", step.model.sequence},
              {"tokens", step.tokens()},
              {"microbatches", step.microbatches},
              {"pipeline", step.pipeline.empty() ? Json() : Json(step.pipeline)},
              {"virtual_stages", step.virtual_stages},
              {"remat", to_text(step.remat)},
              {"layers_by", summary.layers},
              {"step_s", result.step_s},
              {"tokens_per_s", result.tokens_per_s},
              {"tflops_per_chip", result.tflops_per_chip},
              {"mfu", result.mfu},
              {"hfu", result.hfu},
              {"split", split_json(result.split)},
              {"memory_bytes",
               Json{{"weights", memory.weights.count()}, {"gradients", memory.gradients.count()}, {"optimizer", memory.optimizer.count()},
                    {"activations", memory.activations.count()}, {"working", memory.working.count()}, {"total", memory.total().count()}, {"hbm", result.hbm.count()}}},
              {"stages", std::move(stages)},
              {"padding", paddings_json(summary.divided)}};
}

std::vector<std::vector<std::string>> step_rows(const Row& row) {
  const TrainingResult& result = *row.training;
  const TrainingSummary& summary = *row.problem.training;
  const TrainingStep& step = summary.given;
  const TrainingMemory& memory = result.memory;
  std::vector<std::vector<std::string>> rows{
      {"step", fmt::format("{}  ({} sequences of {} tokens, {} microbatch{}{}; remat {}; layers by {})", time_text(result.step_s), step.batch, step.model.sequence, step.microbatches,
                           step.microbatches == 1 ? "" : "es", step.pipeline.empty() ? "" : ", " + step.pipeline, to_text(step.remat), summary.layers)},
      {"throughput", fmt::format("{:.6g} tokens/s, {:.4g} TFLOP/s per chip", result.tokens_per_s, result.tflops_per_chip)},
      {"MFU, HFU", fmt::format("{}, {}{}", percent(result.mfu), percent(result.hfu),
                               step.model.causal && step.model.heads > 0 ? "  (MFU counts all scores of causal attention, as PaLM's does; HFU the half that is computed)" : "")},
      {"memory", fmt::format("{} of {}: weights {}, gradients {}, optimizer {}, activations {}, working {}", to_text(memory.total()), to_text(result.hbm), to_text(memory.weights),
                             to_text(memory.gradients), to_text(memory.optimizer), to_text(memory.activations), to_text(memory.working))}};
  if (!summary.divided.paddings.empty()) rows.push_back({"padded", paddings_text(summary.divided)});
  return rows;
}

std::string step_tables(const Row& row) {
  const TrainingResult& result = *row.training;
  const TrainingSplit& split = result.split;
  std::vector<std::vector<std::string>> rows{{"the step of the busiest device", "time", "share"}};
  const auto add = [&](const std::string& name, double time) {
    if (time > 0) rows.push_back({name, time_text(time), percent(time / result.step_s)});
  };
  add("compute", split.compute);
  add("recompute", split.recompute);
  for (const auto& [axis, time] : split.exposed) add("exposed communication, " + axis, time);
  add("bubble", split.bubble);
  add("optimizer", split.optimizer);
  add("copies", split.copies);
  add("launches", split.launch);
  add("waiting", split.waiting);
  std::string text = table(rows, 1);
  if (result.stages.size() == 1) return text;
  rows = {{"rank", "stages", "layers", "peak memory", "busy", "bubble"}};
  for (std::size_t rank = 0; rank < result.stages.size(); ++rank) {
    const RankFigures& figures = result.stages[rank];
    rows.push_back({std::to_string(rank), fmt::format("{}", fmt::join(figures.stages, ",")), std::to_string(figures.layers), to_text(figures.peak_memory), time_text(figures.busy_s),
                    time_text(figures.bubble_s)});
  }
  return text + "\n" + table(rows, 1);
}

}  // namespace podsim
