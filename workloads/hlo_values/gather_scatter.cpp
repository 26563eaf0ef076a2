// gather and scatter. Source: openxla/xla docs/operation_semantics.md.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/hlo_values/fold.hpp"
#include "workloads/hlo_values/strided.hpp"

namespace podsim {

namespace {

using Dims = std::vector<std::int64_t>;

bool contains(const Dims& dims, std::int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

/// Each below `rank`, none twice.
bool are_dimensions(const Dims& dims, std::size_t rank) {
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || to_size(dims[i]) >= rank ||
        std::find(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(i), dims[i]) != dims.begin() + static_cast<std::ptrdiff_t>(i))
      return false;
  return true;
}

/// What gather and scatter share. `array` is the operand, `other` the result of a gather or the updates of a scatter: its window dimensions are
/// those of a window of the array that are neither collapsed nor batching; the rest are the dimensions of the indices without the index vectors.
struct Windows {
  Dims window, collapsed, array_batching, index_batching, index_to_array;  // dimensions of other, array, array, indices, array
  std::int64_t index_vector = 0;                                           // dimension of the indices
  Dims sizes;                                                              // of a window in the array

  // Derived:
  Dims array_dims, batch_dims, index_strides, other_strides, array_strides;  // of the array; of the indices without index vectors
  Dims batch_strides, batch_index_strides;                                   // of batch dimensions in other; in the indices
  Dims kept, window_strides, window_array_strides;                           // sizes of the window in other; strides in other; in the array
  std::int64_t vector_stride = 0, vector_size = 1;
};

Status derive(const ArrayOperation& operation, const HloArray& array, const HloArray& indices, const Dims& other_dims, Windows& windows) {
  const std::size_t rank = array.dims.size();
  if (!is_integer(indices.type) || windows.index_vector < 0 || to_size(windows.index_vector) > indices.dims.size())
    return operation.error("expected integers as indices and index_vector_dim, a dimension of theirs");
  if (!are_dimensions(windows.window, other_dims.size()) || !are_dimensions(windows.collapsed, rank) ||
      !are_dimensions(windows.array_batching, rank) || !are_dimensions(windows.index_batching, indices.dims.size()) ||
      !are_dimensions(windows.index_to_array, rank) || windows.array_batching.size() != windows.index_batching.size() ||
      contains(windows.index_batching, windows.index_vector) || windows.sizes.size() != rank)
    return operation.error("expected dimensions of the array, of the indices and of the windows, each once");
  windows.array_dims = array.dims;
  windows.array_strides = row_major_strides(array.dims);
  windows.other_strides = row_major_strides(other_dims);
  windows.index_strides = row_major_strides(indices.dims);
  const bool has_vectors = to_size(windows.index_vector) < indices.dims.size();
  windows.vector_stride = has_vectors ? windows.index_strides[to_size(windows.index_vector)] : 0;
  windows.vector_size = has_vectors ? indices.dims[to_size(windows.index_vector)] : 1;
  if (to_size(windows.vector_size) != windows.index_to_array.size())
    return operation.error("expected a dimension of the array for each number of an index");

  Dims expected(other_dims.size(), -1);
  std::size_t next = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto dim = static_cast<std::int64_t>(d);
    if (windows.sizes[d] < 0 || windows.sizes[d] > array.dims[d]) return operation.error("expected windows that are no larger than the array");
    if (contains(windows.collapsed, dim) || contains(windows.array_batching, dim)) {
      if (windows.sizes[d] > 1) return operation.error("expected windows of size 1 in dimensions that are left out");
      if (windows.sizes[d] == 0) return operation.error("expected windows of size 1 in dimensions that are left out, got 0");
      continue;
    }
    if (next == windows.window.size()) return operation.error("expected a dimension for each one of the window");
    const std::size_t to = to_size(windows.window[next++]);
    expected[to] = windows.sizes[d];
    windows.kept.push_back(windows.sizes[d]);
    windows.window_strides.push_back(windows.other_strides[to]);
    windows.window_array_strides.push_back(windows.array_strides[d]);
  }
  if (next != windows.window.size()) return operation.error("expected a dimension of the window for each one listed");
  std::size_t to = 0;
  for (std::size_t d = 0; d < indices.dims.size(); ++d) {
    if (static_cast<std::int64_t>(d) == windows.index_vector) continue;
    while (to < expected.size() && expected[to] >= 0) ++to;
    if (to == expected.size()) return operation.error("expected a dimension for each one of the indices");
    expected[to] = indices.dims[d];
    windows.batch_dims.push_back(indices.dims[d]);
    windows.batch_strides.push_back(windows.other_strides[to]);
    windows.batch_index_strides.push_back(windows.index_strides[d]);
  }
  if (expected != other_dims) return operation.error("expected a shape of the indices and of the windows");
  return success();
}

/// Calls visit(start of the window in the array, offset of the batch in other) for each index; starts are not clamped.
template <class Visit>
Status for_each_window(const Windows& windows, const HloArray& indices, Visit visit) {
  std::vector<std::int64_t> in_indices, in_other;
  for_each_offset(windows.batch_dims, windows.batch_index_strides, 0, [&](std::int64_t offset) { in_indices.push_back(offset); });
  for_each_offset(windows.batch_dims, windows.batch_strides, 0, [&](std::int64_t offset) { in_other.push_back(offset); });
  for (std::size_t i = 0; i < in_indices.size(); ++i) {
    Dims start(windows.array_dims.size(), 0);
    for (std::size_t k = 0; k < windows.index_to_array.size(); ++k) {
      const std::int64_t value = indices.integers[to_size(in_indices[i] + static_cast<std::int64_t>(k) * windows.vector_stride)];
      // u64 beyond 2^63 is beyond any array.
      start[to_size(windows.index_to_array[k])] = is_unsigned(indices.type) && value < 0 ? std::int64_t{1} << 62 : value;
    }
    for (std::size_t k = 0; k < windows.array_batching.size(); ++k) {
      const std::int64_t d = windows.index_batching[k];
      const std::int64_t size = indices.dims[to_size(d)];
      start[to_size(windows.array_batching[k])] = size == 0 ? 0 : in_indices[i] / windows.index_strides[to_size(d)] % size;
    }
    if (const auto ok = visit(start, in_other[i]); !ok) return ok;
  }
  return success();
}

}  // namespace

