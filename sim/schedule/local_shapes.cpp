#include "sim/schedule/local_shapes.hpp"

#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <optional>

#include "sim/base/invariant.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

namespace {

using Lengths = std::vector<std::int64_t>;

std::string text_of(const Lengths& lengths) { return fmt::format("[{}]", fmt::join(lengths, ",")); }

}  // namespace

void OperandCheck::pair(const Region& a, const Region& b, std::string_view a_name, std::string_view b_name) {
  if (elements_of(a) != elements_of(b)) problem(fmt::format("{} has {} elements, {} has {}", a_name, elements_of(a), b_name, elements_of(b)));
  dtypes(a, b, a_name, b_name);
}

void OperandCheck::dtypes(const Region& a, const Region& b, std::string_view a_name, std::string_view b_name) {
  const DType of_a = program_.buffers[a.buffer.index()].dtype, of_b = program_.buffers[b.buffer.index()].dtype;
  if (of_a != of_b) problem(fmt::format("{} is {}, {} is {}", a_name, name_of(of_a), b_name, name_of(of_b)));
}

void OperandCheck::same(const Region& a, const Region& b, std::string_view a_name, std::string_view b_name) {
  const Lengths found = lengths_of(a), expected = lengths_of(b);
  if (found != expected) problem(fmt::format("{} is {}, {} is {}", a_name, text_of(found), b_name, text_of(expected)));
  dtypes(a, b, a_name, b_name);
}

void OperandCheck::dtype_among(const Region& region, unsigned dtypes, std::string_view name) {
  const DType found = program_.buffers[region.buffer.index()].dtype;
  if ((dtypes >> static_cast<int>(found) & 1U) != 0) return;
  std::string expected;
  for (int d = 0; d < dtype_count; ++d)
    if ((dtypes >> d & 1U) != 0) expected += (expected.empty() ? "" : " or ") + std::string{name_of(static_cast<DType>(d))};
  problem(fmt::format("{} is {}; expected {}", name, name_of(found), expected));
}

std::string lengths_text(const Region& region) { return text_of(lengths_of(region)); }

bool is_count(double number) { return number >= 1 && number <= 0x1p31 && number == std::floor(number); }

bool numberings_fit(const Local& local, OperandCheck& check, std::size_t most) {
  if (local.numbering.size() > most) {
    check.problem(fmt::format("{} numberings; expected at most {}", local.numbering.size(), most));
    return false;
  }
  for (const Numbering& numbering : local.numbering)
    if (numbering.block < 0 || numbering.apart < 1 || numbering.block > (std::int64_t{1} << 31) || numbering.apart > (std::int64_t{1} << 24)) {
      check.problem(fmt::format("blocks of {} rows, {} blocks apart; expected positive numbers", numbering.block, numbering.apart));
      return false;
    }
  return true;
}

