// The block-cyclic factorisation, step by step as in README.md.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "algorithms/lu/writer.hpp"

namespace podsim {

namespace {

/// What is factored: the packed matrix, b if it takes part, and P unless nobody asks.
struct Operands {
  Region matrix;
  const Region* right = nullptr;
  const Region* pivots = nullptr;
};

/// Devices and their own columns of blocks.
struct DeviceColumns {
  DeviceBox devices;
  BlockRange range;
};
/// Devices and their own rows of blocks.
struct DeviceRows {
  DeviceBox devices;
  BlockRange range;
};

/// A part of a step: all columns, or first the next panel's, then the rest. Collectives take `columns` of all `devices`.
struct StepPart {
  std::string_view suffix;  // of labels
  DeviceBox devices;
  BlockRange columns;                  // exchanged along the rows' axes
  std::vector<DeviceColumns> written;  // those of them that change in the matrix
  std::vector<BlockRange> solved;      // numbers of block columns of the matrix that become U
  BlockRange spread;                   // the columns of U that go along the rows' axes. On some devices the first one is no part of U
  bool right = false;                  // b takes part
};

DeviceBox meet(const DeviceBox& a, const DeviceBox& b) {
  return {std::max(a.first_row, b.first_row), std::min(a.last_row, b.last_row), std::max(a.first_column, b.first_column),
          std::min(a.last_column, b.last_column)};
}

class Factorisation {
 public:
  Factorisation(BlockCyclicWriter& writer, const Operands& operands)
      : writer_{writer}, layout_{writer.layout()}, of_{operands}, R_{layout_.R}, C_{layout_.C}, b_{layout_.b} {
    const std::int64_t width = layout_.W * b_ + (of_.right != nullptr ? layout_.m : 0);
    panel_ = scratch("panel", {layout_.Q, R_, b_, b_});
    if (last_rows() > 0) gathered_ = scratch("gathered panel", {layout_.Q, R_, b_, b_});
    index_ = scratch("index", {3, b_}, DType::s32);
    lower_ = scratch("L", {layout_.Q, b_, b_});
    upper_ = scratch("-U", {b_, width});
    if (R_ == 1) return;
    mine_ = scratch("own new rows", {b_, width});
    fresh_ = scratch("new rows", {b_, width});
    old_ = scratch("old rows", {b_, width});
  }

  void run() {
    factor(0);
    for (k_ = 0; k_ < layout_.K; ++k_) {
      const bool more = k_ + 1 < layout_.K, ahead = more && layout_.problem.look_ahead == 1;
      if (R_ > 1) send_old();
      spread();
      if (ahead) {
        bring_rows(next_panel());
        update_next();
        factor(k_ + 1);
      }
      bring_rows(ahead ? rest() : all_columns());
      keep_panel();
      if (more && !ahead) update_next();
      update_rest();
      if (more && !ahead) factor(k_ + 1);
    }
  }

 private:
  // ---- Where block k stands ----
  [[nodiscard]] int r() const { return static_cast<int>(k_ % R_); }
  [[nodiscard]] int c() const { return static_cast<int>(k_ % C_); }
  [[nodiscard]] std::int64_t q() const { return k_ / R_; }
  [[nodiscard]] std::int64_t w() const { return k_ / C_; }
  [[nodiscard]] BlockRange below() const { return {q(), layout_.Q}; }  // every device's rows of a panel
  [[nodiscard]] std::int64_t slot() const { return k_ % 2; }

  // Where R does not divide K, the last row of blocks is padding on devices from last_rows() on. Once the panel begins at such a device, every device
  // has one row less to gather than Q - q: those before last_rows() have finished theirs of row q, the others have none in row Q - 1.
  [[nodiscard]] int last_rows() const { return layout_.problem.rows.size() == 1 ? static_cast<int>(layout_.K % R_) : 0; }
  [[nodiscard]] bool is_short() const { return last_rows() > 0 && r() >= last_rows(); }
  [[nodiscard]] std::int64_t panel_rows() const { return below().count() - (is_short() ? 1 : 0); }
  /// A device's rows of the panel, of an array whose row `first` is its row q. Of a short one 1 is added before last_rows(): R (R [r < last_rows()])
  /// mod (R + 1).
  [[nodiscard]] Range panel_range(std::int64_t first) const {
    if (!is_short()) return span(first, panel_rows());
    const AxisView& view = layout_.problem.rows.front();
    const std::int64_t t = last_rows();
    return {Affine{{AxisTerm{view, R_, -t}, AxisTerm{view, -R_}}, R_ * t, R_ + 1}, 1, first, panel_rows()};
  }
  /// The columns that step k exchanges: those left of the panel are L, which a solution does not need.
  [[nodiscard]] BlockRange exchanged() const { return {of_.right == nullptr ? 0 : w(), layout_.W}; }
  /// Every device's columns that may be among the block columns from this number on.
  [[nodiscard]] BlockRange columns_from(std::int64_t number) const { return {number < layout_.K ? number / C_ : layout_.W, layout_.W}; }

