// 1d-megatron: the two halves of a column/row pair on one axis of P devices.
//
//   OS       column-parallel: X whole everywhere, W and Y split by columns. Nothing moves
//   LS       row-parallel: X and W split along the contraction; Y whole everywhere, by an all-reduce
//   RS       column-parallel weight gradient: X whole everywhere, W and Y split by columns. Nothing moves
//   cost     OS, RS: T      LS: T + all-reduce of Y
//   divides  N by P; LS: K and (for the blocks of the all-reduce) M by P
//   example  4 ranks, LS: rank 1 holds columns block 1 of X and of W, multiplies them to its share of every element of Y, and the all-reduce adds the
//            four shares. OS: rank 1 holds all of X and columns block 1 of W, and has columns block 1 of Y
//   source   Shoeybi et al., Megatron-LM (2019)
#include "algorithms/gemm/writer.hpp"

namespace podsim {

void write_megatron(GemmWriter& writer, const GemmProblem& problem, const GemmOptions&) {
  // Devices that split the contraction have partial sums of all of Y. Others have all of X.
  const bool sums = traits_of(problem.dataflow).by_columns == &GemmProblem::k;
  Matrices matrices;
  matrices.left = sums ? writer.matrix(Operand::left) : writer.matrix(Operand::left, {}, {});
  matrices.right = writer.matrix(Operand::right);
  matrices.out = sums ? writer.matrix(Operand::out, {}, {}) : writer.matrix(Operand::out);
  Matmul product = writer.product(matrices);
  if (!sums) {
    writer.add("matmul", std::move(product), Tasks{});
    return;
  }
  const Region partial = product.out = writer.scratch("partial sums", Operand::out, {problem.m, problem.n});
  const TaskId matmul = writer.add("matmul", std::move(product), Tasks{});
  writer.collective("all-reduce " + writer.names().out, CollectiveKind::all_reduce, writer.columns(), partial, matrices.out, 0, {matmul});
}

}  // namespace podsim
