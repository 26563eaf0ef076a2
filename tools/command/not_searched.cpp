#include "tools/command/not_searched.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/command/scenario_options.hpp"

namespace podsim {

namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); }

/// Of slices and meshes.
std::vector<std::string> places_left_out(const Options& options, const Machine& machine) {
  std::vector<std::string> left;
  const std::vector<std::string> meshes = options.texts("mesh");
  const bool all = options.flag("allow-split-axes") || meshes == std::vector<std::string>{"all"};
  if (!all && !meshes.empty())
    left.emplace_back("meshes other than those of --mesh");
  else if (!all && machine.interconnect == Interconnect::grid)
    left.emplace_back("meshes with an axis over a part of a dimension (--mesh all)");
  if (options.has("slice")) left.emplace_back("slices other than those of --slice (--chips)");
  left.push_back(fmt::format("orders of devices other than {} (--mesh-order)", fields_of(options).has("mesh_order") ? fields_of(options).text("mesh_order") : "row-major"));
  return left;
}

}  // namespace

std::vector<std::string> not_searched(const Options& options, const TuningRequest& request) {
  std::vector<std::string> left = places_left_out(options, request.systems.front().machine);
  std::vector<std::string_view> algorithms;
  for (const GemmAlgorithmEntry& entry : gemm_algorithms())
    if (entry.mesh == MeshUse::row_col && !contains(request.algorithms, entry.name)) algorithms.push_back(entry.name);
  if (!algorithms.empty()) left.push_back(fmt::format("the algorithms {} (--algorithms)", fmt::join(algorithms, ", ")));
  left.emplace_back("products on a mesh of one axis other than row=1 or col=1: 1d-os and 1d-ls are wang there, 1d-fsdp is collective; 1d-megatron");
  std::vector<std::string> lowerings;
  for (const std::string_view name : {by_dimension_name, std::string_view{"ring"}, auto_name})
    if (!contains(request.collectives, name == by_dimension_name ? "" : name)) lowerings.emplace_back(name);
  lowerings.emplace_back("any other one for all collectives of a product");
  left.push_back(fmt::format("lowering collectives by {} (--collectives)", fmt::join(lowerings, ", ")));
  if (contains(request.algorithms, "meshslice")) left.push_back(fmt::format("slice counts above {} (--max-slice-count)", request.largest_slice_count));
  left.push_back(fmt::format("blocks other than {} (--block), prefetching other than {} (--prefetch), copies of slices other than {} (--slice-copies)", request.options.block, request.options.prefetch,
                             request.options.slice_copies ? "on" : "off"));
  left.emplace_back("padded extents");
  if (request.pass == Pass::both || request.workload.stages.size() > 1)
    left.emplace_back("parts that overlap: here each pass of each stage begins on all devices at once, when the one before has ended on the last of them; a run of several has no such barriers, so it may take less than their sum");
  return left;
}

std::vector<std::string> not_searched(const Options& options, const TrainingRequest& request) {
  std::vector<std::string> left = places_left_out(options, request.systems.front().machine);
  left.push_back(fmt::format("lowering collectives otherwise than by {} (--collectives)", request.spec.collectives));
  if (request.microbatches.empty()) left.push_back(fmt::format("more than {} microbatches (--microbatches)", most_microbatches));
  if (request.virtual_stages.empty()) left.push_back(fmt::format("more than {} virtual stages (--virtual-stages)", most_virtual_stages));
  if (request.remats.empty()) {
    std::vector<std::string> remats;
    for (const Remat& remat : searched_remats()) remats.push_back(to_text(remat));
    left.push_back(fmt::format("recomputation other than {} (--remat)", fmt::join(remats, "; ")));
  }
  if (!request.spec.options.fuse_steady_state) left.emplace_back("forwards fused with backwards (--fuse-steady-state)");
  left.emplace_back("products of layers by other ways than the fastest on one layer alone (run --algorithm, --slice-count)");
  return left;
}

}  // namespace podsim
