// The block-cyclic factorisation and the substitution behind it, step by step as in README.md.
#include <fmt/format.h>

#include <algorithm>

#include "algorithms/lu/writer.hpp"

namespace podsim {

namespace {

/// Arrays for Accesses. Those from `panel` on are scratch with two slots; a number of the second slot is `count` larger.
struct Array {
  enum : int { matrix, right, pivots, panel, index, lower, mine, fresh, old, upper, above, negated, count };
};

Access written(Access access) {
  access.writes = true;
  return access;
}

/// What is factored: the packed matrix, b if it takes part, and P unless nobody asks.
struct Operands {
  Region matrix;
  const Region* right = nullptr;
  const Region* pivots = nullptr;
};

class Factorisation {
 public:
  Factorisation(BlockCyclicWriter& writer, const Operands& operands)
      : writer_{writer}, builder_{writer.builder()}, layout_{writer.layout()}, of_{operands}, R_{layout_.R}, C_{layout_.C}, b_{layout_.b} {
    const std::int64_t width = layout_.W * b_ + (of_.right != nullptr ? layout_.m : 0);
    panel_ = scratch("panel", {layout_.Q, R_, b_, b_});
    index_ = scratch("index", {3, b_}, DType::s32);
    lower_ = scratch("L", {layout_.Q, b_, b_});
    upper_ = scratch("-U", {b_, width});
    if (R_ == 1) return;
    mine_ = scratch("own new rows", {b_, width});
    fresh_ = scratch("new rows", {b_, width});
    old_ = scratch("old rows", {b_, width});
  }

  void run() {
    for (k_ = 0; k_ < layout_.K; ++k_) {
      if (k_ == 0 || !ahead()) factor(k_);
      spread();
      exchange();
      keep_panel();
      solve_row();
      update_next();
      if (ahead() && k_ + 1 < layout_.K) factor(k_ + 1);
      update_rest();
    }
  }

 private:
  [[nodiscard]] bool ahead() const { return layout_.problem.look_ahead == 1; }

  // ---- Where block k stands ----
  [[nodiscard]] int r() const { return static_cast<int>(k_ % R_); }
  [[nodiscard]] int c() const { return static_cast<int>(k_ % C_); }
  [[nodiscard]] std::int64_t q() const { return k_ / R_; }
  [[nodiscard]] std::int64_t w() const { return k_ / C_; }
  [[nodiscard]] BlockRange below() const { return {q(), layout_.Q}; }  // every device's rows of a panel
  [[nodiscard]] std::int64_t slot() const { return k_ % 2; }
  /// The columns that step k exchanges: those left of the panel are L, which a solution does not need.
  [[nodiscard]] BlockRange exchanged() const { return {of_.right == nullptr ? 0 : w(), layout_.W}; }
  /// The columns of U that are broadcast, on all devices. On those up to c() the first one may be no part of U.
  [[nodiscard]] BlockRange spread_columns() const { return {k_ + 1 < layout_.K ? w() + (c() + 1 == C_ ? 1 : 0) : layout_.W, layout_.W}; }

  // ---- Scratch ----
  Region scratch(const std::string& name, std::vector<std::int64_t> extents, DType dtype = DType::f32) {
    extents.insert(extents.begin(), std::min<std::int64_t>(2, layout_.K));
    return builder_.scratch(name, std::move(extents), dtype);
  }
  [[nodiscard]] static Region in_slot(const Region& region, std::int64_t slot) { return with(region, 0, span(slot, 1)); }
  [[nodiscard]] Region index_row(std::int64_t row) const { return with(in_slot(index_, slot()), 1, span(row, 1)); }
  /// Columns of [slots, b, width]: of the matrix, or of b behind them.
  [[nodiscard]] Region wide(const Region& rows, BlockRange columns) const {
    return with(in_slot(rows, slot()), 2, span(columns.first * b_, columns.count() * b_));
  }
  [[nodiscard]] Region wide_right(const Region& rows) const { return with(in_slot(rows, slot()), 2, span(layout_.W * b_, layout_.m)); }
  /// The columns from a block on, with those of b.
  [[nodiscard]] Region wide_from(const Region& rows, std::int64_t first) const {
    const std::int64_t end = layout_.W * b_ + (of_.right != nullptr ? layout_.m : 0);
    return with(in_slot(rows, slot()), 2, span(first * b_, end - first * b_));
  }

