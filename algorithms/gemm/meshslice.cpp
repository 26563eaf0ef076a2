// meshslice: the moving extent (K for OS, N for LS, M for RS) is cut into S slices of interleaved blocks: a local extent L is viewed as
// [L/(S.B), S, B] and slice s takes [:, s, :], so that the gathered slices of both operands line up. Every slice is a `collective` GEMM on 1/S
// of the data; the collectives of the next slices overlap the matmul of this one.
//
//   before   X and W block-partitioned P(row, col)
//   after    Y block-partitioned P(row, col)
//   cost     prefetch >= 1, per slice G = the longest of its gathers, D = its reduce-scatter:
//              OS      G + (S-1) max(G, T) + T
//              LS, RS  G + (S-1) max(G, T, D) + T + D, exact when one of the three is largest throughout
//   divides  the moving extent by lcm(R, C).S.B, the others by their axis
//   source   MeshSlice (ISCA 2025)
//
// collective: gather what moves, multiply once, reduce-scatter. It is meshslice with one slice and nothing to cut.
//
//   cost     OS: max(AG(X), AG(W)) + T      LS, RS: AG + T + RdS
#include <algorithm>

#include "algorithms/gemm/writer.hpp"

namespace podsim {

namespace {

/// What is gathered, or still to be scattered, in slots: [slots, ..., P, ...]; `blocks` is the dimension of the P blocks.
struct Gathered {
  Slots slots;
  std::size_t blocks = 1;
  AxisView axis;

  [[nodiscard]] Region slot(std::int64_t s) const { return slots.slot(s); }
  [[nodiscard]] Region own_block(std::int64_t s) const { return with(slot(s), blocks, block(own(axis), 1)); }
};

class MeshSlice {
 public:
  MeshSlice(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options)
      : writer_{writer},
        problem_{problem},
        S_{std::max<std::int64_t>(options.slice_count, 1)},
        B_{options.block},
        p_{options.prefetch},
        copies_{options.slice_copies && S_ > 1},
        slots_{std::min<std::int64_t>(p_ + 1, S_)} {}

  void write() {
    const std::int64_t R = writer_.row().size, C = writer_.col().size;
    const auto [m, n, k, dtype, dataflow] = problem_;
    switch (dataflow) {
      case Dataflow::os: {
        const Region X = sliced(&GemmWriter::left, m, k, 1), W = sliced(&GemmWriter::right, k, n, 0), Y = writer_.out(m, n);
        const Gathered Xg = gathered("left gathered", {m / R, C, k / (C * S_)}, 1, writer_.col());
        const Gathered Wg = gathered("right gathered", {R, k / (R * S_), n / C}, 0, writer_.row());
        accumulate(X, Xg, W, Wg, Y);
        break;
      }
      case Dataflow::ls: {
        const Region X = writer_.left(m, k), W = sliced(&GemmWriter::right, n, k, 0), Y = sliced(&GemmWriter::out, m, n, 1);
        const Gathered Wg = gathered("right gathered", {R, n / (R * S_), k / C}, 0, writer_.row());
        const Gathered sums = gathered("partial sums", {m / R, C, n / (C * S_)}, 1, writer_.col());
        reduce(writer_.names().right, W, 0, Wg, sums, Y, 1,
               [&](std::int64_t s) { return Matmul{X, Wg.slot(s), sums.slot(s), 1, 3, 2, false, true, false}; });
        break;
      }
      case Dataflow::rs: {
        const Region X = sliced(&GemmWriter::left, k, m, 1), W = writer_.right(k, n), Y = sliced(&GemmWriter::out, m, n, 0);
        const Gathered Xg = gathered("left gathered", {k / R, C, m / (C * S_)}, 1, writer_.col());
        const Gathered sums = gathered("partial sums", {R, m / (R * S_), n / C}, 0, writer_.row());
        reduce(writer_.names().left, X, 1, Xg, sums, Y, 0,
               [&](std::int64_t s) { return Matmul{Xg.slot(s), W, sums.slot(s), 2, 1, 3, true, false, false}; });
        break;
      }
    }
  }

 private:
  using Make = Region (GemmWriter::*)(std::int64_t, std::int64_t, const GemmWriter::View*);

  /// A matrix with its dimension `moving` viewed as slices of blocks.
  Region sliced(Make make, std::int64_t rows, std::int64_t columns, std::size_t moving) {
    if (S_ == 1) return (writer_.*make)(rows, columns, nullptr);
    const std::int64_t local = moving == 0 ? rows / writer_.row().size : columns / writer_.col().size;
    const GemmWriter::View view{moving, {local / (S_ * B_), S_, B_}};
    return (writer_.*make)(rows, columns, &view);
  }
  /// Slice s of such a matrix.
  [[nodiscard]] Region slice(const Region& matrix, std::size_t moving, std::int64_t s) const {
    return S_ == 1 ? matrix : with(matrix, moving + 1, span(s, 1));
  }

