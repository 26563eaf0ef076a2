#include "algorithms/gemm/writer.hpp"

#include <fmt/format.h>

#include "sim/base/invariant.hpp"

namespace podsim {

Region Slots::slot(std::int64_t i) const { return with(whole_buffer(buffer, extents), 0, span(i % count(), 1)); }

std::string step_label(std::string_view what, std::int64_t step, std::int64_t steps) {
  return steps == 1 ? std::string{what} : fmt::format("{} s{}", what, step);
}

void set_operand(Matmul& matmul, Operand operand, Region region, int split) {
  (operand == Operand::left ? matmul.left : operand == Operand::right ? matmul.right : matmul.out) = std::move(region);
  (operand == Operand::left ? matmul.left_split : operand == Operand::right ? matmul.right_split : matmul.out_split) = split;
}

GemmWriter::GemmWriter(const Submesh& submesh, DType dtype) : ProgramBuilder{submesh.mesh, submesh.devices}, submesh_{submesh}, dtype_{dtype} {}

void GemmWriter::begin(const GemmProblem& problem, Names names, Tasks start) {
  problem_ = problem;
  names_ = std::move(names);
  begin_section(names_.prefix, std::move(start));
  products_.push_back({names_.out, names_.left, names_.right, problem.m, problem.n, problem.k, flow().transpose_left, flow().transpose_right});
}

Region GemmWriter::matrix(Operand operand, std::vector<AxisView> row_axes, std::vector<AxisView> column_axes, const View* view) {
  const OperandShape shape = shape_of(problem_.dataflow, operand);
  Buffer buffer = sharded_buffer(names_.of(operand), dtype_of(dtype_, operand), operand == Operand::out ? Role::output : Role::input,
                                 {{problem_.*shape.rows, std::move(row_axes)}, {problem_.*shape.columns, std::move(column_axes)}});
  if (view) {
    const auto dim = static_cast<std::ptrdiff_t>(view->dim);
    buffer.extents.erase(buffer.extents.begin() + dim);
    buffer.extents.insert(buffer.extents.begin() + dim, view->extents.begin(), view->extents.end());
    buffer.sharding.insert(buffer.sharding.begin() + dim + 1, view->extents.size() - 1, {});
  }
  for (std::size_t b = 0; b < buffer_count(); ++b)
    if (const Buffer& other = this->buffer(BufferId{b}); other.role != Role::scratch && other.tensor == buffer.tensor) {
      PODSIM_ASSERT(other == buffer);  // an algorithm cuts a tensor the same way in all GEMMs of a layer
      return whole(BufferId{b});
    }
  return whole(add_buffer(std::move(buffer)));
}

Matrices GemmWriter::matrices() {
  Region left = matrix(Operand::left), right = matrix(Operand::right);
  return {std::move(left), std::move(right), matrix(Operand::out)};
}

std::vector<std::int64_t> GemmWriter::local_extents(Operand operand) const {
  const OperandShape shape = shape_of(problem_.dataflow, operand);
  return {problem_.*shape.rows / rows().size, problem_.*shape.columns / columns().size};
}

Matmul GemmWriter::product(const Matrices& matrices, bool accumulate) const {
  return {matrices.left, matrices.right, matrices.out, 1, 1, 1, flow().transpose_left, flow().transpose_right, accumulate};
}

Region GemmWriter::scratch(const std::string& name, Operand of, std::vector<std::int64_t> extents) {
  return ProgramBuilder::scratch(names_.prefix + name, std::move(extents), dtype_of(dtype_, of));
}

Slots GemmWriter::slots(const std::string& name, Operand of, std::int64_t count, std::vector<std::int64_t> extents) {
  extents.insert(extents.begin(), count);
  return {scratch(name, of, extents).buffer, extents};
}

TaskId GemmWriter::collective(std::string label, CollectiveKind kind, const AxisView& axis, Region input, Region output, int dim, const Tasks& after,
                              std::int64_t root) {
  return add(std::move(label), Collective{kind, {axis}, std::move(input), std::move(output), dim, 0, root, {}}, after);
}

Tasks GemmWriter::pass_on(const std::string& label, const AxisView& axis, int sign, const Region& source, const Region& target, const Edges& after,
                          const Guard& where) {
  if (mesh().wraps(axis)) return {add(label, Shift{axis, sign, source, target, {}, {}}, after, where)};
  const int P = axis.size, first = sign > 0 ? 0 : 1, last = sign > 0 ? P - 1 : P;  // of those with a neighbour there
  const auto shift = [&](int by, int low, int high) {
    Guard guard = where;
    guard.push_back({own(axis), low, high});
    return add(label, Shift{axis, by, source, target, {}, {}}, after, std::move(guard));
  };
  const TaskId to_neighbour = shift(sign, first, last);
  return {to_neighbour, sign > 0 ? shift(1 - P, P - 1, P) : shift(P - 1, 0, 1)};
}

Schedule GemmWriter::finish(std::string name) && {
  return {std::move(name), mesh(), {std::move(*this).ProgramBuilder::finish()}, std::move(products_)};
}

}  // namespace podsim
