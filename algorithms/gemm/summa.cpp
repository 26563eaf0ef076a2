// summa: S panels of the moving extent, a multiple of lcm(R, C), each owned by one column and one row of devices.
//
//   OS    panel s of X is broadcast along columns, panel s of W along rows; Y += their product
//   LS    panel s of W is broadcast along rows; the product is reduced along columns to the panel's owner
//   RS    panel s of X is broadcast along columns; the product is reduced along rows to the panel's owner
//   before, after   block-partitioned P(rows, columns)
//   cost     b, r = (P-2+n)(alpha + V/(n.link)): a panel's broadcast (OS: the longer of the two) and reduce in n chunks on a ring of P
//              OS      b + S.T       LS, RS  b + S.T + r       where T >= b, r: then all but the first and the last is hidden
//            Otherwise broadcasts of successive panels follow each other round the ring like one of S.n chunks, as far as slots are free
//   divides  the moving extent by S, the others by their axis
//   example  OS on 2x2, S = 2: panel 0 of X is its column of blocks X00 X10, panel 0 of W its row of blocks W00 W01. Step 0: (0, 0) sends X00 to
//            (0, 1) and W00 to (1, 0), and so do the other owners of a part of a panel; (0, 1) has X00 and W01 and adds X00.W01. Step 1 adds X01.W11
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

Panel panel_at(std::int64_t s, std::int64_t panels, int devices, std::int64_t width) {
  const std::int64_t each = panels / devices;
  return {s / each, s % each * width};
}

}  // namespace

void write_summa(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options) {
  const DataflowTraits& flow = writer.flow();
  const std::int64_t S = options.slice_count == 0 ? std::lcm(writer.rows().size, writer.columns().size) : options.slice_count;
  const std::int64_t p = options.prefetch, slot_count = std::min(p + 1, S), width = problem.*flow.moving / S;
  const auto at = [](const Tasks& tasks, std::int64_t s) { return s < 0 ? Tasks{} : Tasks{tasks[static_cast<std::size_t>(s)]}; };

  const Matrices matrices = writer.matrices();
  std::vector<Slots> panels;  // of each matrix that moves
  for (const Move& move : flow.moves) {
    std::vector<std::int64_t> extents = writer.local_extents(move.operand);
    extents[move.dim] = width;
    const char* name = move.operand == Operand::left ? "left panel" : move.operand == Operand::right ? "right panel" : "partial sums";
    panels.push_back(writer.slots(name, move.operand, slot_count, std::move(extents)));
  }
  const auto product = [&](std::int64_t s, bool accumulate) {
    Matmul matmul = writer.product(matrices, accumulate);
    for (std::size_t i = 0; i < 2; ++i) set_operand(matmul, flow.moves[i].operand, panels[i].slot(s), 2);
    return matmul;
  };
  /// Where panel s of a matrix is among the devices along its axis, and that part of the matrix there.
  const auto panel_of = [&](const Move& move, std::int64_t s) {
    const Panel panel = panel_at(s, S, writer.axis(move.dim).size, width);
    return std::pair{panel.owner, with(matrices.of(move.operand), move.dim, span(panel.begin, width))};
  };

  Tasks matmuls;
  const auto broadcast = [&](std::size_t which, std::int64_t s) {
    const Move& move = flow.moves[which];
    const auto [owner, source] = panel_of(move, s);
    return writer.collective(step_label("broadcast " + writer.names().of(move.operand), s, S), CollectiveKind::broadcast, writer.axis(move.dim),
                             source, panels[which].slot(s), 0, at(matmuls, s - p - 1), owner);
  };
  const auto pipeline = [&](auto&& ahead, auto&& now) {
    for (std::int64_t s = 0; s < std::min(p, S); ++s) ahead(s);
    for (std::int64_t s = 0; s < S; ++s) {
      if (s + p < S) ahead(s + p);
      now(s);
    }
  };

  Tasks first, second;
  if (!flow.reduces) {
    pipeline([&](std::int64_t s) { first.push_back(broadcast(0, s)), second.push_back(broadcast(1, s)); },
             [&](std::int64_t s) {
               Tasks after{first[static_cast<std::size_t>(s)], second[static_cast<std::size_t>(s)]};
               if (s > 0) after.push_back(matmuls.back());
               matmuls.push_back(writer.add(step_label("matmul", s, S), product(s, s > 0), after));
             });
    return;
  }
  Tasks reduces;
  pipeline([&](std::int64_t s) { first.push_back(broadcast(0, s)); },
           [&](std::int64_t s) {
             Tasks after = at(first, s);
             if (s > p) after.push_back(reduces[static_cast<std::size_t>(s - p - 1)]);
             matmuls.push_back(writer.add(step_label("matmul", s, S), product(s, false), after));
             const auto [owner, target] = panel_of(flow.moves[1], s);
             reduces.push_back(writer.collective(step_label("reduce " + writer.names().out, s, S), CollectiveKind::reduce,
                                                 writer.axis(flow.moves[1].dim), panels[1].slot(s), target, 0, {matmuls.back()}, owner));
           });
}

}  // namespace podsim
