#include "workloads/hlo/instruction_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <string_view>
#include <tuple>
#include <vector>

#include "workloads/hlo/async_shapes.hpp"
#include "workloads/hlo/hlo_transform.hpp"

namespace podsim {

namespace {

using Problem = std::optional<std::string>;
using Dims = std::vector<std::int64_t>;

std::string cut_text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")).substr(0, 200); }

/// The compilers mix widths; what holds another kind of number is another value.
enum class Numbers : std::uint8_t { truth, integer, real, complex, none };
Numbers numbers_of(HloType type) {
  if (type == HloType::pred) return Numbers::truth;
  if (is_float(type)) return Numbers::real;
  if (is_complex(type)) return Numbers::complex;
  return is_integer(type) ? Numbers::integer : Numbers::none;
}

/// Products of attributes, which are any numbers below 2^53, with dimensions.
__extension__ typedef __int128 Wide;
/// -1, the length of no dimension, where it is out of their range.
std::int64_t length_of(Wide length) { return length < 0 || length > (Wide{1} << 53) ? -1 : static_cast<std::int64_t>(length); }

bool is_static_array(const HloShape& shape) { return shape.is_array() && shape.dynamic_dims.empty(); }

/// One instruction whose operands are all there, as a whole.
class Shapes {
 public:
  Shapes(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands)
      : instruction_{instruction}, attributes_{*instruction.attributes}, shape_{result}, operands_{operands} {}

  [[nodiscard]] Problem problem() const {
    if (calls_a_computation() && instruction_.calls.empty()) return fmt::format("expected the computation of {}, calls= or to_apply=, found none", name_of(instruction_.opcode));
    if (auto wrong = of_operands()) return wrong;
    if (auto wrong = of_named_dimensions()) return wrong;
    using enum HloOpcode;
    switch (instruction_.opcode) {
      case convolution: return of_convolution();
      case get_tuple_element: return of_element();
      case tuple: return of_tuple();
      case opt_barrier: return operands_.size() == 1 ? same(0, shape_) : fmt::format("expected one operand of opt-barrier, got {}", operands_.size());
      case copy:
      case reverse:
      case collective_permute: return operands_.size() == 1 ? alike(operand(0), shape_) : std::nullopt;
      case dynamic_update_slice: return of_update();
      case all_reduce:
      case all_to_all: return each_alike();
      case sort: return attributes_.dimensions.size() == 1 ? each_alike() : fmt::format("expected dimensions={{D}} of sort, found {} of them", attributes_.dimensions.size());
      case fft: return operands_.size() == 1 ? transform_problem(instruction_, operand(0), shape_) : std::nullopt;
      case all_gather:
      case reduce_scatter: return each_of_blocks();
      case slice: return of_slice();
      case dynamic_slice: return of_dynamic_slice();
      case pad: return of_pad();
      case reshape: return of_reshape();
      case bitcast: return of_bitcast();
      case transpose: return of_transpose();
      case broadcast: return of_broadcast();
      case reduce: return of_reduce();
      case reduce_window: return of_window();
      case select_and_scatter: return operands_.empty() ? std::nullopt : alike(operand(0), shape_);
      case concatenate: return of_concatenate();
      case gather: return of_gather();
      case scatter: return of_scatter();
      case dot: return of_dot();
      default: return is_elementwise(instruction_.opcode) ? of_elementwise() : std::nullopt;
    }
  }

 private:
  [[nodiscard]] bool calls_a_computation() const {
    using enum HloOpcode;
    constexpr auto callers = std::to_array<HloOpcode>({all_reduce, call, fusion, map, reduce, reduce_scatter, reduce_window, scatter, select_and_scatter});
    return std::ranges::find(callers, instruction_.opcode) != callers.end();
  }