  // ---- Accesses ----
  [[nodiscard]] static Access matrix_access(BlockRange rows, BlockRange columns, bool writes) {
    return {Array::matrix, rows.first, rows.last, columns.first, columns.last, writes};
  }
  [[nodiscard]] static Access right_access(BlockRange rows, bool writes) { return {Array::right, rows.first, rows.last, 0, 1, writes}; }
  [[nodiscard]] Access whole(int array, bool writes) const { return {array + (array < Array::panel ? 0 : static_cast<int>(slot()) * Array::count), 0, 1, 0, 1, writes}; }
  /// Columns of new, old or U's rows.
  [[nodiscard]] Access columns_access(int array, BlockRange columns, bool writes) const {
    return {array + static_cast<int>(slot()) * Array::count, 0, 1, columns.first, columns.last, writes};
  }
  [[nodiscard]] BlockRange right_columns() const { return {layout_.W, layout_.W + 1}; }
  [[nodiscard]] BlockRange with_right(BlockRange columns) const {
    if (of_.right != nullptr) columns.last = layout_.W + 1;
    return columns;
  }

  std::string label(std::string_view text) const { return fmt::format("{} {}", text, k_); }

  // ---- Step 1: the panel ----
  void factor(std::int64_t of) {
    const std::int64_t present = k_;
    k_ = of;
    const BlockRange column{w(), w() + 1};
    const Region own = writer_.blocks(of_.matrix, below(), column);
    const Region gathered = with(in_slot(panel_, slot()), 1, span(0, below().count()));
    const std::vector<Access> gather{matrix_access(below(), column, false), whole(Array::panel, true)};
    if (R_ > 1)
      writer_.collective(label("gather panel"), {CollectiveKind::all_gather, layout_.problem.rows, own, gathered, 2}, writer_.column(c()), gather);
    else
      writer_.add(label("panel"), Local{LocalKind::alias, {own}, {gathered}, 1, Unit::dma}, writer_.column(c()), gather);
    Local getrf{LocalKind::getrf_panel, {gathered}, {gathered, in_slot(index_, slot())}};
    getrf.splits = {4, 4, 2};
    getrf.numbering = {{Affine{q() * R_ * b_}}, {Affine{k_ * b_}}};
    writer_.add(label("factor panel"), std::move(getrf), writer_.column(c()), {whole(Array::panel, true), whole(Array::index, true)});
    k_ = present;
  }

  // ---- Step 2: pivots and the own rows of L go along the columns' axes ----
  void spread() {
    const Region own = with(with(in_slot(panel_, slot()), 1, span(0, below().count())), 2, block(BlockCyclicWriter::position(layout_.problem.rows), 1));
    const Region rows = with(in_slot(lower_, slot()), 1, span(0, below().count()));
    const std::vector<Access> accesses{whole(Array::panel, false), whole(Array::lower, true)};
    if (C_ > 1) {
      const Region pivots_of_panel = in_slot(index_, slot());
      broadcast("pivots", layout_.problem.columns, pivots_of_panel, pivots_of_panel, c(), {whole(Array::index, true)});
      broadcast("L", layout_.problem.columns, own, rows, c(), accesses);
    } else {
      writer_.add(label("L"), Local{LocalKind::alias, {own}, {rows}, 1, Unit::dma}, writer_.everywhere(), accesses);
    }
    if (of_.pivots == nullptr) return;
    Local swap{LocalKind::swap_rows, {*of_.pivots, index_row(0)}, {*of_.pivots}};
    swap.numbering = {{Affine{0}}, {Affine{k_ * b_}}};
    writer_.add(label("swap P"), std::move(swap), writer_.everywhere(), {whole(Array::index, false), whole(Array::pivots, true)});
  }

