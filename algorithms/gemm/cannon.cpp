// cannon: on a square P x P mesh both moving matrices are skewed, then shift by one neighbour per step; all links of a step work at once.
//
//   OS       X skewed left by the row index, W up by the column index; P matmuls, P-1 shifts left and up
//   LS       W skewed up by the column index and shifted up; the partial sums of Y shift left, and the dma adds what arrives; the
//            finished rows are un-skewed right by row - 1
//   RS       X skewed left by the row index and shifted left; the partial sums of Y shift up and are un-skewed down by col - 1
//   skewing  by guarded unit shifts, the short way round: floor(P/2) steps
//   before, after   block-partitioned P(rows, columns)
//   cost     OS: floor(P/2) tau + T + (P-1) max(T, tau), tau the longer of the two shifts
//            LS, RS: floor(P/2) tau(skewed) + T + (P-1) max(T, tau) + floor(P/2) tau(Y)
//   open     on an axis without wraparound the device at its end sends to the other end over the whole line, against the direction of all others:
//            tau = (P-1) latency + bytes / link
//   errors   R != C
//   example  OS on 3x3: after skewing device (1, 0) holds X11 and W10, (1, 1) holds X12 and W21. Step 1: (1, 0) adds X11.W10, sends X11 to (1, 2)
//            and W10 to (0, 0), and receives X12 from (1, 1) and W20 from (2, 0); step 2 adds X12.W20, step 3 X10.W00
//   source   Cannon (1969)
#include <algorithm>

#include "algorithms/gemm/writer.hpp"

namespace podsim {

namespace {

/// What a rotation leaves: the data in slot `slot`, done when `done` is.
struct Rotated {
  Slots slots;
  std::int64_t slot = 0;
  Tasks done;
};

class Cannon {
 public:
  Cannon(GemmWriter& writer, const GemmOptions& options) : writer_{writer}, P_{writer.rows().size}, slots_{std::max(options.prefetch, 1) + 1} {}

  void write() {
    const DataflowTraits& flow = writer_.flow();
    const Matrices matrices = writer_.matrices();
    const Rotated first = skewed(flow.moves[0], matrices);
    if (flow.reduces) {
      const Move& sums = flow.moves[1];
      accumulate(flow.moves[0], first, matrices, writer_.axis(sums.dim), own(writer_.axis(1 - sums.dim), -1));
      return;
    }
    const Rotated second = skewed(flow.moves[1], matrices);
    Tasks shift_first = first.done, shift_second = second.done, matmuls;
    for (int t = 0; t < P_; ++t) {
      Tasks after = shift_first;
      after.insert(after.end(), shift_second.begin(), shift_second.end());
      if (t > 0) after.push_back(matmuls.back());
      if (t + 1 < P_) {
        shift_first = pass(flow.moves[0], first, t, shift_first, matmuls);
        shift_second = pass(flow.moves[1], second, t, shift_second, matmuls);
      }
      Matmul product = writer_.product(matrices, t > 0);
      set_operand(product, flow.moves[0].operand, first.slots.slot(first.slot + t), 2);
      set_operand(product, flow.moves[1].operand, second.slots.slot(second.slot + t), 2);
      matmuls.push_back(writer_.add(step_label("matmul", t, P_), std::move(product), after));
    }
  }

 private:
  /// A matrix rotated along its axis by the coordinate on the other one.
  Rotated skewed(const Move& move, const Matrices& matrices) {
    return rotate(move.operand, matrices.of(move.operand), writer_.axis(move.dim), -1, own(writer_.axis(1 - move.dim)), {});
  }