  [[nodiscard]] StepPart all_columns() const {
    return {"",
            writer_.everywhere(),
            exchanged(),
            {{writer_.everywhere(), exchanged()}},
            {{k_ + 1, k_ + 2}, {k_ + 2, layout_.K}},
            columns_from(k_ + 1),
            of_.right != nullptr};
  }
  [[nodiscard]] StepPart next_panel() const {
    const DeviceColumns column = columns_of({k_ + 1, k_ + 2}).front();
    return {" of next panel", column.devices, column.range, {column}, {{k_ + 1, k_ + 2}}, column.range, false};
  }
  /// The next panel's column is exchanged again, as all devices exchange equally much, but not written.
  [[nodiscard]] StepPart rest() const {
    StepPart part = all_columns();
    const DeviceColumns next = columns_of({k_ + 1, k_ + 2}).front();
    part.written = {{{0, layout_.R, 0, next.devices.first_column}, exchanged()},
                    {{0, layout_.R, next.devices.last_column, layout_.C}, exchanged()},
                    {next.devices, {exchanged().first, next.range.first}},
                    {next.devices, {next.range.last, layout_.W}}};
    std::erase_if(part.written, [](const DeviceColumns& columns) { return columns.devices.empty() || columns.range.count() == 0; });
    part.solved = {{k_ + 2, layout_.K}};
    part.spread = columns_from(k_ + 2);
    return part;
  }
  /// Where block columns of the matrix stand, one or all from one on: devices up to a certain one begin one column of blocks later than the others.
  [[nodiscard]] std::vector<DeviceColumns> columns_of(BlockRange numbers) const {
    if (numbers.count() == 0) return {};
    const auto split = static_cast<int>(numbers.first % C_);
    const std::int64_t at = numbers.first / C_;
    if (numbers.count() == 1) return {{writer_.column(split), {at, at + 1}}};
    std::vector<DeviceColumns> pair{{{0, layout_.R, split, layout_.C}, {at, layout_.W}}, {{0, layout_.R, 0, split}, {at + 1, layout_.W}}};
    std::erase_if(pair, [](const DeviceColumns& columns) { return columns.devices.empty() || columns.range.count() == 0; });
    return pair;
  }
  /// The same of the rows below block row k. Without padding where L lacks it.
  [[nodiscard]] std::vector<DeviceRows> rows_below() const {
    const auto split = static_cast<int>((k_ + 1) % R_);
    const std::int64_t at = (k_ + 1) / R_;
    std::vector<DeviceRows> pair{{{split, layout_.R, 0, layout_.C}, {at, layout_.Q}}, {{0, split, 0, layout_.C}, {at + 1, layout_.Q}}};
    if (is_short()) {
      const int t = last_rows();
      pair = {{{r() + 1, layout_.R, 0, layout_.C}, {q(), layout_.Q - 1}},
              {{t, r() + 1, 0, layout_.C}, {q() + 1, layout_.Q - 1}},
              {{0, t, 0, layout_.C}, {q() + 1, layout_.Q}}};
    }
    std::erase_if(pair, [&](const DeviceRows& rows) { return k_ + 1 >= layout_.K || rows.devices.empty() || rows.range.count() == 0; });
    return pair;
  }