  /// Of what goes along dimensions of the result.
  [[nodiscard]] Problem of_named_dimensions() const {
    using enum HloOpcode;
    if (instruction_.opcode != reverse && instruction_.opcode != sort && instruction_.opcode != iota && instruction_.opcode != all_to_all) return {};
    const HloShape& array = shape_.is_tuple() && !shape_.elements.empty() ? shape_.elements.front() : shape_;
    for (const std::int64_t dim : attributes_.dimensions)
      if (array.is_array() && (dim < 0 || static_cast<std::size_t>(dim) >= array.rank())) return fmt::format("expected dimensions of {}, got {}", cut_text(array), dim);
    return {};
  }

  /// How many operands an operation on arrays has, 0 if more than one number is right; neither they nor the result are tuples.
  [[nodiscard]] std::size_t operands_wanted() const {
    using enum HloOpcode;
    switch (instruction_.opcode) {
      case select:
      case clamp: return 3;
      case add:
      case and_:
      case atan2:
      case compare:
      case complex:
      case convolution:
      case divide:
      case dot:
      case maximum:
      case minimum:
      case multiply:
      case or_:
      case pad:
      case power:
      case remainder:
      case shift_left:
      case shift_right_arithmetic:
      case shift_right_logical:
      case stochastic_convert:
      case subtract:
      case xor_: return 2;
      case bitcast:
      case broadcast:
      case reshape:
      case reverse:
      case slice:
      case transpose: return 1;
      default: return is_elementwise(instruction_.opcode) ? 1 : 0;
    }
  }
  [[nodiscard]] Problem of_operands() const {
    const std::size_t wanted = operands_wanted();
    if (wanted == 0) return {};
    if (operands_.size() != wanted) return fmt::format("expected {} operand{} of {}, got {}", wanted, wanted == 1 ? "" : "s", name_of(instruction_.opcode), operands_.size());
    for (std::size_t o = 0; o < wanted; ++o)
      if (operand(o).is_tuple() && instruction_.opcode != HloOpcode::bitcast) return fmt::format("expected an array as operand {}, got {}", o, cut_text(operand(o)));
    if (shape_.is_tuple() && instruction_.opcode != HloOpcode::bitcast) return fmt::format("expected an array as the result of {}, got {}", name_of(instruction_.opcode), cut_text(shape_));
    return {};
  }

  [[nodiscard]] const HloShape& operand(std::size_t i) const { return *operands_[i]; }
  [[nodiscard]] bool known(std::size_t i) const { return i < operands_.size() && is_static_array(operand(i)) && is_static_array(shape_); }

  [[nodiscard]] Problem same(std::size_t o, const HloShape& told) const {
    if (same_dims(told, operand(o))) return {};
    return fmt::format("expected the shape of operand {}, {}, got {}", o, cut_text(operand(o)), cut_text(told));
  }

  /// The same dimensions and kind of numbers.
  static Problem alike(const HloShape& given, const HloShape& told) {
    if (!is_static_array(given) || !is_static_array(told)) return {};
    if (given.dims == told.dims && numbers_of(given.type) == numbers_of(told.type)) return {};
    return fmt::format("expected a result like its operand, {}, got {}", cut_text(given), cut_text(told));
  }

  [[nodiscard]] Problem has(const Dims& wanted) const {
    if (!is_static_array(shape_) || wanted == shape_.dims) return {};
    return fmt::format("expected a result of {}, got {}", cut_text(wanted), cut_text(shape_));
  }
  /// As the operand in the kind of its numbers too.
  [[nodiscard]] Problem has(const Dims& wanted, const HloShape& of) const {
    if (auto wrong = has(wanted)) return wrong;
    if (!is_static_array(shape_) || numbers_of(of.type) == numbers_of(shape_.type)) return {};
    return fmt::format("expected a result like its operand, {}, got {}", cut_text(of), cut_text(shape_));
  }

