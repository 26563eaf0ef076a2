// Shapes of operations that take or put slices where indices say: dynamic-slice, dynamic-update-slice, gather, scatter.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "workloads/hlo/shape_rule.hpp"

namespace podsim {

namespace {

class IndexedShape : ShapeRule {
 public:
  using ShapeRule::ShapeRule;

  [[nodiscard]] ShapeProblem problem() const {
    switch (instruction_.opcode) {
      case HloOpcode::dynamic_slice: return of_dynamic_slice();
      case HloOpcode::dynamic_update_slice: return of_update();
      case HloOpcode::gather: return of_gather();
      default: return of_scatter();
    }
  }

 private:
  /// Where a slice of operand 0 starts, from operand `first` on: a whole number for each dimension, or all of them as one array.
  [[nodiscard]] ShapeProblem of_starts(std::size_t first) const {
    const std::size_t rank = operand(0).rank(), given = operands_.size() - std::min(first, operands_.size());
    for (std::size_t o = first; o < operands_.size(); ++o)
      if (!operand(o).is_array() || number_kind_of(operand(o).type) != NumberKind::integer) return fmt::format("expected whole numbers as operand {}, where the slice starts, got {}", o, cut_text(operand(o)));
    if (given == 1 && operand(first).dims == ShapeDims{static_cast<std::int64_t>(rank)}) return {};
    if (given != rank) return fmt::format("expected where the slice starts in each of the {} dimensions of {}, got {} operands for it", rank, cut_text(operand(0)), given);
    return {};
  }

  [[nodiscard]] ShapeProblem of_dynamic_slice() const {
    if (operands_.empty() || !operand(0).is_array()) return fmt::format("expected an array and where its slice starts, got {}", operands_.empty() ? "nothing" : cut_text(operand(0)));
    if (auto wrong = of_starts(1)) return wrong;
    if (!known(0)) return {};
    const ShapeDims& sizes = attributes_.dynamic_slice_sizes;
    const bool within = sizes.size() == operand(0).rank() && std::equal(sizes.begin(), sizes.end(), operand(0).dims.begin(), std::less_equal{});
    return within ? has(sizes, operand(0)) : fmt::format("expected a slice within {}, got one of {}", cut_text(operand(0)), cut_text(sizes));
  }

  [[nodiscard]] ShapeProblem of_update() const {
    if (operands_.size() < 2 || !operand(0).is_array() || !operand(1).is_array()) return fmt::format("expected an array, its update and where that starts, got {} operand{}", operands_.size(), operands_.size() == 1 ? "" : "s");
    if (auto wrong = alike(operand(0), shape_)) return wrong;
    if (auto wrong = of_starts(2)) return wrong;
    const HloShape& update = operand(1);
    if (!known(0) || !is_static_array(update)) return {};
    const bool fits = update.rank() == shape_.rank() && std::equal(update.dims.begin(), update.dims.end(), shape_.dims.begin(), std::less_equal{});
    if (fits && number_kind_of(update.type) == number_kind_of(shape_.type)) return {};
    return fmt::format("expected an update within {}, got {}", cut_text(shape_), cut_text(update));
  }

  /// Indices: whole numbers, as many of them along one dimension (or one, where that is behind all) as the attribute `name` lists dimensions of the array.
  [[nodiscard]] ShapeProblem of_indices(const HloShape& indices, std::string_view name) const {
    if (number_kind_of(indices.type) != NumberKind::integer) return fmt::format("expected whole numbers as indices, got {}", cut_text(indices));
    const std::int64_t along = number_named(attributes_, "index_vector_dim").value_or(-1);
    if (along < 0 || static_cast<std::size_t>(along) > indices.rank()) return fmt::format("expected index_vector_dim from 0 to {}, got {}", indices.rank(), along);
    const std::int64_t given = static_cast<std::size_t>(along) < indices.rank() ? indices.dims[static_cast<std::size_t>(along)] : 1;
    const auto wanted = static_cast<std::int64_t>(listed_dimensions(attributes_, name).size());
    if (given == wanted || !is_static_array(indices)) return {};
    return fmt::format("expected an index for each of the {} dimensions in {}, got {} in {}", wanted, name, given, cut_text(indices));
  }
  /// Their dimensions without the one along which an index lies.
  [[nodiscard]] ShapeDims places(const HloShape& indices) const { return dims_without(indices.dims, {number_named(attributes_, "index_vector_dim").value_or(-1)}); }

  /// The dimensions that an attribute lists are dimensions of an array, each once; but for those of indices and batches they increase.
  [[nodiscard]] ShapeProblem lists_dimensions(std::string_view name, const HloShape& array) const {
    const ShapeDims dims = listed_dimensions(attributes_, name);
    const bool increase = name == "offset_dims" || name == "collapsed_slice_dims" || name == "update_window_dims" || name == "inserted_window_dims";
    if (auto wrong = names_dimensions(name, dims, array)) return wrong;
    if (increase && !std::ranges::is_sorted(dims)) return fmt::format("expected {} in increasing order, got {}", name, cut_text(dims));
    return {};
  }

