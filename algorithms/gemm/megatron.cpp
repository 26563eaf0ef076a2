// 1d-megatron: the two halves of a column/row pair on one axis of P devices.
//
//   OS       column-parallel: X whole everywhere, W and Y split by columns. Nothing moves
//   LS       row-parallel: X and W split along the contraction; Y whole everywhere, by an all-reduce
//   RS       column-parallel weight gradient: X whole everywhere, W and Y split by columns. Nothing moves
//   cost     OS, RS: T      LS: T + all-reduce of Y
//   divides  N by P; LS: K and (for the blocks of the all-reduce) M by P
//   source   Shoeybi et al., Megatron-LM (2019)
#include "algorithms/gemm/writer.hpp"

namespace podsim {

void write_megatron(GemmWriter& writer, const GemmProblem& problem, const GemmOptions&) {
  const AxisView axis = writer.col();
  const auto [m, n, k, dtype, dataflow] = problem;
  const GemmWriter::Names& names = writer.names();
  if (dataflow == Dataflow::ls) {
    const Region X = writer.left(m, k), W = writer.right(n, k);
    const Region Y = writer.matrix(names.out, Role::output, m, n, {}, {});
    const Region sums = writer.scratch("partial sums", {m, n});
    const TaskId matmul = writer.add("matmul", Matmul{X, W, sums, 1, 1, 1, false, true, false}, Tasks{});
    writer.collective("all-reduce " + names.out, CollectiveKind::all_reduce, axis, sums, Y, 0, {matmul});
    return;
  }
  const bool rs = dataflow == Dataflow::rs;
  const Region X = writer.matrix(names.left, Role::input, rs ? k : m, rs ? m : k, {}, {});
  const Region W = writer.right(k, n), Y = writer.out(m, n);
  writer.add("matmul", Matmul{X, W, Y, 1, 1, 1, rs, false, false}, Tasks{});
}

}  // namespace podsim