  // ---- Scratch ----
  Region scratch(const std::string& name, std::vector<std::int64_t> extents, DType dtype = DType::f32) {
    extents.insert(extents.begin(), std::min<std::int64_t>(2, layout_.K));
    return writer_.builder().scratch(name, std::move(extents), dtype);
  }
  [[nodiscard]] Region in_slot(const Region& region) const { return with(region, 0, span(slot(), 1)); }
  [[nodiscard]] Region index_row(std::int64_t row) const { return with(in_slot(index_), 1, span(row, 1)); }
  [[nodiscard]] Region own_lower(std::int64_t first, std::int64_t count) const { return with(in_slot(lower_), 1, span(first, count)); }
  /// Of rows [slots, b, width]: columns of the matrix, b behind them, or both from a column on.
  [[nodiscard]] Region wide(const Region& rows, BlockRange columns) const {
    return with(in_slot(rows), 2, span(columns.first * b_, columns.count() * b_));
  }
  [[nodiscard]] Region wide_right(const Region& rows) const { return with(in_slot(rows), 2, span(layout_.W * b_, layout_.m)); }
  [[nodiscard]] Region wide(const Region& rows, BlockRange columns, bool with_right) const {
    return with(in_slot(rows), 2, span(columns.first * b_, columns.count() * b_ + (with_right ? layout_.m : 0)));
  }

  // ---- AccessOrder ----
  [[nodiscard]] static BlockAccess matrix_access(BlockRange rows, BlockRange columns, bool writes) {
    return {LuArray::matrix, rows.first, rows.last, columns.first, columns.last, writes};
  }
  [[nodiscard]] static BlockAccess right_access(BlockRange rows, bool writes) { return {LuArray::right, rows.first, rows.last, 0, 1, writes}; }
  [[nodiscard]] int in_slot(int array) const { return array + static_cast<int>(slot()) * LuArray::count; }
  [[nodiscard]] BlockAccess whole(int array, bool writes) const { return {in_slot(array), 0, 1, 0, R_, writes}; }
  /// DeviceColumns of rows; b is one more column.
  [[nodiscard]] BlockAccess columns_access(int array, BlockRange columns, bool writes, bool with_right = false) const {
    return {in_slot(array), 0, 1, columns.first, columns.last + (with_right ? 1 : 0), writes};
  }
  [[nodiscard]] BlockRange right_columns() const { return {layout_.W, layout_.W + 1}; }

  [[nodiscard]] std::string label(std::string_view text, std::string_view suffix = "") const { return fmt::format("{}{} {}", text, suffix, k_); }

  // ---- Step 1: the panel ----
  void factor(std::int64_t of) {
    const std::int64_t present = k_;
    k_ = of;
    gather_panel();
    const Region panel = rows_of_panel(panel_);
    Local getrf{LocalKind::getrf_panel, {panel}, {panel, in_slot(index_)}};
    getrf.splits = {4, 4, 2};
    getrf.numbering = {{Affine{(q() * R_ + (is_short() ? last_rows() : 0)) * b_}}, {Affine{k_ * b_}}};
    writer_.add(label("factor panel"), std::move(getrf), writer_.column(c()), {whole(LuArray::panel, true), whole(LuArray::index, true)});
    k_ = present;
  }

  [[nodiscard]] Region rows_of_panel(const Region& panel) const { return with(in_slot(panel), 1, span(0, panel_rows())); }

  void gather_panel() {
    const BlockRange column{w(), w() + 1};
    const Region own = with(writer_.blocks(of_.matrix, below(), column), 0, panel_range(q()));
    const BlockAccess read = matrix_access(below(), column, false);
    if (R_ == 1)
      return writer_.add(label("panel"), Local{LocalKind::alias, {own}, {rows_of_panel(panel_)}, 1, Unit::dma}, writer_.column(c()),
                         {read, whole(LuArray::panel, true)});
    const int to = is_short() ? LuArray::gathered : LuArray::panel;
    const Region gathered = rows_of_panel(is_short() ? gathered_ : panel_);
    writer_.collective(label("gather panel"), {CollectiveKind::all_gather, layout_.problem.rows, own, gathered, 2}, writer_.column(c()),
                       {read, whole(to, true)});
    if (!is_short()) return;
    const std::int64_t t = last_rows();  // the rows of devices from t on come first
    for (const auto& [from, first, count] : {std::tuple{t, std::int64_t{0}, R_ - t}, std::tuple{std::int64_t{0}, R_ - t, t}})
      writer_.add(label("order panel"), copied(with(gathered, 2, span(from, count)), with(rows_of_panel(panel_), 2, span(first, count))),
                  writer_.column(c()), {whole(LuArray::gathered, false), {in_slot(LuArray::panel), 0, 1, first, first + count, true}});
  }

