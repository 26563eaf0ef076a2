#include "workloads/scenario/training_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "algorithms/pipeline/pipeline.hpp"
#include "workloads/scenario/training_bound.hpp"
#include "workloads/training/step_axes.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_refused = 4;  // of each extent; the search looks at them after its end

std::vector<std::int64_t> divisors_of(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) divisors.push_back(d);
  return divisors;
}

std::int64_t rounded_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by * by; }

/// Ways to order the tasks of a rank: a schedule and its virtual stages.
struct Way {
  std::string_view pipeline;
  std::int64_t virtual_stages = 1;
};

bool takes_virtual_stages(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::interleaved || schedule == PipelineSchedule::kimi_k2 || schedule == PipelineSchedule::dual_pipe_v;
}

std::vector<Way> ways_of(const TrainingRequest& request, std::int64_t stages) {
  if (stages == 1) return {{"", 1}};
  std::vector<Way> ways;
  const std::vector<std::int64_t> counts = !request.virtual_stages.empty()
                                               ? request.virtual_stages
                                               : divisors_of(rounded_up(request.spec.step.model.layers, stages) / stages, most_virtual_stages);
  for (const PipelineSchedule schedule : all_pipeline_schedules()) {
    const std::string_view name = name_of(schedule);
    if (!request.pipelines.empty() && std::find(request.pipelines.begin(), request.pipelines.end(), name) == request.pipelines.end()) continue;
    for (const std::int64_t count : counts)
      if (count == 1 || takes_virtual_stages(schedule)) ways.push_back({name, count});
  }
  return ways;
}

/// Whether the optimizer is divided over data. Over one device it is the same step.
std::vector<bool> optimizers_of(const TrainingRequest& request, const TrainingMesh& mesh) {
  if (request.shard_optimizer_over_data) return {*request.shard_optimizer_over_data};
  return mesh.data > 1 ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

class Enumeration {
 public:
  explicit Enumeration(const TrainingRequest& request) : request_{request} {
    space_.remats = request.remats.empty() ? searched_remats() : request.remats;
    const TrainingModel& model = request.spec.step.model;
    if (!request.remats.empty()) return;
    std::erase_if(space_.remats, [&](const Remat& remat) {  // of layers that have no such stage
      const std::vector<Stage> stages = layer_stages(model);
      return std::any_of(remat.saved.begin(), remat.saved.end(), [&](const SavedStage& saved) {
        return std::none_of(stages.begin(), stages.end(), [&](const Stage& stage) { return stage.name == saved.name; });
      });
    });
  }

  void add(std::size_t system, const TrainingMesh& mesh) {
    TrainingStep step = request_.spec.step;
    step.mesh = mesh;
    for (const std::int64_t microbatches : request_.microbatches.empty() ? divisors_of(step.batch, most_microbatches) : request_.microbatches)
      for (const Way& way : ways_of(request_, mesh.stage))
        for (const bool shard : optimizers_of(request_, mesh)) {
          step.microbatches = microbatches, step.pipeline = way.pipeline, step.virtual_stages = way.virtual_stages, step.shard_optimizer_over_data = shard;
          add_remats({static_cast<std::uint32_t>(system), microbatches, way.virtual_stages, way.pipeline, 0, 0, shard}, step);
        }
  }

  TrainingSpace take() && { return std::move(space_); }

 private:
  void add_remats(TrainingCandidate candidate, TrainingStep& step) {
    const Machine& machine = request_.systems.front().machine;
    step.remat = {};
    auto whole = divided(step);
    std::optional<Diagnostic> problem;
    if (!whole)
      problem = whole.error();
    else if (auto ok = check(step); !ok)
      problem = ok.error();
    std::uint32_t rings = 0;
    for (std::size_t r = 0; r < space_.remats.size(); ++r) {
      candidate.remat = static_cast<std::uint32_t>(r);
      TrainingStep& of = problem ? step : whole->step;
      of.remat = space_.remats[r];
      const double bound = arithmetic_bound(of, machine).count();
      if (problem) {
        refuse(candidate, bound, *problem);
        continue;
      }
      if (r == 0) rings = rings_of(candidate.system, step, whole->step);
      candidate.rings = rings;
      space_.candidates.push_back(candidate);
      space_.bounds_s.push_back(bound);
    }
  }

  std::uint32_t rings_of(std::size_t system, TrainingStep step, const TrainingStep& divided) {
    const auto [known, added] =
        numbers_.try_emplace(rings_key(request_.systems[system], system, divided), static_cast<std::uint32_t>(space_.largest.size()));
    step.remat = {};
    if (added) {
      space_.largest.push_back(std::move(step));
      space_.largest_systems.push_back(system);
      sequences_.push_back(sequences_of(divided));
    } else if (const std::int64_t sequences = sequences_of(divided); sequences > sequences_[known->second]) {
      space_.largest[known->second] = std::move(step);
      space_.largest_systems[known->second] = system;
      sequences_[known->second] = sequences;
    }
    return known->second;
  }

  static Status check(const TrainingStep& step) {
    if (step.mesh.stage == 1) return success();
    const auto schedule = pipeline_schedule_named(step.pipeline);
    const auto ranks = static_cast<int>(step.mesh.stage);
    return check_pipeline({*schedule, ranks * static_cast<int>(step.virtual_stages), ranks, static_cast<int>(step.microbatches), false});
  }

  void refuse(const TrainingCandidate& candidate, double bound, const Diagnostic& problem) {
    std::vector<RefusedCandidate>& list = space_.refused[problem.where.is_field && !problem.where.file.empty() ? problem.where.file : "pipeline"];
    if (list.size() == most_refused && bound >= list.back().bound_s) return;
    const auto at =
        std::upper_bound(list.begin(), list.end(), bound, [](double value, const RefusedCandidate& other) { return value < other.bound_s; });
    list.insert(at, {candidate, bound, problem.message.substr(0, problem.message.find('\n'))});
    if (list.size() > most_refused) list.pop_back();
  }

  const TrainingRequest& request_;
  TrainingSpace space_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::int64_t> sequences_;  // of space_.largest
};

}  // namespace

