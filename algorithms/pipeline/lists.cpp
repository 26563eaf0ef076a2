#include <algorithm>

#include "algorithms/pipeline/schedules.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {
namespace {

using enum PipelineTaskKind;
using List = std::vector<PipelineUnit>;

List gpipe_list(const PipelineSpec& spec, int stage) {
  List list;
  for (const PipelineTaskKind kind : {forward, backward})
    for (int k = 0; k < spec.microbatches; ++k) list.push_back({{kind, stage, k}});
  return list;
}

/// `ahead` forwards, then a backward and a forward in turn while there are forwards, then the other backwards.
List one_f_one_b_list(const PipelineSpec& spec, int stage, int ahead) {
  const int m = spec.microbatches;
  List list;
  int forwards = 0;
  for (; forwards < std::min(ahead, m); ++forwards) list.push_back({{forward, stage, forwards}});
  for (int backwards = 0; backwards < m; ++backwards) {
    list.push_back({{backward, stage, backwards}});
    if (forwards < m) list.push_back({{forward, stage, forwards++}});
  }
  return list;
}

/// S - s forwards; s pairs of backward_inputs and forward, by which all ranks hold S microbatches; then backward_inputs, backward_weights and forward
/// in turn, leaving out what is done.
List zero_bubble_list(const PipelineSpec& spec, int stage) {
  PipelineListWriter writer{spec.stages};
  for (int i = stage; i < spec.stages; ++i) writer.add(forward, stage);
  for (int i = 0; i < stage; ++i) writer.add(backward_inputs, stage), writer.add(forward, stage);
  while (writer.taken(backward_weights, stage) < spec.microbatches)
    for (const PipelineTaskKind kind : {backward_inputs, backward_weights, forward})
      if (writer.taken(kind, stage) < spec.microbatches) writer.add(kind, stage);
  return std::move(writer).list();
}

/// Microbatches go through the v stages of a rank in rounds of R. `further` more forwards than usual stand before the first backward.
List interleaved_list(const PipelineSpec& spec, int rank, int further) {
  const int D = spec.ranks, m = spec.microbatches, v = spec.stages / D;
  const int rounds = std::max(1, m / D), R = m / rounds, total = m * v;
  const int warm_up = std::min((v - 1) * R + 2 * (D - 1 - rank) + further, total);
  PipelineListWriter writer{spec.stages};
  const auto forward_of = [&](int step) { return writer.take(forward, step / R % v * D + rank); };
  const auto backward_of = [&](int step) { return writer.take(backward, (v - 1 - step / R % v) * D + rank); };
  for (int step = 0; step < warm_up; ++step) writer.add({forward_of(step)});
  for (int step = warm_up; step < total; ++step) {
    const PipelineTask fwd = forward_of(step), bwd = backward_of(step - warm_up);
    if (spec.fuse_steady_state || fwd.stage == spec.stages - 1)
      writer.add({fwd, bwd});
    else
      writer.add({fwd}), writer.add({bwd});
  }
  for (int step = total - warm_up; step < total; ++step) writer.add({backward_of(step)});
  return std::move(writer).list();
}

List list_of(const PipelineSpec& spec, int rank) {
  const int behind = spec.stages - 1 - rank;  // stages behind that of the rank; meant for one stage per rank
  switch (spec.schedule) {
    case PipelineSchedule::gpipe: return gpipe_list(spec, rank);
    case PipelineSchedule::one_f_one_b: return one_f_one_b_list(spec, rank, behind + 1);
    case PipelineSchedule::eager_one_f_one_b: return one_f_one_b_list(spec, rank, 2 * behind + 1);
    case PipelineSchedule::interleaved: return interleaved_list(spec, rank, 0);
    case PipelineSchedule::kimi_k2: return interleaved_list(spec, rank, 1);
    case PipelineSchedule::zero_bubble: return zero_bubble_list(spec, rank);
    case PipelineSchedule::dual_pipe_v: return dual_pipe_v_list(spec, rank);
  }
  PODSIM_ASSERT(false);
  return {};
}

}  // namespace

Expected<PipelineLists> pipeline_lists(const PipelineSpec& spec) {
  if (auto ok = check_pipeline(spec); !ok) return ok.error();
  PipelineLists lists{spec, {}};
  for (int rank = 0; rank < spec.ranks; ++rank) lists.ranks.push_back(list_of(spec, rank));
  return lists;
}

PipelineLists unfused(const PipelineLists& lists) {
  PipelineLists apart{lists.spec, {}};
  for (const List& list : lists.ranks) {
    List& tasks = apart.ranks.emplace_back();
    for (const PipelineUnit& unit : list)
      for (const PipelineTask& task : unit) tasks.push_back({task});
  }
  return apart;
}

Expected<PipelineLists> with_first_stage_merged(const PipelineLists& lists) {
  PipelineLists merged{lists.spec, {}};
  for (const List& list : lists.ranks) {
    List& units = merged.ranks.emplace_back();
    const PipelineTask* half = nullptr;  // the last task, if it is a backward_inputs of stage 0
    const auto alone = [&] {
      return Diagnostic{{}, name_of(*half) + " is not followed by its backward of weights, which the first stage does with it"};
    };
    for (const PipelineUnit& unit : list) {
      PipelineUnit kept;
      for (const PipelineTask& task : unit) {
        const bool completes = half != nullptr && task == PipelineTask{backward_weights, 0, half->microbatch};
        if (half != nullptr && !completes) return alone();
        half = task.kind == backward_inputs && task.stage == 0 ? &task : nullptr;
        if (completes) continue;
        kept.push_back(half != nullptr ? PipelineTask{backward, 0, task.microbatch} : task);
      }
      if (!kept.empty()) units.push_back(std::move(kept));
    }
    if (half != nullptr) return alone();
  }
  return merged;
}

Expected<PipelineLists> executed_lists(const PipelineSpec& spec, bool keep_fused) {
  const auto lists = pipeline_lists(spec);
  if (!lists) return lists.error();
  return with_first_stage_merged(keep_fused ? *lists : unfused(*lists));
}

}  // namespace podsim