  // ---- Step 2: pivots and the own rows of L go along the columns' axes ----
  void spread() {
    Affine position = BlockCyclicWriter::position(layout_.problem.rows);
    if (is_short()) position.terms.front().add = -last_rows();
    const Region own = with(rows_of_panel(panel_), 2, block(std::move(position), 1)), pivots = in_slot(index_);
    const Region rows = with(in_slot(lower_), 1, panel_range(0));
    const std::vector<BlockAccess> accesses{whole(LuArray::panel, false), whole(LuArray::lower, true)};
    if (C_ > 1) {
      writer_.broadcast(label("pivots"), layout_.problem.columns, pivots, pivots, c(), writer_.everywhere(), {whole(LuArray::index, true)});
      writer_.broadcast(label("L"), layout_.problem.columns, own, rows, c(), writer_.everywhere(), accesses);
    } else {
      writer_.add(label("L"), Local{LocalKind::alias, {own}, {rows}, 1, Unit::dma}, writer_.everywhere(), accesses);
    }
    if (of_.pivots == nullptr) return;
    Local swap{LocalKind::swap_rows, {*of_.pivots, index_row(0)}, {*of_.pivots}};
    swap.numbering = {{Affine{0}}, {Affine{k_ * b_}}};
    writer_.add(label("swap P"), std::move(swap), writer_.everywhere(), {whole(LuArray::index, false), {LuArray::pivots, 0, 1, 0, 1, true}});
  }

  /// Steps 3 and 4.
  void bring_rows(const StepPart& part) {
    if (R_ == 1)
      swap_own(part);
    else
      exchange(part);
    solve_rows(part);
    spread_rows(part);
  }

  // ---- Step 3: rows are exchanged along the rows' axes ----
  void exchange(const StepPart& part) {
    gather_new(part);
    Collective reduce{CollectiveKind::reduce, layout_.problem.rows, wide(mine_, part.columns, part.right), wide(fresh_, part.columns, part.right), 0};
    reduce.root = r();
    writer_.collective(
        label("new rows", part.suffix), std::move(reduce), part.devices,
        {columns_access(LuArray::mine, part.columns, true, part.right), columns_access(LuArray::fresh, part.columns, true, part.right)});
    pick_old(part);
    const BlockRange row{q(), q() + 1};
    for (const DeviceColumns& columns : part.written)
      writer_.add(label("keep new rows", part.suffix), copied(wide(fresh_, columns.range), writer_.blocks(of_.matrix, row, columns.range)),
                  meet(columns.devices, writer_.row(r())),
                  {columns_access(LuArray::fresh, columns.range, false), matrix_access(row, columns.range, true)});
    if (part.right)
      writer_.add(label("keep new rows of b"), copied(wide_right(fresh_), writer_.rows_of(*of_.right, row)), writer_.row(r()),
                  {columns_access(LuArray::fresh, right_columns(), false), right_access(row, true)});
  }

  /// One device has all rows of its columns.
  void swap_own(const StepPart& part) {
    const auto swap = [&](std::string_view text, const Region& rows, const DeviceBox& devices, const BlockAccess& access) {
      Local local{LocalKind::swap_rows, {rows, index_row(0)}, {rows}};
      local.splits = {3, 0, 3};
      local.numbering = {{Affine{q() * b_}}, {Affine{k_ * b_}}};
      writer_.add(label(text, part.suffix), std::move(local), devices, {whole(LuArray::index, false), access});
    };
    for (const DeviceColumns& columns : part.written)
      swap("swap rows", writer_.blocks(of_.matrix, below(), columns.range), columns.devices, matrix_access(below(), columns.range, true));
    if (part.right) swap("swap rows of b", writer_.rows_of(*of_.right, below()), writer_.everywhere(), right_access(below(), true));
  }

  /// What every device has of the rows that come to block row k.
  void gather_new(const StepPart& part) {
    const auto gather = [&](std::string_view text, const Region& from, const Region& to, const BlockAccess& read, BlockRange columns) {
      Local local{LocalKind::gather_rows, {from, index_row(1)}, {to}, static_cast<double>(layout_.n)};
      local.splits = {3, 0, 2};
      local.numbering = {writer_.rows_from(q())};
      writer_.add(label(text, part.suffix), std::move(local), part.devices,
                  {read, whole(LuArray::index, false), columns_access(LuArray::mine, columns, true)});
    };
    gather("own new rows", writer_.blocks(of_.matrix, below(), part.columns), wide(mine_, part.columns), matrix_access(below(), part.columns, false),
           part.columns);
    if (part.right)
      gather("own new rows of b", writer_.rows_of(*of_.right, below()), wide_right(mine_), right_access(below(), false), right_columns());
  }

