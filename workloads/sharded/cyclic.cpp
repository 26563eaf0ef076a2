#include "workloads/sharded/cyclic.hpp"

#include <fmt/format.h>

namespace podsim {

namespace {

/// A block-cyclic dimension that several devices divide, as [blocks, 1, block] from dimension `first` of the stored block on.
struct Dealt {
  std::size_t first = 0;
  std::vector<int> axes;
  std::int64_t devices = 1;
};

std::vector<Dealt> dealt_dimensions(const CyclicArray& array) {
  std::vector<Dealt> all;
  std::size_t first = 0;
  for (std::size_t d = 0; d < array.extents.size(); ++d) {
    const bool cyclic = d < array.blocks.size() && array.blocks[d] != 0;
    const std::int64_t devices = devices_along(array.mesh, array.sharding.axes_of(d));
    if (cyclic && devices > 1) all.push_back({first, array.sharding.axes_of(d), devices});
    first += cyclic ? 3 : 1;
  }
  return all;
}

/// [blocks, 1, block] as [blocks / S, S, block], which flattens to contiguous rows.
void open(Extents& extents, const Dealt& dealt) {
  extents[dealt.first] /= dealt.devices;
  extents[dealt.first + 1] = dealt.devices;
}

Collective exchange(const CyclicArray& array, const Dealt& dealt, bool to_cyclic, Region from, Region to) {
  Collective collective;
  collective.kind = CollectiveKind::all_to_all;
  for (const int axis : dealt.axes) collective.axes.push_back(array.mesh.whole(axis));
  collective.input = std::move(from);
  collective.output = std::move(to);
  collective.split_dim = static_cast<int>(dealt.first) + (to_cyclic ? 1 : 0);
  collective.dim = static_cast<int>(dealt.first) + (to_cyclic ? 0 : 1);
  return collective;
}

}  // namespace

StoredBlock stored_block(const Extents& array, const Sharding& sharding, const CyclicBlocks& cyclic, const Mesh& mesh) {
  StoredBlock stored;
  for (std::size_t d = 0; d < array.size(); ++d) {
    const std::int64_t block = d < cyclic.size() ? cyclic[d] : 0, devices = devices_along(mesh, sharding.axes_of(d));
    if (block == 0) {
      stored.extents.push_back(array[d] / devices);
      stored.axes.push_back(sharding.axes_of(d));
      stored.grouped.push_back(1);
      continue;
    }
    const std::int64_t blocks = array[d] / block;
    stored.extents.insert(stored.extents.end(), {(blocks + devices - 1) / devices, 1, block});
    stored.axes.insert(stored.axes.end(), {{}, sharding.axes_of(d), {}});
    stored.grouped.push_back(3);
    stored.padded |= blocks % devices != 0;
  }
  if (array.empty()) stored.extents = {1}, stored.axes = {{}}, stored.grouped = {1};
  return stored;
}

Tasks write_contiguous(ProgramBuilder& builder, const CyclicArray& array, const std::string& label, const Region& cyclic, const Region& contiguous, const Tasks& after) {
  Region at = cyclic;
  Tasks ready = after;
  Extents extents = lengths_of(cyclic);
  for (const Dealt& dealt : dealt_dimensions(array)) {
    open(extents, dealt);
    const Region out = builder.scratch(fmt::format("{} {}", label, dealt.first), extents, array.dtype);
    ready = {builder.add(label, exchange(array, dealt, false, at, out), ready)};
    at = out;
  }
  return {builder.alias(label, at, contiguous, ready)};
}

Tasks write_cyclic(ProgramBuilder& builder, const CyclicArray& array, const std::string& label, const Region& contiguous, const Region& cyclic, const Tasks& after) {
  const std::vector<Dealt> all = dealt_dimensions(array);
  Extents extents = lengths_of(cyclic);
  for (const Dealt& dealt : all) open(extents, dealt);
  if (all.empty()) return {builder.alias(label, contiguous, cyclic, after)};
  Region at = builder.scratch(label, extents, array.dtype);
  Tasks ready{builder.alias(label, contiguous, at, after)};
  for (const Dealt& dealt : all) {
    extents[dealt.first] *= dealt.devices;
    extents[dealt.first + 1] = 1;
    const Region out = &dealt == &all.back() ? cyclic : builder.scratch(fmt::format("{} {}", label, dealt.first), extents, array.dtype);
    ready = {builder.add(label, exchange(array, dealt, true, at, out), ready)};
    at = out;
  }
  return ready;
}

}  // namespace podsim
