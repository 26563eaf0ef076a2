// Shapes and shardings of operations on the blocks of devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "workloads/sharded/typing.hpp"

namespace podsim {

namespace {

bool is_among(const std::vector<int>& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

std::string names_of_axes(const std::vector<int>& axes, const Mesh& mesh) {
  std::string text;
  for (const int axis : axes) text += (text.empty() ? "" : ", ") + mesh.axes()[static_cast<std::size_t>(axis)].name;
  return text;
}

}  // namespace

// ---- Inside of shard_map ----

/// The axes along which the blocks of a result may differ: those of its operands, without those that a sum, maximum or gather goes over, with those that give each
/// device a part of its own.
void Typing::find_varying(Operation& operation) const {
  std::set<int> varying;
  bool blocks = operation.op == ArrayOp::axis_index || operation.op == ArrayOp::to_blocks;
  for (const int operand : operation.operands) {
    if (!at(operand).varying) continue;
    blocks = true;
    varying.insert(at(operand).varying->begin(), at(operand).varying->end());
  }
  if (!blocks || operation.op == ArrayOp::from_blocks) return;
  if (operation.op == ArrayOp::to_blocks && at(operation.operands[0]).sharding)
    for (const std::vector<int>& axes : at(operation.operands[0]).sharding->dims) varying.insert(axes.begin(), axes.end());
  const bool equal = operation.op == ArrayOp::psum || operation.op == ArrayOp::pmax || operation.op == ArrayOp::all_gather;
  for (const int axis : operation.axes) equal ? (void)varying.erase(axis) : (void)varying.insert(axis);
  operation.varying.emplace(varying.begin(), varying.end());
  operation.sharding = Sharding{};
}

/// The reference numbers the devices by further dimensions.
Status Typing::rank_fits(const Operation& operation) const {
  if (!operation.varying) return success();
  const std::size_t most = most_reference_dimensions - mesh_.axes().size() - (operation.dtype == DType::c64 ? 1 : 0);
  if (operation.extents.size() <= most) return success();
  return Diagnostic{operation.where, fmt::format("expected at most {} dimensions inside of shard_map on a mesh of {} axes, found {}", most, mesh_.axes().size(), operation.extents.size())};
}

Status Typing::type_to_blocks(Operation& operation) {
  const Operation& whole = at(operation.operands[0]);
  operation.name = whole.name;
  const auto expected = [&](std::string_view what) -> Status {
    return Diagnostic{operation.where, fmt::format("shard_map takes the blocks of {}, {}: expected {} = reshard({}, SPEC) before it, or the like", whole.name, what, whole.name + "2", whole.name)};
  };
  if (!whole.sharding) return expected("whose sharding is the compiler's choice");
  if (!whole.sharding->unreduced.empty()) return expected(fmt::format("of which sums along {} are pending", names_of_axes(whole.sharding->unreduced, mesh_)));
  operation.extents = block_extents(whole.extents, *whole.sharding, mesh_);
  return success();
}

Status Typing::type_from_blocks(Operation& operation) {
  const Operation& block = at(operation.operands[0]);
  std::vector<int> missing;
  for (const int axis : *block.varying)
    if (std::none_of(operation.sharding->dims.begin(), operation.sharding->dims.end(), [&](const std::vector<int>& axes) { return is_among(axes, axis); })) missing.push_back(axis);
  if (!missing.empty())
    return Diagnostic{operation.where, fmt::format("the blocks of {} differ along {}, which the out spec {} leaves out: expected it there, or psum, pmean, pmax or all_gather over it", target_,
                                                   names_of_axes(missing, mesh_), to_text(*operation.sharding, mesh_, block.extents.size()))};
  operation.extents = block.extents;
  for (std::size_t d = 0; d < operation.extents.size(); ++d) operation.extents[d] *= devices_along(mesh_, operation.sharding->axes_of(d));
  return success();
}

/// Collectives: what they make of the extents of a block.
Status Typing::type_blocks(Operation& operation) {
  operation.extents = at(operation.operands[0]).extents;
  const std::int64_t P = devices_along(mesh_, operation.axes);
  const bool scatters = operation.op == ArrayOp::psum_scatter;
  if (scatters || operation.op == ArrayOp::all_to_all) {
    const int dim = scatters ? operation.dim : operation.split_dim;
    std::int64_t& extent = operation.extents[static_cast<std::size_t>(dim)];
    if (extent % P != 0)
      return Diagnostic{operation.where, fmt::format("dimension {} of the block of {} has extent {}: expected a multiple of {}", dim, called(operation.operands[0]), extent, P)};
    extent /= P;
  }
  if (operation.op == ArrayOp::all_gather || operation.op == ArrayOp::all_to_all) operation.extents[static_cast<std::size_t>(operation.dim)] *= P;
  return success();
}

// ---- Of whole arrays ----

Status Typing::type_local(Operation& operation) {
  const Operation& operand = at(operation.operands[0]);
  const std::size_t rank = operand.extents.size();
  if (!operand.sharding)
    return Diagnostic{operation.where, fmt::format("{} works on the local blocks of {}, whose sharding is the compiler's choice: expected reshard({}, SPEC) or the like",
                                                   name_of(operation.op), called(operation.operands[0]), called(operation.operands[0]))};
  for (const int axis : operation.axes)
    if (is_among(operand.sharding->unreduced, axis))
      return Diagnostic{operation.where, fmt::format("sums along {} of {} are pending already: expected {} of an array without them, or shard_map {{ }}, where @ and sum are of blocks; found {}", quoted(mesh_.axes()[static_cast<std::size_t>(axis)].name),
                                                     called(operation.operands[0]), name_of(operation.op), to_text(*operand.sharding, mesh_, rank))};
  Sharding sharding = *operand.sharding;
  sharding.dims.resize(rank);
  Extents local = operand.extents;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t parts = devices_along(mesh_, sharding.dims[d]);
    local[d] = divide_ ? local[d] / parts : (local[d] + parts - 1) / parts;
  }
  const std::int64_t P = devices_along(mesh_, operation.axes);
  const auto moved = [&](int axis) { return is_among(operation.axes, axis); };
  if (operation.op != ArrayOp::ppermute)
    for (std::vector<int>& axes : sharding.dims) std::erase_if(axes, moved);
  std::optional<int> scattered;
  if (operation.op == ArrayOp::psum_scatter) scattered = operation.dim;
  if (operation.op == ArrayOp::all_to_all) scattered = operation.split_dim;
  if (scattered) {
    std::int64_t& extent = local[static_cast<std::size_t>(*scattered)];
    if (extent % P != 0) {
      const auto problem = Diagnostic{operation.where, fmt::format("dimension {} of the local block of {} has extent {}: expected a multiple of {}", *scattered,
                                                                   called(operation.operands[0]), extent, P)};
      if (divide_) {
        // The operand divides where it divides along these axes too.
        Sharding finer = *operand.sharding;
        finer.dims.resize(rank);
        for (std::vector<int>& axes : finer.dims) std::erase_if(axes, [&](int axis) { return moved(axis) && &axes != &finer.dims[static_cast<std::size_t>(*scattered)]; });
        std::vector<int>& axes = finer.dims[static_cast<std::size_t>(*scattered)];
        const bool again = std::any_of(axes.begin(), axes.end(), moved);
        if (!again) axes.insert(axes.end(), operation.axes.begin(), operation.axes.end());
        if (!again) (void)divides(operation.operands[0], operand.extents, finer, called(operation.operands[0]), operation.where);
        return problem;
      }
    }
    extent = (extent + P - 1) / P;
    auto& axes = sharding.dims[static_cast<std::size_t>(*scattered)];
    axes.insert(axes.end(), operation.axes.begin(), operation.axes.end());
  }
  if (operation.op == ArrayOp::all_gather || operation.op == ArrayOp::all_to_all) local[static_cast<std::size_t>(operation.dim)] *= P;
  operation.extents = std::move(local);
  for (std::size_t d = 0; d < rank; ++d) operation.extents[d] *= devices_along(mesh_, sharding.dims[d]);
  operation.sharding = sharding.canonical();
  return success();
}

}  // namespace podsim
