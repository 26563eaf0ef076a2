#include "sim/engine/numeric/row_kernels.hpp"

#include <fmt/format.h>

#include <bit>

#include "sim/engine/numeric/matrix_view.hpp"
#include "sim/engine/numeric/rounding.hpp"

namespace podsim {

namespace {

std::vector<std::int64_t> indices_in(const View& index) {
  std::vector<std::int64_t> indices;
  for_each_run<1>({&index.layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
    for (std::int64_t i = 0; i < count; ++i) indices.push_back(std::bit_cast<std::int32_t>(index.data[at[0].offset() + i * at[0].stride()]));
  });
  return indices;
}

Diagnostic no_row(std::int64_t number, std::int64_t low, std::int64_t high) {
  return wrong_data(fmt::format("row number {} is outside {}..{}", number, low, high));
}

Expected<std::vector<std::int64_t>> indices_below(const View& index, double numbers) {
  std::vector<std::int64_t> indices = indices_in(index);
  const auto end = static_cast<std::int64_t>(numbers);
  for (const std::int64_t number : indices)
    if (number < 0 || number >= end) return no_row(number, 0, end - 1);
  return indices;
}

/// A row of a matrix as a box.
class RowViews {
 public:
  RowViews(const View& view, int split) : view_{view}, parts_{rows_and_columns(view, split)} {}
  [[nodiscard]] std::int64_t count() const { return elements_of(parts_.row_starts); }
  [[nodiscard]] View row(std::int64_t i) const {
    View row{view_.data, parts_.row, view_.dtype};
    row.layout.offset = offset_of(parts_.row_starts, i);
    return row;
  }

 private:
  View view_;
  RowsAndColumns parts_;
};

void swap(const View& a, const View& b) {
  for_each_run<2>({&a.layout, &b.layout}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
    float* const left = a.data + at[0].offset();
    float* const right = b.data + at[1].offset();
    for (std::int64_t i = 0; i < count; ++i) std::swap(left[i * at[0].stride()], right[i * at[1].stride()]);
  });
}

/// out(i, j) = value(row number, column number, a(i, j))
template <class Value>
void by_numbers(const RowNumbers& rows, const RowNumbers& columns, const View& a, int split, const View& out, int out_split, Value value) {
  const RowViews from{a, split}, to{out, out_split};
  for (std::int64_t i = 0; i < from.count(); ++i) {
    const View in = from.row(i), result = to.row(i);
    const std::int64_t r = rows.of(i);
    std::int64_t j = 0;
    for_each_run<2>({&in.layout, &result.layout}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
      for (std::int64_t e = 0; e < count; ++e, ++j)
        result.data[at[1].offset() + e * at[1].stride()] = value(r, columns.of(j), in.data[at[0].offset() + e * at[0].stride()]);
    });
  }
}

}  // namespace

std::optional<std::int64_t> RowNumbers::row_of(std::int64_t number, std::int64_t rows) const {
  std::int64_t row = number - first;
  if (row < 0) return std::nullopt;
  if (block > 0) {
    if (row % (block * apart) >= block) return std::nullopt;
    row = row / (block * apart) * block + row % (block * apart);
  }
  return row < rows ? std::optional{row} : std::nullopt;
}

RowNumbers row_numbers(const Local& local, std::size_t i, const Coordinates& at) {
  if (i >= local.numbering.size()) return {};
  return {evaluate(local.numbering[i].first, at), local.numbering[i].block, local.numbering[i].apart};
}

void iota(const RowNumbers& numbers, const View& out) {
  std::int64_t row = 0;
  for_each_run<1>({&out.layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
    for (std::int64_t i = 0; i < count; ++i)
      out.data[at[0].offset() + i * at[0].stride()] = out.dtype == DType::s32 ? std::bit_cast<float>(static_cast<std::int32_t>(numbers.of(row++)))
                                                                              : stored_in(out.dtype, static_cast<float>(numbers.of(row++)));
  });
}