Expected<HloArrays> gather_operation(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(2); !ok) return ok.error();
  const HloArray &x = operation.operand(0), &indices = operation.operand(1);
  const HloAttributes& attributes = operation.attributes();
  Windows windows;
  windows.window = listed_dimensions(attributes, "offset_dims");
  windows.collapsed = listed_dimensions(attributes, "collapsed_slice_dims");
  windows.array_batching = listed_dimensions(attributes, "operand_batching_dims");
  windows.index_batching = listed_dimensions(attributes, "start_indices_batching_dims");
  windows.index_to_array = listed_dimensions(attributes, "start_index_map");
  windows.index_vector = number_named(attributes, "index_vector_dim").value_or(-1);
  windows.sizes = listed_dimensions(attributes, "slice_sizes");
  if (const auto ok = derive(operation, x, indices, operation.shape().dims, windows); !ok) return ok.error();
  HloArray result = zeros(x.type, operation.shape().dims);
  const auto ok = for_each_window(windows, indices, [&](Dims& start, std::int64_t to) {
    for (std::size_t d = 0; d < start.size(); ++d) start[d] = std::clamp<std::int64_t>(start[d], 0, windows.array_dims[d] - windows.sizes[d]);
    put_strided(result, to, windows.window_strides, strided(x, windows.kept, offset_of(start, windows.array_strides), windows.window_array_strides));
    return success();
  });
  if (!ok) return ok.error();
  return HloArrays{std::move(result)};
}

/// A window that lies beyond the array in part is left out whole, as XLA's scatter_expander.cc does.
Expected<HloArrays> scatter_operation(const ArrayOperation& operation) {
  const HloComputation* function = called(operation.module, operation.instruction, HloRole::to_apply);
  if (function == nullptr || operation.operands.size() % 2 == 0) return operation.error("expected arrays, indices, as many updates, and to_apply");
  const std::size_t count = operation.operands.size() / 2;
  if (count == 0) return operation.error("expected arrays, indices, as many updates, and to_apply");
  const HloArray &x = operation.operand(0), &indices = operation.operand(count);
  const HloAttributes& attributes = operation.attributes();
  std::vector<HloArray> results;
  std::vector<const HloArray*> updates;
  for (std::size_t n = 0; n < count; ++n) {
    results.push_back(operation.operand(n));
    updates.push_back(operation.operands[count + 1 + n]);
    if (results[n].dims != x.dims || updates[n]->dims != updates[0]->dims || updates[n]->type != results[n].type)
      return operation.error("expected arrays of one shape, and updates of one shape and of their types");
  }
  Windows windows;
  windows.window = listed_dimensions(attributes, "update_window_dims");
  windows.collapsed = listed_dimensions(attributes, "inserted_window_dims");
  windows.array_batching = listed_dimensions(attributes, "input_batching_dims");
  windows.index_batching = listed_dimensions(attributes, "scatter_indices_batching_dims");
  windows.index_to_array = listed_dimensions(attributes, "scatter_dims_to_operand_dims");
  windows.index_vector = number_named(attributes, "index_vector_dim").value_or(-1);
  std::size_t next = 0;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(x.dims.size()); ++d) {
    const bool left_out = contains(windows.collapsed, d) || contains(windows.array_batching, d);
    if (!left_out && (next == windows.window.size() || windows.window[next] < 0 || to_size(windows.window[next]) >= updates[0]->dims.size()))
      return operation.error("expected update_window_dims, dimensions of the updates");
    windows.sizes.push_back(left_out ? 1 : updates[0]->dims[to_size(windows.window[next++])]);
  }
  if (const auto ok = derive(operation, x, indices, updates[0]->dims, windows); !ok) return ok.error();
  const Fold fold{operation.module, operation.instruction, *function, x.type, count, operation.arithmetic, operation.call};
  const auto ok = for_each_window(windows, indices, [&](Dims& start, std::int64_t from) -> Status {
    for (std::size_t d = 0; d < start.size(); ++d)
      if (start[d] < 0 || start[d] > windows.array_dims[d] - windows.sizes[d]) return success();
    std::vector<std::int64_t> to, of_update;
    for_each_offset(windows.kept, windows.window_array_strides, offset_of(start, windows.array_strides), [&](std::int64_t o) { to.push_back(o); });
    for_each_offset(windows.kept, windows.window_strides, from, [&](std::int64_t o) { of_update.push_back(o); });
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (fold.is_real_sum())
        note_sum(operation.arithmetic,
                 finite_or_zero(std::fabs(results[0].reals[to_size(to[i])])) + finite_or_zero(std::fabs(updates[0]->reals[to_size(of_update[i])])));
      if (const auto applied = fold.apply(results, to_size(to[i]), updates, to_size(of_update[i])); !applied) return applied;
    }
    return success();
  });
  if (!ok) return ok.error();
  return results;
}

}  // namespace podsim
