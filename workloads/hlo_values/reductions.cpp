// reduce, reduce-window, map and sort: operations with a function of scalars.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "workloads/hlo_values/fold.hpp"
#include "workloads/hlo_values/strided.hpp"

namespace podsim {

namespace {

using Dims = std::vector<std::int64_t>;

/// Operands of one shape and a scalar of each type behind them.
struct Folded {
  const HloComputation* function = nullptr;
  std::size_t count = 0;  // of operands
  Dims dims{};            // theirs
};
Expected<Folded> folded_operands(const ArrayOperation& operation) {
  Folded folded{called(operation.module, operation.instruction, HloRole::to_apply), operation.operands.size() / 2, {}};
  if (folded.function == nullptr || folded.count == 0 || operation.operands.size() % 2 != 0)
    return operation.error("expected operands, an initial value for each, and to_apply");
  folded.dims = operation.operand(0).dims;
  for (std::size_t n = 0; n < folded.count; ++n) {
    const HloArray &x = operation.operand(n), &init = operation.operand(folded.count + n);
    if (x.dims != folded.dims || !init.dims.empty() || init.type != x.type)
      return operation.error(
          fmt::format("expected operands of one shape and scalars of their types, got {} and {}", short_text(x), short_text(init)));
  }
  return folded;
}

/// Each operand's initial value everywhere.
std::vector<HloArray> initial(const ArrayOperation& operation, std::size_t count, const Dims& dims) {
  std::vector<HloArray> arrays;
  for (std::size_t n = 0; n < count; ++n) {
    const HloArray& init = operation.operand(count + n);
    arrays.push_back(strided(init, dims, 0, Dims(dims.size(), 0)));
  }
  return arrays;
}

/// Sums of absolute values beside the elements of a real sum; nothing otherwise.
class Absolutes {
 public:
  Absolutes(const Fold& fold, const HloArray& init) : on_{fold.is_real_sum()} {
    if (on_) values_ = init.reals;
    for (double& value : values_) value = finite_or_zero(std::fabs(value));
  }
  void add(std::size_t i, const HloArray& values, std::size_t j) {
    if (on_) values_[i] += finite_or_zero(std::fabs(values.reals[j]));
  }
  void note(HloArithmetic& arithmetic) const {
    for (const double value : values_) note_sum(arithmetic, value);
  }

 private:
  bool on_;
  std::vector<double> values_;
};

/// Every operand's shape in a result: an array, or a tuple of several. Checked before anything of that size is made.
Status returns(const ArrayOperation& operation, const Dims& dims, std::size_t count) {
  const HloShape& shape = operation.shape();
  const bool fitting = shape.is_tuple() ? shape.elements.size() == count && std::all_of(shape.elements.begin(), shape.elements.end(),
                                                                                        [&](const HloShape& e) { return e.dims == dims; })
                                        : count == 1 && shape.dims == dims;
  if (fitting) return success();
  HloShape expected;
  expected.type = operation.operand(0).type;
  expected.dims = dims;
  return operation.error(fmt::format("expected {} result(s) like {}, got {}", count, short_text(expected), short_text(shape)));
}

}  // namespace

Expected<HloArrays> reduce_operation(const ArrayOperation& operation) {
  const auto folded = folded_operands(operation);
  if (!folded) return folded.error();
  const Dims& reduced = operation.attributes().dimensions;
  Dims order, dims;
  for (std::size_t d = 0; d < folded->dims.size(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), static_cast<std::int64_t>(d)) != reduced.end()) continue;
    order.push_back(static_cast<std::int64_t>(d));
    dims.push_back(folded->dims[d]);
  }
  order.insert(order.end(), reduced.begin(), reduced.end());
  if (!is_permutation_of(order, folded->dims.size())) return operation.error("expected dimensions of the operands, each once");
  if (const auto ok = returns(operation, dims, folded->count); !ok) return ok.error();

  std::vector<HloArray> moved;
  for (std::size_t n = 0; n < folded->count; ++n) moved.push_back(transposed(operation.operand(n), order));
  std::vector<const HloArray*> values;
  for (const HloArray& array : moved) values.push_back(&array);
  std::vector<HloArray> results = initial(operation, folded->count, dims);
  const auto outputs = static_cast<std::size_t>(elements_of(results[0])), inputs = static_cast<std::size_t>(elements_of(moved[0]));
  if (outputs == 0 || inputs == 0) return results;
  const Fold fold{operation.module, operation.instruction, *folded->function, results[0].type, folded->count, operation.arithmetic, operation.call};
  Absolutes absolutes{fold, results[0]};
  const std::size_t each = inputs / outputs;
  for (std::size_t i = 0; i < inputs; ++i) {
    if (const auto ok = fold.apply(results, i / each, values, i); !ok) return ok.error();
    absolutes.add(i / each, moved[0], i);
  }
  absolutes.note(operation.arithmetic);
  return results;
}