  [[nodiscard]] Problem of_element() const {
    if (operands_.size() != 1) return fmt::format("expected one operand of get-tuple-element, got {}", operands_.size());
    const auto index = static_cast<std::size_t>(instruction_.number);
    if (index >= operand(0).elements.size())
      return fmt::format("expected an index below the {} elements of the tuple, got {}", operand(0).elements.size(), instruction_.number);
    if (same_dims(operand(0).elements[index], shape_)) return {};
    return fmt::format("expected the shape of element {}, {}, got {}", index, cut_text(operand(0).elements[index]), cut_text(shape_));
  }

  [[nodiscard]] Problem of_tuple() const {
    if (operands_.size() != shape_.elements.size()) return fmt::format("expected a tuple of {} elements, as it has operands, got {}", operands_.size(), shape_.elements.size());
    for (std::size_t o = 0; o < operands_.size(); ++o)
      if (auto wrong = same(o, shape_.elements[o])) return wrong;
    return {};
  }

  /// The result, or the element of it, that belongs to each operand.
  [[nodiscard]] Problem each_alike() const {
    if (!shape_.is_tuple()) return operands_.empty() ? std::nullopt : alike(operand(0), shape_);
    for (std::size_t o = 0; o < std::min(operands_.size(), shape_.elements.size()); ++o)
      if (auto wrong = alike(operand(o), shape_.elements[o])) return wrong;
    return {};
  }

  /// Of a gather each operand, of a reduce-scatter each result.
  [[nodiscard]] Problem each_of_blocks() const {
    const bool gathers = instruction_.opcode == HloOpcode::all_gather;
    if (!shape_.is_tuple() && operands_.size() > 1) return fmt::format("expected a tuple of {} results, got {}", operands_.size(), cut_text(shape_));
    if (shape_.is_tuple() && shape_.elements.size() != operands_.size()) return fmt::format("expected a result of each of {} operands, got {}", operands_.size(), cut_text(shape_));
    for (std::size_t o = 0; o < operands_.size(); ++o) {
      const HloShape& result = shape_.is_tuple() ? shape_.elements[o] : shape_;
      if (auto wrong = gathers ? of_blocks(operand(o), result) : of_blocks(result, operand(o))) return wrong;
    }
    return {};
  }

  /// The whole is a block of each member of a group, along one dimension.
  [[nodiscard]] Problem of_blocks(const HloShape& block, const HloShape& whole) const {
    if (!is_static_array(block) || !is_static_array(whole)) return {};
    if (attributes_.dimensions.size() != 1) return fmt::format("expected dimensions={{D}} of {}, found {} of them", name_of(instruction_.opcode), attributes_.dimensions.size());
    const auto dim = static_cast<std::size_t>(attributes_.dimensions.front());
    const bool cut_there = dim < block.rank() && block.rank() == whole.rank() && block.dims[dim] > 0 && whole.dims[dim] % block.dims[dim] == 0;
    Dims rest = block.dims;
    if (cut_there) rest[dim] = whole.dims[dim];
    if (cut_there && rest == whole.dims && numbers_of(block.type) == numbers_of(whole.type) && has_members(whole.dims[dim] / block.dims[dim])) return {};
    return fmt::format("expected a block of each member of a group along dimension {}, got {} of {}", dim, cut_text(block), cut_text(whole));
  }
  /// Whether groups have that many members, as far as the instruction alone tells: where ids are of replicas each stands for all partitions.
  [[nodiscard]] bool has_members(std::int64_t members) const {
    const auto size = attributes_.replica_groups ? attributes_.replica_groups->uniform_size() : std::nullopt;
    return !size || (group_mode_of(instruction_) == HloGroupMode::replicas_everywhere ? members % *size == 0 : members == *size);
  }

