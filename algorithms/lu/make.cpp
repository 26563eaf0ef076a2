// Whole programs: the block-cyclic ones, and what a compiler does instead.
#include <fmt/ranges.h>

#include <algorithm>

#include "algorithms/lu/writer.hpp"

namespace podsim {

namespace {

std::vector<AxisView> joined(std::vector<AxisView> a, const std::vector<AxisView>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Schedule schedule_of(std::string name, const Mesh& mesh, ProgramBuilder builder, ReferenceProgram claim) {
  Schedule schedule{std::move(name), mesh, {}, std::move(claim)};
  schedule.programs.push_back(std::move(builder).finish());
  return schedule;
}

ReferenceNode input_node(std::string tensor, const Extents& extents) {
  ReferenceNode node;
  node.extents = extents, node.tensor = tensor, node.name = std::move(tensor);
  return node;
}
ReferenceNode node_of(ReferenceKind kind, std::string name, std::vector<int> operands, const Extents& extents) {
  ReferenceNode node;
  node.kind = kind, node.operands = std::move(operands), node.extents = extents, node.name = std::move(name);
  return node;
}

ReferenceProgram lu_claim(const Extents& matrix) {
  ReferenceProgram claim;
  claim.nodes = {input_node("A", matrix), node_of(ReferenceKind::lu_pivots, "P", {0}, {matrix[0]}),
                 node_of(ReferenceKind::lu_lower, "L", {0}, matrix), node_of(ReferenceKind::lu_upper, "U", {0}, matrix)};
  claim.outputs = {{"P", 1}, {"L", 2}, {"U", 3}};
  return claim;
}

ReferenceProgram solve_claim(const LuProblem& problem) {
  ReferenceProgram claim;
  claim.nodes = {input_node("A", problem.matrix), input_node("b", problem.right), node_of(ReferenceKind::solve, "x", {0, 1}, problem.right)};
  claim.outputs = {{"x", 2}};
  return claim;
}

/// Errors: the axes do not divide an extent.
Status divides(std::string_view array, const Extents& extents, std::size_t dim, std::int64_t devices) {
  if (extents[dim] % devices == 0) return success();
  return Diagnostic{{},
                    fmt::format("dimension {} of {}, {}, has {} elements; expected a multiple of {} devices", dim, array, extents_text(extents),
                                extents[dim], devices)};
}

/// Gathers an array along its dimensions, the last one first. Returns the task to wait for and the region of all of it.
Region gather(ProgramBuilder& builder, std::string_view name, Region region, const std::vector<std::vector<AxisView>>& sharding, Tasks& after) {
  for (std::size_t dim = sharding.size(); dim-- > 0;) {
    if (sharding[dim].empty()) continue;
    Extents extents = lengths_of(region);
    for (const AxisView& view : sharding[dim]) extents[dim] *= view.size;
    const Region whole = builder.scratch(fmt::format("{} along {}", name, dim), extents, DType::f32);
    after = {builder.add(fmt::format("gather {} along {}", name, dim),
                         Collective{CollectiveKind::all_gather, sharding[dim], region, whole, static_cast<int>(dim)}, after)};
    region = whole;
  }
  return region;
}

BufferId replicated(ProgramBuilder& builder, const std::string& name, const Extents& extents, DType dtype) {
  return builder.add_buffer({name, extents, dtype, Role::output, name, std::vector<std::vector<AxisView>>(extents.size())});
}

Schedule naive_lu(const Mesh& mesh, const LuLayout& layout) {
  ProgramBuilder builder{mesh, every_device(mesh)};
  const std::int64_t n = layout.n;
  const BufferId a = builder.add_buffer(sharded_buffer("A", DType::f32, Role::input, {{n, layout.problem.rows}, {n, layout.problem.columns}}));
  const Region p = builder.whole(replicated(builder, "P", {n}, DType::s32)), l = builder.whole(replicated(builder, "L", {n, n}, DType::f32)),
               u = builder.whole(replicated(builder, "U", {n, n}, DType::f32));
  Tasks after;
  const Region whole = gather(builder, "A", builder.whole(a), {layout.problem.rows, layout.problem.columns}, after);
  const Region packed = builder.scratch("LU", {n, n}, DType::f32), index = builder.scratch("pivots", {3, n}, DType::s32);
  const Tasks factored{builder.add("factor", Local{LocalKind::getrf_panel, {whole}, {packed, index}}, after)};
  builder.alias("P", with(index, 0, span(1, 1)), p, factored);
  builder.add("L", Local{LocalKind::lower_triangle, {packed}, {l}}, factored);
  builder.add("U", Local{LocalKind::upper_triangle, {packed}, {u}}, factored);
  return schedule_of("lu naive", mesh, std::move(builder), lu_claim(layout.problem.matrix));
}

Schedule block_lu(const Mesh& mesh, const LuLayout& layout) {
  ProgramBuilder builder{mesh, every_device(mesh)};
  const BufferId a = builder.add_buffer(layout.matrix_buffer("A", Role::input)), p = builder.add_buffer(layout.pivots_buffer("P", Role::output)),
                 l = builder.add_buffer(layout.matrix_buffer("L", Role::output)), u = builder.add_buffer(layout.matrix_buffer("U", Role::output));
  const LuOutputs factors = add_lu(builder, layout, builder.whole(a), {});
  builder.alias("P", factors.pivots, builder.whole(p), factors.tasks);
  add_triangles(builder, layout, factors.packed, builder.whole(l), builder.whole(u), factors.tasks);
  return schedule_of("lu block", mesh, std::move(builder), lu_claim(layout.problem.matrix));
}

Schedule naive_solve(const Mesh& mesh, const LuLayout& layout) {
  ProgramBuilder builder{mesh, every_device(mesh)};
  const std::int64_t n = layout.n;
  const Extents& right = layout.problem.right;
  const BufferId a = builder.add_buffer(sharded_buffer("A", DType::f32, Role::input, {{n, layout.problem.rows}, {n, layout.problem.columns}}));
  std::vector<ShardedDimension> dimensions{{n, layout.problem.rows}};
  if (right.size() == 2) dimensions.push_back({right[1], {}});
  const BufferId b = builder.add_buffer(sharded_buffer("b", DType::f32, Role::input, dimensions));
  const Region x = builder.whole(replicated(builder, "x", right, DType::f32));
  Tasks with_a, with_b;
  const Region whole_a = gather(builder, "A", builder.whole(a), {layout.problem.rows, layout.problem.columns}, with_a);
  const Region whole_b = gather(builder, "b", builder.whole(b), {layout.problem.rows}, with_b);
  with_a.insert(with_a.end(), with_b.begin(), with_b.end());
  builder.add("solve", Local{LocalKind::solve, {whole_a, whole_b}, {x}}, with_a);
  return schedule_of("solve naive", mesh, std::move(builder), solve_claim(layout.problem));
}

Schedule block_solve(const Mesh& mesh, const LuLayout& layout) {
  ProgramBuilder builder{mesh, every_device(mesh)};
  const BufferId a = builder.add_buffer(layout.matrix_buffer("A", Role::input)), b = builder.add_buffer(layout.right_buffer("b", Role::input)),
                 x = builder.add_buffer(layout.right_buffer("x", Role::output));
  add_solve(builder, layout, builder.whole(a), builder.whole(b), builder.whole(x), {});
  return schedule_of("solve block", mesh, std::move(builder), solve_claim(layout.problem));
}

Expected<Schedule> batched_solve(const Mesh& mesh, const LuProblem& problem) {
  const Extents &a = problem.matrix, &b = problem.right;
  if (problem.dtype != DType::f32) return Diagnostic{{}, fmt::format("a factorisation of {}; expected f32", name_of(problem.dtype))};
  if (a.size() != 3 || a[1] != a[2] || a[0] < 1 || a[1] < 1)
    return Diagnostic{{}, fmt::format("A is {}; expected square systems, [systems,n,n]", extents_text(a))};
  if ((b.size() != 2 && b.size() != 3) || b[0] != a[0] || b[1] != a[1] || b.back() < 1)
    return Diagnostic{{}, fmt::format("A is {}, b is {}; expected [{},{}] or [{},{},m]", extents_text(a), extents_text(b), a[0], a[1], a[0], a[1])};
  const std::vector<AxisView> axes = joined(problem.rows, problem.columns);
  std::int64_t devices = 1;
  for (const AxisView& axis : axes) devices *= axis.size;
  if (auto ok = divides("A", a, 0, devices); !ok) return ok.error();
  ProgramBuilder builder{mesh, every_device(mesh)};
  const BufferId systems = builder.add_buffer(sharded_buffer("A", DType::f32, Role::input, {{a[0], axes}, {a[1], {}}, {a[2], {}}}));
  std::vector<ShardedDimension> dimensions{{b[0], axes}, {b[1], {}}};
  if (b.size() == 3) dimensions.push_back({b[2], {}});
  const BufferId right = builder.add_buffer(sharded_buffer("b", DType::f32, Role::input, dimensions)),
                 x = builder.add_buffer(sharded_buffer("x", DType::f32, Role::output, dimensions));
  builder.add("solve", Local{LocalKind::solve, {builder.whole(systems), builder.whole(right)}, {builder.whole(x)}}, Tasks{});
  return schedule_of("solve batched", mesh, std::move(builder), solve_claim(problem));
}

/// The layout of a gathered problem: any block.
Expected<LuLayout> naive_layout(const Mesh& mesh, LuProblem problem) {
  problem.block = problem.matrix.empty() ? 1 : std::max<std::int64_t>(problem.matrix[0], 1);
  auto layout = lu_layout(mesh, problem);
  if (!layout) return layout.error();
  if (auto ok = divides("A", problem.matrix, 0, layout->R); !ok) return ok.error();
  if (auto ok = divides("A", problem.matrix, 1, layout->C); !ok) return ok.error();
  return layout;
}

}  // namespace

Expected<Schedule> make_lu(LuMethod method, const Mesh& mesh, const LuProblem& problem) {
  const auto layout = method == LuMethod::naive ? naive_layout(mesh, problem) : lu_layout(mesh, problem);
  if (!layout) return layout.error();
  return method == LuMethod::naive ? naive_lu(mesh, *layout) : block_lu(mesh, *layout);
}

Expected<Schedule> make_solve(SolveMethod method, const Mesh& mesh, const LuProblem& problem) {
  if (method == SolveMethod::batched) return batched_solve(mesh, problem);
  const auto layout = method == SolveMethod::naive ? naive_layout(mesh, problem) : lu_layout(mesh, problem);
  if (!layout) return layout.error();
  if (!layout->has_right) return Diagnostic{{}, "a system needs b, [n] or [n,m]"};
  return method == SolveMethod::naive ? naive_solve(mesh, *layout) : block_solve(mesh, *layout);
}

}  // namespace podsim
