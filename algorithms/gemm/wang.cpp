// wang (collective matmul): the matrix that one axis moves travels around its ring in two half-blocks in opposite directions. Each hop overlaps with
// the partial matmul of the halves that have arrived, one matmul per hop. The matrix that the other axis moves is gathered first, exposed.
//
//   OS       the operand with more bytes.(P-1) travels (options.wang_operand overrides), the other one is gathered. Hop t brings the first half
//            of block c-t from one side and the second half of block c+t from the other
//   LS, RS   the accumulator travels: step t adds to the first half of block c-1-t, which then goes +1, and to the second half of block c+1+t,
//            which goes -1; the last step is the own block. The dma adds what arrives, off the core
//   before, after   block-partitioned P(rows, columns)
//   cost     tau of a half block, P of the travelling axis; P = 2: whole blocks one way
//              OS      AG + P.T where T >= tau; otherwise at most AG + T + (P-1) tau, since the first hops run while the other operand is gathered
//              LS, RS  AG + T + (P-1) max(T, tau)
//   open     on an axis without wraparound the devices at its ends send to each other over the whole line, so that every link carries two half-blocks
//            each way: tau of a whole block, and latencies of up to P-1 hops
//   example  OS on 1x4, columns blocks A B C D of X: rank 1 begins with B. Hop 1 brings it the first half of A from rank 0 and the second half of C
//            from rank 2, hop 2 both halves of D, one from each side, hop 3 the first half of C and the second half of A; every hop is one matmul
//   source   Wang et al., ASPLOS 2023; JAX shard_map collective matmul, bidirectional
//
// jax-ag-*, jax-rs-*: the collective matmuls of JAX's shard_map tutorial on one axis of P devices. ag: the right operand is split along the
// contraction and gathered (`plain`), passed one way (`overlapped`) or both ways in halves (`bidirectional`): one dot, then P-1 times
// (permute, dot). rs: partial sums are scattered, passed one way to -1, or both ways with two half dots a step.
//   example  4 ranks. ag overlapped: rank 1 multiplies by block 1 of W, then by blocks 0, 3, 2 as they arrive from rank 0. rs overlapped: the sums of
//            block 2 of Y start at rank 1 and go 1 > 0 > 3 > 2; each adds its share
//
// tp-ag-*: the all-gather half of tensor parallelism whose activations are split by rows between layers. X[M/P,K] is gathered along M; W[K,N/P] and
// Y[M,N/P] stay. `overlapped`: rows are multiplied while they travel on, one dot per block; `bidirectional`: in halves, a dot for each.
//   cost     plain: AG + P.T      overlapped: T + (P-1) max(T, tau of a block)      bidirectional: the same with tau of half a block
//   example  4 ranks, overlapped: rank 1 makes rows 1 of its columns of Y from its own rows of X, then rows 0, 3, 2 as these rows of X arrive from
//            rank 0
//   source   JAX, Pallas collective matmul on GPUs (overlapped: there the scratch holds P-1 blocks and the ring runs the other way)
//
// The gathered operand is read at offsets that depend on the device and the step. A compiler fuses these slices into the dot; here they are
// aliases, free in time, in a copy whose slice t is the operand of step t.
#include <algorithm>

#include "algorithms/gemm/writer.hpp"

namespace podsim {

namespace {

/// A half of a block: [begin, begin + length) of its cut dimension, which way it travels, and the tasks of its way so far.
struct HalfBlock {
  int sign;
  std::int64_t begin, length;
  std::vector<Tasks> shifts{};  // of each step
  Tasks adds{};
};

/// `one_way`: the sign of a one-way ring; 0: both ways.
std::vector<HalfBlock> half_blocks(int devices, std::int64_t length, int one_way) {
  std::vector<HalfBlock> halves;
  const std::int64_t first = devices <= 2 || one_way != 0 ? length : (length + 1) / 2;
  halves.push_back({one_way < 0 ? -1 : +1, 0, first});
  if (first < length) halves.push_back({-1, first, length - first});
  return halves;
}

class Wang {
 public:
  Wang(GemmWriter& writer, const GemmOptions& options, WangStyle style) : writer_{writer}, options_{options}, style_{style} {}

  void write(const GemmProblem& problem) {
    const DataflowTraits& flow = writer_.flow();
    const Matrices matrices = writer_.matrices();
    const std::int64_t extent = problem.*flow.moving;
    if (flow.reduces) {
      const Move &gathered = flow.moves[0], &sums = flow.moves[1];
      const Slots fitted = fit(gathered, matrices, writer_.axis(sums.dim), extent, 1);
      accumulate(matrices.out, sums.dim, writer_.axis(sums.dim), [&](const Region& out, std::int64_t t, const Range& part) {
        Matmul product = writer_.product(matrices);
        set_operand(product, gathered.operand, with(fitted.slot(t), gathered.dim + 1, part), 2);
        set_operand(product, Operand::out, out, static_cast<int>(out.dims.size()) - 1);
        return product;
      });
      return;
    }
    const bool left_travels = options_.wang_operand ? *options_.wang_operand == WangOperand::x
                                                    : travel_cost(flow.moves[0], matrices) >= travel_cost(flow.moves[1], matrices);
    const Move &travels = flow.moves[left_travels ? 0 : 1], &gathered = flow.moves[left_travels ? 1 : 0];
    const AxisView& ring = writer_.axis(travels.dim);
    const Slots fitted = fit(gathered, matrices, ring, extent, 0);  // slice t: what hop t needs
    travel(travels.operand, matrices.of(travels.operand), travels.dim, ring, [&](const Region& arrived, std::int64_t t) {
      Matmul product = writer_.product(matrices, t > 0);
      set_operand(product, travels.operand, arrived, static_cast<int>(arrived.dims.size()) - 1);
      set_operand(product, gathered.operand, fitted.slot(t), 2);
      return std::vector{std::move(product)};
    });
  }

