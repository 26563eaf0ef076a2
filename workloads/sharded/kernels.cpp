#include "workloads/sharded/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/blame.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

std::vector<AxisView> views(const std::vector<int>& axes, const Mesh& mesh) {
  std::vector<AxisView> all;
  for (const int axis : axes) all.push_back(mesh.whole(axis));
  return all;
}

std::vector<int> axes_in(const std::vector<AxisView>& views) {
  std::vector<int> axes;
  for (const AxisView& view : views) axes.push_back(view.axis);
  return axes;
}

const Extents& extents_of(const ShardedProgram& program, const Operation& operation, std::size_t operand) {
  return program.operations[static_cast<std::size_t>(operation.operands[operand])].extents;
}

Sharding without_sums(Sharding sharding) {
  sharding.unreduced.clear();
  return sharding.canonical();
}

bool is_divided(const Sharding& sharding) {
  return std::any_of(sharding.dims.begin(), sharding.dims.end(), [](const std::vector<int>& axes) { return !axes.empty(); });
}

// ---- Transforms ----

FftProblem fft_problem(const ShardedProgram& program, const Operation& operation, const Sharding& x) {
  FftProblem problem;
  problem.extents = extents_of(program, operation, 0);
  for (std::size_t d = 0; d < problem.extents.size(); ++d) problem.sharding.push_back(views(x.axes_of(d), program.mesh));
  problem.input = program.operations[static_cast<std::size_t>(operation.operands[0])].dtype;
  problem.inverse = operation.op == ArrayOp::ifft;
  problem.order = operation.stored_transposed ? FftOrder::transposed : FftOrder::natural;
  problem.chunks = program.kernels.chunks;
  problem.slice_copies = program.kernels.slice_copies;
  return problem;
}

/// Without a method that suits, the one of one divided dimension says why.
FftMethod method_of_fft(const ShardedProgram& program, const Operation& operation, const FftProblem& problem, bool divided) {
  const FftMethod distributed = default_fft_method(problem).value_or(FftMethod::slab);
  return program.kernels.fft.value_or(!divided && !operation.stored_transposed ? FftMethod::naive : distributed);
}

Expected<KernelWay> way_of_fft(const ShardedProgram& program, const Operation& operation, const Sharding& operand) {
  const Sharding own = without_sums(operand);
  const FftProblem problem = fft_problem(program, operation, own);
  const FftMethod method = method_of_fft(program, operation, problem, is_divided(own));
  const auto result = fft_result(method, problem, program.mesh);
  if (!result) return blamed_on(operation.where, result.error());
  Sharding stored;
  for (const std::vector<AxisView>& axes : result->sharding) stored.dims.push_back(axes_in(axes));
  return KernelWay{method, {own}, {{}}, stored.canonical(), {}};
}

// ---- Linear systems ----

LuProblem lu_problem(const ShardedProgram& program, const Operation& operation, const Sharding& a) {
  LuProblem problem;
  problem.matrix = extents_of(program, operation, 0);
  if (operation.op == ArrayOp::solve) problem.right = extents_of(program, operation, 1);
  problem.block = program.kernels.block.value_or(default_block(problem.matrix.back(), std::max(devices_along(program.mesh, a.axes_of(0)), devices_along(program.mesh, a.axes_of(1)))));
  problem.rows = views(a.axes_of(0), program.mesh);
  problem.columns = views(a.axes_of(1), program.mesh);
  problem.look_ahead = program.kernels.look_ahead;
  return problem;
}

Expected<KernelWay> way_of_lu(const ShardedProgram& program, const Operation& operation, const Sharding& operand) {
  const Sharding own = without_sums(operand);
  const LuMethod method = program.kernels.lu.value_or(is_divided(own) || program.kernels.block ? LuMethod::block : LuMethod::naive);
  if (method == LuMethod::naive) return KernelWay{method, {Sharding{}}, {{}}, Sharding{}, {}};
  const auto layout = lu_layout(program.mesh, lu_problem(program, operation, own));
  if (!layout) return blamed_on(operation.where, layout.error());
  const CyclicBlocks blocks{layout->b, layout->b};
  if (operation.op == ArrayOp::lu_pivots) return KernelWay{method, {own}, {blocks}, Sharding{}, {}};
  return KernelWay{method, {own}, {blocks}, own, blocks};
}