void lower_triangle(const RowNumbers& rows, const RowNumbers& columns, const View& a, int split, const View& out, int out_split) {
  by_numbers(rows, columns, a, split, out, out_split, [](std::int64_t r, std::int64_t c, float value) { return r > c ? value : r == c ? 1.0F : 0.0F; });
}

void upper_triangle(const RowNumbers& rows, const RowNumbers& columns, const View& a, int split, const View& out, int out_split) {
  by_numbers(rows, columns, a, split, out, out_split, [](std::int64_t r, std::int64_t c, float value) { return r <= c ? value : 0.0F; });
}

Status gather_rows(const RowNumbers& rows, double numbers, const View& a, int split, const View& index, const View& out, int out_split) {
  const auto indices = indices_below(index, numbers);
  if (!indices) return indices.error();
  const RowViews from{a, split}, to{out, out_split};
  for (std::size_t i = 0; i < indices->size(); ++i) {
    const View target = to.row(static_cast<std::int64_t>(i));
    if (const auto row = rows.row_of((*indices)[i], from.count())) {
      copy(from.row(*row), target);
      continue;
    }
    for_each_run<1>({&target.layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
      for (std::int64_t e = 0; e < count; ++e) target.data[at[0].offset() + e * at[0].stride()] = 0.0F;
    });
  }
  return success();
}

Status scatter_rows(const RowNumbers& rows, double numbers, const View& b, int b_split, const View& index, const View& a, int split) {
  const auto indices = indices_below(index, numbers);
  if (!indices) return indices.error();
  const RowViews from{b, b_split}, to{a, split};
  for (std::size_t i = 0; i < indices->size(); ++i)
    if (const auto row = rows.row_of((*indices)[i], to.count())) copy(from.row(static_cast<std::int64_t>(i)), to.row(*row));
  return success();
}

Status add_rows(const RowNumbers& rows, double numbers, const View& b, int b_split, const View& index, const View& a, int split, std::vector<float>& room) {
  const auto indices = indices_below(index, numbers);
  if (!indices) return indices.error();
  const RowViews from{b, b_split};
  const std::int64_t count = RowViews{a, split}.count(), columns = count == 0 ? 0 : elements_of(a.layout) / count;
  View sums = room_for(elements_of(a.layout), room);
  std::fill_n(sums.data, elements_of(a.layout), 0.0F);
  for (std::size_t i = 0; i < indices->size(); ++i)
    if (const auto row = rows.row_of((*indices)[i], count)) {
      const View sum{sums.data + *row * columns, contiguous(columns), DType::f32};
      add(sum, from.row(static_cast<std::int64_t>(i)), sum);
    }
  copy(sums, a);
  return success();
}

Status one_hot(const RowNumbers& columns, double numbers, const View& index, const View& out, int out_split) {
  const auto indices = indices_below(index, numbers);
  if (!indices) return indices.error();
  const RowViews rows{out, out_split};
  for (std::size_t i = 0; i < indices->size(); ++i) {
    const View row = rows.row(static_cast<std::int64_t>(i));
    const auto column = columns.row_of((*indices)[i], elements_of(row.layout));
    std::int64_t at_column = 0;
    for_each_run<1>({&row.layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
      for (std::int64_t e = 0; e < count; ++e) row.data[at[0].offset() + e * at[0].stride()] = column == at_column++ ? 1.0F : 0.0F;
    });
  }
  return success();
}

Status swap_rows(const RowNumbers& rows, const RowNumbers& first, const View& index, const View& a, int split) {
  const std::vector<std::int64_t> indices = indices_in(index);
  const RowViews matrix{a, split};
  for (std::size_t i = 0; i < indices.size(); ++i)
    for (const std::int64_t number : {first.of(static_cast<std::int64_t>(i)), indices[i]})
      if (!rows.row_of(number, matrix.count())) return no_row(number, rows.of(0), rows.of(matrix.count() - 1));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t one = *rows.row_of(first.of(static_cast<std::int64_t>(i)), matrix.count()), other = *rows.row_of(indices[i], matrix.count());
    if (one != other) swap(matrix.row(one), matrix.row(other));
  }
  return success();
}

}  // namespace podsim
