#include <algorithm>

#include "algorithms/pipeline/schedules.hpp"

namespace podsim {

// Rank r owns stage r on the way there, `near`, and stage 2 D - 1 - r on the way back, `far`. Forwards of one are fused with backwards of the other.
std::vector<PipelineUnit> dual_pipe_v_list(const PipelineSpec& spec, int rank) {
  using enum PipelineTaskKind;
  const int D = spec.ranks, m = spec.microbatches, near = rank, far = 2 * D - 1 - rank, behind = D - 1 - rank;
  PipelineListWriter writer{spec.stages};
  const auto halves = [&](int stage) { return PipelineUnit{writer.take(backward_inputs, stage), writer.take(backward_weights, stage)}; };
  const auto overlapped = [&](int forwards, int backwards) {
    return PipelineUnit{writer.take(forward, forwards), writer.take(backward_inputs, backwards), writer.take(backward_weights, backwards)};
  };

  for (int i = 0; i < 2 * behind; ++i) writer.add(forward, near);
  for (int i = 0; i <= rank; ++i) writer.add(forward, near), writer.add(forward, far);
  for (int i = 0; i < behind; ++i) writer.add(backward_inputs, far), writer.add(backward_weights, far), writer.add(forward, far);
  for (int i = 0; i < m - 2 * D + rank + 1; ++i) {
    if (i == 0 && rank == D - 1)  // both stages are neighbours here: the backward needs this forward's last one
      writer.add(forward, near), writer.add(halves(far));
    else
      writer.add(overlapped(near, far));
    writer.add(overlapped(far, near));
  }
  for (int i = 0; i < behind; ++i) writer.add(halves(far)), writer.add(overlapped(far, near));

  // The second half of the last backwards leaves weights for later, one stage per rank, so that the ranks before wait less.
  const bool splits_far = rank % 2 == 1, splits_near = rank % 2 == 0 && near != 0;
  const auto backward_of = [&](int stage, bool split) {
    if (split)
      writer.add(backward_inputs, stage);
    else
      writer.add(halves(stage));
  };
  for (int i = 0; i <= rank; ++i) {
    const bool second_half = i >= (rank + 1) / 2;
    backward_of(far, second_half && splits_far);
    backward_of(near, second_half && splits_near);
  }
  for (int i = 0; i < behind; ++i) backward_of(near, near != 0);

  std::vector<PipelineTask> left;
  for (const int stage : {near, far})
    while (writer.taken(backward_weights, stage) < m) left.push_back(writer.take(backward_weights, stage));
  std::sort(left.begin(), left.end(), [](const PipelineTask& a, const PipelineTask& b) {
    return std::pair{a.microbatch, a.stage} < std::pair{b.microbatch, b.stage};
  });
  for (const PipelineTask& task : left) writer.add(PipelineUnit{task});
  return std::move(writer).list();
}

}  // namespace podsim