  void broadcast(std::string_view text, const std::vector<AxisView>& axes, const Region& from, const Region& to, int root, const std::vector<Access>& accesses) {
    Collective collective{CollectiveKind::broadcast, axes, from, to, 0};
    collective.root = root;
    writer_.collective(label(text), std::move(collective), writer_.everywhere(), accesses);
  }

  // ---- Step 3: rows are exchanged along the rows' axes ----
  void exchange() {
    if (R_ == 1) return swap_own();
    gather_new();
    send_old();
    Collective reduce{CollectiveKind::reduce, layout_.problem.rows, wide_from(mine_, exchanged().first), wide_from(fresh_, exchanged().first), 0};
    reduce.root = r();
    writer_.collective(label("new rows"), std::move(reduce), writer_.everywhere(),
                       {columns_access(Array::mine, with_right(exchanged()), true), columns_access(Array::fresh, with_right(exchanged()), true)});
    pick_old();
    const BlockRange row{q(), q() + 1};
    writer_.add(label("keep new rows"), copy(wide(fresh_, exchanged()), writer_.blocks(of_.matrix, row, exchanged())), writer_.row(r()),
                {columns_access(Array::fresh, exchanged(), false), matrix_access(row, exchanged(), true)});
    if (of_.right != nullptr)
      writer_.add(label("keep new rows of b"), copy(wide_right(fresh_), writer_.rows_of(*of_.right, row)), writer_.row(r()),
                  {columns_access(Array::fresh, right_columns(), false), right_access(row, true)});
  }

  /// One device has all rows.
  void swap_own() {
    const auto swap = [&](std::string_view text, const Region& rows, const Access& access) {
      Local local{LocalKind::swap_rows, {rows, index_row(0)}, {rows}};
      local.splits = {3, 0, 3};
      local.numbering = {{Affine{q() * b_}}, {Affine{k_ * b_}}};
      writer_.add(label(text), std::move(local), writer_.everywhere(), {whole(Array::index, false), access});
    };
    swap("swap rows", writer_.blocks(of_.matrix, below(), exchanged()), matrix_access(below(), exchanged(), true));
    if (of_.right != nullptr) swap("swap rows of b", writer_.rows_of(*of_.right, below()), right_access(below(), true));
  }

  /// What every device has of the rows that come to block row k.
  void gather_new() {
    const auto gather = [&](std::string_view text, const Region& from, const Region& to, const Access& read, BlockRange columns) {
      Local local{LocalKind::gather_rows, {from, index_row(1)}, {to}, static_cast<double>(layout_.n)};
      local.splits = {3, 0, 2};
      local.numbering = {writer_.rows_from(q())};
      writer_.add(label(text), std::move(local), writer_.everywhere(), {read, whole(Array::index, false), columns_access(Array::mine, columns, true)});
    };
    gather("own new rows", writer_.blocks(of_.matrix, below(), exchanged()), wide(mine_, exchanged()), matrix_access(below(), exchanged(), false), exchanged());
    if (of_.right != nullptr) gather("own new rows of b", writer_.rows_of(*of_.right, below()), wide_right(mine_), right_access(below(), false), right_columns());
  }

  /// Block row k as it is goes to all.
  void send_old() {
    const BlockRange row{q(), q() + 1};
    const Region from = writer_.blocks(of_.matrix, row, exchanged());
    if (of_.right == nullptr)
      return broadcast("old rows", layout_.problem.rows, from, wide(old_, exchanged()), r(),
                       {matrix_access(row, exchanged(), false), columns_access(Array::old, exchanged(), true)});
    writer_.add(label("join old rows"), copy(from, wide(old_, exchanged())), writer_.row(r()),
                {matrix_access(row, exchanged(), false), columns_access(Array::old, exchanged(), true)});
    writer_.add(label("join old rows of b"), copy(writer_.rows_of(*of_.right, row), wide_right(old_)), writer_.row(r()),
                {right_access(row, false), columns_access(Array::old, right_columns(), true)});
    const Region all_columns = wide_from(old_, exchanged().first);
    broadcast("old rows", layout_.problem.rows, all_columns, all_columns, r(), {columns_access(Array::old, with_right(exchanged()), true)});
  }