  /// Moves `from` along `axis` by `sign` times `amount` (values in [0, P), the same along the axis) in unit shifts, the short way: amounts up
  /// to P/2 go `sign`, the rest the other way round. All moves end together at step floor(P/2), so all devices end in the same slot.
  Rotated rotate(Operand operand, const Region& from, const AxisView& axis, int sign, const Affine& amount, const Tasks& after) {
    const int steps = P_ / 2;
    const std::string& what = writer_.names().of(operand);
    std::vector<std::int64_t> extents = lengths_of(from);
    if (extents.size() == 3) extents.erase(extents.begin());  // of a slot
    Rotated result{writer_.slots(what + " moving", operand, slots_, extents), steps, {}};
    const auto amount_in = [&](std::int64_t low, std::int64_t high) { return Condition{amount, low, high}; };
    // A device whose data makes v moves starts at step floor(P/2) - v, in that step's slot.
    Tasks places;
    for (std::int64_t slot = 0; slot < slots_; ++slot)
      for (const bool onwards : {true, false}) {
        Affine start = amount;  // steps - v mod slots, v = amount onwards, P - amount backwards
        for (AxisTerm& term : start.terms) term.coefficient = onwards ? -1 : 1;
        start.constant = onwards ? steps : steps - P_;
        start.modulus = slots_;
        const Guard where{onwards ? amount_in(0, steps + 1) : amount_in(steps + 1, P_), {start, slot, slot + 1}};
        if (!onwards && steps + 1 >= P_) continue;
        places.push_back(writer_.alias("skew " + what, from, result.slots.slot(slot), after, where));
      }
    Tasks previous_onwards, previous_backwards;
    for (std::int64_t step = 0; step < steps; ++step)
      for (const bool onwards : {true, false}) {
        // Those with v >= steps - step moves.
        const Condition movers = onwards ? amount_in(steps - step, steps + 1) : amount_in(steps + 1, P_ - steps + step + 1);
        if (movers.low >= movers.high) continue;
        Tasks& previous = onwards ? previous_onwards : previous_backwards;
        Tasks waits = places;
        waits.insert(waits.end(), previous.begin(), previous.end());
        previous = writer_.pass_on("skew " + what, axis, onwards ? sign : -sign, result.slots.slot(step), result.slots.slot(step + 1),
                                   edges_to(waits), {movers});
      }
    result.done = places;
    for (const Tasks& last : {previous_onwards, previous_backwards}) result.done.insert(result.done.end(), last.begin(), last.end());
    return result;
  }

  /// Shift t of an operand by -1; its slot is free when the matmul that read it is done (and it was passed on before).
  Tasks pass(const Move& move, const Rotated& moving, std::int64_t t, const Tasks& before, const Tasks& matmuls) {
    Edges after = edges_to(before);
    if (t + 1 >= slots_) after.push_back(Edge{matmuls[static_cast<std::size_t>(t + 1 - slots_)], Half::both, Half::receive});
    return writer_.pass_on(step_label("pass " + writer_.names().of(move.operand), t, P_), writer_.axis(move.dim), -1,
                           moving.slots.slot(moving.slot + t), moving.slots.slot(moving.slot + t + 1), after);
  }

  /// One operand and the partial sums both shift; the sums are rotated home by `home` at the end.
  void accumulate(const Move& move, const Rotated& moving, const Matrices& matrices, const AxisView& sum_axis, const Affine& home) {
    const Region& Y = matrices.out;
    const Slots sums = writer_.slots("partial sums", Operand::out, slots_, lengths_of(Y)), landed = writer_.slots("landed", Operand::out, slots_, lengths_of(Y));
    Tasks operand = moving.done, matmuls, adds;  // adds[t]: the sums of step t are complete
    std::vector<Tasks> passes;
    for (int t = 0; t < P_; ++t) {
      Edges after = edges_to(operand);
      if (t >= slots_)
        for (const TaskId sent : passes[static_cast<std::size_t>(t - slots_)]) after.push_back(Edge{sent, Half::send});
      if (t + 1 < P_) operand = pass(move, moving, t, operand, matmuls);
      const Region out = sums.slot(t);
      Matmul product = writer_.product(matrices);
      set_operand(product, move.operand, moving.slots.slot(moving.slot + t), 2);
      set_operand(product, Operand::out, out, 2);
      matmuls.push_back(writer_.add(step_label("matmul", t, P_), std::move(product), after));
      const Edges passed = t == 0 ? Edges{} : edges_to(passes.back());
      adds.push_back(t == 0 ? matmuls.back()
                            : writer_.add(step_label("add", t, P_), Local{LocalKind::add, {out, landed.slot(t - 1)}, {out}, 1, Unit::dma},
                                          join({Edge{matmuls.back()}}, passed)));
      if (t + 1 == P_) break;
      Edges edges = join({Edge{adds.back()}}, passed);
      // Where it lands: what landed there before has been added.
      if (t >= slots_) edges.push_back(Edge{adds[static_cast<std::size_t>(t + 1 - slots_)], Half::both, Half::receive});
      passes.push_back(writer_.pass_on(step_label("pass sums of " + writer_.names().out, t, P_), sum_axis, -1, out, landed.slot(t), edges));
    }
    const Rotated finished = rotate(Operand::out, sums.slot(P_ - 1), sum_axis, +1, home, {adds.back()});
    writer_.alias("home " + writer_.names().out, finished.slots.slot(finished.slot), Y, finished.done);
  }

  GemmWriter& writer_;
  int P_;
  std::int64_t slots_;
};

}  // namespace

void write_cannon(GemmWriter& writer, const GemmProblem&, const GemmOptions& options) { Cannon{writer, options}.write(); }

}  // namespace podsim