Expected<KernelWay> way_of_solve(const ShardedProgram& program, const Operation& operation, const Sharding& operand) {
  const Sharding own = without_sums(operand);
  const Extents &matrix = extents_of(program, operation, 0), &right = extents_of(program, operation, 1);
  const bool many = matrix.size() > 2;
  const SolveMethod method = program.kernels.solve.value_or(many ? SolveMethod::batched : is_divided(own) || program.kernels.block ? SolveMethod::block : SolveMethod::naive);
  if (method == SolveMethod::naive) return KernelWay{method, {Sharding{}, Sharding{}}, {{}, {}}, Sharding{}, {}};
  if (method == SolveMethod::batched) {
    if (!many) return Diagnostic{operation.where, "batched solves independent systems: expected A [systems, n, n], found a matrix"};
    Sharding systems{{own.axes_of(0)}, {}};
    return KernelWay{method, {systems.canonical(), systems.canonical()}, {{}, {}}, systems.canonical(), {}};
  }
  if (many) return Diagnostic{operation.where, "block solves one system: expected a matrix, found several; batched or naive solves those"};
  const auto layout = lu_layout(program.mesh, lu_problem(program, operation, own));
  if (!layout) return blamed_on(operation.where, layout.error());
  Sharding rows{{own.axes_of(0)}, {}};
  CyclicBlocks of_right{layout->b};
  if (right.size() == 2) rows.dims.push_back(layout->right_is_divided ? own.axes_of(1) : std::vector<int>{}), of_right.push_back(0);
  return KernelWay{method, {own, rows.canonical()}, {{layout->b, layout->b}, of_right}, rows.canonical(), of_right};
}

/// Every device factors all of a matrix.
std::vector<Tasks> write_naive_lu(ProgramBuilder& builder, const Operation& operation, const KernelBlocks& blocks, const Tasks& after) {
  const Extents extents = lengths_of(blocks.operands[0]);
  const Region packed = builder.scratch(operation.name + " factors", extents, DType::f32);
  const Region index = builder.scratch(operation.name + " index", {3, extents[0]}, DType::s32);
  const TaskId factored = builder.add("factor", Local{.kind = LocalKind::getrf_panel, .reads = {blocks.operands[0]}, .writes = {packed, index}}, after);
  Region sources = index;
  sources.dims[0] = span(1, 1);
  const auto triangle = [&](LocalKind kind, const Region& part) {
    return Tasks{builder.add(std::string{traits_of(kind).name}, Local{.kind = kind, .reads = {packed}, .writes = {part}}, Tasks{factored})};
  };
  return {{builder.alias("pivots", sources, blocks.results[0], Tasks{factored})}, triangle(LocalKind::lower_triangle, blocks.results[1]),
          triangle(LocalKind::upper_triangle, blocks.results[2])};
}

/// Per device, on average: the root of a broadcast receives nothing, and one end of a reduce's chain.
double received_by(const Collective& collective, Bytes input, std::int64_t P) {
  const double part = static_cast<double>(input.count()) * static_cast<double>(P - 1) / static_cast<double>(P);
  switch (collective.kind) {
    case CollectiveKind::all_gather: return static_cast<double>(P) * part;
    case CollectiveKind::all_reduce: return 2 * part;
    case CollectiveKind::permute: return static_cast<double>(input.count());
    default: return part;
  }
}

/// The share of the devices on which a guard holds.
double share_of(const Guard& where, const Mesh& mesh) {
  if (where.empty()) return 1;
  std::int64_t count = 0;
  for (int d = 0; d < mesh.devices(); ++d) count += holds(where, mesh.coordinates(DeviceId{d})) ? 1 : 0;
  return static_cast<double>(count) / mesh.devices();
}

}  // namespace

bool is_kernel(ArrayOp op) { return op >= ArrayOp::fft && op <= ArrayOp::solve; }

std::string_view name_of_method(const KernelWay& way) {
  return std::visit([](auto method) { return name_of(method); }, way.method);
}

Expected<KernelWay> kernel_way(const ShardedProgram& program, const Operation& operation, const std::vector<Sharding>& operands) {
  switch (operation.op) {
    case ArrayOp::fft:
    case ArrayOp::ifft: return way_of_fft(program, operation, operands[0]);
    case ArrayOp::solve: return way_of_solve(program, operation, operands[0]);
    default: return way_of_lu(program, operation, operands[0]);
  }
}

std::optional<Extents> multiples_of_fft(const ShardedProgram& program, const Operation& operation, const Sharding& operand) {
  const Sharding own = without_sums(operand);
  const FftProblem problem = fft_problem(program, operation, own);
  const auto multiples = fft_multiples(method_of_fft(program, operation, problem, is_divided(own)), problem, program.mesh);
  if (!multiples) return std::nullopt;
  for (std::size_t d = 0; d < problem.extents.size(); ++d)
    if (problem.extents[d] % (*multiples)[d] != 0) return *multiples;
  return std::nullopt;
}