  /// Every device picks the old rows that land in its own.
  void pick_old() {
    const auto scatter = [&](std::string_view text, const Region& rows, const Region& from, const Access& access, BlockRange columns) {
      Local local{LocalKind::scatter_rows, {rows, from, index_row(2)}, {rows}, static_cast<double>(layout_.n)};
      local.splits = {3, 2, 0, 3};
      local.numbering = {writer_.rows_from(q())};
      writer_.add(label(text), std::move(local), writer_.everywhere(), {whole(Array::index, false), columns_access(Array::old, columns, false), access});
    };
    scatter("pick old rows", writer_.blocks(of_.matrix, below(), exchanged()), wide(old_, exchanged()), matrix_access(below(), exchanged(), true), exchanged());
    if (of_.right != nullptr) scatter("pick old rows of b", writer_.rows_of(*of_.right, below()), wide_right(old_), right_access(below(), true), right_columns());
  }

  static Local copy(Region from, Region to) { return {LocalKind::copy, {std::move(from)}, {std::move(to)}}; }

  /// The panel's columns come from the factored panel: their rows were exchanged there.
  void keep_panel() {
    const BlockRange column{w(), w() + 1};
    const Region rows = with(in_slot(lower_, slot()), 1, span(0, below().count()));
    writer_.add(label("keep panel"), copy(rows, writer_.blocks(of_.matrix, below(), column)), writer_.column(c()),
                {whole(Array::lower, false), matrix_access(below(), column, true)});
  }

  // ---- Step 4: block row k of U ----
  /// Devices whose columns from `first` on (a number of a block column of the matrix) begin at their own block `from`: a pair.
  struct Columns {
    DeviceBox devices;
    BlockRange range;
  };
  [[nodiscard]] std::vector<Columns> columns_of(BlockRange blocks) const {
    const auto split = static_cast<int>(blocks.first % C_);
    const std::int64_t at = blocks.first / C_;
    if (blocks.count() == 1) return {{{0, layout_.R, split, split + 1}, {at, at + 1}}};
    return {{{0, layout_.R, split, layout_.C}, {at, layout_.W}}, {{0, layout_.R, 0, split}, {at + 1, layout_.W}}};
  }
  [[nodiscard]] static DeviceBox meet(DeviceBox a, const DeviceBox& b) {
    return {std::max(a.first_row, b.first_row), std::min(a.last_row, b.last_row), std::max(a.first_column, b.first_column),
            std::min(a.last_column, b.last_column)};
  }

  void solve_row() {
    const BlockRange row{q(), q() + 1};
    const Region diagonal = with(in_slot(lower_, slot()), 1, span(0, 1));
    const auto solve = [&](std::string_view text, const Region& rows, const DeviceBox& devices, const Access& access) {
      Local trsm{LocalKind::trsm_lower, {diagonal, rows}, {rows}};
      trsm.splits = {3, 3, 3};
      writer_.add(label(text), std::move(trsm), devices, {whole(Array::lower, false), access});
    };
    const auto negate = [&](std::string_view text, const Region& from, const Region& to, const Access& read, BlockRange columns) {
      writer_.add(label(text), Local{LocalKind::scale, {from}, {to}, -1}, writer_.row(r()), {read, columns_access(Array::upper, columns, true)});
    };
    const BlockRange columns = spread_columns();
    if (k_ + 1 < layout_.K)
      for (const Columns& part : columns_of({k_ + 1, layout_.W * C_}))
        if (part.range.count() > 0)
          solve("U", writer_.blocks(of_.matrix, row, part.range), meet(part.devices, writer_.row(r())), matrix_access(row, part.range, true));
    if (of_.right != nullptr) solve("solve b", writer_.rows_of(*of_.right, row), writer_.row(r()), right_access(row, true));
    if (columns.count() > 0) negate("-U", writer_.blocks(of_.matrix, row, columns), wide(upper_, columns), matrix_access(row, columns, false), columns);
    if (k_ + 1 == layout_.K) return;
    if (of_.right != nullptr) negate("-b", writer_.rows_of(*of_.right, row), wide_right(upper_), right_access(row, false), right_columns());
    if (R_ == 1 || with_right(columns).count() == 0) return;
    const Region sent = wide_from(upper_, columns.first);
    broadcast("-U", layout_.problem.rows, sent, sent, r(), {columns_access(Array::upper, with_right(columns), true)});
  }