namespace shapes {

void counts_of_result(const Local& local, OperandCheck& check) {
  for (const Region& write : local.writes)
    for (const Region& read : local.reads) check.pair(read, write, "the read region", "the written region");
}

void counts_of_first(const Local& local, OperandCheck& check, std::span<const std::string_view> names) {
  PODSIM_ASSERT(names.size() == local.reads.size() + local.writes.size());
  for (std::size_t i = 1; i < names.size(); ++i)
    check.pair(local.reads.front(), i < local.reads.size() ? local.reads[i] : local.writes[i - local.reads.size()], names.front(), names[i]);
}

namespace {

/// x and sums of a norm whose N is at least `least`. False: nothing else can be compared with x.
bool norm_operands(const Local& local, OperandCheck& check, const Region& x, const Region& sums, bool sums_only = false) {
  if (x.dims.size() != 2) {
    check.problem(fmt::format("x has {} dimensions; expected {}", x.dims.size(), local.features_first ? "[features,tokens]" : "[tokens,features]"));
    return false;
  }
  const std::size_t feature_dim = local.features_first ? 0 : 1;
  const std::int64_t least = sums_only ? 1 : x.dims[feature_dim].length;  // sums do not depend on N
  if (!std::isfinite(local.factor) || local.factor < static_cast<double>(least))
    check.problem(fmt::format("a norm over {} features; expected at least {}", local.factor, least));
  Lengths one = lengths_of(x), two = one;
  one[feature_dim] = 1, two[feature_dim] = 2;
  const Lengths found = lengths_of(sums);
  if (found != one && found != two) check.problem(fmt::format("sums is {}; expected {} or {}", text_of(found), text_of(one), text_of(two)));
  return true;
}

void gradient_sums(OperandCheck& check, const Region& gradient, const Region& sums) {
  if (lengths_of(gradient) != lengths_of(sums))
    check.problem(fmt::format("the sums of the gradient are {}, sums is {}", text_of(lengths_of(gradient)), text_of(lengths_of(sums))));
}

/// `o` is o or its gradient.
void attention_operands(const Local& local, OperandCheck& check, const Region& qkv, std::string_view o_name, const Region& o) {
  if (qkv.dims.size() != 5)
    return check.problem(fmt::format("qkv has {} dimensions; expected {}", qkv.dims.size(),
                                     local.features_first ? "[groups,q+2,head,sequences,sequence]" : "[sequences,sequence,groups,q+2,head]"));
  const std::size_t q_dim = local.features_first ? 1 : 3;
  if (qkv.dims[q_dim].length < 3)
    return check.problem(fmt::format("dimension {} of qkv has {} elements; expected queries, keys and values", q_dim, qkv.dims[q_dim].length));
  Lengths expected = lengths_of(qkv);
  expected[q_dim] -= 2;
  if (lengths_of(o) != expected) check.problem(fmt::format("{} is {}; expected {}", o_name, text_of(lengths_of(o)), text_of(expected)));
  check.dtypes(o, qkv, o_name, "qkv");
}

}  // namespace

void norm_sums(const Local& local, OperandCheck& check) { norm_operands(local, check, local.reads[0], local.writes[0], true); }

void norm(const Local& local, OperandCheck& check) {
  const Region& x = local.reads[0];
  if (norm_operands(local, check, x, local.reads[1])) check.same(local.writes[0], x, "the result", "x");
}

void norm_grad_sums(const Local& local, OperandCheck& check) {
  const Region &dy = local.reads[0], &x = local.reads[1], &sums = local.reads[2];
  if (!norm_operands(local, check, x, sums)) return;
  check.same(dy, x, "dy", "x");
  gradient_sums(check, local.writes[0], sums);
}

void norm_grad(const Local& local, OperandCheck& check) {
  const Region &dy = local.reads[0], &x = local.reads[1], &sums = local.reads[2];
  if (!norm_operands(local, check, x, sums)) return;
  check.same(dy, x, "dy", "x");
  gradient_sums(check, local.reads[3], sums);
  check.same(local.writes[0], x, "dx", "x");
}

void attention(const Local& local, OperandCheck& check) { attention_operands(local, check, local.reads[0], "o", local.writes[0]); }

void attention_grad(const Local& local, OperandCheck& check) {
  attention_operands(local, check, local.reads[1], "do", local.reads[0]);
  check.same(local.writes[0], local.reads[1], "dqkv", "qkv");
}

void transpose(const Local& local, OperandCheck& check) {
  const Region &from = local.reads.front(), &to = local.writes.front();
  if (from.dims.size() < 2) return check.problem(fmt::format("the read region has {} dimensions; expected tokens and features", from.dims.size()));
  Lengths expected = lengths_of(from);
  std::rotate(expected.begin(), local.features_first ? expected.end() - 1 : expected.begin() + 1, expected.end());
  if (lengths_of(to) != expected)
    check.problem(fmt::format("the transpose of {} is {}; expected {}", text_of(lengths_of(from)), text_of(lengths_of(to)), text_of(expected)));
  check.dtypes(from, to, "the read region", "the written region");
}

namespace {

/// Whether tokens of these counts are balanced; a message if not.
bool balanced(OperandCheck& check, std::int64_t tokens, std::int64_t experts, std::int64_t each) {
  if (each >= 1 && experts % each == 0 && tokens % (experts / each) == 0) return true;
  check.problem(fmt::format("{} tokens, {} experts, {} for each token; expected experts that are a multiple of those of a token, and tokens that are a multiple of their quotient", tokens, experts, each));
  return false;
}

void gates_of_logits(OperandCheck& check, const Region& logits, const Region& gates) {
  if (logits.dims.size() != 2 || gates.dims.size() != 2 || logits.dims[0].length != gates.dims[0].length)
    return check.problem(fmt::format("logits are {}, gates {}; expected [tokens,experts] and [tokens,experts of a token]", lengths_text(logits), lengths_text(gates)));
  balanced(check, logits.dims[0].length, logits.dims[1].length, gates.dims[1].length);
  check.dtypes(logits, gates, "logits", "gates");
}

/// y, gates and what they add up to.
void combined(OperandCheck& check, const Region& y, const Region& gates, const Region& x) {
  const Lengths of_y = lengths_of(y), of_gates = lengths_of(gates);
  if (of_y.size() != 3 || of_gates.size() != 2 || lengths_of(x) != Lengths{of_gates[0], of_y[2]} || of_y[0] * of_y[1] != of_gates[0] * of_gates[1])
    return check.problem(fmt::format("y is {}, gates {}, their sum {}; expected [E,C,N], [T,k] and [T,N] with E C = T k", text_of(of_y), text_of(of_gates), lengths_text(x)));
  balanced(check, of_gates[0], of_y[0], of_gates[1]);
  check.dtypes(y, gates, "y", "gates"), check.dtypes(y, x, "y", "the sum");
}

}  // namespace

void expert_gates(const Local& local, OperandCheck& check) { gates_of_logits(check, local.reads[0], local.writes[0]); }

void expert_gates_grad(const Local& local, OperandCheck& check) {
  check.same(local.reads[0], local.reads[1], "dgates", "gates");
  gates_of_logits(check, local.writes[0], local.reads[1]);
}

void expert_combine(const Local& local, OperandCheck& check) { combined(check, local.reads[0], local.reads[1], local.writes[0]); }

void expert_combine_grad(const Local& local, OperandCheck& check) {
  combined(check, local.reads[1], local.reads[2], local.reads[0]);
  check.same(local.writes[0], local.reads[1], "dy", "y");
  check.same(local.writes[1], local.reads[2], "dgates", "gates");
}

void sum_along(const Local& local, OperandCheck& check) {
  const Lengths from = lengths_of(local.reads.front()), to = lengths_of(local.writes.front());
  int summed = 0;
  bool fits = from.size() == to.size();
  for (std::size_t i = 0; fits && i < from.size(); ++i)
    if (from[i] != to[i]) fits = to[i] == 1 && ++summed == 1;
  if (!fits)
    check.problem(fmt::format("the sum of {} is {}; expected the same lengths with 1 in the place of one of them", text_of(from), text_of(to)));
  check.dtypes(local.reads.front(), local.writes.front(), "the read region", "the written region");
}

void broadcast_in_dim(const Local& local, OperandCheck& check) {
  const Lengths from = lengths_of(local.reads.front()), to = lengths_of(local.writes.front());
  bool fits = from.size() == to.size();
  for (std::size_t i = 0; fits && i < from.size(); ++i) fits = from[i] == to[i] || from[i] == 1;
  if (!fits)
    check.problem(fmt::format("{} is broadcast to {}; expected equally many dimensions, each of length 1 or as written", text_of(from), text_of(to)));
  check.dtypes(local.reads.front(), local.writes.front(), "the read region", "the written region");
}

namespace {

constexpr unsigned float32 = 1U << static_cast<int>(DType::f32), complex64 = 1U << static_cast<int>(DType::c64), integers = 1U << static_cast<int>(DType::s32);

/// Rows and columns of a region; nullopt, with a message: its split is none.
std::optional<MatrixExtents> matrix(const Local& local, OperandCheck& check, std::size_t region, std::string_view name) {
  const Region& of = region < local.reads.size() ? local.reads[region] : local.writes[region - local.reads.size()];
  const int split = split_of(local, region), rank = static_cast<int>(of.dims.size());
  if (0 <= split && split <= rank) return matrix_extents(local, region);
  check.problem(fmt::format("{} has {} dimensions, of which {} cannot be its rows", name, rank, split));
  return std::nullopt;
}
std::string sizes_of(const MatrixExtents& extents) { return fmt::format("{}x{}", extents.rows, extents.columns); }

void expect(OperandCheck& check, std::string_view name, const MatrixExtents& found, const MatrixExtents& expected) {
  if (found != expected) check.problem(fmt::format("{} is {}; expected {}", name, sizes_of(found), sizes_of(expected)));
}

bool has_dim(const Region& region, int dim, OperandCheck& check, std::string_view name) {
  if (0 <= dim && dim < static_cast<int>(region.dims.size())) return true;
  check.problem(fmt::format("{} has {} dimensions, no dimension {}", name, region.dims.size(), dim));
  return false;
}

/// `factor` of kinds with an index.
void numbers_counted(const Local& local, OperandCheck& check) {
  if (!is_count(local.factor)) check.problem(fmt::format("{} numbers of rows; expected a whole number between 1 and 2^31", local.factor));
}

/// An index picks rows of matrices of any number of rows; `picked` has one row for each entry.
void picked_rows(const Local& local, OperandCheck& check, std::size_t array, std::size_t picked, std::size_t index) {
  const auto of_array = matrix(local, check, array, "the array"), of_picked = matrix(local, check, picked, "the picked rows");
  const Region& named = local.reads[index];
  check.dtype_among(named, integers, "the index");
  if (!numberings_fit(local, check, 1) || !of_array || !of_picked) return;
  expect(check, "the picked rows", *of_picked, {elements_of(named), of_array->columns});
  numbers_counted(local, check);
}

}  // namespace

void fft(const Local& local, OperandCheck& check) {
  const Region &x = local.reads.front(), &y = local.writes.front();
  check.dtype_among(x, float32 | complex64, "the read region");
  check.dtype_among(y, complex64, "the transform");
  if (!has_dim(x, local.dims[0], check, "the read region") || !has_dim(y, local.dims[1], check, "the transform")) return;
  Lengths expected = lengths_of(x);
  const std::int64_t n = expected[static_cast<std::size_t>(local.dims[0])];
  if (n > std::numeric_limits<std::int32_t>::max()) check.problem(fmt::format("a transform of {} points; expected fewer than 2^31", n));
  expected.erase(expected.begin() + local.dims[0]);
  if (local.dims[1] > static_cast<int>(expected.size())) return check.problem("the transform has more dimensions than the read region");
  expected.insert(expected.begin() + local.dims[1], n);
  if (lengths_of(y) != expected)
    check.problem(fmt::format("the transform of {} is {}; expected {}", text_of(lengths_of(x)), text_of(lengths_of(y)), text_of(expected)));
}

void twiddle(const Local& local, OperandCheck& check) {
  const Region &x = local.reads.front(), &y = local.writes.front();
  check.dtype_among(x, complex64, "the read region");
  check.same(y, x, "the result", "the read region");
  if (!has_dim(x, local.dims[0], check, "the read region") || !has_dim(x, local.dims[1], check, "the read region")) return;
  if (local.dims[0] == local.dims[1]) check.problem("twiddle factors need two dimensions");
  numberings_fit(local, check, 2);
  if (!is_count(std::abs(local.factor))) check.problem(fmt::format("twiddle factors of {} points; expected a whole number, at most 2^31", local.factor));
}

void iota(const Local& local, OperandCheck& check) {
  check.dtype_among(local.writes.front(), integers | dtypes::real, "the result");
  numberings_fit(local, check, 1);
}

void getrf_panel(const Local& local, OperandCheck& check) {
  const auto panel = matrix(local, check, 0, "the panel"), factors = matrix(local, check, 1, "the factors");
  if (!panel || !factors || !numberings_fit(local, check, 2)) return;
  check.dtype_among(local.reads[0], float32, "the panel");
  check.dtype_among(local.writes[0], float32, "the factors");
  check.dtype_among(local.writes[1], integers, "the index");
  expect(check, "the result", *factors, *panel);
  if (elements_of(local.writes[1]) != 3 * panel->columns)
    check.problem(fmt::format("the index has {} elements; expected 3 for each of {} columns", elements_of(local.writes[1]), panel->columns));
  std::int64_t kept = 0;
  for (const Numbering& numbering : local.numbering)
    if (numbering.block != 0 || !numbering.first.terms.empty()) return check.problem("a panel's rows and columns are adjacent, the same on all devices");
  if (local.numbering.size() == 1) return check.problem("a panel's rows are numbered, its columns are not");
  if (local.numbering.size() == 2) kept = local.numbering[1].first.constant - local.numbering[0].first.constant;
  if (kept < 0 || panel->rows - kept < panel->columns)
    check.problem(fmt::format("{} columns and {} rows, of which {} are kept; expected at least as many other rows as columns", panel->columns, panel->rows, kept));
}

void trsm(const Local& local, OperandCheck& check) {
  const auto triangle = matrix(local, check, 0, "the triangle"), b = matrix(local, check, 1, "B"), x = matrix(local, check, 2, "X");
  if (!triangle || !b || !x) return;
  for (const Region* region : {&local.reads[0], &local.reads[1], &local.writes[0]}) check.dtype_among(*region, float32, "an operand");
  expect(check, "the triangle", *triangle, {triangle->rows, triangle->rows});
  expect(check, "B", *b, {triangle->rows, b->columns});
  expect(check, "X", *x, *b);
}

void triangle(const Local& local, OperandCheck& check) {
  const auto a = matrix(local, check, 0, "the matrix"), part = matrix(local, check, 1, "the result");
  check.dtypes(local.writes[0], local.reads[0], "the result", "the matrix");
  if (a && part && numberings_fit(local, check, 2)) expect(check, "the result", *part, *a);
}

void gather_rows(const Local& local, OperandCheck& check) {
  check.dtypes(local.writes[0], local.reads[0], "the result", "the array");
  picked_rows(local, check, 0, 2, 1);
}

void scatter_rows(const Local& local, OperandCheck& check) {
  check.dtypes(local.reads[1], local.reads[0], "the rows", "the array");
  check.same(local.writes[0], local.reads[0], "the result", "the array");
  picked_rows(local, check, 0, 1, 2);
}

void swap_rows(const Local& local, OperandCheck& check) {
  check.same(local.writes[0], local.reads[0], "the result", "the array");
  check.dtype_among(local.reads[1], integers, "the index");
  if (!matrix(local, check, 0, "the array") || !numberings_fit(local, check, 2)) return;
  for (const Numbering& numbering : local.numbering)
    if (numbering.block != 0) return check.problem("rows that change places are adjacent");
}

void add_rows(const Local& local, OperandCheck& check) {
  for (const Region* region : {&local.reads[0], &local.writes[0]}) check.dtype_among(*region, dtypes::real, "an array of rows");
  picked_rows(local, check, 2, 0, 1);
}

void opaque(const Local& local, OperandCheck& check) {
  const OpaqueCost& cost = local.opaque;
  if (!is_product_dtype(cost.dtype)) check.problem(fmt::format("matrix flops of {}; expected {}", name_of(cost.dtype), product_dtype_names()));
  if (cost.float32_passes < 0 || cost.float32_passes > most_float32_passes)
    check.problem(fmt::format("float32 products of {} passes; expected up to {}", cost.float32_passes, most_float32_passes));
  if (!(cost.matrix >= Flops{}) || !(cost.vector >= Flops{})) check.problem(fmt::format("flops {} and {}; expected none below 0", cost.matrix.count(), cost.vector.count()));
  if (const auto& of = cost.product; of && (of->m < 1 || of->n < 1 || of->k < 1)) check.problem(fmt::format("products of {}x{}x{}; expected extents of at least 1", of->m, of->n, of->k));
  if (cost.bytes && *cost.bytes < Bytes{}) check.problem(fmt::format("{} bytes; expected none below 0", cost.bytes->count()));
  if (!(cost.launch >= Seconds{}) || !(cost.rest >= Seconds{}) || !(cost.launch + cost.rest <= cost.time.value_or(cost.launch)))
    check.problem(fmt::format("a time of {} s with {} s at its beginning and {} s at its end; expected parts of it, none below 0", cost.time.value_or(Seconds{}).count(),
                              cost.launch.count(), cost.rest.count()));
}

void one_hot(const Local& local, OperandCheck& check) {
  const auto rows = matrix(local, check, 1, "the result");
  const Region& index = local.reads[0];
  check.dtype_among(index, integers, "the index");
  check.dtype_among(local.writes[0], dtypes::real, "the result");
  if (!numberings_fit(local, check, 1) || !rows) return;
  expect(check, "the result", *rows, {elements_of(index), rows->columns});
  numbers_counted(local, check);
}

void solve(const Local& local, OperandCheck& check) {
  const Lengths a = lengths_of(local.reads[0]), b = lengths_of(local.reads[1]);
  for (const Region* region : {&local.reads[0], &local.reads[1], &local.writes[0]}) check.dtype_among(*region, float32, "an operand");
  const bool square = a.size() >= 2 && a.back() == a[a.size() - 2];
  if (!square) return check.problem(fmt::format("A is {}; expected [..,n,n]", text_of(a)));
  Lengths one{a.begin(), a.end() - 1}, many = one;
  many.push_back(b.empty() ? 1 : b.back());
  if (b != one && b != many) check.problem(fmt::format("A is {}, B is {}; expected {}", text_of(a), text_of(b), text_of(many)));
  check.same(local.writes[0], local.reads[1], "X", "B");
}

namespace {

/// [.., P c, ..] and [P, .., c, ..], whose blocks are along dimension `dim` of the first.
void blocks_of(const Region& joined, const Region& apart, int dim, OperandCheck& check) {
  check.dtypes(joined, apart, "the array", "its blocks");
  if (!has_dim(joined, dim, check, "the array")) return;
  Lengths whole = lengths_of(joined);
  const Lengths found = lengths_of(apart);
  const auto at = static_cast<std::size_t>(dim);
  const std::int64_t blocks = found.empty() ? 1 : found.front();
  if (blocks < 1 || whole[at] % blocks != 0)
    return check.problem(fmt::format("dimension {} of the array {} does not divide into {} blocks", dim, text_of(whole), blocks));
  Lengths expected = whole;
  expected[at] /= blocks;
  expected.insert(expected.begin(), blocks);
  if (found != expected) check.problem(fmt::format("the blocks of {} are {}; expected {}", text_of(whole), text_of(found), text_of(expected)));
}

}  // namespace

void pack_blocks(const Local& local, OperandCheck& check) { blocks_of(local.reads[0], local.writes[0], local.dims[0], check); }
void unpack_blocks(const Local& local, OperandCheck& check) { blocks_of(local.writes[0], local.reads[0], local.dims[1], check); }

}  // namespace shapes
}  // namespace podsim
