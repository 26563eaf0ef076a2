#include "workloads/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace podsim {

namespace {

int devices_along_features(const DeviceGrid& grid, ActivationLayout layout) {
  return layout == ActivationLayout::tokens_by_row ? grid.columns : grid.rows;
}

ActivationLayout left_by(const StagePlan& stage) {
  return stage.product ? output_layout(stage.product->dataflow, stage.product->transposed) : stage.layout;
}

/// The groups of heads, where the devices along the features share them.
Expected<std::int64_t> groups_on(const TransformerBlock& block, const DeviceGrid& grid, ActivationLayout layout) {
  const int P = devices_along_features(grid, layout);
  if (const auto groups = attention_groups(block, P)) return *groups;
  return Diagnostic{{},
                    fmt::format("{} heads of {} groups cannot be shared by {} devices: attention would need heads of its neighbours", block.heads,
                                block.kv_heads, P)};
}

/// Whether a product writes queries, keys and values.
bool writes_qkv(const Workload& workload, std::size_t stage) {
  return workload.block && workload.block->attention && workload.stages[stage].name == qkv_stage;
}

}  // namespace

std::vector<Branch> branches_of(const Workload& workload) {
  std::vector<Branch> branches;
  std::size_t first = 0;
  for (std::size_t s = 0; s < workload.stages.size(); ++s)
    if (workload.stages[s].kind == Stage::Kind::residual) branches.push_back({first, s}), first = s + 1;
  return branches;
}

Expected<WorkloadPart> part_of(const Workload& workload, std::size_t stage, ActivationLayout layout, const std::optional<ProductChoice>& product,
                               const DeviceGrid& grid, Pass pass) {
  const Stage& s = workload.stages[stage];
  WorkloadPart part;
  part.name = s.name;
  part.pass = pass;
  part.layout = layout;
  part.dtype = workload.dtype;
  part.tokens = s.tokens;
  part.inputs = s.inputs;
  part.outputs = s.outputs;
  switch (s.kind) {
    case Stage::Kind::product:
      part.kind = WorkloadPart::Kind::product;
      part.product = *product;
      if (s.experts > 1) part.experts = s.experts, part.experts_per_token = workload.block->experts_per_token;
      if (writes_qkv(workload, stage)) {
        const auto groups = groups_on(*workload.block, grid, output_layout(product->dataflow, product->transposed));
        if (!groups && workload.only == Only::everything) return groups.error();  // products alone have no attention that it could stop
        part.outputs = qkv_features(*workload.block, groups ? *groups : workload.block->kv_heads);
      }
      break;
    case Stage::Kind::norm:
      part.kind = WorkloadPart::Kind::norm;
      part.norm = workload.block->norm;
      break;
    case Stage::Kind::attention: {
      const TransformerBlock& block = *workload.block;
      const auto groups = groups_on(block, grid, layout);
      if (!groups) return groups.error();
      part.kind = WorkloadPart::Kind::attention;
      part.causal = block.causal;
      part.sequence = block.sequence;
      part.groups = *groups;
      part.queries = block.heads / *groups;
      part.head = block.head_dim;
      part.inputs = qkv_features(block, *groups);
      if (const int devices = devices_along_features(grid, other(layout)); block.batch % devices != 0)
        return Diagnostic{{}, fmt::format("{} sequences cannot be shared by {} devices: attention needs whole ones", block.batch, devices)};
      break;
    }
    case Stage::Kind::activation:
      part.kind = WorkloadPart::Kind::activation;
      part.gated = workload.block->gated;
      break;
    case Stage::Kind::residual: part.kind = WorkloadPart::Kind::residual; break;
    case Stage::Kind::dispatch:
    case Stage::Kind::combine:
      part.kind = s.kind == Stage::Kind::dispatch ? WorkloadPart::Kind::dispatch : WorkloadPart::Kind::combine;
      part.experts = workload.block->experts;
      part.experts_per_token = workload.block->experts_per_token;
      break;
  }
  return part;
}

Expected<WorkloadPart> relayout_before(const Workload& workload, std::size_t stage, ActivationLayout layout, const DeviceGrid& grid, Pass pass) {
  const Stage& s = workload.stages[stage];
  WorkloadPart part;
  part.kind = WorkloadPart::Kind::relayout;
  part.name = s.name + " re-layout";
  part.pass = pass;
  part.layout = layout;
  part.dtype = workload.dtype;
  part.tokens = s.tokens;
  part.inputs = part.outputs = s.inputs;
  if (s.kind == Stage::Kind::attention) {
    const auto before = groups_on(*workload.block, grid, layout), after = groups_on(*workload.block, grid, other(layout));
    if (!before || !after) return before ? after.error() : before.error();
    if (*before != *after)
      return Diagnostic{{},
                        fmt::format("{} groups of heads {} cannot become {} {}: keys and values are computed on other devices", *before,
                                    name_of(layout), *after, name_of(other(layout)))};
    part.inputs = part.outputs = qkv_features(*workload.block, *before);
  }
  return part;
}

