// The orders of the schedules; internal to this folder. The spec is one that check_pipeline() takes.
#pragma once

#include "algorithms/pipeline/pipeline.hpp"

namespace podsim {

/// Appends tasks to one rank's list, and numbers the microbatches of each (stage, kind) from 0.
class PipelineListWriter {
 public:
  explicit PipelineListWriter(int stages) : next_(static_cast<std::size_t>(stages) * 4) {}

  /// The next microbatch of a stage.
  PipelineTask take(PipelineTaskKind kind, int stage) { return {kind, stage, next(kind, stage)++}; }
  [[nodiscard]] int taken(PipelineTaskKind kind, int stage) const { return next_[index(kind, stage)]; }

  void add(PipelineTaskKind kind, int stage) { add(PipelineUnit{take(kind, stage)}); }
  void add(PipelineUnit unit) { units_.push_back(std::move(unit)); }
  std::vector<PipelineUnit> list() && { return std::move(units_); }

 private:
  static std::size_t index(PipelineTaskKind kind, int stage) { return static_cast<std::size_t>(stage) * 4 + static_cast<std::size_t>(kind); }
  int& next(PipelineTaskKind kind, int stage) { return next_[index(kind, stage)]; }

  std::vector<int> next_;
  std::vector<PipelineUnit> units_;
};

std::vector<PipelineUnit> dual_pipe_v_list(const PipelineSpec& spec, int rank);

}  // namespace podsim