  // ---- Step 5: A22 -= L21 U12 ----
  void update_next() {
    for (const Rows& rows : rows_below())
      if (k_ + 1 < layout_.K) update("update next panel", rows, {k_ + 1, k_ + 2});
  }
  void update_rest() {
    for (const Rows& rows : rows_below()) {
      if (k_ + 2 < layout_.K) update("update", rows, {k_ + 2, layout_.W * C_});
      if (of_.right != nullptr)
        product("update b", rows, wide_right(upper_), writer_.rows_of(*of_.right, rows.range), rows.devices, right_columns(), right_access(rows.range, true));
    }
  }

  /// Devices and their rows of blocks below block row k: a pair as well.
  struct Rows {
    DeviceBox devices;
    BlockRange range;
  };
  [[nodiscard]] std::vector<Rows> rows_below() const {
    const auto split = static_cast<int>((k_ + 1) % R_);
    const std::int64_t at = (k_ + 1) / R_;
    std::vector<Rows> pair{{{split, layout_.R, 0, layout_.C}, {at, layout_.Q}}, {{0, split, 0, layout_.C}, {at + 1, layout_.Q}}};
    std::erase_if(pair, [&](const Rows& rows) { return k_ + 1 >= layout_.K || rows.range.count() == 0 || rows.devices.empty(); });
    return pair;
  }

  void update(std::string_view text, const Rows& rows, BlockRange columns) {
    for (const Columns& part : columns_of(columns))
      if (part.range.count() > 0)
        product(text, rows, wide(upper_, part.range), writer_.blocks(of_.matrix, rows.range, part.range), meet(rows.devices, part.devices), part.range,
                matrix_access(rows.range, part.range, true));
  }

  void product(std::string_view text, const Rows& rows, const Region& u, const Region& out, const DeviceBox& devices, BlockRange columns, const Access& access) {
    const Region l = with(in_slot(lower_, slot()), 1, span(rows.range.first - q(), rows.range.count()));
    Matmul matmul{l, u, out, 3, 2, 3};
    matmul.accumulate = true;
    writer_.add(label(text), std::move(matmul), devices, {whole(Array::lower, false), columns_access(Array::upper, columns, false), access});
  }

  BlockCyclicWriter& writer_;
  ProgramBuilder& builder_;
  const LuLayout& layout_;
  Operands of_;
  std::int64_t R_, C_, b_;
  std::int64_t k_ = 0;
  Region panel_, index_, lower_, mine_, fresh_, old_, upper_;
};

/// U x = y, from the last block row up: x in the place of y.
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
      const int second = k % 2 == 0 ? 0 : Array::count;
      const Access u{Array::above + second, 0, 1, 0, 1, false}, minus{Array::negated + second, 0, 1, 0, 1, false};
      const BlockRange upto{0, q + 1}, row{q, q + 1}, column{w, w + 1};
      const Region slot = with(above_, 0, span(k % 2, 1)), rows = with(slot, 1, span(0, q + 1));
      const Region from = writer_.blocks(packed_, upto, column), own = writer_.rows_of(x_, row), sent = with(negated_, 0, span(k % 2, 1));
      const std::vector<Access> reads{{Array::matrix, 0, q + 1, w, w + 1, false}, written(u)};
      if (layout_.C > 1)
        broadcast(fmt::format("column of U {}", k), layout_.problem.columns, from, rows, c, reads);
      else
        writer_.add(fmt::format("column of U {}", k), Local{LocalKind::alias, {from}, {rows}, 1, Unit::dma}, writer_.everywhere(), reads);
      Local trsm{LocalKind::trsm_upper, {with(slot, 1, span(q, 1)), own}, {own}};
      trsm.splits = {3, 3, 3};
      writer_.add(fmt::format("x {}", k), std::move(trsm), writer_.row(r), {u, {Array::right, q, q + 1, 0, 1, true}});
      if (k == 0) break;
      writer_.add(fmt::format("-x {}", k), Local{LocalKind::scale, {own}, {sent}, -1}, writer_.row(r), {{Array::right, q, q + 1, 0, 1, false}, written(minus)});
      if (layout_.R > 1) broadcast(fmt::format("-x {}", k), layout_.problem.rows, sent, sent, r, {written(minus)});
      for (const auto& [devices, count] : {std::pair{DeviceBox{0, r, 0, layout_.C}, q + 1}, std::pair{DeviceBox{r, layout_.R, 0, layout_.C}, q}}) {
        if (count == 0) continue;
        Matmul matmul{with(slot, 1, span(0, count)), sent, writer_.rows_of(x_, {0, count}), 3, 2, 3};
        matmul.accumulate = true;
        writer_.add(fmt::format("substitute {}", k), std::move(matmul), devices, {u, minus, {Array::right, 0, count, 0, 1, true}});
      }
    }
  }

 private:
  void broadcast(const std::string& label, const std::vector<AxisView>& axes, const Region& from, const Region& to, int root, const std::vector<Access>& accesses) {
    Collective collective{CollectiveKind::broadcast, axes, from, to, 0};
    collective.root = root;
    writer_.collective(label, std::move(collective), writer_.everywhere(), accesses);
  }

  BlockCyclicWriter& writer_;
  const LuLayout& layout_;
  Region packed_, x_, above_, negated_;
  std::int64_t b_;
};