std::vector<Tasks> write_kernel(ProgramBuilder& builder, const ShardedProgram& program, const Operation& operation, const KernelWay& way,
                                const KernelBlocks& blocks, const Tasks& after) {
  if (const auto* fft = std::get_if<FftMethod>(&way.method)) {
    const FftProblem problem = fft_problem(program, operation, way.operands[0]);
    return {add_fft(builder, *fft, problem, blocks.operands[0], blocks.results[0], after)};
  }
  if (const auto* lu = std::get_if<LuMethod>(&way.method)) {
    if (*lu == LuMethod::naive) return write_naive_lu(builder, operation, blocks, after);
    const auto layout = lu_layout(program.mesh, lu_problem(program, operation, way.operands[0]));
    PODSIM_ASSERT(layout && "kernel_way() has tried it");
    const LuOutputs factors = add_lu(builder, *layout, blocks.operands[0], after);
    const Tasks triangles = add_triangles(builder, *layout, factors.packed, blocks.results[1], blocks.results[2], factors.tasks);
    return {{builder.alias("pivots", factors.pivots, blocks.results[0], factors.tasks)}, triangles, triangles};
  }
  if (std::get<SolveMethod>(way.method) != SolveMethod::block)
    return {{builder.add("solve", Local{.kind = LocalKind::solve, .reads = blocks.operands, .writes = blocks.results}, after)}};
  const auto layout = lu_layout(program.mesh, lu_problem(program, operation, way.operands[0]));
  PODSIM_ASSERT(layout && "kernel_way() has tried it");
  return {add_solve(builder, *layout, blocks.operands[0], blocks.operands[1], blocks.results[0], after)};
}

std::vector<KernelCollectives> collectives_of(const ShardedProgram& program, const Operation& operation, const KernelWay& way) {
  ProgramBuilder builder{program.mesh, every_device(program.mesh)};
  KernelBlocks blocks;
  const auto block = [&](const Extents& array, const Sharding& sharding, const CyclicBlocks& cyclic, DType dtype) {
    return builder.scratch("", stored_block(array, sharding, cyclic, program.mesh).extents, dtype);
  };
  for (std::size_t o = 0; o < operation.operands.size(); ++o)
    blocks.operands.push_back(block(extents_of(program, operation, o), way.operands[o], way.cyclic[o],
                                    program.operations[static_cast<std::size_t>(operation.operands[o])].dtype));
  if (std::holds_alternative<LuMethod>(way.method)) {
    const Extents& matrix = extents_of(program, operation, 0);
    blocks.results.push_back(block({matrix[0]}, {}, {}, DType::s32));
    for (int i = 0; i < 2; ++i) blocks.results.push_back(block(matrix, way.operands[0], way.cyclic[0], DType::f32));
  } else {
    blocks.results.push_back(block(operation.extents, way.result, way.result_cyclic, operation.dtype));
  }
  write_kernel(builder, program, operation, way, blocks, {});

  std::vector<KernelCollectives> all;
  std::vector<std::pair<double, double>> sums;  // of each: input and received
  std::vector<std::pair<Guard, double>> shares;  // as many as there are groups
  const auto share_on = [&](const Guard& where) {
    const auto known = std::find_if(shares.begin(), shares.end(), [&](const auto& one) { return one.first == where; });
    return known != shares.end() ? known->second : shares.emplace_back(where, share_of(where, program.mesh)).second;
  };
  const Program written = std::move(builder).finish();
  for (const Task& task : written.tasks) {
    const auto* collective = std::get_if<Collective>(&task.op);
    if (collective == nullptr) continue;
    std::int64_t P = 1;
    for (const AxisView& view : collective->axes) P *= view.size;
    if (P == 1) continue;
    const std::vector<int> axes = axes_in(collective->axes);
    auto same = std::find_if(all.begin(), all.end(), [&](const KernelCollectives& one) { return one.kind == collective->kind && one.axes == axes; });
    if (same == all.end()) same = all.insert(all.end(), KernelCollectives{collective->kind, axes}), sums.emplace_back();
    const double share = share_on(task.where);
    const Bytes input = bytes_of(written, collective->input);
    auto& [sent, received] = sums[static_cast<std::size_t>(same - all.begin())];
    ++same->count;
    sent += static_cast<double>(input.count()) * share;
    received += received_by(*collective, input, P) * share;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].input = Bytes{std::llround(sums[i].first)};
    all[i].received = Bytes{std::llround(sums[i].second)};
  }
  return all;
}

}  // namespace podsim