  /// Block row k as it is goes to all. That needs no pivots, so it runs beside the factorisation of the panel.
  void send_old() {
    const BlockRange row{q(), q() + 1};
    const bool with_b = of_.right != nullptr;
    const Region from = writer_.blocks(of_.matrix, row, exchanged()), to = wide(old_, exchanged(), with_b);
    const BlockAccess read = matrix_access(row, exchanged(), false), write = columns_access(LuArray::old, exchanged(), true, with_b);
    if (!with_b) return writer_.broadcast(label("old rows"), layout_.problem.rows, from, to, r(), writer_.everywhere(), {read, write});
    writer_.add(label("join old rows"), copied(from, wide(old_, exchanged())), writer_.row(r()),
                {read, columns_access(LuArray::old, exchanged(), true)});
    writer_.add(label("join old rows of b"), copied(writer_.rows_of(*of_.right, row), wide_right(old_)), writer_.row(r()),
                {right_access(row, false), columns_access(LuArray::old, right_columns(), true)});
    writer_.broadcast(label("old rows"), layout_.problem.rows, to, to, r(), writer_.everywhere(), {write});
  }

  /// Every device picks the old rows that land in its own.
  void pick_old(const StepPart& part) {
    const auto scatter = [&](std::string_view text, const Region& rows, const Region& from, const DeviceBox& devices, const BlockAccess& access,
                             BlockRange columns) {
      Local local{LocalKind::scatter_rows, {rows, from, index_row(2)}, {rows}, static_cast<double>(layout_.n)};
      local.splits = {3, 2, 0, 3};
      local.numbering = {writer_.rows_from(q())};
      writer_.add(label(text, part.suffix), std::move(local), devices,
                  {whole(LuArray::index, false), columns_access(LuArray::old, columns, false), access});
    };
    for (const DeviceColumns& columns : part.written)
      scatter("pick old rows", writer_.blocks(of_.matrix, below(), columns.range), wide(old_, columns.range), columns.devices,
              matrix_access(below(), columns.range, true), columns.range);
    if (part.right)
      scatter("pick old rows of b", writer_.rows_of(*of_.right, below()), wide_right(old_), writer_.everywhere(), right_access(below(), true),
              right_columns());
  }

  static Local copied(Region from, Region to) { return {LocalKind::copy, {std::move(from)}, {std::move(to)}}; }

  /// The panel's own columns come from the factored panel: their rows were exchanged there.
  void keep_panel() {
    const BlockRange column{w(), w() + 1};
    writer_.add(label("keep panel"),
                copied(with(in_slot(lower_), 1, panel_range(0)), with(writer_.blocks(of_.matrix, below(), column), 0, panel_range(q()))),
                writer_.column(c()), {whole(LuArray::lower, false), matrix_access(below(), column, true)});
  }

  // ---- Step 4: block row k of U, and its negative for all rows ----
  void solve_rows(const StepPart& part) {
    const BlockRange row{q(), q() + 1};
    const auto solve = [&](std::string_view text, const Region& rows, const DeviceBox& devices, const BlockAccess& access) {
      Local trsm{LocalKind::trsm_lower, {own_lower(0, 1), rows}, {rows}};
      trsm.splits = {3, 3, 3};
      writer_.add(label(text, part.suffix), std::move(trsm), meet(devices, writer_.row(r())), {whole(LuArray::lower, false), access});
    };
    for (const BlockRange& numbers : part.solved)
      if (numbers.first < layout_.K)
        for (const DeviceColumns& columns : columns_of(numbers))
          solve("U", writer_.blocks(of_.matrix, row, columns.range), columns.devices, matrix_access(row, columns.range, true));
    if (part.right) solve("solve b", writer_.rows_of(*of_.right, row), writer_.everywhere(), right_access(row, true));
  }

