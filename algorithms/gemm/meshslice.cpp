// meshslice: the moving extent (K for OS, N for LS, M for RS) is cut into S slices of interleaved blocks: a local extent L is viewed as
// [L/(S.B), S, B] and slice s takes [:, s, :], so that the gathered slices of both operands line up. Every slice is a `collective` GEMM on 1/S
// of the data; the collectives of the next slices overlap the matmul of this one.
//
//   before   X and W block-partitioned P(rows, columns)
//   after    Y block-partitioned P(rows, columns)
//   cost     prefetch >= 1, per slice G = the longest of its gathers, D = its reduce-scatter:
//              OS      G + (S-1) max(G, T) + T
//              LS, RS  G + (S-1) max(G, T, D) + T + D, exact when one of the three is largest throughout
//   divides  the moving extent by lcm(R, C).S.B, the others by their axis
//   example  OS on 2x2, K = 8, S = 2, B = 2. Column 0 holds columns 0..3 of X, column 1 columns 4..7; rows of W likewise. Slice 0 is columns 0 1 of
//            column 0 and 4 5 of column 1, so every device gathers columns 0 1 4 5 of X and the same rows of W, and multiplies them; slice 1 is 2 3 6
//            7, gathered meanwhile
//   source   MeshSlice (ISCA 2025)
//
// collective: gathers the moving inputs, multiplies once, reduce-scatters a moving output. It is meshslice with one slice and no cuts.
//
//   cost     OS: max(AG(X), AG(W)) + T      LS, RS: AG + T + RdS
//   example  LS on 2x2: device (0, 1) holds blocks X01, W01, Y01. It gathers W01 W11 along rows, multiplies X01 by both, transposed, into partial
//            sums of Y00 and Y01, sends the first to (0, 0), and adds the partial sum of Y01 that (0, 0) sends
#include <algorithm>

#include "algorithms/gemm/writer.hpp"

namespace podsim {

namespace {

/// A matrix that moves, whole along the axis that it moves along: gathered, or still to be reduced. In slots [slots, ..., P, ...]; `blocks` is the
/// dimension of the P blocks.
struct Gathered {
  Move move;
  AxisView axis;
  Slots slots;

  [[nodiscard]] std::size_t blocks() const { return move.dim + 1; }
  /// Dimensions of a slot that are rows of the matrix: the slot, then blocks and what is in them, or the rows alone.
  [[nodiscard]] int split() const { return move.dim == 0 ? 3 : 2; }
  [[nodiscard]] Region slot(std::int64_t s) const { return slots.slot(s); }
  [[nodiscard]] Region own_block(std::int64_t s) const { return with(slot(s), blocks(), block(own(axis), 1)); }
};

class MeshSlice {
 public:
  MeshSlice(GemmWriter& writer, const GemmOptions& options)
      : writer_{writer},
        S_{std::max<std::int64_t>(options.slice_count, 1)},
        B_{options.block},
        p_{options.prefetch},
        copies_{options.slice_copies && S_ > 1},
        slots_{std::min<std::int64_t>(p_ + 1, S_)} {}

  void write() {
    const DataflowTraits& flow = writer_.flow();
    Region left = sliced(Operand::left), right = sliced(Operand::right);
    const Matrices matrices{std::move(left), std::move(right), sliced(Operand::out)};
    const Gathered first = gathered(flow.moves[0]), second = gathered(flow.moves[1]);
    const auto product = [&](std::int64_t s, bool accumulate) {
      Matmul matmul = writer_.product(matrices, accumulate);
      for (const Gathered* moving : {&first, &second}) set_operand(matmul, moving->move.operand, moving->slot(s), moving->split());
      return matmul;
    };
    if (flow.reduces)
      reduce(matrices.of(first.move.operand), first, second, matrices.out, product);
    else
      accumulate(matrices.of(first.move.operand), first, matrices.of(second.move.operand), second, product);
  }

 private:
  /// A matrix; one that moves has its moving dimension viewed as slices of blocks.
  Region sliced(Operand operand) {
    for (const Move& move : writer_.flow().moves)
      if (move.operand == operand && S_ > 1) {
        const GemmWriter::View view{move.dim, {writer_.local_extents(operand)[move.dim] / (S_ * B_), S_, B_}};
        return writer_.matrix(operand, &view);
      }
    return writer_.matrix(operand);
  }
  /// Slice s of such a matrix.
  [[nodiscard]] Region slice(const Region& matrix, const Move& move, std::int64_t s) const {
    return S_ == 1 ? matrix : with(matrix, move.dim + 1, span(s, 1));
  }

