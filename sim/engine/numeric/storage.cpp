#include "sim/engine/numeric/storage.hpp"

#include <fmt/format.h>

#include "sim/base/invariant.hpp"
#include "sim/base/units.hpp"

namespace podsim {
namespace {

constexpr std::uint32_t idle = ~std::uint32_t{0};
constexpr std::int64_t alignment = 16;  // words: buffers begin on cache lines, as BLAS likes them

/// On cache lines.
std::int64_t padded_words(const Buffer& buffer) {
  return saturating_multiply(saturating_add(words_in(buffer), alignment - 1) / alignment, alignment);
}

template <class Counts>
Bytes bytes_of(const Schedule& lowered, Counts words) {
  std::int64_t count = 0;
  for (const Program& program : lowered.programs)
    for (const Buffer& buffer : program.buffers) count = saturating_add(count, saturating_multiply(words(buffer), size_of(program.devices)));
  return Bytes{saturating_multiply(count, sizeof(float))};
}

}  // namespace

std::int64_t words_in(const Buffer& buffer) {
  std::int64_t count = words_of(buffer.dtype);
  for (const std::int64_t extent : buffer.extents) count = saturating_multiply(count, extent);
  return count;
}

bool overlap(const Access& a, const Access& b) {
  if (a.slot != b.slot) return false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.rank); ++i)
    if (a.begin[i] + a.length[i] <= b.begin[i] || b.begin[i] + b.length[i] <= a.begin[i]) return false;
  return true;
}

bool contains(const Access& outer, const Access& inner) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(outer.rank); ++i)
    if (inner.begin[i] < outer.begin[i] || inner.begin[i] + inner.length[i] > outer.begin[i] + outer.length[i]) return false;
  return true;
}

bool same_box(const Access& a, const Access& b) { return a.slot == b.slot && contains(a, b) && contains(b, a); }

Expected<Storage> Storage::make(const Schedule& lowered) {
  for (const Program& program : lowered.programs)
    for (const Buffer& buffer : program.buffers)
      if (buffer.extents.size() > static_cast<std::size_t>(max_rank))
        return Diagnostic{
            location_of(buffer.written_at),
            fmt::format("buffer {} has {} dimensions; the numeric engine takes at most {}", quoted(buffer.name), buffer.extents.size(), max_rank)};
  Storage storage;
  storage.schedule_ = &lowered;
  const auto devices = static_cast<std::size_t>(lowered.mesh.devices());
  storage.program_of_.assign(devices, idle);
  for (std::size_t p = 0; p < lowered.programs.size(); ++p)
    for (const DeviceSet::Interval& interval : lowered.programs[p].devices.intervals)
      for (int d = interval.first; d < interval.last; ++d) storage.program_of_[static_cast<std::size_t>(d)] = static_cast<std::uint32_t>(p);

  std::int64_t end = 0;
  for (std::size_t d = 0; d < devices; ++d) {
    storage.coordinates_.push_back(lowered.mesh.coordinates(DeviceId{d}));
    storage.first_slot_.push_back(storage.slots_.size());
    if (storage.program_of_[d] == idle) continue;
    for (const Buffer& buffer : lowered.programs[storage.program_of_[d]].buffers) {
      storage.slots_.push_back({&buffer, end});
      end = saturating_add(end, padded_words(buffer));
    }
  }
  storage.first_slot_.push_back(storage.slots_.size());
  storage.bytes_ = bytes_of_buffers(lowered);
  return storage;
}

std::optional<std::size_t> Storage::program(DeviceId device) const {
  const std::uint32_t program = program_of_[device.index()];
  return program == idle ? std::nullopt : std::optional<std::size_t>{program};
}

Access Storage::access(DeviceId device, const Region& region, bool write) const {
  Access access;
  access.slot = first_slot(device) + region.buffer.index();
  access.write = write;
  access.rank = static_cast<int>(region.dims.size());
  for (std::size_t i = 0; i < region.dims.size(); ++i) {
    const Range& range = region.dims[i];
    access.begin[i] = range.offset + evaluate(range.index, coordinates_[device.index()]) * range.stride;
    access.length[i] = range.length;
  }
  return access;
}

void Storage::append_accesses(const Activity& activity, std::vector<Access>& accesses) const {
  const auto reads = [&](const Region& region) { accesses.push_back(access(activity.device, region, false)); };
  const auto writes = [&](const Region& region) { accesses.push_back(access(activity.receiver, region, true)); };
  const Task& task = schedule_->programs[activity.program].tasks[activity.task.index()];
  std::visit(Overloaded{
                 [&](const Matmul& matmul) { reads(matmul.left), reads(matmul.right), writes(matmul.out); },
                 [&](const Local& local) {
                   for (const Region& region : local.reads) reads(region);
                   for (const Region& region : local.writes) writes(region);
                 },
                 [&](const Shift& shift) { reads(shift.source), writes(shift.target); },
                 [&](const Send& send) {
                   reads(send.source);
                   const Program& receiver = schedule_->programs[activity.receiver_program];
                   writes(std::get<Recv>(receiver.tasks[activity.receiver_task.index()].op).target);
                 },
                 [](const Recv&) { PODSIM_ASSERT(false && "a transfer is listed at its sender"); },
                 [](const Collective&) { PODSIM_ASSERT(false && "lowered before it is unrolled"); },
                 [](const Call&) { PODSIM_ASSERT(false && "inlined before it is unrolled"); },
             },
             task.op);
}

Layout Storage::layout(const Access& access) const {
  const auto rank = static_cast<std::size_t>(access.rank);
  const Buffer& buffer = *slots_[access.slot].buffer;
  Layout layout = in_words(box_of(buffer.extents, std::span{access.begin}.first(rank), std::span{access.length}.first(rank)), buffer.dtype);
  layout.offset += slots_[access.slot].offset;
  return layout;
}

Bytes bytes_of_buffers(const Schedule& lowered) { return bytes_of(lowered, padded_words); }

Bytes bytes_of_results(const Schedule& lowered) {
  return bytes_of(lowered, [](const Buffer& buffer) { return buffer.role == Role::scratch ? 0 : words_in(buffer); });
}

Status fits(Bytes need, Bytes limit, std::string_view what) {
  if (need <= limit) return success();
  return Diagnostic{{}, fmt::format("{} needs {} of memory; the limit is {}", what, to_text(need), to_text(limit))};
}

}  // namespace podsim