  void spread_rows(const StepPart& part) {
    if (k_ + 1 == layout_.K) return;  // nothing is below
    const BlockRange row{q(), q() + 1};
    const auto negate = [&](std::string_view text, const Region& from, const Region& to, const BlockAccess& read, BlockRange columns) {
      writer_.add(label(text, part.suffix), Local{LocalKind::scale, {from}, {to}, -1}, meet(part.devices, writer_.row(r())),
                  {read, columns_access(LuArray::upper, columns, true)});
    };
    if (part.spread.count() > 0)
      negate("-U", writer_.blocks(of_.matrix, row, part.spread), wide(upper_, part.spread), matrix_access(row, part.spread, false), part.spread);
    if (part.right) negate("-b", writer_.rows_of(*of_.right, row), wide_right(upper_), right_access(row, false), right_columns());
    if (R_ == 1 || (part.spread.count() == 0 && !part.right)) return;
    const Region sent = wide(upper_, part.spread, part.right);
    writer_.broadcast(label("-U", part.suffix), layout_.problem.rows, sent, sent, r(), part.devices,
                      {columns_access(LuArray::upper, part.spread, true, part.right)});
  }

  // ---- Step 5: A22 -= L21 U12 ----
  void update_next() {
    for (const DeviceRows& rows : rows_below()) update("update next panel", rows, {k_ + 1, k_ + 2});
  }
  void update_rest() {
    for (const DeviceRows& rows : rows_below()) {
      update("update", rows, {k_ + 2, layout_.K});
      if (of_.right != nullptr)
        product("update b", rows, wide_right(upper_), writer_.rows_of(*of_.right, rows.range), rows.devices, right_columns(),
                right_access(rows.range, true));
    }
  }
  void update(std::string_view text, const DeviceRows& rows, BlockRange numbers) {
    for (const DeviceColumns& columns : columns_of(numbers))
      product(text, rows, wide(upper_, columns.range), writer_.blocks(of_.matrix, rows.range, columns.range), meet(rows.devices, columns.devices),
              columns.range, matrix_access(rows.range, columns.range, true));
  }
  void product(std::string_view text, const DeviceRows& rows, const Region& u, const Region& out, const DeviceBox& devices, BlockRange columns,
               const BlockAccess& access) {
    Matmul matmul{own_lower(rows.range.first - q(), rows.range.count()), u, out, 3, 2, 3};
    matmul.accumulate = true;
    writer_.add(label(text), std::move(matmul), devices, {whole(LuArray::lower, false), columns_access(LuArray::upper, columns, false), access});
  }

  BlockCyclicWriter& writer_;
  const LuLayout& layout_;
  Operands of_;
  std::int64_t R_, C_, b_;
  std::int64_t k_ = 0;
  Region panel_, gathered_, index_, lower_, mine_, fresh_, old_, upper_;
};

BlockAccess every_block(const LuLayout& layout) { return {LuArray::matrix, 0, layout.Q, 0, layout.W, false}; }
BlockAccess every_row(const LuLayout& layout) { return {LuArray::right, 0, layout.Q, 0, 1, false}; }

}  // namespace

LuOutputs add_lu(ProgramBuilder& builder, const LuLayout& layout, const Region& a, const Tasks& after) {
  BlockCyclicWriter writer{builder, layout, after};
  LuOutputs outputs;
  outputs.packed = builder.whole(builder.add_buffer(layout.matrix_buffer("LU", Role::scratch)));
  outputs.pivots = builder.whole(builder.add_buffer(layout.pivots_buffer("pivots", Role::scratch)));
  writer.add("A", Local{LocalKind::alias, {a}, {outputs.packed}, 1, Unit::dma}, writer.everywhere(), {write_of(every_block(layout))});
  const BlockAccess whole_p{LuArray::pivots, 0, 1, 0, 1, false};
  writer.add("rows as they are", Local{LocalKind::iota, {}, {outputs.pivots}}, writer.everywhere(), {write_of(whole_p)});
  Factorisation{writer, {outputs.packed, nullptr, &outputs.pivots}}.run();
  outputs.tasks = writer.complete({every_block(layout), whole_p});
  return outputs;
}

Tasks add_triangles(ProgramBuilder& builder, const LuLayout& layout, const Region& packed, const Region& lower, const Region& upper,
                    const Tasks& after) {
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
  writer.add("A", Local{LocalKind::alias, {a}, {packed}, 1, Unit::dma}, writer.everywhere(), {write_of(every_block(layout))});
  writer.add("b", Local{LocalKind::alias, {b}, {x}, 1, Unit::dma}, writer.everywhere(), {write_of(every_row(layout))});
  Factorisation{writer, {packed, &x, nullptr}}.run();
  substitute_back(writer, packed, x);
  return writer.complete({every_row(layout)});
}

}  // namespace podsim