  [[nodiscard]] Problem of_slice() const {
    if (!known(0)) return {};
    Dims wanted;
    for (const HloSliceExtent& extent : attributes_.slice) wanted.push_back(extent.stride > 0 ? (extent.limit - extent.start + extent.stride - 1) / extent.stride : 0);
    if (operand(0).rank() != wanted.size()) return fmt::format("expected a slice of the {} dimensions of {}, got {}", operand(0).rank(), cut_text(operand(0)), wanted.size());
    for (std::size_t d = 0; d < wanted.size(); ++d)
      if (attributes_.slice[d].limit > operand(0).dims[d]) return fmt::format("expected a slice within dimension {} of {}, got one that ends at {}", d, cut_text(operand(0)), attributes_.slice[d].limit);
    return has(wanted, operand(0));
  }

  /// Where a slice of operand 0 starts, from operand `first` on: a whole number for each dimension, or all of them as one array.
  [[nodiscard]] Problem of_starts(std::size_t first) const {
    const std::size_t rank = operand(0).rank(), given = operands_.size() - std::min(first, operands_.size());
    for (std::size_t o = first; o < operands_.size(); ++o)
      if (!operand(o).is_array() || numbers_of(operand(o).type) != Numbers::integer) return fmt::format("expected whole numbers as operand {}, where the slice starts, got {}", o, cut_text(operand(o)));
    if (given == 1 && operand(first).dims == Dims{static_cast<std::int64_t>(rank)}) return {};
    if (given != rank) return fmt::format("expected where the slice starts in each of the {} dimensions of {}, got {} operands for it", rank, cut_text(operand(0)), given);
    return {};
  }

  [[nodiscard]] Problem of_dynamic_slice() const {
    if (!known(0)) return {};
    const Dims& sizes = attributes_.dynamic_slice_sizes;
    const bool within = sizes.size() == operand(0).rank() && std::equal(sizes.begin(), sizes.end(), operand(0).dims.begin(), std::less_equal{});
    if (auto wrong = of_starts(1)) return wrong;
    return within ? has(sizes, operand(0)) : fmt::format("expected a slice within {}, got one of {}", cut_text(operand(0)), cut_text(sizes));
  }

  [[nodiscard]] Problem of_update() const {
    if (!known(0) || operands_.size() < 2) return {};
    if (auto wrong = alike(operand(0), shape_)) return wrong;
    const HloShape& update = operand(1);
    if (!is_static_array(update)) return {};
    const bool fits = update.rank() == shape_.rank() && std::equal(update.dims.begin(), update.dims.end(), shape_.dims.begin(), std::less_equal{});
    if (fits && numbers_of(update.type) == numbers_of(shape_.type)) return of_starts(2);
    return fmt::format("expected an update within {}, got {}", cut_text(shape_), cut_text(update));
  }

  [[nodiscard]] Problem of_pad() const {
    if (!known(0)) return {};
    if (attributes_.padding.size() != operand(0).rank()) return fmt::format("expected padding of the {} dimensions of {}, got {}", operand(0).rank(), cut_text(operand(0)), attributes_.padding.size());
    Dims wanted = operand(0).dims;
    for (std::size_t d = 0; d < wanted.size(); ++d) {
      const HloPadding& padding = attributes_.padding[d];
      wanted[d] = length_of(Wide{wanted[d]} + padding.low + padding.high + Wide{std::max<std::int64_t>(wanted[d] - 1, 0)} * padding.interior);
    }
    return has(wanted, operand(0));
  }

  [[nodiscard]] Problem of_reshape() const {
    if (!known(0)) return {};
    if (elements_of(operand(0)) == elements_of(shape_) && numbers_of(operand(0).type) == numbers_of(shape_.type)) return {};
    return fmt::format("expected as many elements as its operand has, {}, got {}", cut_text(operand(0)), cut_text(shape_));
  }

  /// The same bytes, as they are or as the device stores them.
  [[nodiscard]] Problem of_bitcast() const {
    if (!known(0) || logical_bytes(operand(0)) == logical_bytes(shape_) || device_bytes(operand(0)) == device_bytes(shape_)) return {};
    return fmt::format("expected as many bytes as its operand has, {}, got {}", cut_text(operand(0)), cut_text(shape_));
  }

