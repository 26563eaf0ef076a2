// When each rank of a pipeline does what: a row per rank, time to the right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/pipeline/pipeline_times.hpp"
#include "sim/base/expected.hpp"

namespace podsim {

/// Each task as |F0, from its begin to its end: F forward, B backward, A and W its halves for inputs and weights, then the microbatch; with several
/// stages per rank the stage before it, F4.0. Above, the time in units. Coloured: by kind, later stages of a rank darker, as in the picture.
/// Where `columns` is not 0, the chart is cut into parts that are at most that wide, one below the other.
/// Errors: more than 4 million characters.
Expected<std::string> pipeline_chart(const PipelineSpec& spec, const PipelineTimes& times, bool coloured, std::size_t columns);

/// What a box of a picture stands for; the first are those of PipelineTaskKind.
enum class PipelineRole : std::uint8_t { forward, backward, backward_inputs, backward_weights, optimizer };
inline constexpr std::size_t pipeline_roles = 5;

struct DrawnPipelineTask {
  PipelineRole role = PipelineRole::forward;
  int stage = 0, microbatch = 0;
  std::int64_t begin = 0, end = 0;
};
/// A pipeline to be drawn, in units or, of a simulated step, in picoseconds.
struct DrawnPipeline {
  struct Row {
    std::string name;  // "rank 0"
    std::vector<DrawnPipelineTask> tasks{};  // in order of time, without overlap
  };
  std::string title;
  std::vector<Row> rows{};
  std::int64_t end = 0;
  bool in_picoseconds = false;
  [[nodiscard]] double bubble_fraction() const;  // idle share of rows x end
};

/// The chart as a picture of at most 1,600 x 1,200 and its margins, with a legend; labels where they fit. Errors: more than 65,536 tasks; for a PNG no
/// memory.
Expected<std::string> pipeline_svg(const DrawnPipeline& pipeline);
Expected<std::string> pipeline_svg(const PipelineTimes& times, const std::string& title);
Expected<std::string> pipeline_png(const PipelineTimes& times, const std::string& title);

}  // namespace podsim