  Gathered gathered(const Move& move) {
    const AxisView& axis = writer_.axis(move.dim);
    std::vector<std::int64_t> extents = writer_.local_extents(move.operand);
    extents[move.dim] /= S_;
    extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(move.dim), axis.size);
    const char* name = move.operand == Operand::left ? "left gathered" : move.operand == Operand::right ? "right gathered" : "partial sums";
    return {move, axis, writer_.slots(name, move.operand, slots_, std::move(extents))};
  }
  [[nodiscard]] std::string label(const std::string& what, std::int64_t s) const { return step_label(what, s, S_); }

  /// The gather of slice s, cut before it where cuts are copies. `slot_free`: what must be over before the slot is written.
  TaskId gather(const Region& from, const Gathered& to, std::int64_t s, const Tasks& slot_free) {
    const std::string& tensor = writer_.names().of(to.move.operand);
    Region input = slice(from, to.move, s);
    Tasks after = slot_free;
    if (copies_) {
      after = {writer_.add(label("cut " + tensor, s), Local{LocalKind::copy, {std::move(input)}, {to.own_block(s)}, 1, Unit::core}, slot_free)};
      input = to.own_block(s);
    }
    return writer_.collective(label("gather " + tensor, s), CollectiveKind::all_gather, to.axis, std::move(input), to.slot(s),
                              static_cast<int>(to.blocks()), after);
  }

  [[nodiscard]] static Tasks at(const Tasks& tasks, std::int64_t s) { return s < 0 ? Tasks{} : Tasks{tasks[static_cast<std::size_t>(s)]}; }

  /// Runs `ahead(s)` p slices before `now(s)`.
  template <class Ahead, class Now>
  void pipeline(Ahead&& ahead, Now&& now) {
    for (std::int64_t s = 0; s < std::min<std::int64_t>(p_, S_); ++s) ahead(s);
    for (std::int64_t s = 0; s < S_; ++s) {
      if (s + p_ < S_) ahead(s + p_);
      now(s);
    }
  }

  /// Both inputs are gathered, Y adds up where it is.
  template <class Product>
  void accumulate(const Region& left, const Gathered& left_gathered, const Region& right, const Gathered& right_gathered, Product&& product) {
    Tasks lefts, rights, matmuls;
    pipeline(
        [&](std::int64_t s) {
          lefts.push_back(gather(left, left_gathered, s, at(matmuls, s - p_ - 1)));
          rights.push_back(gather(right, right_gathered, s, at(matmuls, s - p_ - 1)));
        },
        [&](std::int64_t s) {
          Tasks after{lefts[static_cast<std::size_t>(s)], rights[static_cast<std::size_t>(s)]};
          if (s > 0) after.push_back(matmuls.back());
          matmuls.push_back(writer_.add(label("matmul", s), product(s, s > 0), after));
        });
  }

  /// Gathers one input, multiplies into partial sums, scatters these into a slice of Y.
  template <class Product>
  void reduce(const Region& from, const Gathered& to, const Gathered& sums, const Region& Y, Product&& product) {
    Tasks gathers, matmuls, scatters, out;  // out: slice s of Y is in its place, its partial sums are free
    const auto join = [&](std::int64_t s) {
      out.push_back(writer_.add(label("join " + writer_.names().out, s),
                                Local{LocalKind::copy, {sums.own_block(s)}, {slice(Y, sums.move, s)}, 1, Unit::core}, at(scatters, s)));
    };
    pipeline([&](std::int64_t s) { gathers.push_back(gather(from, to, s, at(matmuls, s - p_ - 1))); },
             [&](std::int64_t s) {
               Tasks after = at(gathers, s);
               if (s > p_) after.push_back(out[static_cast<std::size_t>(s - p_ - 1)]);
               matmuls.push_back(writer_.add(label("matmul", s), product(s, false), after));
               scatters.push_back(writer_.collective(label("reduce " + writer_.names().out, s), CollectiveKind::reduce_scatter, sums.axis,
                                                     sums.slot(s), copies_ ? sums.own_block(s) : slice(Y, sums.move, s),
                                                     static_cast<int>(sums.blocks()), {matmuls.back()}));
               if (!copies_)
                 out.push_back(scatters.back());
               else if (s >= p_)
                 join(s - p_);
             });
    if (copies_)
      for (std::int64_t s = std::max<std::int64_t>(S_ - p_, 0); s < S_; ++s) join(s);
  }

  GemmWriter& writer_;
  std::int64_t S_, B_;
  std::int64_t p_;
  bool copies_;
  std::int64_t slots_;
};

}  // namespace

void write_meshslice(GemmWriter& writer, const GemmProblem&, const GemmOptions& options) { MeshSlice{writer, options}.write(); }

void write_collective(GemmWriter& writer, const GemmProblem&, const GemmOptions& options) {
  GemmOptions one = options;
  one.slice_count = 1;
  MeshSlice{writer, one}.write();
}

}  // namespace podsim