Expected<HloArrays> reduce_window_operation(const ArrayOperation& operation) {
  const auto folded = folded_operands(operation);
  if (!folded) return folded.error();
  const std::vector<HloWindowDimension>& windows = operation.attributes().window;
  if (windows.size() != folded->dims.size()) return operation.error("expected a window of every dimension of the operands");
  Dims dims, sizes;
  double steps = 1;
  for (std::size_t d = 0; d < windows.size(); ++d) {
    const HloWindowDimension& window = windows[d];
    if (!is_sane(window)) return operation.error("expected numbers of a window up to 2^31");
    const auto spread = [](std::int64_t size, std::int64_t dilation) { return size == 0 ? 0 : (size - 1) * dilation + 1; };
    const std::int64_t padded = window.pad_low + spread(folded->dims[d], window.lhs_dilate) + window.pad_high,
                       reach = spread(window.size, window.rhs_dilate);
    dims.push_back(padded < reach || padded <= 0 ? 0 : (padded - reach) / window.stride + 1);
    sizes.push_back(window.size);
    steps *= static_cast<double>(dims[d]) * static_cast<double>(window.size);
  }
  if (const auto ok = returns(operation, dims, folded->count); !ok) return ok.error();
  if (const auto ok = operation.spend(steps); !ok) return ok.error();

  std::vector<HloArray> results = initial(operation, folded->count, dims);
  const std::vector<const HloArray*> values{operation.operands.begin(), operation.operands.begin() + static_cast<std::ptrdiff_t>(folded->count)};
  const Fold fold{operation.module, operation.instruction, *folded->function, results[0].type, folded->count, operation.arithmetic, operation.call};
  Absolutes absolutes{fold, results[0]};
  const Dims strides = row_major_strides(folded->dims), in_window = row_major_strides(sizes), outer = row_major_strides(dims);
  const std::int64_t taps = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>{});
  const auto count = static_cast<std::int64_t>(elements_of(results[0]));
  for (std::int64_t out = 0; out < count; ++out)
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::int64_t from = 0;
      for (std::size_t d = 0; d < dims.size() && from >= 0; ++d) {
        const HloWindowDimension& window = windows[d];
        const std::int64_t o = out / outer[d] % dims[d], w = tap / in_window[d] % sizes[d];
        const std::int64_t position = o * window.stride + w * window.rhs_dilate - window.pad_low;
        const bool is_element = position >= 0 && position % window.lhs_dilate == 0 && position / window.lhs_dilate < folded->dims[d];
        from = is_element ? from + position / window.lhs_dilate * strides[d] : -1;
      }
      if (from < 0) continue;
      if (const auto ok = fold.apply(results, to_size(out), values, to_size(from)); !ok) return ok.error();
      absolutes.add(to_size(out), *values[0], to_size(from));
    }
  absolutes.note(operation.arithmetic);
  return results;
}