namespace {

/// The whole plan, or one of its stages.
Diagnostic wrong(const Plan& plan, std::string message) {
  const WrittenAt file{plan.stages.empty() ? nullptr : plan.stages.front().written_at.file, 0, 0};
  return {location_of(file), std::move(message)};
}
Diagnostic wrong(const StagePlan& stage, std::string message) { return {location_of(stage.written_at), std::move(message)}; }

/// Errors: stages that are not the workload's; layouts that do not meet.
Status check_stages(const Workload& workload, const Plan& plan) {
  const std::size_t count = workload.stages.size();
  if (plan.stages.size() != count)
    return wrong(plan, fmt::format("the plan has {} stages, the workload {} has {}", plan.stages.size(), workload.name, count));
  for (std::size_t s = 0; s < count; ++s) {
    const StagePlan& stage = plan.stages[s];
    if (stage.name != workload.stages[s].name)
      return wrong(stage, fmt::format("stage {} of the plan is {}, of the workload {}", s, stage.name, workload.stages[s].name));
    if (stage.product.has_value() != (workload.stages[s].kind == Stage::Kind::product))
      return wrong(stage, fmt::format("the plan says how to compute products, {} is {}one", stage.name, stage.product ? "not " : ""));
    if (const auto& choice = stage.product; choice && input_layout(choice->dataflow, choice->transposed) != stage.layout)
      return wrong(stage, fmt::format("{}: {}{} reads {}, the plan has {}", stage.name, choice->transposed ? "transposed " : "",
                                      name_of(choice->dataflow), name_of(other(stage.layout)), name_of(stage.layout)));
  }
  if (workload.layouts_meet() && left_by(plan.stages.back()) != plan.stages.front().layout)
    return wrong(plan.stages.back(),
                 fmt::format("the block ends {}, the next one begins {}", name_of(left_by(plan.stages.back())), name_of(plan.stages.front().layout)));
  for (const Branch& branch : branches_of(workload)) {
    const StagePlan &first = plan.stages[branch.first], &last = plan.stages[branch.last];
    if (first.layout != last.layout)
      return wrong(last, fmt::format("{} joins what is {} with what is {}", last.name, name_of(last.layout), name_of(first.layout)));
  }
  return success();
}

}  // namespace

Expected<std::vector<WorkloadPart>> parts_of(const Workload& workload, const Plan& plan, const Mesh& mesh, Pass pass) {
  const auto submesh = workload_submesh(mesh);
  if (!submesh) return wrong(plan, submesh.error().message);
  return parts_of(workload, plan, *submesh, pass);
}

Expected<std::vector<WorkloadPart>> parts_of(const Workload& workload, const Plan& plan, const DeviceGrid& grid, Pass pass) {
  if (auto ok = check_stages(workload, plan); !ok) return ok.error();
  const std::size_t count = workload.stages.size();
  const bool chained = workload.layouts_meet();
  const auto needs_relayout = [&](std::size_t s) { return chained && s > 0 && left_by(plan.stages[s - 1]) != plan.stages[s].layout; };

  std::vector<WorkloadPart> parts;
  const auto append = [&](std::size_t s, Expected<WorkloadPart> part) -> Status {
    if (!part) return wrong(plan.stages[s], workload.stages[s].name + ": " + part.error().message);
    parts.push_back(*std::move(part));
    parts.back().written_at = plan.stages[s].written_at;
    return success();
  };
  const auto add = [&](std::size_t s, Pass in) { return append(s, part_of(workload, s, plan.stages[s].layout, plan.stages[s].product, grid, in)); };
  const auto add_relayout = [&](std::size_t s, Pass in) {
    return needs_relayout(s) ? append(s, relayout_before(workload, s, left_by(plan.stages[s - 1]), grid, in)) : success();
  };
  if (pass != Pass::backward)
    for (std::size_t s = 0; s < count; ++s) {
      if (auto ok = add_relayout(s, Pass::forward); !ok) return ok.error();
      if (auto ok = add(s, Pass::forward); !ok) return ok.error();
    }
  if (pass == Pass::forward) return parts;
  // A residual hands its gradient on to both of what it joined; they are added up where they parted. So are those of the tokens that the router and dispatch read.
  const std::vector<Branch> branches = branches_of(workload);
  for (std::size_t s = count; s-- > 0;) {
    const bool joins = workload.stages[s].kind == Stage::Kind::residual;
    if (!joins)
      if (auto ok = add(s, Pass::backward); !ok) return ok.error();
    if (workload.stages[s].name == router_stage) {
      WorkloadPart join = parts.back();
      join.kind = WorkloadPart::Kind::residual, join.name = router_join, join.outputs = join.inputs, join.product = {};
      parts.push_back(std::move(join));
    }
    if (auto ok = add_relayout(s, Pass::backward); !ok) return ok.error();
    for (const Branch& branch : branches)
      if (branch.first == s)
        if (auto ok = add(branch.last, Pass::backward); !ok) return ok.error();
  }
  return parts;
}

MemoryUse resident_memory(const Workload& workload, const Plan& plan, const DeviceGrid& grid, Pass pass) {
  const std::int64_t devices = grid.devices(), element = size_of(workload.dtype).count();
  const std::int64_t layers = workload.block ? workload.block->layers : 1;
  std::int64_t parameters = 0, kept = 0;
  for (std::size_t s = 0; s < workload.stages.size(); ++s) {
    const Stage& stage = workload.stages[s];
    const auto part = part_of(workload, s, plan.stages[s].layout, plan.stages[s].product, grid, Pass::forward);
    const std::int64_t inputs = part ? part->inputs : stage.inputs, outputs = part ? part->outputs : stage.outputs;
    if (stage.kind == Stage::Kind::product) parameters += inputs * outputs;
    if (stage.kind != Stage::Kind::residual) kept += stage.tokens * inputs;
  }
  const auto per_device = [&](std::int64_t elements) { return Bytes{(elements + devices - 1) / devices * layers * element}; };
  MemoryUse use;
  use.weights = per_device(parameters);
  if (pass == Pass::forward) return use;
  use.gradients = use.weights;
  const double optimizer = workload.block ? workload.block->optimizer_bytes : 0;
  use.optimizer = Bytes{static_cast<std::int64_t>(optimizer * static_cast<double>(use.weights.count() / element))};
  use.activations = per_device(kept);
  return use;
}

}  // namespace podsim
