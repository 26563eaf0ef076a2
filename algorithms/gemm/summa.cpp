// summa: S panels of the moving extent, a multiple of lcm(R, C), each owned by one column and one row of the mesh.
//
//   OS    panel s of X is broadcast along col, panel s of W along row; Y += their product
//   LS    panel s of W is broadcast along row; the product is reduced along col to the panel's owner
//   RS    panel s of X is broadcast along col; the product is reduced along row to the panel's owner
//   before, after   block-partitioned P(row, col)
//   cost     b, r = (P-2+n)(alpha + V/(n.link)): a panel's broadcast (OS: the longer of the two) and reduce in n chunks on a ring of P
//              OS      b + S.T       LS, RS  b + S.T + r       where T >= b, r: then all but the first and the last is hidden
//            Otherwise broadcasts of successive panels follow each other round the ring like one of S.n chunks, as far as slots are free
//   divides  the moving extent by S, the others by their axis
//   source   van de Geijn and Watts, SUMMA (1997), with a pipelined ring as broadcast
#include <algorithm>
#include <numeric>

#include "algorithms/gemm/writer.hpp"

namespace podsim {

namespace {

/// Panel s of a matrix dimension: on which position along the axis it is, and where there.
struct Panel {
  std::int64_t owner, begin;
};

Panel panel(std::int64_t s, std::int64_t panels, int devices, std::int64_t width) {
  const std::int64_t each = panels / devices;
  return {s / each, s % each * width};
}

}  // namespace

void write_summa(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options) {
  const AxisView row = writer.row(), col = writer.col();
  const auto [m, n, k, dtype, dataflow] = problem;
  const std::int64_t S = options.slice_count == 0 ? std::lcm(row.size, col.size) : options.slice_count;
  const std::int64_t p = options.prefetch, slots = std::min(p + 1, S);
  const auto at = [](const Tasks& tasks, std::int64_t s) { return s < 0 ? Tasks{} : Tasks{tasks[static_cast<std::size_t>(s)]}; };

  Tasks matmuls;
  const auto broadcast = [&](const std::string& tensor, const Region& matrix, std::size_t dim, const AxisView& axis, const Slots& to,
                             std::int64_t width) {
    return [&writer, &matmuls, at, tensor, matrix, dim, axis, to, width, S, p](std::int64_t s) {
      const Panel from = panel(s, S, axis.size, width);
      return writer.collective(step_label("broadcast " + tensor, s, S), CollectiveKind::broadcast, axis, with(matrix, dim, span(from.begin, width)),
                               to.slot(s), 0, at(matmuls, s - p - 1), from.owner);
    };
  };
  const auto pipeline = [&](auto&& ahead, auto&& now) {
    for (std::int64_t s = 0; s < std::min(p, S); ++s) ahead(s);
    for (std::int64_t s = 0; s < S; ++s) {
      if (s + p < S) ahead(s + p);
      now(s);
    }
  };

  if (dataflow == Dataflow::os) {
    const std::int64_t width = k / S;
    const Region X = writer.left(m, k), W = writer.right(k, n), Y = writer.out(m, n);
    const Slots Xp = writer.slots("left panel", slots, {m / row.size, width}), Wp = writer.slots("right panel", slots, {width, n / col.size});
    const auto broadcast_X = broadcast(writer.names().left, X, 1, col, Xp, width),
               broadcast_W = broadcast(writer.names().right, W, 0, row, Wp, width);
    Tasks arrived_X, arrived_W;
    pipeline([&](std::int64_t s) { arrived_X.push_back(broadcast_X(s)), arrived_W.push_back(broadcast_W(s)); },
             [&](std::int64_t s) {
               Tasks after{arrived_X[static_cast<std::size_t>(s)], arrived_W[static_cast<std::size_t>(s)]};
               if (s > 0) after.push_back(matmuls.back());
               matmuls.push_back(writer.add(step_label("matmul", s, S), Matmul{Xp.slot(s), Wp.slot(s), Y, 2, 2, 1, false, false, s > 0}, after));
             });
    return;
  }

  const bool ls = dataflow == Dataflow::ls;
  const std::int64_t width = (ls ? n : m) / S;
  const Region X = ls ? writer.left(m, k) : writer.left(k, m), W = ls ? writer.right(n, k) : writer.right(k, n), Y = writer.out(m, n);
  const Slots moving = ls ? writer.slots("right panel", slots, {width, k / col.size}) : writer.slots("left panel", slots, {k / row.size, width});
  const Slots sums = ls ? writer.slots("partial sums", slots, {m / row.size, width}) : writer.slots("partial sums", slots, {width, n / col.size});
  const auto arrive = ls ? broadcast(writer.names().right, W, 0, row, moving, width) : broadcast(writer.names().left, X, 1, col, moving, width);
  const AxisView reduced = ls ? col : row;
  Tasks arrived, reduces;
  pipeline([&](std::int64_t s) { arrived.push_back(arrive(s)); },
           [&](std::int64_t s) {
             Tasks after = at(arrived, s);
             if (s > p) after.push_back(reduces[static_cast<std::size_t>(s - p - 1)]);
             const Matmul product = ls ? Matmul{X, moving.slot(s), sums.slot(s), 1, 2, 2, false, true, false}
                                       : Matmul{moving.slot(s), W, sums.slot(s), 2, 1, 2, true, false, false};
             matmuls.push_back(writer.add(step_label("matmul", s, S), product, after));
             const Panel to = panel(s, S, reduced.size, width);
             reduces.push_back(writer.collective(step_label("reduce " + writer.names().out, s, S), CollectiveKind::reduce, reduced, sums.slot(s),
                                                 with(Y, ls ? 1 : 0, span(to.begin, width)), 0, {matmuls.back()}, to.owner));
           });
}

}  // namespace podsim