  [[nodiscard]] ShapeProblem of_gather() const {
    if (auto wrong = of_indices(operand(1), "start_index_map")) return wrong;
    if (!known(0) || !is_static_array(operand(1))) return {};
    ShapeDims window = listed_dimensions(attributes_, "slice_sizes"), left_out = listed_dimensions(attributes_, "collapsed_slice_dims");
    for (const std::string_view name : {"start_index_map", "collapsed_slice_dims", "operand_batching_dims"})
      if (auto wrong = lists_dimensions(name, operand(0))) return wrong;
    if (auto wrong = lists_dimensions("offset_dims", shape_)) return wrong;
    if (window.size() != operand(0).rank()) return fmt::format("expected slice_sizes for the {} dimensions of {}, got {}", operand(0).rank(), cut_text(operand(0)), window.size());
    std::ranges::copy(listed_dimensions(attributes_, "operand_batching_dims"), std::back_inserter(left_out));
    for (std::size_t d = 0; d < window.size(); ++d) {
      const std::int64_t most = std::ranges::find(left_out, static_cast<std::int64_t>(d)) == left_out.end() ? operand(0).dims[d] : 1;
      if (window[d] < 0 || window[d] > most) return fmt::format("expected slice_sizes from 0 to {} along dimension {} of {}, got {}", most, d, cut_text(operand(0)), window[d]);
    }
    window = dims_without(window, left_out);
    const ShapeDims offsets = listed_dimensions(attributes_, "offset_dims"), batch = places(operand(1));
    ShapeDims wanted;
    for (std::size_t d = 0, w = 0, b = 0; d < window.size() + batch.size(); ++d) {
      const bool in_window = std::ranges::find(offsets, static_cast<std::int64_t>(d)) != offsets.end();
      if (in_window ? w == window.size() : b == batch.size()) return fmt::format("expected offset_dims for the {} dimensions that a slice keeps, got {}", window.size(), cut_text(offsets));
      wanted.push_back(in_window ? window[w++] : batch[b++]);
    }
    return has(wanted, operand(0));
  }

  /// What an update writes at a place lies in the dimensions of the array that are not left out of it.
  [[nodiscard]] ShapeProblem of_update_windows(const HloShape& array, const HloShape& updates) const {
    if (!is_static_array(array) || !is_static_array(updates)) return {};
    ShapeDims left_out;
    for (const std::string_view name : {"inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims"}) {
      if (auto wrong = lists_dimensions(name, array)) return wrong;
      if (name != "scatter_dims_to_operand_dims") std::ranges::copy(listed_dimensions(attributes_, name), std::back_inserter(left_out));
    }
    if (auto wrong = lists_dimensions("update_window_dims", updates)) return wrong;
    const ShapeDims room = dims_without(array.dims, left_out);
    ShapeDims window;
    for (const std::int64_t dim : listed_dimensions(attributes_, "update_window_dims")) window.push_back(updates.dims[static_cast<std::size_t>(dim)]);
    if (window.size() == room.size() && std::equal(window.begin(), window.end(), room.begin(), std::less_equal{})) return {};
    return fmt::format("expected updates within {} of each place, got {}", cut_text(room), cut_text(window));
  }

  /// Arrays, then indices, then as many updates.
  [[nodiscard]] ShapeProblem of_scatter() const {
    const std::size_t arrays = operands_.size() / 2;
    if (operands_.size() % 2 == 0 || arrays == 0) return fmt::format("expected arrays, indices and an update for each array, got {} operand{}", operands_.size(), operands_.size() == 1 ? "" : "s");
    if (shape_.is_tuple() ? shape_.elements.size() != arrays : arrays != 1) return fmt::format("expected a result of each of {} array{}, got {}", arrays, arrays == 1 ? "" : "s", cut_text(shape_));
    if (auto wrong = of_indices(operand(arrays), "scatter_dims_to_operand_dims")) return wrong;
    if (!is_static_array(operand(arrays))) return {};
    for (std::size_t a = 0; a < arrays; ++a) {
      if (auto wrong = alike(operand(a), shape_.is_tuple() ? shape_.elements[a] : shape_)) return wrong;
      const HloShape& updates = operand(arrays + 1 + a);
      if (!operand(a).is_array() || !updates.is_array()) return fmt::format("expected arrays, got {} and {}", cut_text(operand(a)), cut_text(updates));
      if (is_static_array(updates) && dims_without(updates.dims, listed_dimensions(attributes_, "update_window_dims")) != places(operand(arrays)))
        return fmt::format("expected an update for each place in {}, got {}", cut_text(operand(arrays)), cut_text(updates));
      if (auto wrong = of_update_windows(operand(a), updates)) return wrong;
    }
    return {};
  }
};

}  // namespace

ShapeProblem indexed_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands) {
  return IndexedShape{instruction, result, operands}.problem();
}

}  // namespace podsim