  [[nodiscard]] Problem of_dimensions() const {
    return fmt::format("expected dimensions= for the {} dimensions of {}, got {}", operand(0).rank(), cut_text(operand(0)), attributes_.dimensions.size());
  }

  [[nodiscard]] Problem of_transpose() const {
    if (!known(0)) return {};
    if (attributes_.dimensions.size() != operand(0).rank()) return of_dimensions();
    Dims wanted;
    for (const std::int64_t from : attributes_.dimensions) {
      if (from < 0 || static_cast<std::size_t>(from) >= operand(0).rank()) return fmt::format("expected dimensions of {}, got {}", cut_text(operand(0)), from);
      wanted.push_back(operand(0).dims[static_cast<std::size_t>(from)]);
    }
    return has(wanted, operand(0));
  }

  [[nodiscard]] Problem of_broadcast() const {
    if (!known(0)) return {};
    if (attributes_.dimensions.size() != operand(0).rank()) return of_dimensions();
    Dims wanted = shape_.dims;
    for (std::size_t d = 0; d < operand(0).rank(); ++d) {
      const std::int64_t to = attributes_.dimensions[d];
      if (to < 0 || static_cast<std::size_t>(to) >= wanted.size()) return fmt::format("expected dimensions of {}, got {}", cut_text(shape_), to);
      wanted[static_cast<std::size_t>(to)] = operand(0).dims[d];
    }
    return has(wanted, operand(0));
  }

  /// Without the dimensions that are reduced; of several arrays at once a tuple.
  [[nodiscard]] Problem of_reduce() const {
    if (operands_.empty() || !is_static_array(operand(0))) return {};
    const Dims wanted = without(operand(0).dims, attributes_.dimensions);
    if (!shape_.is_tuple()) return has(wanted, operand(0));
    for (const HloShape& element : shape_.elements)
      if (is_static_array(element) && element.dims != wanted) return fmt::format("expected results of {}, got {}", cut_text(wanted), cut_text(element));
    return {};
  }

  /// How many places a window has along a dimension.
  static std::int64_t places_of(const HloWindowDimension& window, std::int64_t length) {
    const Wide base = Wide{std::max<std::int64_t>(length - 1, 0)} * window.lhs_dilate + std::min<std::int64_t>(length, 1) + window.pad_low + window.pad_high;
    const Wide reach = Wide{window.size - 1} * window.rhs_dilate + 1;
    return base < reach || window.stride < 1 ? 0 : length_of((base - reach) / window.stride + 1);
  }

  [[nodiscard]] Problem of_window() const {
    if (!known(0) || attributes_.window.size() != operand(0).rank()) return {};
    Dims wanted;
    for (std::size_t d = 0; d < operand(0).rank(); ++d) wanted.push_back(places_of(attributes_.window[d], operand(0).dims[d]));
    return has(wanted);
  }

  /// Batches, features and places of the window, where dim_labels says that they lie.
  [[nodiscard]] Problem of_convolution() const {
    if (!known(0) || !known(1) || !attributes_.convolution) return {};
    const HloConvolutionDims& at = *attributes_.convolution;
    const HloShape &input = operand(0), &kernel = operand(1);
    const std::size_t spatial = at.input_spatial.size();
    if (input.rank() != spatial + 2 || kernel.rank() != spatial + 2 || shape_.rank() != spatial + 2)
      return fmt::format("expected {} dimensions as in dim_labels, got {}, {} and {}", spatial + 2, cut_text(input), cut_text(kernel), cut_text(shape_));
    const auto length = [](const HloShape& shape, int dim) { return shape.dims[static_cast<std::size_t>(dim)]; };
    if (length(input, at.input_feature) != Wide{length(kernel, at.kernel_input)} * attributes_.feature_group_count)
      return fmt::format("expected operands that agree on input features, got {} and {}", cut_text(input), cut_text(kernel));
    Dims wanted(spatial + 2);
    const auto wants = [&](int dim, std::int64_t extent) { wanted[static_cast<std::size_t>(dim)] = extent; };
    wants(at.output_batch, length(input, at.input_batch) / std::max<std::int64_t>(attributes_.batch_group_count, 1));
    wants(at.output_feature, length(kernel, at.kernel_output));
    for (std::size_t d = 0; d < spatial; ++d) {
      const HloWindowDimension window = d < attributes_.window.size() ? attributes_.window[d] : HloWindowDimension{};
      if (window.size != length(kernel, at.kernel_spatial[d])) return fmt::format("expected a window of the kernel {}, got {} places along dimension {}", cut_text(kernel), window.size, d);
      wants(at.output_spatial[d], places_of(window, length(input, at.input_spatial[d])));
    }
    return has(wanted);
  }

