#include "workloads/advice/xla_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "workloads/scenario/fields.hpp"

namespace podsim {

namespace {

/// Of a change of a field; "{}" stands for the bytes of `combine_threshold`.
struct FlagsOfChange {
  std::string_view field, text, gpu, tpu;
};
constexpr std::array<FlagsOfChange, 5> flags_of_changes{{
    {"hlo_schedule", "overlap", "--xla_gpu_enable_latency_hiding_scheduler=true",
     "--xla_enable_async_all_gather=true --xla_enable_async_all_reduce=true --xla_enable_async_collective_permute=true --xla_tpu_enable_async_collective_fusion=true "
     "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true --xla_tpu_enable_async_collective_fusion_multiple_steps=true --xla_tpu_overlap_compute_collective_tc=true"},
    {"rewrite", "combine", "--xla_gpu_all_reduce_combine_threshold_bytes={0} --xla_gpu_all_gather_combine_threshold_bytes={0} --xla_gpu_reduce_scatter_combine_threshold_bytes={0}",
     "--xla_jf_crs_combiner_threshold_in_bytes={0}"},
    {"rewrite", "split", "--xla_gpu_all_reduce_combine_threshold_bytes=1 --xla_gpu_all_gather_combine_threshold_bytes=1 --xla_gpu_reduce_scatter_combine_threshold_bytes=1",
     "--xla_jf_crs_combiner_threshold_in_bytes=1"},
    {"rewrite", "prefetch", "--xla_gpu_enable_pipelined_all_gather=true", "--xla_tpu_enable_ag_backward_pipelining=true"},
    {"rewrite", "reduce-scatter", "", "--xla_tpu_use_minor_sharding_for_major_trivial_input=true --xla_tpu_relayout_group_size_threshold_for_reduce_scatter=1"},
}};

}  // namespace

std::string xla_flags(const Remedy& remedy, bool is_gpu) {
  const auto threshold = std::ranges::find(remedy.changes, "combine_threshold", &FieldChange::field);
  const std::string bytes = threshold != remedy.changes.end() ? threshold->text : std::string{scenario_field("combine_threshold")->otherwise};
  std::vector<std::string> flags;
  const auto is = [](std::string_view text) { return [text](const FieldChange& change) { return change.field == "rewrite" && change.text == text; }; };
  const bool regroups = std::ranges::any_of(remedy.changes, is("combine"));  // one threshold says both
  for (const FieldChange& change : remedy.changes)
    for (const FlagsOfChange& known : flags_of_changes)
      if (const std::string_view text = is_gpu ? known.gpu : known.tpu; known.field == change.field && known.text == change.text && !text.empty() && !(regroups && is("split")(change)))
        flags.push_back(fmt::format(fmt::runtime(text), parse_bytes(bytes, of_field("combine_threshold"))->count()));
  return flags.empty() ? "" : fmt::format("{}={}", is_gpu ? "XLA_FLAGS" : "LIBTPU_INIT_ARGS", fmt::join(flags, " "));
}

}  // namespace podsim