Access every_block(const LuLayout& layout) { return {Array::matrix, 0, layout.Q, 0, layout.W, false}; }
Access every_row(const LuLayout& layout) { return {Array::right, 0, layout.Q, 0, 1, false}; }

}  // namespace

LuOutputs add_lu(ProgramBuilder& builder, const LuLayout& layout, const Region& a, const Tasks& after) {
  BlockCyclicWriter writer{builder, layout, after};
  LuOutputs outputs;
  outputs.packed = builder.whole(builder.add_buffer(layout.matrix_buffer("LU", Role::scratch)));
  outputs.pivots = builder.whole(builder.add_buffer(layout.pivots_buffer("pivots", Role::scratch)));
  writer.add("A", Local{LocalKind::alias, {a}, {outputs.packed}, 1, Unit::dma}, writer.everywhere(), {written(every_block(layout))});
  const Access whole_p{Array::pivots, 0, 1, 0, 1, false};
  writer.add("rows as they are", Local{LocalKind::iota, {}, {outputs.pivots}}, writer.everywhere(), {written(whole_p)});
  Factorisation{writer, {outputs.packed, nullptr, &outputs.pivots}}.run();
  outputs.tasks = writer.complete({every_block(layout), whole_p});
  return outputs;
}

Tasks add_triangles(ProgramBuilder& builder, const LuLayout& layout, const Region& packed, const Region& lower, const Region& upper, const Tasks& after) {
  const BlockCyclicWriter writer{builder, layout, {}};
  const auto triangle = [&](std::string_view label, LocalKind kind, const Region& to) {
    Local local{kind, {packed}, {to}};
    local.splits = {3, 3};
    local.numbering = {writer.rows_from(0), writer.columns_from(0)};
    return builder.add(std::string{label}, std::move(local), after);
  };
  const TaskId l = triangle("L", LocalKind::lower_triangle, lower), u = triangle("U", LocalKind::upper_triangle, upper);
  return {l, u};
}

Tasks add_solve(ProgramBuilder& builder, const LuLayout& layout, const Region& a, const Region& b, const Region& x, const Tasks& after) {
  BlockCyclicWriter writer{builder, layout, after};
  const Region packed = builder.whole(builder.add_buffer(layout.matrix_buffer("LU", Role::scratch)));
  writer.add("A", Local{LocalKind::alias, {a}, {packed}, 1, Unit::dma}, writer.everywhere(), {written(every_block(layout))});
  writer.add("b", Local{LocalKind::alias, {b}, {x}, 1, Unit::dma}, writer.everywhere(), {written(every_row(layout))});
  Factorisation{writer, {packed, &x, nullptr}}.run();
  Substitution{writer, packed, x}.run();
  return writer.complete({every_row(layout)});
}

}  // namespace podsim