  [[nodiscard]] Problem of_concatenate() const {
    if (operands_.empty() || !known(0)) return {};
    if (attributes_.dimensions.size() != 1) return fmt::format("expected dimensions={{D}} of concatenate, found {} of them", attributes_.dimensions.size());
    if (!std::ranges::all_of(operands_, [](const HloShape* o) { return is_static_array(*o); })) return {};
    const auto dim = static_cast<std::size_t>(attributes_.dimensions.front());
    Dims wanted = operand(0).dims;
    if (dim >= wanted.size()) return fmt::format("expected a dimension of {}, got {}", cut_text(operand(0)), dim);
    for (std::size_t o = 1; o < operands_.size(); ++o) {
      Dims other = operand(o).dims;
      if (other.size() != wanted.size()) return fmt::format("expected operands of {} dimensions, got {}", wanted.size(), cut_text(operand(o)));
      const std::int64_t length = wanted[dim] + other[dim];
      wanted[dim] = other[dim] = length;
      if (other != wanted) return fmt::format("expected operands that differ in dimension {} only, got {} and {}", dim, cut_text(operand(0)), cut_text(operand(o)));
    }
    return has(wanted, operand(0));
  }

  /// Of indices: their dimensions without the one along which an index lies.
  [[nodiscard]] Dims places(const HloShape& indices) const {
    Dims dims = indices.dims;
    const std::int64_t vector = number_named(attributes_, "index_vector_dim").value_or(-1);
    if (vector >= 0 && static_cast<std::size_t>(vector) < dims.size()) dims.erase(dims.begin() + vector);
    return dims;
  }
  static Dims without(const Dims& dims, const Dims& positions) {
    Dims rest;
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (std::ranges::find(positions, static_cast<std::int64_t>(d)) == positions.end()) rest.push_back(dims[d]);
    return rest;
  }

  /// The dimensions that an attribute lists are dimensions of an array, each once; but for those of indices and batches they increase.
  [[nodiscard]] Problem names_dimensions(std::string_view name, const HloShape& array) const {
    Dims dims = listed_dimensions(attributes_, name);
    for (const std::int64_t dim : dims)
      if (dim < 0 || static_cast<std::size_t>(dim) >= array.rank()) return fmt::format("expected dimensions of {} in {}, got {}", cut_text(array), name, dim);
    const bool increase = name == "offset_dims" || name == "collapsed_slice_dims" || name == "update_window_dims" || name == "inserted_window_dims";
    if (increase && !std::ranges::is_sorted(dims)) return fmt::format("expected {} in increasing order, got {}", name, cut_text(dims));
    std::ranges::sort(dims);
    if (std::ranges::adjacent_find(dims) != dims.end()) return fmt::format("expected each dimension once in {}, got {}", name, cut_text(listed_dimensions(attributes_, name)));
    return {};
  }