std::vector<std::string_view> searched_axes(const TrainingModel& model) {
  if (model.experts > 0) return {"stage", "data", "fsdp", "expert"};
  return {"stage", "data", "fsdp", "row", "col"};
}

std::vector<Remat> searched_remats() {
  std::vector<Remat> remats;
  for (const char* text : {"none", "full", "selected:in_proj", "selected:out_proj", "selected:in_proj,attention,out_proj",
                           "selected:in_proj,out_proj,ff1,ff2", "selected:in_proj,attention,out_proj,ff1,ff2"})
    remats.push_back(*parse_remat(text, {}));
  return remats;
}

Expected<TrainingSpace> training_space(const TrainingRequest& request) {
  Enumeration enumeration{request};
  for (std::size_t s = 0; s < request.systems.size(); ++s) {
    if (request.stop.requested()) return cancelled_work();
    const auto axes = step_axes(request.systems[s].mesh);
    if (!axes) return axes.error();
    enumeration.add(s, sizes_of(*axes));
  }
  return std::move(enumeration).take();
}

TrainingStep step_of(const TrainingRequest& request, const TrainingSpace& space, const TrainingCandidate& candidate) {
  TrainingStep step = request.spec.step;
  const auto axes = step_axes(request.systems[candidate.system].mesh);
  step.mesh = sizes_of(*axes);
  step.microbatches = candidate.microbatches, step.virtual_stages = candidate.virtual_stages;
  step.pipeline = candidate.pipeline;
  step.remat = space.remats[candidate.remat];
  step.shard_optimizer_over_data = candidate.shard_optimizer_over_data;
  return step;
}

std::optional<TrainingStep> relaxed(const TrainingStep& step) {
  TrainingStep nearest = step;
  nearest.pad = true;
  nearest.model.layers = rounded_up(step.model.layers, step.mesh.stage * step.virtual_stages);
  auto whole = divided(nearest);
  if (!whole) return std::nullopt;
  return std::move(whole->step);
}

}  // namespace podsim
