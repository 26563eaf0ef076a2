// A plan in JAX's words: a mesh, a PartitionSpec per array, and the collectives that these specs imply beside those that the plan does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/mesh/sharding.hpp"
#include "workloads/part_tensors.hpp"
#include "workloads/plan.hpp"

namespace podsim {

/// Other names for axes of a mesh; axes that are not listed keep theirs.
using AxisNames = std::vector<std::pair<std::string, std::string>>;

/// "row=data,col=model". `where` is the place of the first character. Errors, with the column if `where` has one: an axis that the mesh lacks or that
/// is named twice; a name that two axes would have; one that is no identifier.
Expected<AxisNames> parse_axis_names(std::string_view text, const Mesh& mesh, const SourceLocation& where);

/// An array of a layer.
struct JaxArray {
  std::string layer;  // the stage, or "attention re-layout"
  Pass pass = Pass::forward;
  PartTensor tensor;
  Extents shape;      // as stored
  Sharding sharding;  // on JaxPlan::mesh
  Bytes per_device;
};

/// Transfers of one tensor along the same axes, added up. Bytes are received per device, a mean where devices differ.
struct JaxTransfer {
  std::string kind;    // "all-gather", "shift"
  std::string tensor;  // "W", whether or not it is stored transposed
  std::vector<std::string> axes;
  std::int64_t times = 1;
  Bytes received;
};

/// A product, the sums of a norm, or a re-layout: what JAX would insert and what the plan does.
struct JaxComparison {
  std::string layer;
  Pass pass = Pass::forward;
  std::string computes;                        // "dW = X.T @ dY": names are of arrays that are not stored transposed
  std::optional<ProductChoice> choice{};       // of a product; the dataflow of a gradient is its own
  std::vector<JaxTransfer> jax, fewest, plan;  // fewest: what JAX could insert with the fewest bytes, `--choose bytes`
  Bytes jax_received, fewest_received, plan_received;
};

struct JaxPlan {
  Mesh mesh;  // JAX's: renamed, with an axis for each part of an axis that is split. Devices have the order of the plan's mesh
  std::vector<std::pair<std::string, std::vector<std::string>>> axes;  // of the plan's mesh, with their names in `mesh`, first most significant
  std::vector<JaxArray> arrays;                                        // each once, in the order of the plan's parts
  std::vector<JaxComparison> comparisons;
  std::vector<std::string> notes;  // what the specs do not say, in sentences
};

/// The arrays are the inputs and outputs of the parts' schedules. If one is divided by a part of an axis (a submesh of factors), a PartitionSpec can
/// say so only of a mesh in which the axis is split: `row` of 8 becomes row_0=2, row_1=4, with a note. Collectives are those of `--choose default`
/// (workloads/sharded/insertion.hpp) for each product, given the shardings of its operands and result.
/// Errors: those of parts_of() and part_schedule(); a name that another axis has; those of read_program(), which takes at most 4 axes.
Expected<JaxPlan> jax_plan(const Submesh& submesh, const Workload& workload, const Plan& plan, Pass pass, const AxisNames& names = {});

}  // namespace podsim