  [[nodiscard]] Problem of_gather() const {
    if (!known(0) || operands_.size() != 2 || !is_static_array(operand(1))) return {};
    Dims window = listed_dimensions(attributes_, "slice_sizes"), left_out = listed_dimensions(attributes_, "collapsed_slice_dims");
    for (const std::string_view name : {"start_index_map", "collapsed_slice_dims", "operand_batching_dims"})
      if (auto wrong = names_dimensions(name, operand(0))) return wrong;
    if (auto wrong = names_dimensions("offset_dims", shape_)) return wrong;
    if (window.size() != operand(0).rank()) return fmt::format("expected slice_sizes for the {} dimensions of {}, got {}", operand(0).rank(), cut_text(operand(0)), window.size());
    std::ranges::copy(listed_dimensions(attributes_, "operand_batching_dims"), std::back_inserter(left_out));
    window = without(window, left_out);
    const Dims offsets = listed_dimensions(attributes_, "offset_dims"), batch = places(operand(1));
    Dims wanted;
    for (std::size_t d = 0, w = 0, b = 0; d < window.size() + batch.size(); ++d) {
      const bool in_window = std::ranges::find(offsets, static_cast<std::int64_t>(d)) != offsets.end();
      if (in_window ? w == window.size() : b == batch.size()) return fmt::format("expected offset_dims for the {} dimensions that a slice keeps, got {}", window.size(), cut_text(offsets));
      wanted.push_back(in_window ? window[w++] : batch[b++]);
    }
    return has(wanted, operand(0));
  }

  /// What an update writes at a place lies in the dimensions of the array that are not left out of it.
  [[nodiscard]] Problem of_update_windows(const HloShape& array, const HloShape& updates) const {
    if (!is_static_array(array) || !is_static_array(updates)) return {};
    Dims left_out;
    for (const std::string_view name : {"inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims"}) {
      if (auto wrong = names_dimensions(name, array)) return wrong;
      if (name != "scatter_dims_to_operand_dims") std::ranges::copy(listed_dimensions(attributes_, name), std::back_inserter(left_out));
    }
    if (auto wrong = names_dimensions("update_window_dims", updates)) return wrong;
    const Dims room = without(array.dims, left_out);
    Dims window;
    for (const std::int64_t dim : listed_dimensions(attributes_, "update_window_dims")) window.push_back(updates.dims[static_cast<std::size_t>(dim)]);
    if (window.size() == room.size() && std::equal(window.begin(), window.end(), room.begin(), std::less_equal{})) return {};
    return fmt::format("expected updates within {} of each place, got {}", cut_text(room), cut_text(window));
  }

  /// Arrays, then indices, then as many updates.
  [[nodiscard]] Problem of_scatter() const {
    const std::size_t arrays = operands_.size() / 2;
    if (operands_.size() % 2 == 0 || arrays == 0 || !is_static_array(operand(arrays))) return {};
    for (std::size_t a = 0; a < arrays; ++a) {
      if (shape_.is_tuple() && a >= shape_.elements.size()) return {};
      if (auto wrong = alike(operand(a), shape_.is_tuple() ? shape_.elements[a] : shape_)) return wrong;
      const HloShape& updates = operand(arrays + 1 + a);
      if (is_static_array(updates) && without(updates.dims, listed_dimensions(attributes_, "update_window_dims")) != places(operand(arrays)))
        return fmt::format("expected an update for each place in {}, got {}", cut_text(operand(arrays)), cut_text(updates));
      if (auto wrong = of_update_windows(operand(a), updates)) return wrong;
    }
    return {};
  }