/// Each element of the source goes to the element of its window that `select` prefers, the first of equals. Source: openxla/xla docs/operation_semantics.md.
Expected<HloArrays> select_and_scatter_operation(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(3); !ok) return ok.error();
  const HloArray &x = operation.operand(0), &source = operation.operand(1), &init = operation.operand(2);
  const HloComputation *const prefers = called(operation.module, operation.instruction, HloRole::select), *const function = called(operation.module, operation.instruction, HloRole::scatter);
  const std::vector<HloWindowDimension>& windows = operation.attributes().window;
  const std::size_t rank = x.dims.size();
  if (prefers == nullptr || function == nullptr || windows.size() != rank || source.dims.size() != rank || !init.dims.empty() || source.type != x.type || init.type != x.type || operation.shape().dims != x.dims)
    return operation.error("expected an array, a source and a scalar of one type, a window of every dimension, and select= and scatter=");
  Dims sizes;
  double steps = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    const HloWindowDimension& window = windows[d];
    if (!is_sane(window)) return operation.error("expected numbers of a window up to 2^31");
    const std::int64_t padded = window.pad_low + x.dims[d] + window.pad_high, positions = padded < window.size ? 0 : (padded - window.size) / window.stride + 1;
    if (window.lhs_dilate != 1 || window.rhs_dilate != 1 || positions != source.dims[d])
      return operation.error(fmt::format("expected a source with an element for each of {} windows in dimension {}", positions, d));
    sizes.push_back(window.size);
    steps *= static_cast<double>(source.dims[d]) * static_cast<double>(window.size);
  }
  if (const auto ok = operation.spend(steps); !ok) return ok.error();
  std::vector<HloArray> results{strided(init, x.dims, 0, Dims(rank, 0))};
  const Fold fold{operation.module, operation.instruction, *function, x.type, 1, operation.arithmetic, operation.call};
  Absolutes absolutes{fold, results[0]};
  const std::vector<const HloArray*> sources{&source};
  const Dims strides = row_major_strides(x.dims), in_window = row_major_strides(sizes), outer = row_major_strides(source.dims);
  const std::int64_t taps = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>{});
  const std::int64_t count = elements_of(source);
  for (std::int64_t at = 0; at < count; ++at) {
    std::int64_t selected = -1;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::int64_t from = 0;
      for (std::size_t d = 0; d < rank && from >= 0; ++d) {
        const std::int64_t position = at / outer[d] % source.dims[d] * windows[d].stride + tap / in_window[d] % sizes[d] - windows[d].pad_low;
        from = position >= 0 && position < x.dims[d] ? from + position * strides[d] : -1;
      }
      if (from < 0) continue;
      if (selected >= 0) {
        const HloArray best = element_of(x, to_size(selected)), other = element_of(x, to_size(from));
        const auto keeps = operation.call(*prefers, {&best, &other});
        if (!keeps) return keeps.error();
        if (keeps->size() != 1 || (*keeps)[0].type != HloType::pred || !(*keeps)[0].dims.empty()) return operation.error(fmt::format("expected {} to return a scalar pred", prefers->name));
        if ((*keeps)[0].integers[0] != 0) continue;
      }
      selected = from;
    }
    if (selected < 0) continue;
    if (const auto ok = fold.apply(results, to_size(selected), sources, to_size(at)); !ok) return ok.error();
    absolutes.add(to_size(selected), source, to_size(at));
  }
  absolutes.note(operation.arithmetic);
  return results;
}

Expected<HloArrays> map_operation(const ArrayOperation& operation) {
  const HloComputation* function = called(operation.module, operation.instruction, HloRole::to_apply);
  if (function == nullptr || operation.operands.empty()) return operation.error("expected operands and to_apply");
  for (const HloArray* x : operation.operands)
    if (x->dims != operation.shape().dims)
      return operation.error(fmt::format("expected operands like {}, got {}", short_text(operation.shape()), short_text(*x)));
  HloArray result = zeros(operation.shape().type, operation.shape().dims);
  for (std::size_t i = 0; i < to_size(elements_of(result)); ++i) {
    HloArrays scalars;
    for (const HloArray* x : operation.operands) scalars.push_back(element_of(*x, i));
    std::vector<const HloArray*> arguments;
    for (const HloArray& scalar : scalars) arguments.push_back(&scalar);
    const auto value = operation.call(*function, arguments);
    if (!value) return value.error();
    if (value->size() != 1 || (*value)[0].type != result.type || !(*value)[0].dims.empty())
      return operation.error(fmt::format("expected {} to return a scalar {}", function->name, name_of(result.type)));
    set_element(result, i, (*value)[0]);
  }
  return HloArrays{std::move(result)};
}

