#include <fmt/ranges.h>

#include "algorithms/lu/writer.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_blocks = 1 << 11;  // the time to write a schedule grows with their square: 2,048 take some ten seconds

std::int64_t grid_extent(const std::vector<AxisView>& views) {
  std::int64_t devices = 1;
  for (const AxisView& view : views) devices *= view.size;
  return devices;
}

}  // namespace

std::string extents_text(const Extents& extents) { return fmt::format("[{}]", fmt::join(extents, ",")); }

std::string_view name_of(LuMethod method) { return method == LuMethod::block ? "block" : "naive"; }
std::string_view name_of(SolveMethod method) { return method == SolveMethod::block ? "block" : method == SolveMethod::naive ? "naive" : "batched"; }

Expected<LuLayout> lu_layout(const Mesh& mesh, const LuProblem& problem) {
  const Extents& a = problem.matrix;
  if (problem.dtype != DType::f32) return Diagnostic{{}, fmt::format("a factorisation of {}; expected f32", name_of(problem.dtype))};
  if (a.size() != 2 || a[0] != a[1] || a[0] < 1) return Diagnostic{{}, fmt::format("A is {}; expected a square matrix, [n,n]", extents_text(a))};
  LuLayout layout;
  layout.problem = problem;
  for (std::vector<AxisView>* views : {&layout.problem.rows, &layout.problem.columns})  // an axis of one device divides nothing
    std::erase_if(*views, [](const AxisView& view) { return view.size == 1; });
  layout.n = a[0], layout.b = problem.block;
  if (layout.b < 1) return Diagnostic{{}, fmt::format("blocks of {} rows; expected at least 1", layout.b)};
  layout.K = layout.n / layout.b;
  if (layout.n % layout.b != 0)
    return Diagnostic{{},
                      fmt::format("{} rows are no multiple of the block, {}: pad A to {}, or choose a block that divides {}", layout.n, layout.b,
                                  (layout.K + 1) * layout.b, layout.n)};
  if (layout.K > most_blocks) return Diagnostic{{}, fmt::format("{} blocks of {} rows; expected at most {}, so blocks of {} rows or more", layout.K, layout.b, most_blocks,
                                                               (layout.n + most_blocks - 1) / most_blocks)};
  if (problem.look_ahead != 0 && problem.look_ahead != 1)
    return Diagnostic{{}, fmt::format("a look-ahead of {} panels; expected 0 or 1", problem.look_ahead)};
  for (const AxisView& row : layout.problem.rows)
    for (const AxisView& column : layout.problem.columns)
      if (row.axis == column.axis)
        return Diagnostic{
            {}, fmt::format("rows and columns are both divided along the mesh axis {}", mesh.axes()[static_cast<std::size_t>(row.axis)].name)};
  layout.R = static_cast<int>(grid_extent(problem.rows)), layout.C = static_cast<int>(grid_extent(problem.columns));
  layout.Q = (layout.K + layout.R - 1) / layout.R, layout.W = (layout.K + layout.C - 1) / layout.C;
  const Extents& right = problem.right;
  layout.has_right = !right.empty();
  if (layout.has_right) {
    if (right.size() > 2 || right[0] != layout.n || right.back() < 1)
      return Diagnostic{{}, fmt::format("A is {}, b is {}; expected [{}] or [{},m]", extents_text(a), extents_text(right), layout.n, layout.n)};
    layout.right_is_divided = right.size() == 2 && right[1] % layout.C == 0;
    layout.m = right.size() == 1 ? 1 : layout.right_is_divided ? right[1] / layout.C : right[1];
  }
  return layout;
}

Buffer LuLayout::matrix_buffer(std::string name, Role role) const {
  Buffer buffer{std::move(name), {Q, 1, b, W, 1, b}, DType::f32, role, {}, {}};
  if (role == Role::scratch) return buffer;
  buffer.tensor = buffer.name;
  buffer.sharding = {{}, problem.rows, {}, {}, problem.columns, {}};
  if (Q * R != K || W * C != K) buffer.unpadded = {n, n}, buffer.grouped = {3, 3};
  return buffer;
}

Buffer LuLayout::right_buffer(std::string name, Role role) const {
  Buffer buffer{std::move(name), {Q, 1, b}, DType::f32, role, {}, {}};
  const bool many = problem.right.size() == 2;
  if (many) buffer.extents.push_back(m);
  if (role == Role::scratch) return buffer;
  buffer.tensor = buffer.name;
  buffer.sharding = {{}, problem.rows, {}};
  if (many) buffer.sharding.push_back(right_is_divided ? problem.columns : std::vector<AxisView>{});
  if (Q * R != K) {
    buffer.unpadded = problem.right, buffer.grouped = {3};
    if (many) buffer.grouped.push_back(1);
  }
  return buffer;
}

Buffer LuLayout::pivots_buffer(std::string name, Role role) const {
  Buffer buffer{std::move(name), {n}, DType::s32, role, {}, {}};
  if (role != Role::scratch) buffer.tensor = buffer.name, buffer.sharding = {{}};
  return buffer;
}

}  // namespace podsim