  [[nodiscard]] Problem of_dot() const {
    if (!known(0) || !known(1)) return {};
    const auto &a = attributes_.lhs_contracting, &b = attributes_.rhs_contracting;
    const auto within = [](const Dims& dims, const HloShape& shape) { return std::ranges::all_of(dims, [&](std::int64_t d) { return d >= 0 && static_cast<std::size_t>(d) < shape.rank(); }); };
    const HloShape &lhs = operand(0), &rhs = operand(1);
    if (!within(a, lhs) || !within(attributes_.lhs_batch, lhs)) return fmt::format("expected dimensions of {}, got {}", cut_text(lhs), cut_text(a));
    if (!within(b, rhs) || !within(attributes_.rhs_batch, rhs)) return fmt::format("expected dimensions of {}, got {}", cut_text(rhs), cut_text(b));
    const auto of = [](const Dims& dims, const HloShape& shape) {
      Dims lengths;
      for (const std::int64_t d : dims) lengths.push_back(shape.dims[static_cast<std::size_t>(d)]);
      return lengths;
    };
    if (of(a, lhs) != of(b, rhs) || of(attributes_.lhs_batch, lhs) != of(attributes_.rhs_batch, rhs))
      return fmt::format("expected operands that agree on what is contracted and on batches, got {} and {}", cut_text(lhs), cut_text(rhs));
    Dims wanted = of(attributes_.lhs_batch, lhs);
    for (const auto& [shape, contracting, batch] : {std::tie(lhs, a, attributes_.lhs_batch), std::tie(rhs, b, attributes_.rhs_batch)}) {
      Dims used = contracting;
      used.insert(used.end(), batch.begin(), batch.end());
      std::ranges::copy(without(shape.dims, used), std::back_inserter(wanted));
    }
    return has(wanted);
  }

  /// Scalars may stand for the bounds of a clamp and the choice of a select.
  [[nodiscard]] Problem of_elementwise() const {
    if (instruction_.opcode == HloOpcode::bitcast_convert || !shape_.is_array()) return {};
    const bool takes_scalars = instruction_.opcode == HloOpcode::select || instruction_.opcode == HloOpcode::clamp;
    for (std::size_t o = 0; o < operands_.size(); ++o)
      if (operand(o).is_array() && operand(o).dims != shape_.dims && !(takes_scalars && operand(o).dims.empty()))
        return fmt::format("expected operands of the dimensions of the result, {}, got {}", cut_text(shape_), cut_text(operand(o)));
    return of_numbers();
  }

  [[nodiscard]] Problem of_numbers() const {
    using enum HloOpcode;
    const auto expect = [&](std::size_t o, HloType like) -> Problem {
      if (o >= operands_.size() || !operand(o).is_array() || numbers_of(operand(o).type) == numbers_of(like)) return {};
      return fmt::format("expected operand {} of the kind of {}, got {}", o, name_of(like), cut_text(operand(o)));
    };
    switch (instruction_.opcode) {
      case abs:
      case complex:
      case convert:
      case imag:
      case power:
      case real:
      case stochastic_convert: return {};
      case compare:
        if (shape_.type != HloType::pred) return fmt::format("expected a result of pred, got {}", cut_text(shape_));
        return operands_.empty() ? std::nullopt : expect(1, operand(0).type);
      case is_finite: return shape_.type == HloType::pred ? std::nullopt : Problem{fmt::format("expected a result of pred, got {}", cut_text(shape_))};
      case select:
        if (auto wrong = expect(0, HloType::pred)) return wrong;
        for (const std::size_t o : {1, 2})
          if (auto wrong = expect(o, shape_.type)) return wrong;
        return {};
      default:
        for (std::size_t o = 0; o < operands_.size(); ++o)
          if (auto wrong = expect(o, shape_.type)) return wrong;
        return {};
    }
  }

  const HloInstruction& instruction_;
  const HloAttributes& attributes_;
  const HloShape& shape_;
  std::span<const HloShape* const> operands_;
};

}  // namespace

std::optional<std::string> whole_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands) {
  return Shapes{instruction, result, operands}.problem();
}

std::optional<std::string> shape_problem(const HloInstruction& instruction, std::span<const HloShape* const> operands) {
  if (std::ranges::find(operands, nullptr) != operands.end()) return {};
  const bool moves = instruction.opcode == HloOpcode::send || instruction.opcode == HloOpcode::recv;
  return moves || instruction.phase != HloPhase::whole ? async_shape_problem(instruction, operands) : whole_shape_problem(instruction, *instruction.shape, operands);
}

}  // namespace podsim