  /// tp-ag: rows of X travel along rows.
  void gather_rows(const GemmProblem& problem) {
    const AxisView ring = writer_.rows();
    const std::int64_t rows = problem.m / ring.size;
    const Region X = writer_.matrix(Operand::left, {ring}, {}), W = writer_.matrix(Operand::right, {}, {ring}),
                 Y = writer_.matrix(Operand::out, {}, {ring});
    fitted_.resize(static_cast<std::size_t>(ring.size));
    travel(Operand::left, X, 0, ring, [&](const Region& arrived, std::int64_t t) {
      std::vector<Matmul> products;
      const std::size_t dims = arrived.dims.size();
      for (const HalfBlock& half : half_blocks(ring.size, rows, one_way(false)))
        products.push_back({with(arrived, dims - 2, span(half.begin, half.length)), W,
                            with(Y, 0, Range{own(ring, -half.sign * t), rows, half.begin, half.length}), static_cast<int>(dims) - 1, 1, 1});
      return products;
    });
  }

 private:
  [[nodiscard]] Tasks fitted_at(std::int64_t t) const { return fitted_[static_cast<std::size_t>(t)]; }

  /// Elements times hops of a matrix that goes all the way round.
  [[nodiscard]] std::int64_t travel_cost(const Move& move, const Matrices& matrices) const {
    return elements_of(matrices.of(move.operand)) * (writer_.axis(move.dim).size - 1);
  }

  /// Gathers a matrix, of `extent` in all along its moving dimension, then lays it out by step: slot t holds what step t of the ring along `ring`
  /// needs. `ahead`: step t of a travelling operand needs blocks c-t and c+t (0); of an accumulator blocks c-1-t, c+1+t (1).
  Slots fit(const Move& move, const Matrices& matrices, const AxisView& ring, std::int64_t extent, int ahead) {
    const std::string& tensor = writer_.names().of(move.operand);
    const Region& matrix = matrices.of(move.operand);
    const std::size_t dim = move.dim;
    std::vector<std::int64_t> extents = lengths_of(matrix);
    extents[dim] = extent;
    const Region gathered = writer_.scratch(tensor + " gathered", move.operand, extents);
    const TaskId gather =
        writer_.collective("gather " + tensor, CollectiveKind::all_gather, writer_.axis(dim), matrix, gathered, static_cast<int>(dim), {});
    const std::int64_t block_length = extent / ring.size;
    extents[dim] = block_length;
    const Slots fitted = writer_.slots(tensor + " by step", move.operand, ring.size, extents);
    for (int t = 0; t < ring.size; ++t) {
      Tasks places;
      for (const HalfBlock& half : half_blocks(ring.size, block_length, one_way(ahead == 1))) {
        const Range from{own(ring, -half.sign * (t + ahead)), block_length, half.begin, half.length};
        places.push_back(writer_.alias(step_label("slice " + tensor, t, ring.size), with(gathered, dim, from),
                                       with(fitted.slot(t), dim + 1, span(half.begin, half.length)), {gather}));
      }
      fitted_.push_back(std::move(places));
    }
    return fitted;
  }

