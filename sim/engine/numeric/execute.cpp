#include "sim/engine/numeric/execute.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "sim/engine/numeric/executor.hpp"
#include "sim/schedule/submesh.hpp"

namespace podsim {
namespace {

/// The extents that the claim gives a tensor; none if it does not name it.
std::vector<std::int64_t> claimed_extents(const Schedule& schedule, const std::string& tensor) {
  if (const auto* products = std::get_if<Products>(&schedule.computes))
    for (const Product& product : *products) {
      if (tensor == product.out) return {product.m, product.n};
      if (tensor == product.left) return product.transpose_left ? std::vector{product.k, product.m} : std::vector{product.m, product.k};
      if (tensor == product.right) return product.transpose_right ? std::vector{product.n, product.k} : std::vector{product.k, product.n};
    }
  if (const auto* reference = std::get_if<ReferenceProgram>(&schedule.computes)) {
    for (const auto& [output, node] : reference->outputs)
      if (output == tensor) return reference->nodes[static_cast<std::size_t>(node)].extents;
    for (const ReferenceNode& node : reference->nodes)
      if (node.kind == ReferenceKind::input && node.tensor == tensor) return node.extents;
  }
  return {};
}

std::vector<std::int64_t> extents_of_tensor(const Schedule& schedule, const Buffer& buffer) {
  std::vector<std::int64_t> claimed = claimed_extents(schedule, buffer.tensor);
  std::int64_t elements = 1;
  for (const std::int64_t extent : claimed) elements = saturating_multiply(elements, extent);
  if (!claimed.empty() && elements == data_elements(buffer)) return claimed;
  if (!buffer.unpadded.empty()) return buffer.unpadded;
  std::vector<std::int64_t> extents = buffer.extents;
  for (std::size_t i = 0; i < extents.size(); ++i) extents[i] *= devices_along(buffer.sharding[i]);
  return extents;
}

/// The devices that hold the addends of what a device at position 0 along the axes holds, itself first.
std::vector<DeviceId> members(const Mesh& mesh, DeviceId first, const std::vector<AxisView>& axes) {
  std::vector<DeviceId> members{first};
  for (const AxisView& axis : axes) {
    std::vector<DeviceId> more;
    for (int by = 0; by < axis.size; ++by)
      for (const DeviceId member : members) more.push_back(mesh.shifted(member, axis, by));
    members = std::move(more);
  }
  return members;
}

float sum(float a, float b, DType dtype) {
  if (dtype != DType::s32) return a + b;
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(a) + std::bit_cast<std::int32_t>(b));
}

/// Copies a shard from the memory of a device to its place in the whole tensor.
void collect(const Schedule& lowered, const Executor& executor, DeviceId device, BufferId id, const Buffer& buffer, std::vector<float>& whole) {
  const ShardData data = data_of_shard(lowered.mesh, buffer, device);
  const Layout in_buffer = in_words(data.in_buffer, buffer.dtype), in_tensor = in_words(data.in_tensor, buffer.dtype);
  std::vector<std::span<const float>> addends;
  for (const DeviceId member : members(lowered.mesh, device, buffer.unreduced)) addends.push_back(executor.values(member, id));
  for_each_run<2>({&in_buffer, &in_tensor}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto from = static_cast<std::size_t>(at[0].offset() + i * at[0].stride());
      float& to = whole[static_cast<std::size_t>(at[1].offset() + i * at[1].stride())] = addends.front()[from];
      for (std::size_t a = 1; a < addends.size(); ++a) to = sum(to, addends[a][from], buffer.dtype);
    }
  });
}

}  // namespace

std::vector<GlobalTensor> tensors_of(const Schedule& schedule, Role role) {
  std::vector<GlobalTensor> tensors;
  for (const Program& program : schedule.programs)
    for (const Buffer& buffer : program.buffers)
      if (buffer.role == role && std::none_of(tensors.begin(), tensors.end(), [&](const GlobalTensor& known) { return known.name == buffer.tensor; }))
        tensors.push_back({buffer.tensor, buffer.dtype, extents_of_tensor(schedule, buffer)});
  return tensors;
}

Expected<GivenTensors> execute(const Schedule& lowered, const GivenTensors& inputs, const NumericOptions& options) {
  const Expected<std::unique_ptr<Executor>> executor =
      Executor::make(lowered, options.threads, {bytes_of_results(lowered), options.max_bytes}, {options.stop, {}, &inputs});
  if (!executor) return executor.error();
  if (const Status ran = (*executor)->run(options.seed, Filling::uniform, options.order); !ran) return ran.error();
  GivenTensors outputs;
  for (const GlobalTensor& tensor : tensors_of(lowered, Role::output)) {
    std::int64_t words = words_of(tensor.dtype);
    for (const std::int64_t extent : tensor.extents) words *= extent;
    outputs[tensor.name].assign(static_cast<std::size_t>(words), std::numeric_limits<float>::quiet_NaN());
  }
  for (int d = 0; d < lowered.mesh.devices(); ++d) {
    const std::optional<std::size_t> program = (*executor)->storage().program(DeviceId{d});
    for (std::size_t b = 0; program && b < lowered.programs[*program].buffers.size(); ++b) {
      const Buffer& buffer = lowered.programs[*program].buffers[b];
      if (buffer.role == Role::output && position_along(lowered.mesh, buffer.unreduced, DeviceId{d}) == 0)
        collect(lowered, **executor, DeviceId{d}, BufferId{b}, buffer, outputs[buffer.tensor]);
    }
  }
  return outputs;
}

}  // namespace podsim
