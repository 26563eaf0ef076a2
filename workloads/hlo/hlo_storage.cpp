#include "workloads/hlo/hlo_storage.hpp"

#include <algorithm>
#include <functional>

#include "workloads/hlo/task_costs.hpp"

namespace podsim {

namespace {

std::optional<DType> dtype_of(HloType type) {
  switch (bits_of(type)) {
    case 8:
      if (is_float(type)) return type == HloType::f8e5m2 || type == HloType::f8e5m2fnuz ? DType::f8e5m2 : DType::f8e4m3fn;
      return type == HloType::s8 || type == HloType::u8 ? std::optional{DType::s8} : std::nullopt;
    case 16: return is_float(type) ? std::optional{DType::bf16} : std::nullopt;
    case 32: return is_float(type) ? DType::f32 : DType::s32;
    case 64: return DType::c64;
    default: return std::nullopt;
  }
}

}  // namespace

HloArrayForm form_of(const HloShape& array) {
  const auto dtype = dtype_of(array.type);
  if (!dtype) {
    constexpr std::int64_t piece = 2;  // bytes of a bf16
    const std::int64_t pieces = std::max<std::int64_t>(1, (device_bytes(array).count() + piece - 1) / piece);
    return {{pieces}, {pieces}, DType::bf16, false};
  }
  HloArrayForm form{{}, array.rank() == 0 ? std::vector<std::int64_t>{1} : array.dims, *dtype, true};
  for (std::int64_t& extent : form.lengths) extent = std::max<std::int64_t>(extent, 1);  // an array without elements takes one, so that regions are never empty
  form.extents = form.lengths;
  const HloLayout& layout = array.layout;
  if (layout.tiles.empty() || layout.minor_to_major.size() != array.rank()) return form;
  const std::vector<std::int64_t>& tile = layout.tiles.front();
  for (std::size_t i = 0; i < tile.size() && i < layout.minor_to_major.size(); ++i) {
    const std::int64_t extent = tile[tile.size() - 1 - i];
    if (extent <= 0) break;  // combined dimensions
    std::int64_t& padded = form.extents[static_cast<std::size_t>(layout.minor_to_major[i])];
    padded = (padded + extent - 1) / extent * extent;
  }
  return form;
}

HloArrayForm form_of_values(const HloShape& array) {
  const DType dtype = is_integer(array.type) ? DType::s32 : bits_of(array.type) == 16 ? DType::bf16 : DType::f32;
  HloArrayForm form{{}, array.rank() == 0 ? std::vector<std::int64_t>{1} : array.dims, dtype, true};
  for (std::int64_t& extent : form.lengths) extent = std::max<std::int64_t>(extent, 1);
  if (is_complex(array.type)) form.lengths.push_back(2);
  form.extents = form.lengths;
  return form;
}

Region region_of(BufferId buffer, const std::vector<std::int64_t>& lengths) {
  Region region{buffer, {}};
  for (const std::int64_t length : lengths) region.dims.push_back(all(length));
  return region;
}

int done_of(const HloComputation& computation, const std::vector<std::vector<int>>& users, int start) {
  for (const int user : users[static_cast<std::size_t>(start)]) {
    const HloInstruction& by = computation.instructions[static_cast<std::size_t>(user)];
    if (by.phase == HloPhase::done) return user;
    if (by.phase != HloPhase::update) continue;
    const int done = done_of(computation, users, user);
    if (done != HloInstruction::missing) return done;
  }
  return HloInstruction::missing;
}

LastUses::LastUses(const HloComputation& computation, const std::vector<int>& order) : uses_(computation.instructions.size()) {
  const HloUsers users{computation};
  const auto end = static_cast<int>(computation.instructions.size());
  std::vector<int> position(order.size());
  for (int p = 0; p < end; ++p) position[static_cast<std::size_t>(order[static_cast<std::size_t>(p)])] = p;
  for (int i = 0; i < end; ++i) {
    const HloInstruction& made = computation.instructions[static_cast<std::size_t>(i)];
    std::vector<int>& uses = uses_[static_cast<std::size_t>(i)];
    uses.assign(count_leaves(*made.shape), i == computation.root ? end : -1);
    for (const int user : users.of(i)) {
      const HloInstruction& by = computation.instructions[static_cast<std::size_t>(user)];
      std::size_t first = 0, last = uses.size();
      if (by.opcode == HloOpcode::get_tuple_element) {
        first = first_leaf(*made.shape, static_cast<std::size_t>(by.number));
        last = first + count_leaves(*by.shape);
      }
      int until = position[static_cast<std::size_t>(user)];
      if (by.phase == HloPhase::start)
        if (const int done = done_of(computation, users.all(), user); done != HloInstruction::missing) until = std::max(until, position[static_cast<std::size_t>(done)]);
      for (std::size_t leaf = first; leaf < last; ++leaf) uses[leaf] = std::max(uses[leaf], until);
    }
  }
}

}  // namespace podsim