  /// OS: the blocks of `matrix` travel; `products(arrived, t)` multiply what is there at hop t.
  template <class Multiply>
  void travel(Operand operand, const Region& matrix, std::size_t dim, const AxisView& ring, Multiply&& products) {
    const int P = ring.size;
    const std::string& tensor = writer_.names().of(operand);
    // At least two slots: what is passed on and what arrives are there at once.
    const std::int64_t slots = std::min(std::max(options_.prefetch, 1) + 1, std::max(P - 1, 1));
    const std::vector<std::int64_t> extents = lengths_of(matrix);
    std::vector<HalfBlock> halves = half_blocks(P, extents[dim], one_way(false));
    const Slots arrived = P == 1 ? Slots{} : writer_.slots(tensor + " arrived", operand, slots, extents);

    std::vector<Tasks> matmuls;  // of each hop
    for (std::int64_t t = 0; t < P; ++t) {
      for (HalfBlock& half : halves) {
        if (t + 1 == P) break;
        const Range part = span(half.begin, half.length);
        Edges after = t > 0 ? edges_to(half.shifts.back()) : Edges{};
        if (t >= slots)  // the slot it lands in held hop t-slots+1: multiplied, and passed on by the shift before
          for (const TaskId matmul : matmuls[static_cast<std::size_t>(t - slots + 1)]) after.push_back(Edge{matmul, Half::both, Half::receive});
        const Region source = t == 0 ? with(matrix, dim, part) : with(arrived.slot(t - 1), dim + 1, part);
        half.shifts.push_back(
            writer_.pass_on(step_label("pass " + tensor, t, P), ring, half.sign, source, with(arrived.slot(t), dim + 1, part), after));
      }
      Tasks after = fitted_at(t);
      if (t > 0) {
        after.insert(after.end(), matmuls.back().begin(), matmuls.back().end());
        for (const HalfBlock& half : halves) {
          const Tasks& arriving = half.shifts[static_cast<std::size_t>(t - 1)];
          after.insert(after.end(), arriving.begin(), arriving.end());
        }
      }
      matmuls.emplace_back();
      for (Matmul& product : products(t == 0 ? matrix : arrived.slot(t - 1), t))
        matmuls.back().push_back(writer_.add(step_label("matmul", t, P), std::move(product), after));
    }
  }

  /// LS, RS: partial sums of blocks of `Y` along `dim` travel; `product(out, t, part)` computes those of step t, of a
  /// part of the block.
  template <class Product>
  void accumulate(const Region& Y, std::size_t dim, const AxisView& ring, Product&& product) {
    const int P = ring.size;
    const std::int64_t slots = std::min(options_.prefetch + 1, std::max(P - 1, 1));
    const std::vector<std::int64_t> extents = lengths_of(Y);
    std::vector<HalfBlock> halves = half_blocks(P, extents[dim], one_way(true));
    const Slots sums = P == 1 ? Slots{} : writer_.slots("partial sums", Operand::out, slots, extents);
    const Slots landed = P == 1 ? Slots{} : writer_.slots("landed", Operand::out, slots, extents);

    for (std::int64_t t = 0; t < P; ++t) {
      const bool last = t + 1 == P;
      const Region out = last ? Y : sums.slot(t);
      const auto part_of = [&](const Region& region, const HalfBlock& half) {
        return with(region, region.dims.size() - Y.dims.size() + dim, span(half.begin, half.length));
      };
      Edges after = edges_to(fitted_at(t));
      if (!last && t >= slots)
        for (const HalfBlock& half : halves)
          for (const TaskId sent : half.shifts[static_cast<std::size_t>(t - slots)]) after.push_back(Edge{sent, Half::send});
      TaskId matmul;
      if (style_ != WangStyle::two_half_dots) matmul = writer_.add(step_label("matmul", t, P), product(out, t, all(extents[dim])), after);
      for (HalfBlock& half : halves) {
        if (style_ == WangStyle::two_half_dots)
          matmul = writer_.add(step_label("half matmul", t, P), product(part_of(out, half), t, span(half.begin, half.length)), after);
        TaskId ready = matmul;
        const Edges passed = t > 0 ? edges_to(half.shifts.back()) : Edges{};
        if (t > 0) {
          const Region sum = part_of(out, half);
          ready = writer_.add(step_label("add", t, P), Local{LocalKind::add, {sum, part_of(landed.slot(t - 1), half)}, {sum}, 1, Unit::dma},
                              join({Edge{matmul}}, passed));
          half.adds.push_back(ready);
        }
        if (last) continue;
        Edges edges = join({Edge{ready}}, passed);
        // The slot it lands in: what landed there before has been added.
        if (t >= slots) edges.push_back(Edge{half.adds[static_cast<std::size_t>(t - slots)], Half::both, Half::receive});
        half.shifts.push_back(writer_.pass_on(step_label("pass sums of " + writer_.names().out, t, P), ring, half.sign, part_of(out, half),
                                              part_of(landed.slot(t), half), edges));
      }
    }
  }

  /// The sign of a one-way ring, 0 for both ways.
  [[nodiscard]] int one_way(bool accumulators) const { return style_ != WangStyle::one_way ? 0 : accumulators ? -1 : +1; }

  GemmWriter& writer_;
  GemmOptions options_;
  WangStyle style_;
  std::vector<Tasks> fitted_;  // per step
};

}  // namespace

void write_wang(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options, WangStyle style) {
  Wang{writer, options, style}.write(problem);
}

void write_row_gather(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options, std::optional<WangStyle> style) {
  if (style) {
    Wang{writer, options, *style}.gather_rows(problem);
    return;
  }
  const AxisView axis = writer.rows();
  const Region X = writer.matrix(Operand::left, {axis}, {}), W = writer.matrix(Operand::right, {}, {axis}),
               Y = writer.matrix(Operand::out, {}, {axis});
  const Region gathered = writer.scratch(writer.names().left + " gathered", Operand::left, {problem.m, problem.k});
  const TaskId gather = writer.collective("gather " + writer.names().left, CollectiveKind::all_gather, axis, X, gathered, 0, {});
  writer.add("matmul", Matmul{gathered, W, Y}, {gather});
}

}  // namespace podsim
