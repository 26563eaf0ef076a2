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
    above_ = writer.builder().scratch("columns of U", {std::min<std::int64_t>(2, layout_.W), layout_.Q, layout_.C, b_, b_}, DType::f32);
    negated_ = writer.builder().scratch("-x", {std::min<std::int64_t>(2, layout_.K), b_, layout_.m}, DType::f32);
  }

  void run() {
    for (std::int64_t k = layout_.K; k-- > 0;) {
      if (k == layout_.K - 1 || k % layout_.C == layout_.C - 1) gather_columns(k);
      solve(k);
    }
  }

 private:
  /// The last of C columns of blocks, which stand on C devices. A broadcast of each would begin at the device that the one before reached last.
  void gather_columns(std::int64_t k) {
    const std::int64_t w = k / layout_.C, rows = k / layout_.R + 1;
    const Region own = writer_.blocks(packed_, {0, rows}, {w, w + 1}), gathered = with(columns_at(k), 1, span(0, rows));
    const std::vector<BlockAccess> accesses{{LuArray::matrix, 0, rows, w, w + 1, false}, write_of(access_at(LuArray::above, w))};
    const std::string label = fmt::format("gather columns of U {}", w);
    if (layout_.C > 1)
      writer_.collective(label, {CollectiveKind::all_gather, layout_.problem.columns, own, gathered, 2}, writer_.everywhere(), accesses);
    else
      writer_.add(label, Local{LocalKind::alias, {own}, {gathered}, 1, Unit::dma}, writer_.everywhere(), accesses);
  }

  /// Block row k of x, and what it takes from the rows above.
  void solve(std::int64_t k) {
    const auto r = static_cast<int>(k % layout_.R);
    const std::int64_t q = k / layout_.R;
    const BlockAccess u = access_at(LuArray::above, k / layout_.C), minus = access_at(LuArray::negated, k), x{LuArray::right, q, q + 1, 0, 1, false};
    const Region column = with(columns_at(k), 2, span(k % layout_.C, 1)), own = writer_.rows_of(x_, {q, q + 1}),
                 sent = with(negated_, 0, span(k % 2, 1));
    Local trsm{LocalKind::trsm_upper, {with(column, 1, span(q, 1)), own}, {own}};
    trsm.splits = {4, 3, 3};
    writer_.add(fmt::format("x {}", k), std::move(trsm), writer_.row(r), {u, write_of(x)});
    if (k == 0) return;
    writer_.add(fmt::format("-x {}", k), Local{LocalKind::scale, {own}, {sent}, -1}, writer_.row(r), {x, write_of(minus)});
    if (layout_.R > 1) writer_.broadcast(fmt::format("-x {}", k), layout_.problem.rows, sent, sent, r, writer_.everywhere(), {write_of(minus)});
    for (const auto& [devices, count] : {std::pair{DeviceBox{0, r, 0, layout_.C}, q + 1}, std::pair{DeviceBox{r, layout_.R, 0, layout_.C}, q}}) {
      if (count == 0) continue;
      Matmul matmul{with(column, 1, span(0, count)), sent, writer_.rows_of(x_, {0, count}), 4, 2, 3};
      matmul.accumulate = true;
      writer_.add(fmt::format("substitute {}", k), std::move(matmul), devices, {u, minus, {LuArray::right, 0, count, 0, 1, true}});
    }
  }

  [[nodiscard]] Region columns_at(std::int64_t k) const { return with(above_, 0, span(k / layout_.C % 2, 1)); }
  [[nodiscard]] static BlockAccess access_at(int array, std::int64_t turn) {
    return {array + static_cast<int>(turn % 2) * LuArray::count, 0, 1, 0, 1, false};
  }

  BlockCyclicWriter& writer_;
  const LuLayout& layout_;
  Region packed_, x_, above_, negated_;
  std::int64_t b_;
};

}  // namespace

void substitute_back(BlockCyclicWriter& writer, const Region& packed, const Region& x) { Substitution{writer, packed, x}.run(); }

}  // namespace podsim
