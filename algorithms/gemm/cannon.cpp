// cannon: on a square P x P mesh both moving matrices are skewed, then shift by one neighbour per step; all links of a step work at once.
//
//   OS       X skewed left by the row index, W up by the column index; P matmuls, P-1 shifts left and up
//   LS       W skewed up by the column index and shifted up; the partial sums of Y shift left, what arrives is added by the dma; the
//            finished rows are un-skewed right by row - 1
//   RS       X skewed left by the row index and shifted left; the partial sums of Y shift up and are un-skewed down by col - 1
//   skewing  by guarded unit shifts, the short way round: floor(P/2) steps
//   before, after   block-partitioned P(row, col)
//   cost     OS: floor(P/2) tau + T + (P-1) max(T, tau), tau the longer of the two shifts
//            LS, RS: floor(P/2) tau(skewed) + T + (P-1) max(T, tau) + floor(P/2) tau(Y)
//   errors   R != C, an open axis
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
  Cannon(GemmWriter& writer, const GemmOptions& options) : writer_{writer}, P_{writer.row().size}, slots_{std::max(options.prefetch, 1) + 1} {}

  void write(const GemmProblem& problem) {
    const AxisView row = writer_.row(), col = writer_.col();
    const auto [m, n, k, dtype, dataflow] = problem;
    switch (dataflow) {
      case Dataflow::os: {
        const Region X = writer_.left(m, k), W = writer_.right(k, n), Y = writer_.out(m, n);
        Rotated moving_X = rotate(writer_.names().left, X, col, -1, own(row), {}), moving_W = rotate(writer_.names().right, W, row, -1, own(col), {});
        Tasks shift_X = moving_X.done, shift_W = moving_W.done, matmuls;
        for (int t = 0; t < P_; ++t) {
          Tasks after = shift_X;
          after.insert(after.end(), shift_W.begin(), shift_W.end());
          if (t > 0) after.push_back(matmuls.back());
          if (t + 1 < P_) {
            shift_X = {pass(writer_.names().left, moving_X, col, t, shift_X, matmuls)};
            shift_W = {pass(writer_.names().right, moving_W, row, t, shift_W, matmuls)};
          }
          matmuls.push_back(writer_.add(
              step_label("matmul", t, P_),
              Matmul{moving_X.slots.slot(moving_X.slot + t), moving_W.slots.slot(moving_W.slot + t), Y, 2, 2, 1, false, false, t > 0}, after));
        }
        break;
      }
      case Dataflow::ls: {
        const Region X = writer_.left(m, k), W = writer_.right(n, k), Y = writer_.out(m, n);
        const Rotated moving = rotate(writer_.names().right, W, row, -1, own(col), {});
        accumulate(writer_.names().right, moving, row, Y, col, own(row, -1),
                   [&](const Region& arrived, const Region& out) { return Matmul{X, arrived, out, 1, 2, 2, false, true, false}; });
        break;
      }
      case Dataflow::rs: {
        const Region X = writer_.left(k, m), W = writer_.right(k, n), Y = writer_.out(m, n);
        const Rotated moving = rotate(writer_.names().left, X, col, -1, own(row), {});
        accumulate(writer_.names().left, moving, col, Y, row, own(col, -1),
                   [&](const Region& arrived, const Region& out) { return Matmul{arrived, W, out, 2, 1, 2, true, false, false}; });
        break;
      }
    }
  }

 private:
  static std::vector<std::int64_t> extents_of(const Region& region) {
    std::vector<std::int64_t> extents;
    for (const Range& range : region.dims) extents.push_back(range.length);
    return extents;
  }

  /// Moves `from` along `axis` by `sign` times `amount` (values in [0, P), the same along the axis) in unit shifts, the short way: amounts up
  /// to P/2 go `sign`, the rest the other way round. All moves end together at step floor(P/2), so everybody ends in the same slot.
  Rotated rotate(const std::string& what, const Region& from, const AxisView& axis, int sign, const Affine& amount, const Tasks& after) {
    const int steps = P_ / 2;
    std::vector<std::int64_t> extents = extents_of(from);
    if (extents.size() == 3) extents.erase(extents.begin());  // of a slot
    Rotated result{writer_.slots(what + " moving", slots_, extents), steps, {}};
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
        places.push_back(writer_.place("skew " + what, from, result.slots.slot(slot), after, where));
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
        previous = {writer_.add("skew " + what, Shift{axis, onwards ? sign : -sign, result.slots.slot(step), result.slots.slot(step + 1), {}, {}},
                                waits, {movers})};
      }
    result.done = places;
    for (const Tasks& last : {previous_onwards, previous_backwards}) result.done.insert(result.done.end(), last.begin(), last.end());
    return result;
  }

  /// Shift t of an operand by -1; its slot is free when the matmul that read it is done (and it was passed on before).
  TaskId pass(const std::string& what, const Rotated& moving, const AxisView& axis, std::int64_t t, const Tasks& before, const Tasks& matmuls) {
    std::vector<Edge> after;
    for (const TaskId task : before) after.push_back(Edge{task});
    if (t + 1 >= slots_) after.push_back(Edge{matmuls[static_cast<std::size_t>(t + 1 - slots_)], Half::both, Half::second});
    return writer_.add(step_label("pass " + what, t, P_),
                       Shift{axis, -1, moving.slots.slot(moving.slot + t), moving.slots.slot(moving.slot + t + 1), {}, {}}, after);
  }

  /// LS, RS: one operand and the partial sums both shift; the sums are rotated home by `home` at the end.
  template <class Product>
  void accumulate(const std::string& what, const Rotated& moving, const AxisView& operand_axis, const Region& Y, const AxisView& sum_axis,
                  const Affine& home, Product&& product) {
    const Slots sums = writer_.slots("partial sums", slots_, extents_of(Y)), landed = writer_.slots("landed", slots_, extents_of(Y));
    Tasks operand = moving.done, matmuls, adds, passes;  // adds[t]: the sums of step t are complete
    for (int t = 0; t < P_; ++t) {
      std::vector<Edge> after;
      for (const TaskId task : operand) after.push_back(Edge{task});
      if (t >= slots_) after.push_back(Edge{passes[static_cast<std::size_t>(t - slots_)], Half::first});
      if (t + 1 < P_) operand = {pass(what, moving, operand_axis, t, operand, matmuls)};
      const Region out = sums.slot(t);
      matmuls.push_back(writer_.add(step_label("matmul", t, P_), product(moving.slots.slot(moving.slot + t), out), after));
      adds.push_back(t == 0 ? matmuls.back()
                            : writer_.add(step_label("add", t, P_), Local{LocalKind::add, {out, landed.slot(t - 1)}, {out}, 1, Unit::dma},
                                          Tasks{matmuls.back(), passes.back()}));
      if (t + 1 == P_) break;
      std::vector<Edge> edges{Edge{adds.back()}};
      if (t > 0) edges.push_back(Edge{passes.back()});
      // Where it lands: what landed there before has been added.
      if (t >= slots_) edges.push_back(Edge{adds[static_cast<std::size_t>(t + 1 - slots_)], Half::both, Half::second});
      passes.push_back(
          writer_.add(step_label("pass sums of " + writer_.names().out, t, P_), Shift{sum_axis, -1, out, landed.slot(t), {}, {}}, edges));
    }
    const Rotated finished = rotate(writer_.names().out, sums.slot(P_ - 1), sum_axis, +1, home, {adds.back()});
    writer_.place("home " + writer_.names().out, finished.slots.slot(finished.slot), Y, finished.done);
  }

  GemmWriter& writer_;
  int P_;
  std::int64_t slots_;
};

}  // namespace

void write_cannon(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options) { Cannon{writer, options}.write(problem); }

}  // namespace podsim
