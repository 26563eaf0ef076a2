#include "workloads/msccl/msccl_buffers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace podsim {

namespace {

/// What a collective of P GPUs needs, by the chunks of the first GPU.
Status fill_in(const MscclAlgorithm& algorithm, CollectiveKind kind, std::int64_t& inputs, std::int64_t& outputs) {
  const auto P = static_cast<std::int64_t>(algorithm.gpus.size());
  const SourceLocation where = location_of(algorithm, algorithm.gpus.front().where);
  if (algorithm.in_place) {  // one of the two may be left out
    if (kind == CollectiveKind::all_gather && inputs == 0 && outputs % P == 0)
      inputs = outputs / P;
    else if (kind == CollectiveKind::reduce_scatter && outputs == 0 && inputs % P == 0)
      outputs = inputs / P;
    else if (inputs == 0)
      inputs = outputs;
    else if (outputs == 0)
      outputs = inputs;
  }
  std::int64_t wanted = inputs;
  if (kind == CollectiveKind::all_gather) wanted = inputs * P;
  if (kind == CollectiveKind::reduce_scatter) wanted = inputs / P;
  const bool divides = (kind != CollectiveKind::reduce_scatter && kind != CollectiveKind::all_to_all) || inputs % P == 0;
  if (inputs < 1 || !divides)
    return Diagnostic{where, fmt::format("{} of {} GPUs: expected i_chunks positive{}, found {}", name_of(kind), P,
                                         divides ? "" : fmt::format(" and a multiple of {}", P), inputs)};
  if (outputs != wanted)
    return Diagnostic{where, fmt::format("{} of {} GPUs: expected o_chunks={} for i_chunks={}, found {}", name_of(kind), P, wanted, inputs, outputs)};
  return success();
}

}  // namespace

Expected<MscclBuffers> MscclBuffers::make(const MscclAlgorithm& algorithm, const Mesh& mesh, std::optional<CollectiveKind> kind, Bytes input,
                                          DType dtype) {
  MscclBuffers buffers;
  buffers.mesh_ = &mesh;
  buffers.kind_ = kind;
  buffers.dtype_ = dtype;
  buffers.in_place_ = algorithm.in_place;
  const MscclGpu& first = algorithm.gpus.front();
  for (const MscclGpu& gpu : algorithm.gpus) {
    if (kind && (gpu.input_chunks != first.input_chunks || gpu.output_chunks != first.output_chunks))
      return Diagnostic{location_of(algorithm, gpu.where), fmt::format("expected i_chunks={} and o_chunks={}, as of GPU 0, found {} and {}",
                                                                       first.input_chunks, first.output_chunks, gpu.input_chunks, gpu.output_chunks)};
    buffers.input_chunks_ = std::max(buffers.input_chunks_, gpu.input_chunks);
    buffers.output_chunks_ = std::max(buffers.output_chunks_, gpu.output_chunks);
    buffers.scratch_chunks_ = std::max(buffers.scratch_chunks_, gpu.scratch_chunks);
  }
  if (kind)
    if (auto ok = fill_in(algorithm, *kind, buffers.input_chunks_, buffers.output_chunks_); !ok) return ok.error();
  if (!kind && algorithm.in_place) buffers.input_chunks_ = buffers.output_chunks_ = std::max(buffers.input_chunks_, buffers.output_chunks_);
  const std::int64_t unit = std::max<std::int64_t>(buffers.input_chunks_, 1) * size_of(dtype).count();
  if (input.count() < 1 || input.count() % unit != 0)
    return Diagnostic{of_field("bytes"), fmt::format("expected a positive multiple of {} ({} chunks of whole {} elements), found {}", unit,
                                                     buffers.input_chunks_, name_of(dtype), input.count())};
  buffers.elements_ = input.count() / unit;
  constexpr std::int64_t most = std::int64_t{1} << 50;
  const std::int64_t chunks = buffers.input_chunks_ + buffers.output_chunks_ + buffers.scratch_chunks_;
  if (buffers.elements_ > most / std::max<std::int64_t>(chunks, 1))
    return Diagnostic{of_field("bytes"), fmt::format("expected buffers of at most 2^50 elements, found {} chunks of {}", chunks, buffers.elements_)};
  return buffers;
}

Buffer MscclBuffers::buffer(const Mesh& mesh, std::string name, Role role, std::int64_t chunks) const {
  Buffer buffer{name, {}, dtype_, role, role == Role::scratch ? "" : name, {}};
  for (std::size_t a = 0; a < mesh.axes().size(); ++a) {
    buffer.extents.push_back(1);
    if (role != Role::scratch) buffer.sharding.push_back({mesh.whole(static_cast<int>(a))});
  }
  buffer.extents.insert(buffer.extents.end(), {chunks, elements_});
  if (role != Role::scratch) buffer.sharding.insert(buffer.sharding.end(), 2, {});
  return buffer;
}

void MscclBuffers::add_to(ProgramBuilder& builder, std::int64_t slots) {
  const auto add = [&](std::string name, Role role, std::int64_t chunks) {
    return chunks > 0 ? builder.add_buffer(buffer(*mesh_, std::move(name), role, chunks)) : BufferId{};
  };
  input_ = add("input", Role::input, input_chunks_);
  output_ = add("output", Role::output, output_chunks_);
  work_ = in_place_ && kind_ == CollectiveKind::reduce_scatter ? add("work", Role::scratch, input_chunks_) : output_;
  scratch_ = add("scratch", Role::scratch, scratch_chunks_);
  slots_ = add("slots", Role::scratch, slots);
}

Region MscclBuffers::chunks(BufferId buffer, std::int64_t first, std::int64_t count) const {
  Region region{buffer, {}};
  region.dims.assign(mesh_->axes().size(), all(1));
  region.dims.push_back(span(first, count));
  region.dims.push_back(all(elements_));
  return region;
}

Region MscclBuffers::at(const MscclPlace& place, std::int64_t count, int gpu) const {
  if (place.buffer == MscclBuffer::scratch) return chunks(scratch_, place.chunk, count);
  const bool is_input = place.buffer == MscclBuffer::input;
  if (!in_place_) return chunks(is_input ? input_ : output_, place.chunk, count);
  if (kind_ == CollectiveKind::all_gather && is_input) return chunks(work_, gpu * input_chunks_ + place.chunk, count);
  if (kind_ == CollectiveKind::reduce_scatter && !is_input) return chunks(work_, gpu * output_chunks_ + place.chunk, count);
  return chunks(work_, place.chunk, count);
}

std::optional<std::pair<Region, Region>> MscclBuffers::placed_first() const {
  if (!in_place_ || input_chunks_ == 0) return std::nullopt;
  Region target = chunks(work_, 0, input_chunks_);
  if (kind_ == CollectiveKind::all_gather) {
    Affine position;  // row-major, first axis most significant
    std::int64_t stride = 1;
    for (std::size_t a = mesh_->axes().size(); a-- > 0; stride *= mesh_->axes()[a].size)
      if (mesh_->axes()[a].size > 1) position.terms.push_back({mesh_->whole(static_cast<int>(a)), stride});
    target.dims[mesh_->axes().size()] = block(std::move(position), input_chunks_);
  }
  return std::pair{input(), std::move(target)};
}

std::optional<std::pair<Region, Region>> MscclBuffers::placed_last(int gpu) const {
  if (!in_place_ || kind_ != CollectiveKind::reduce_scatter) return std::nullopt;
  return std::pair{chunks(work_, gpu * output_chunks_, output_chunks_), output()};
}

}  // namespace podsim
