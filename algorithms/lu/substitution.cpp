// Substitution from the last block row up.
#include <fmt/format.h>

#include <algorithm>

#include "algorithms/lu/writer.hpp"

namespace podsim {

namespace {

class Substitution {
 public:
  Substitution(BlockCyclicWriter& writer, const Region& packed, const Region& x)
      : writer_{writer}, layout_{writer.layout()}, packed_{packed}, x_{x}, b_{layout_.b} {
    const std::int64_t slots = std::min<std::int64_t>(2, layout_.K);
    above_ = writer.builder().scratch("U", {slots, layout_.Q, b_, b_}, DType::f32);
    negated_ = writer.builder().scratch("-x", {slots, b_, layout_.m}, DType::f32);
  }

  void run() {
    for (std::int64_t k = layout_.K; k-- > 0;) {
      const auto r = static_cast<int>(k % layout_.R), c = static_cast<int>(k % layout_.C);
      const std::int64_t q = k / layout_.R, w = k / layout_.C;
      const int second = k % 2 == 0 ? 0 : LuArray::count;
      const BlockAccess u{LuArray::above + second, 0, 1, 0, 1, false}, minus{LuArray::negated + second, 0, 1, 0, 1, false};
      const BlockRange upto{0, q + 1}, row{q, q + 1}, column{w, w + 1};
      const Region slot = with(above_, 0, span(k % 2, 1)), rows = with(slot, 1, span(0, q + 1));
      const Region from = writer_.blocks(packed_, upto, column), own = writer_.rows_of(x_, row), sent = with(negated_, 0, span(k % 2, 1));
      const std::vector<BlockAccess> reads{{LuArray::matrix, 0, q + 1, w, w + 1, false}, write_of(u)};
      if (layout_.C > 1)
        writer_.broadcast(fmt::format("column of U {}", k), layout_.problem.columns, from, rows, c, writer_.everywhere(), reads);
      else
        writer_.add(fmt::format("column of U {}", k), Local{LocalKind::alias, {from}, {rows}, 1, Unit::dma}, writer_.everywhere(), reads);
      Local trsm{LocalKind::trsm_upper, {with(slot, 1, span(q, 1)), own}, {own}};
      trsm.splits = {3, 3, 3};
      writer_.add(fmt::format("x {}", k), std::move(trsm), writer_.row(r), {u, {LuArray::right, q, q + 1, 0, 1, true}});
      if (k == 0) break;
      writer_.add(fmt::format("-x {}", k), Local{LocalKind::scale, {own}, {sent}, -1}, writer_.row(r),
                  {{LuArray::right, q, q + 1, 0, 1, false}, write_of(minus)});
      if (layout_.R > 1) writer_.broadcast(fmt::format("-x {}", k), layout_.problem.rows, sent, sent, r, writer_.everywhere(), {write_of(minus)});
      for (const auto& [devices, count] : {std::pair{DeviceBox{0, r, 0, layout_.C}, q + 1}, std::pair{DeviceBox{r, layout_.R, 0, layout_.C}, q}}) {
        if (count == 0) continue;
        Matmul matmul{with(slot, 1, span(0, count)), sent, writer_.rows_of(x_, {0, count}), 3, 2, 3};
        matmul.accumulate = true;
        writer_.add(fmt::format("substitute {}", k), std::move(matmul), devices, {u, minus, {LuArray::right, 0, count, 0, 1, true}});
      }
    }
  }

 private:
  BlockCyclicWriter& writer_;
  const LuLayout& layout_;
  Region packed_, x_, above_, negated_;
  std::int64_t b_;
};

}  // namespace

void substitute_back(BlockCyclicWriter& writer, const Region& packed, const Region& x) { Substitution{writer, packed, x}.run(); }

}  // namespace podsim