namespace {

/// The order of one row by a comparator of scalars. A merge sort of our own: std::sort may not be given a comparator that contradicts itself.
class RowSort {
 public:
  RowSort(const ArrayOperation& operation, const HloComputation& less, const std::vector<HloArray>& moved)
      : operation_{operation}, less_{less}, moved_{moved} {}

  /// Sorts the indices of elements in order[first .. last).
  Status sort(std::vector<std::size_t>& order, std::size_t first, std::size_t last) {
    if (last - first < 2) return success();
    const std::size_t middle = first + (last - first) / 2;
    if (const auto ok = sort(order, first, middle); !ok) return ok;
    if (const auto ok = sort(order, middle, last); !ok) return ok;
    std::vector<std::size_t> merged;
    std::size_t a = first, b = middle;
    while (a < middle && b < last) {
      const auto second_first = is_less(order[b], order[a]);  // of equal ones the first stays first
      if (!second_first) return second_first.error();
      merged.push_back(*second_first ? order[b++] : order[a++]);
    }
    while (a < middle) merged.push_back(order[a++]);
    while (b < last) merged.push_back(order[b++]);
    std::copy(merged.begin(), merged.end(), order.begin() + static_cast<std::ptrdiff_t>(first));
    return success();
  }

 private:
  Expected<bool> is_less(std::size_t a, std::size_t b) {
    HloArrays scalars;
    for (const HloArray& array : moved_) {
      scalars.push_back(element_of(array, a));
      scalars.push_back(element_of(array, b));
    }
    std::vector<const HloArray*> arguments;
    for (const HloArray& scalar : scalars) arguments.push_back(&scalar);
    const auto value = operation_.call(less_, arguments);
    if (!value) return value.error();
    if (value->size() != 1 || (*value)[0].type != HloType::pred || !(*value)[0].dims.empty())
      return operation_.error(fmt::format("expected {} to return a scalar pred", less_.name));
    return (*value)[0].integers[0] != 0;
  }

  const ArrayOperation& operation_;
  const HloComputation& less_;
  const std::vector<HloArray>& moved_;
};

}  // namespace

Expected<HloArrays> sort_operation(const ArrayOperation& operation) {
  const HloComputation* less = called(operation.module, operation.instruction, HloRole::to_apply);
  const Dims& dimension = operation.attributes().dimensions;
  if (less == nullptr || operation.operands.empty() || dimension.size() != 1 || to_size(dimension[0]) >= operation.operand(0).dims.size())
    return operation.error("expected operands, one dimension of theirs, and to_apply");
  const Dims& dims = operation.operand(0).dims;
  // The sorted dimension last, so that rows are contiguous; the same exchange of two dimensions leads back.
  Dims order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[to_size(dimension[0])], order.back());
  std::vector<HloArray> moved;
  for (const HloArray* x : operation.operands) {
    if (x->dims != dims) return operation.error("expected operands of one shape");
    moved.push_back(transposed(*x, order));
  }
  const std::size_t count = to_size(elements_of(moved[0])), row = to_size(dims[to_size(dimension[0])]);
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), std::size_t{0});
  RowSort rows{operation, *less, moved};
  for (std::size_t first = 0; row > 0 && first < count; first += row)
    if (const auto ok = rows.sort(places, first, first + row); !ok) return ok.error();
  HloArrays results;
  for (const HloArray& from : moved) {
    HloArray to = from;
    for (std::size_t i = 0; i < count; ++i) set_element(to, i, element_of(from, places[i]));
    results.push_back(transposed(to, order));
  }
  return results;
}

}  // namespace podsim