  Gathered gathered(const std::string& name, std::vector<std::int64_t> extents, std::size_t blocks, const AxisView& axis) {
    return {writer_.slots(name, slots_, std::move(extents)), blocks + 1, axis};
  }
  [[nodiscard]] std::string label(const std::string& what, std::int64_t s) const { return step_label(what, s, S_); }

  /// The gather of slice s, cut before it where cuts are copies. `slot_free`: what must be over before the slot is written.
  TaskId gather(const std::string& tensor, const Region& from, std::size_t moving, const Gathered& to, std::int64_t s, const Tasks& slot_free) {
    Region input = slice(from, moving, s);
    Tasks after = slot_free;
    if (copies_) {
      after = {writer_.add(label("cut " + tensor, s), Local{LocalKind::copy, {std::move(input)}, {to.own_block(s)}, 1, Unit::core}, slot_free)};
      input = to.own_block(s);
    }
    return writer_.collective(label("gather " + tensor, s), CollectiveKind::all_gather, to.axis, std::move(input), to.slot(s),
                              static_cast<int>(to.blocks), after);
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

  /// OS: both operands are gathered, Y adds up where it is.
  void accumulate(const Region& X, const Gathered& Xg, const Region& W, const Gathered& Wg, const Region& Y) {
    Tasks gathers_X, gathers_W, matmuls;
    pipeline(
        [&](std::int64_t s) {
          gathers_X.push_back(gather(writer_.names().left, X, 1, Xg, s, at(matmuls, s - p_ - 1)));
          gathers_W.push_back(gather(writer_.names().right, W, 0, Wg, s, at(matmuls, s - p_ - 1)));
        },
        [&](std::int64_t s) {
          Tasks after{gathers_X[static_cast<std::size_t>(s)], gathers_W[static_cast<std::size_t>(s)]};
          if (s > 0) after.push_back(matmuls.back());
          matmuls.push_back(writer_.add(label("matmul", s), Matmul{Xg.slot(s), Wg.slot(s), Y, 2, 3, 1, false, false, s > 0}, after));
        });
  }

  /// LS and RS: gather one operand, multiply into partial sums, scatter these into a slice of Y.
  template <class Product>
  void reduce(const std::string& tensor, const Region& from, std::size_t moving, const Gathered& to, const Gathered& sums, const Region& Y,
              std::size_t Y_moving, Product&& product) {
    Tasks gathers, matmuls, scatters, out;  // out: slice s of Y is in its place, its partial sums are free
    const auto join = [&](std::int64_t s) {
      out.push_back(writer_.add(label("join " + writer_.names().out, s),
                                Local{LocalKind::copy, {sums.own_block(s)}, {slice(Y, Y_moving, s)}, 1, Unit::core}, at(scatters, s)));
    };
    pipeline([&](std::int64_t s) { gathers.push_back(gather(tensor, from, moving, to, s, at(matmuls, s - p_ - 1))); },
             [&](std::int64_t s) {
               Tasks after = at(gathers, s);
               if (s > p_) after.push_back(out[static_cast<std::size_t>(s - p_ - 1)]);
               matmuls.push_back(writer_.add(label("matmul", s), product(s), after));
               scatters.push_back(writer_.collective(label("reduce " + writer_.names().out, s), CollectiveKind::reduce_scatter, sums.axis,
                                                     sums.slot(s), copies_ ? sums.own_block(s) : slice(Y, Y_moving, s), static_cast<int>(sums.blocks),
                                                     {matmuls.back()}));
               if (!copies_)
                 out.push_back(scatters.back());
               else if (s >= p_)
                 join(s - p_);
             });
    if (copies_)
      for (std::int64_t s = std::max<std::int64_t>(S_ - p_, 0); s < S_; ++s) join(s);
  }

  GemmWriter& writer_;
  GemmProblem problem_;
  std::int64_t S_, B_;
  std::int64_t p_;
  bool copies_;
  std::int64_t slots_;
};

}  // namespace

void write_meshslice(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options) { MeshSlice{writer, problem, options}.write(); }

void write_collective(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options) {
  GemmOptions one = options;
  one.slice_count = 1;
  MeshSlice{writer, problem, one}.write();
}

}  // namespace podsim
